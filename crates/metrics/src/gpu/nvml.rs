//! GPUs of this machine through the driver's own library, loaded at run time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use nvml_wrapper as lib;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use tapedeck_record::GpuReading;
use tapedeck_transport::BoxFuture;

use super::{GpuDevice, GpuError, GpuProcess, GpuSource, PROCESSES, throttle_names};

/// Reads GPUs in process. Without a driver it says so, once and for all.
#[derive(Debug, Clone, Default)]
pub struct Nvml {
    state: Arc<Mutex<State>>,
    processes: bool,
}

#[derive(Debug, Default)]
struct State {
    library: Option<lib::Nvml>,
    /// The uuids seen so far by index: a GPU that is lost no longer tells its own.
    ids: BTreeMap<u32, String>,
}

impl Nvml {
    /// Nothing is loaded before the first reading.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also tells who computes on each GPU, and how much of its memory each of them holds.
    #[must_use]
    pub fn with_processes(self) -> Self {
        Self { processes: true, ..self }
    }

    fn read_now(&self) -> Result<Vec<GpuDevice>, GpuError> {
        // A driver that hangs hangs the one thread that asks it, not one more every second.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock) => {
                return Err(GpuError::Failed("the driver has not answered the previous reading yet".into()));
            }
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        };
        let State { library, ids } = &mut *state;
        let loaded = match library.take() {
            Some(loaded) => loaded,
            None => load()?,
        };
        let loaded = library.insert(loaded);
        let count = loaded.device_count().map_err(|error| GpuError::Failed(error.to_string()))?;
        if count == 0 {
            return Err(GpuError::Absent("the driver knows no GPU".into()));
        }
        let driver = loaded.sys_driver_version().ok();
        let gpus = (0..count).map(|index| {
            let id = || ids.get(&index).cloned().unwrap_or_else(|| format!("gpu{index}"));
            let read = loaded.device_by_index(index).and_then(|device| {
                let mut gpu = read_device(&device, id())?;
                if self.processes {
                    gpu.processes = processes(loaded, &device, &mut gpu);
                }
                Ok(gpu)
            });
            let gpu = read.unwrap_or_else(|error| GpuDevice::unreadable(id(), &error.to_string()));
            GpuDevice { driver: driver.clone(), ..gpu }
        });
        let gpus: Vec<GpuDevice> = gpus.collect();
        ids.extend((0..count).zip(gpus.iter().map(|gpu| gpu.id.clone())));
        Ok(gpus)
    }
}

impl GpuSource for Nvml {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async move {
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.read_now())
                .await
                .unwrap_or_else(|error| Err(GpuError::Failed(error.to_string())))
        })
    }
}

/// Loads the library. Distributions ship it with or without the development link, so both names are tried.
fn load() -> Result<lib::Nvml, GpuError> {
    let first = match lib::Nvml::init() {
        Ok(loaded) => return Ok(loaded),
        Err(error) => error,
    };
    match lib::Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init() {
        Ok(loaded) => Ok(loaded),
        Err(NvmlError::LibloadingError(_)) => {
            Err(GpuError::Absent(format!("no NVIDIA driver library on this machine ({first})")))
        }
        Err(error @ NvmlError::DriverNotLoaded) => Err(GpuError::Absent(error.to_string())),
        Err(error) => Err(GpuError::Failed(error.to_string())),
    }
}

fn read_device(device: &lib::Device<'_>, id: String) -> Result<GpuDevice, NvmlError> {
    let mut gpu = GpuDevice { id, name: device.name().ok(), ..GpuDevice::default() };
    match device.uuid() {
        Ok(uuid) => gpu.id = uuid,
        Err(error @ NvmlError::GpuLost) => return Err(error),
        Err(_) => {}
    }
    gpu.mig = device.mig_mode().ok().map(|mode| mode.current != 0);
    let memory = device.memory_info().map(|memory| (memory.used, memory.total));
    let memory = memory.or_else(|why| slices(device).ok_or(why));
    let memory = gpu.told(&["memory_used_bytes", "memory_total_bytes"], memory);
    let throttle = gpu.told(&["throttle"], device.current_throttle_reasons());
    gpu.reading = GpuReading {
        utilisation: gpu
            .told(&["utilisation"], device.utilization_rates())
            .map(|rates| f64::from(rates.gpu) / 100.0),
        memory_used_bytes: memory.map(|(used, _)| used),
        memory_total_bytes: memory.map(|(_, total)| total),
        power_w: gpu
            .told(&["power_w"], device.power_usage())
            .map(|milliwatts| f64::from(milliwatts) / 1000.0),
        temperature_c: gpu
            .told(&["temperature_c"], device.temperature(TemperatureSensor::Gpu))
            .map(f64::from),
        sm_clock_mhz: gpu.told(&["sm_clock_mhz"], device.clock_info(Clock::SM)).map(f64::from),
        throttle: throttle.map(|reasons| throttle_names(reasons.bits())).unwrap_or_default(),
    };
    Ok(gpu)
}

/// Memory in use and in all over a GPU's MIG slices: who may not look at the whole card may look at these.
fn slices(device: &lib::Device<'_>) -> Option<(u64, u64)> {
    let most = device.mig_device_count().ok()?;
    // Places without a slice answer "not found".
    let found = (0..most).filter_map(|index| device.mig_device_by_index(index).ok()?.memory_info().ok());
    found
        .map(|memory| (memory.used, memory.total))
        .reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
}

/// Who computes on a GPU, in the order of their numbers.
fn processes(library: &lib::Nvml, device: &lib::Device<'_>, gpu: &mut GpuDevice) -> Vec<GpuProcess> {
    /// Longer names are cut: the driver gives the whole path of a program.
    const NAME_BYTES: usize = 256;
    let told = gpu.told(&[PROCESSES], device.running_compute_processes()).unwrap_or_default();
    let known = told.into_iter().map(|process| GpuProcess {
        pid: process.pid,
        name: library.sys_process_name(process.pid, NAME_BYTES).ok(),
        memory_bytes: match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
    });
    let mut known: Vec<GpuProcess> = known.collect();
    known.sort_by_key(|process| process.pid);
    known
}

impl GpuDevice {
    /// Keeps what was told, or why it was not.
    fn told<T>(&mut self, fields: &[&'static str], answer: Result<T, NvmlError>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(error) => {
                for field in fields {
                    self.not_available.insert(field, error.to_string());
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever this machine has: GPUs with figures, or a reason. Never a zero in place of either.
    #[tokio::test]
    async fn gpus_or_a_reason() {
        let nvml = Nvml::new();
        for _ in 0..2 {
            match nvml.read().await {
                Ok(gpus) => assert!(gpus.iter().all(|gpu| {
                    !gpu.id.is_empty()
                        && (gpu.reading.memory_total_bytes.is_some() || !gpu.not_available.is_empty())
                })),
                Err(error) => assert!(error.is_final(), "{error}"),
            }
        }
    }
}
