//! GPUs from `nvidia-smi`'s CSV, through any command that prints it (`ssh gpu-host nvidia-smi ...` included).

use super::{GpuDevice, GpuError, throttle_names};
use crate::pool::to_whole;

/// The command that tells everything this room can use.
pub const SMI_COMMAND: &str = "nvidia-smi --query-gpu=index,uuid,name,driver_version,utilization.gpu,memory.used,memory.total,power.draw,\
temperature.gpu,clocks.sm,clocks_throttle_reasons.active,mig.mode.current --format=csv";

/// Reads the CSV, with or without units. A cell that holds no value is kept as the reason why not.
///
/// ```
/// let csv = "index, utilization.gpu [%], power.draw [W]\n0, [N/A], 61.20 W\n";
/// let gpus = tapedeck_metrics::gpu::from_smi_csv(csv).unwrap();
/// assert_eq!((gpus[0].reading.utilisation, gpus[0].reading.power_w), (None, Some(61.2)));
/// assert_eq!(gpus[0].not_available["utilisation"], "N/A");
/// ```
///
/// # Errors
/// When it is no such CSV: the tool's own words are in the message.
pub fn from_smi_csv(text: &str) -> Result<Vec<GpuDevice>, GpuError> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().ok_or_else(|| GpuError::Failed("nvidia-smi said nothing".into()))?;
    let header: Vec<&str> = first.split(',').map(column).collect();
    if !header.iter().any(|name| matches!(*name, "index" | "uuid" | "gpu_uuid")) {
        let absent =
            first.starts_with("No devices") || first.contains("couldn't communicate with the NVIDIA driver");
        let why = first.to_owned();
        return Err(if absent { GpuError::Absent(why) } else { GpuError::Failed(why) });
    }
    let mut gpus = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        gpus.push(if cells.len() == header.len() {
            row(&header, &cells)
        } else {
            // "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost." takes the place of a row; the
            // other GPUs still have theirs.
            let id = line
                .split_whitespace()
                .find(|word| word.contains(":") && word.contains('.'))
                .unwrap_or("gpu?");
            GpuDevice::unreadable(id.trim_end_matches(':'), line)
        });
    }
    if gpus.is_empty() {
        return Err(GpuError::Failed("nvidia-smi printed a header and no GPU".into()));
    }
    Ok(gpus)
}

/// A column's name without its unit.
fn column(cell: &str) -> &str {
    cell.split('[').next().unwrap_or(cell).trim()
}

fn row(header: &[&str], cells: &[&str]) -> GpuDevice {
    let cell = |names: &[&str]| {
        header.iter().zip(cells).find_map(|(name, cell)| names.contains(name).then_some(*cell))
    };
    let text = |names: &[&str]| cell(names).and_then(|cell| value(cell).ok()).map(str::to_owned);
    let mut gpu = GpuDevice::default();
    let index = text(&["index"]).unwrap_or_default();
    gpu.id = text(&["uuid", "gpu_uuid"]).unwrap_or_else(|| format!("gpu{index}"));
    gpu.name = text(&["name", "gpu_name"]);
    gpu.driver = text(&["driver_version"]);
    gpu.mig = text(&["mig.mode.current"]).and_then(|mode| match mode.as_str() {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    });
    let mut number = |field: &'static str, names: &[&str]| -> Option<f64> {
        let found = cell(names).ok_or_else(|| "not asked for".to_owned()).and_then(value_owned);
        let parsed = found.and_then(|found| {
            let digits = found.split_whitespace().next().unwrap_or_default();
            digits.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(found)
        });
        match parsed {
            Ok(number) => Some(number),
            Err(why) => {
                gpu.not_available.insert(field, why);
                None
            }
        }
    };
    let bytes = |mib: f64| to_whole((mib * 1_048_576.0).round());
    let mut reading = tapedeck_record::GpuReading {
        utilisation: number("utilisation", &["utilization.gpu"]).map(|percent| percent / 100.0),
        memory_used_bytes: number("memory_used_bytes", &["memory.used"]).and_then(bytes),
        memory_total_bytes: number("memory_total_bytes", &["memory.total"]).and_then(bytes),
        power_w: number("power_w", &["power.draw", "power.draw.instant", "power.draw.average"]),
        temperature_c: number("temperature_c", &["temperature.gpu"]),
        sm_clock_mhz: number("sm_clock_mhz", &["clocks.sm", "clocks.current.sm"]),
        throttle: Vec::new(),
    };
    match cell(&["clocks_throttle_reasons.active", "clocks_event_reasons.active"])
        .ok_or_else(|| "not asked for".to_owned())
        .and_then(value_owned)
        .and_then(|mask| {
            let digits = mask.trim_start_matches("0x");
            u64::from_str_radix(digits, 16).map_err(|_| mask.clone())
        }) {
        Ok(mask) => reading.throttle = throttle_names(mask),
        Err(why) => {
            gpu.not_available.insert("throttle", why);
        }
    }
    gpu.reading = reading;
    gpu
}

