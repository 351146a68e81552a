//! GPUs as a page: what `tape-gpu-exporter` serves and [`from_dcgm_page`](super::from_dcgm_page) reads back.
//!
//! What DCGM has a name for goes by that name, unit and labels, so that whoever reads a DCGM exporter, its dashboards
//! included, reads this page too. Two things it has no name for: why a figure is not there ([`NOT_AVAILABLE`]), and what
//! each process holds ([`PROCESS_MEMORY`]). A figure that is not available has no series: it is never a zero.

use super::{GpuDevice, throttle_mask};
use crate::exposition::{Exposition, count};
use crate::parse::Kind;

/// 1 for each figure that a GPU does not tell, with the reason in a label.
pub(super) const NOT_AVAILABLE: &str = "tapedeck_gpu_not_available";
/// Memory that a process holds, bytes; NaN where the driver does not tell.
pub(super) const PROCESS_MEMORY: &str = "tapedeck_gpu_process_memory_bytes";

const MIB: f64 = 1_048_576.0;

/// The page of these GPUs, in the text format of Prometheus.
///
/// ```
/// use tapedeck_metrics::gpu::{GpuDevice, from_dcgm_page, to_page};
/// use tapedeck_metrics::parse;
///
/// let mut gpu = GpuDevice::unreadable("GPU-1", "GPU is lost");
/// assert_eq!(from_dcgm_page(&parse(&to_page(&[gpu.clone()]))).unwrap(), [gpu.clone()]);
/// gpu.not_available.remove("power_w");
/// gpu.reading.power_w = Some(61.2);
/// assert!(to_page(&[gpu]).contains("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\"} 61.2\n"));
/// ```
#[must_use]
pub fn to_page(gpus: &[GpuDevice]) -> String {
    let mut page = Exposition::default();
    let indices: Vec<String> = (0..gpus.len()).map(|index| index.to_string()).collect();
    let labelled: Vec<(&GpuDevice, Labels<'_>)> =
        gpus.iter().zip(&indices).map(|(gpu, index)| (gpu, labels(gpu, index))).collect();
    let mut each = |name: &str, help: &str, value: &dyn Fn(&GpuDevice) -> Option<f64>| {
        let told: Vec<_> = labelled.iter().filter_map(|(gpu, labels)| Some((labels, value(gpu)?))).collect();
        if !told.is_empty() {
            page.family(name, Kind::Gauge, help);
        }
        told.into_iter().for_each(|(labels, value)| page.sample(name, labels, value));
    };
    each("DCGM_FI_DEV_GPU_UTIL", "Share of time in which the GPU computes, percent.", &|gpu| {
        // Whole percents stay whole.
        gpu.reading.utilisation.map(|share| (share * 1e6).round() / 1e4)
    });
    each("DCGM_FI_DEV_FB_USED", "Memory in use, MiB.", &|gpu| {
        gpu.reading.memory_used_bytes.map(|bytes| count(bytes) / MIB)
    });
    each("DCGM_FI_DEV_FB_TOTAL", "Memory in all, MiB.", &|gpu| {
        gpu.reading.memory_total_bytes.map(|bytes| count(bytes) / MIB)
    });
    each("DCGM_FI_DEV_POWER_USAGE", "Power, W.", &|gpu| gpu.reading.power_w);
    each("DCGM_FI_DEV_GPU_TEMP", "Temperature, degrees Celsius.", &|gpu| gpu.reading.temperature_c);
    each("DCGM_FI_DEV_SM_CLOCK", "Clock of the multiprocessors, MHz.", &|gpu| gpu.reading.sm_clock_mhz);
    each(
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        "What holds the clocks down, a mask of the driver's bits without the one for idling.",
        &|gpu| {
            let told = !gpu.not_available.contains_key("throttle");
            told.then(|| count(throttle_mask(&gpu.reading.throttle)))
        },
    );
    each("DCGM_FI_DEV_MIG_MODE", "1 where the GPU is cut into MIG slices.", &|gpu| {
        gpu.mig.map(|sliced| f64::from(u8::from(sliced)))
    });
    if gpus.iter().any(|gpu| !gpu.not_available.is_empty()) {
        page.family(NOT_AVAILABLE, Kind::Gauge, "1 for each figure that a GPU does not tell, and why.");
    }
    for (gpu, labels) in &labelled {
        for (field, why) in &gpu.not_available {
            page.sample(NOT_AVAILABLE, &with(labels, [("field", field), ("why", why)]), 1.0);
        }
    }
    if gpus.iter().any(|gpu| !gpu.processes.is_empty()) {
        page.family(PROCESS_MEMORY, Kind::Gauge, "Memory that a process holds, bytes.");
    }
    for (gpu, labels) in &labelled {
        for process in &gpu.processes {
            let (pid, name) = (process.pid.to_string(), process.name.as_deref().unwrap_or_default());
            let value = process.memory_bytes.map_or(f64::NAN, count);
            page.sample(PROCESS_MEMORY, &with(labels, [("pid", &pid), ("process", name)]), value);
        }
    }
    page.finish()
}

/// Names and values.
type Labels<'a> = Vec<(&'a str, &'a str)>;

/// What every series of a GPU is labelled with.
fn labels<'a>(gpu: &'a GpuDevice, index: &'a str) -> Labels<'a> {
    let mut labels = vec![("gpu", index), ("UUID", gpu.id.as_str())];
    for (label, value) in [("modelName", &gpu.name), ("DCGM_FI_DRIVER_VERSION", &gpu.driver)] {
        labels.extend(value.as_deref().map(|value| (label, value)));
    }
    labels
}

/// These labels and two more.
fn with<'a>(labels: &Labels<'a>, more: [(&'a str, &'a str); 2]) -> Labels<'a> {
    labels.iter().copied().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use tapedeck_record::GpuReading;

    use super::*;
    use crate::gpu::{GpuProcess, PROCESSES, from_dcgm_page};
    use crate::parse;

    /// Two cards: one that tells everything, one whose owner may not look.
    fn cards() -> [GpuDevice; 2] {
        let full = GpuDevice {
            id: "GPU-1".into(),
            name: Some("NVIDIA A40 \"48\\GB\"".into()),
            driver: Some("550.54.15".into()),
            mig: Some(false),
            reading: GpuReading {
                utilisation: Some(0.29),
                memory_used_bytes: Some(20_000_000_001),
                memory_total_bytes: Some(48_305_799_168),
                power_w: Some(61.234),
                temperature_c: Some(44.0),
                sm_clock_mhz: Some(1740.0),
                throttle: vec!["sw_power_cap".into(), "0x1000".into()],
            },
            processes: vec![
                GpuProcess {
                    pid: 7,
                    name: Some("/usr/bin/python3".into()),
                    memory_bytes: Some(19_000_000_000),
                },
                GpuProcess { pid: 9, name: None, memory_bytes: None },
            ],
            ..GpuDevice::default()
        };
        let mut barred = GpuDevice::unreadable("GPU-2", "no permission: \"MIG\"\nask root");
        barred.mig = Some(true);
        barred.reading.power_w = Some(0.0);
        barred.not_available.remove("power_w");
        barred.not_available.insert(PROCESSES, "no permission".into());
        [full, barred]
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = to_page(&cards());
        assert!(text.contains("\"550.54.15\"} 29\n"), "{text}");
        let page = parse(&text);
        assert_eq!((page.not_understood, page.examples), (0, Vec::<String>::new()));
        assert_eq!(from_dcgm_page(&parse(&to_page(&cards()))).unwrap(), cards());
    }

    #[test]
    fn no_figure_is_a_zero_that_was_not_read() {
        let [_, barred] = cards();
        let page = to_page(&[barred]);
        let figures: Vec<&str> = page.lines().filter(|line| line.starts_with("DCGM_")).collect();
        assert_eq!(figures.len(), 2, "{page}");
        assert!(figures[0].starts_with("DCGM_FI_DEV_POWER_USAGE") && figures[0].ends_with(" 0"), "{page}");
        assert!(figures[1].starts_with("DCGM_FI_DEV_MIG_MODE") && figures[1].ends_with(" 1"), "{page}");
    }
}
