/* A driver library without a driver: the entry points of libnvidia-ml.so.1 that tape-gpu-exporter asks, with three cards.
 *
 *   0  tells everything; two processes compute on it
 *   1  is cut into MIG slices, and its owner may not look at the whole card
 *   2  is a card that knows no utilisation, power, clocks, MIG or processes
 *
 * The file that $FAKE_NVML names holds words that are read at every question: `lost` (card 0 fell off the bus), `none` (no
 * cards), `hang` (no answer for a minute), `unloaded` (the driver is not there). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct { int card; int slice; } device;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process;

static device cards[3] = {{0, 0}, {1, 0}, {2, 0}};
static device slices[2] = {{1, 1}, {1, 2}};

static int told(const char *word) {
    char text[256] = "";
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    return strstr(text, word) != NULL;
}

static int lost(const device *d) { return d->card == 0 && told("lost"); }

static int text(char *out, unsigned length, const char *what) {
    if (strlen(what) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(out, what);
    return SUCCESS;
}

int nvmlInit_v2(void) { return told("unloaded") ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *out, unsigned length) { return text(out, length, "550.54.15"); }

int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned length) {
    return pid == 101 ? text(out, length, "/opt/vllm/bin/python3") : NO_PERMISSION;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    if (told("hang")) sleep(60);
    *count = told("none") ? 0 : 3;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out) {
    if (index > 2) return INVALID_ARGUMENT;
    *out = &cards[index];
    return lost(*out) ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(device *d, char *out, unsigned length) {
    static const char *names[] = {"NVIDIA A40", "NVIDIA A100-SXM4-80GB", "NVIDIA GT 710"};
    return text(out, length, names[d->card]);
}

int nvmlDeviceGetUUID(device *d, char *out, unsigned length) {
    static const char *uuids[] = {"GPU-aaaa", "GPU-bbbb", "GPU-cccc"};
    return lost(d) ? GPU_IS_LOST : text(out, length, uuids[d->card]);
}

int nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
    if (d->card == 2) return NOT_SUPPORTED;
    *current = *pending = d->card == 1;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *count) {
    if (d->card != 1) return NOT_SUPPORTED;
    *count = 7;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **out) {
    if (d->card != 1 || (index != 0 && index != 3)) return NOT_FOUND;
    *out = &slices[index != 0];
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *out) {
    if (d->card == 1 && !d->slice) return NO_PERMISSION;
    out->total = d->card == 0 ? 48305799168ull : d->slice ? 10ull << 30 : 1ull << 30;
    out->used = d->card == 0 ? 41234567890ull : d->slice == 2 ? 0 : 3ull << 20;
    out->reserved = 0;
    out->free = out->total - out->used;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
    if (d->card != 0) return NOT_SUPPORTED;
    out->gpu = 37;
    out->memory = 12;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(device *d, unsigned *milliwatts) {
    *milliwatts = d->card == 0 ? 61234 : 0;
    return d->card == 2 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetTemperature(device *d, unsigned sensor, unsigned *celsius) {
    *celsius = 40 + d->card;
    return sensor ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlDeviceGetClockInfo(device *d, unsigned clock, unsigned *mhz) {
    *mhz = clock == 1 ? 1740 : 0;
    return d->card == 2 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *reasons) {
    *reasons = d->card == 0 ? 0x44 : 0x1;
    return d->card == 2 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *count, process *out) {
    if (d->card != 0) return d->card == 1 ? NO_PERMISSION : NOT_SUPPORTED;
    unsigned room = *count;
    *count = 2;
    if (room < 2) return INSUFFICIENT_SIZE;
    out[0] = (process){202, ~0ull, ~0u, ~0u};
    out[1] = (process){101, 13ull << 30, ~0u, ~0u};
    return SUCCESS;
}