/// A cell's value, or what it says instead: `[N/A]`, `[Not Supported]`, `[Insufficient Permissions]`, `[GPU is lost]`...
fn value(cell: &str) -> Result<&str, &str> {
    let inner = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(why) => Err(why),
        None if matches!(cell, "" | "N/A" | "ERR!" | "Unknown Error" | "No permission" | "Not Supported") => {
            Err(cell)
        }
        None => Ok(cell),
    }
}

fn value_owned(cell: &str) -> Result<String, String> {
    value(cell).map(str::to_owned).map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_with_and_without_units() {
        let with = "index, uuid, name, driver_version, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
                    temperature.gpu, clocks.current.sm [MHz], clocks_throttle_reasons.active, mig.mode.current\n\
                    0, GPU-1, NVIDIA A40, 550.54.15, 35 %, 1024 MiB, 46068 MiB, 61.20 W, 44, 1740 MHz, 0x0000000000000004, Disabled\n\
                    1, GPU-2, NVIDIA A40, [N/A], 0 %, 3 MiB, 46068 MiB, 20.00 W, 30, 210 MHz, 0x0000000000000001, [N/A]\n";
        let without = with.replace(" %", "").replace(" MiB,", ",").replace(" W,", ",").replace(" MHz,", ",");
        assert_ne!(with, without);
        for text in [with, &without] {
            let gpus = from_smi_csv(text).unwrap();
            assert_eq!(gpus.len(), 2);
            let first = &gpus[0];
            assert_eq!(
                (first.id.as_str(), first.name.as_deref(), first.mig),
                ("GPU-1", Some("NVIDIA A40"), Some(false))
            );
            assert_eq!((first.driver.as_deref(), gpus[1].driver.as_deref()), (Some("550.54.15"), None));
            assert_eq!((first.reading.utilisation, first.reading.power_w), (Some(0.35), Some(61.2)));
            assert_eq!(first.reading.memory_used_bytes, Some(1 << 30));
            assert_eq!((first.reading.temperature_c, first.reading.sm_clock_mhz), (Some(44.0), Some(1740.0)));
            assert_eq!(first.reading.throttle, ["sw_power_cap"]);
            assert!(first.not_available.is_empty(), "{:?}", first.not_available);
            assert_eq!((gpus[1].mig, gpus[1].reading.utilisation), (None, Some(0.0)));
        }
    }

    #[test]
    fn what_is_not_told_keeps_its_reason() {
        for why in ["N/A", "Not Supported", "Insufficient Permissions", "Unknown Error", "GPU is lost"] {
            let gpus = from_smi_csv(&format!("index, utilization.gpu [%]\n0, [{why}]\n")).unwrap();
            assert_eq!(gpus[0].reading.utilisation, None);
            assert_eq!(gpus[0].not_available["utilisation"], why);
            assert_eq!(gpus[0].not_available["power_w"], "not asked for");
        }
        let gpus = from_smi_csv("index, utilization.gpu [%]\n0, No permission\n").unwrap();
        assert_eq!(gpus[0].not_available["utilisation"], "No permission");
    }

    #[test]
    fn a_lost_gpu_does_not_take_the_others_with_it() {
        let gpus = from_smi_csv(
            "index, uuid, utilization.gpu [%]\n0, GPU-1, 5 %\n\
             Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover\n",
        )
        .unwrap();
        assert_eq!((gpus[0].id.as_str(), gpus[0].why_unreadable()), ("GPU-1", None));
        assert_eq!(gpus[1].id, "GPU0000:3B:00.0");
        assert!(gpus[1].why_unreadable().is_some_and(|why| why.contains("GPU is lost")), "{:?}", gpus[1]);
    }

    #[test]
    fn words_instead_of_a_table_are_an_error_that_repeats_them() {
        let none = from_smi_csv("No devices were found\n");
        assert!(matches!(&none, Err(GpuError::Absent(why)) if why == "No devices were found"), "{none:?}");
        let driver = from_smi_csv(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure it is running.\n",
        );
        assert!(driver.unwrap_err().is_final());
        assert!(from_smi_csv("").is_err() && from_smi_csv("index, uuid\n").is_err());
    }
}
