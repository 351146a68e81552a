//! GPUs, however they can be read: the driver's library, an exporter's page, a command's CSV.

mod dcgm;
#[cfg(feature = "nvml")]
mod nvml;
mod page;
mod smi;
#[cfg(feature = "fetch")]
mod source;

use std::collections::BTreeMap;

use tapedeck_record::GpuReading;
use thiserror::Error;

pub use dcgm::from_dcgm_page;
#[cfg(feature = "nvml")]
pub use nvml::Nvml;
pub use page::to_page;
pub use smi::{SMI_COMMAND, from_smi_csv};
#[cfg(feature = "fetch")]
pub use source::{Dcgm, GpuSource, NoGpu, SmiCommand};

/// One GPU as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuDevice {
    /// Its uuid; where the read-out has none, `gpu` and its index.
    pub id: String,
    /// Product name.
    pub name: Option<String>,
    /// Version of the driver that it runs under.
    pub driver: Option<String>,
    /// Whether it is cut into MIG slices; utilisation is then not told.
    pub mig: Option<bool>,
    /// What it told.
    pub reading: GpuReading,
    /// What it did not tell, by the field's name in [`GpuReading`] or `processes`, and why.
    pub not_available: BTreeMap<&'static str, String>,
    /// Who computes on it, where that was asked: several instances that share a GPU are told apart by it.
    pub processes: Vec<GpuProcess>,
}

/// One process that computes on a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuProcess {
    /// Its number on the GPU's own host.
    pub pid: u32,
    /// Name of its program, where the reader may know it.
    pub name: Option<String>,
    /// The GPU's memory that it holds, bytes.
    pub memory_bytes: Option<u64>,
}

impl GpuDevice {
    /// A GPU that is known of and cannot be read: it fell off the bus, for example.
    #[must_use]
    pub fn unreadable(id: impl Into<String>, why: &str) -> Self {
        let not_available = FIELDS.iter().map(|field| (*field, why.to_owned())).collect();
        Self { id: id.into(), not_available, ..Self::default() }
    }

    /// Why nothing at all could be read of it, if that is so.
    #[must_use]
    pub fn why_unreadable(&self) -> Option<&str> {
        let nothing = self.reading == GpuReading::default();
        self.not_available.values().next().filter(|_| nothing).map(String::as_str)
    }
}

/// What is kept beside the fields of a reading.
const PROCESSES: &str = "processes";

/// The fields of a reading.
const FIELDS: [&str; 7] = [
    "utilisation",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "throttle",
];

/// Why no GPU could be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is nothing to read, now or later.
    #[error("GPU not available: {0}")]
    Absent(String),
    /// This reading failed; the next one may not.
    #[error("GPU not read: {0}")]
    Failed(String),
}

impl GpuError {
    /// Whether there is no use in asking again.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Absent(_))
    }
}

/// Each GPU once, however many instances share it and however many sources tell of it; the first telling is kept.
#[must_use]
pub fn distinct(devices: Vec<GpuDevice>) -> Vec<GpuDevice> {
    let mut seen = std::collections::BTreeSet::new();
    devices.into_iter().filter(|device| seen.insert(device.id.clone())).collect()
}

/// The driver's bits for what holds a clock down, and their names. Idling (0x1) is left out: it holds nothing down.
const THROTTLE: [(u64, &str); 8] = [
    (0x2, "applications_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
];

/// The names of throttle reasons from the driver's bit mask.
fn throttle_names(mask: u64) -> Vec<String> {
    let mut names: Vec<String> =
        THROTTLE.iter().filter(|(bit, _)| mask & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    let unnamed = mask & !0x1ff;
    if unnamed != 0 {
        names.push(format!("{unnamed:#x}"));
    }
    names
}

/// The bit mask of throttle reasons from their names.
fn throttle_mask(names: &[String]) -> u64 {
    let bits = |name: &String| {
        let named = THROTTLE.iter().find(|(_, known)| known == name).map(|(bit, _)| *bit);
        named.or_else(|| u64::from_str_radix(name.strip_prefix("0x")?, 16).ok())
    };
    names.iter().filter_map(bits).fold(0, |mask, bit| mask | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_gpu_counts_once() {
        let gpu = |id: &str, power: f64| GpuDevice {
            id: id.to_owned(),
            reading: GpuReading { power_w: Some(power), ..GpuReading::default() },
            ..GpuDevice::default()
        };
        let kept = distinct(vec![gpu("a", 1.0), gpu("b", 2.0), gpu("a", 3.0)]);
        assert_eq!(kept, [gpu("a", 1.0), gpu("b", 2.0)]);
    }

    #[test]
    fn throttle_bits_have_names() {
        assert_eq!(throttle_names(0x1), Vec::<String>::new());
        assert_eq!(throttle_names(0x45), ["sw_power_cap", "hw_thermal"]);
        assert_eq!(throttle_names(0x1000), ["0x1000"]);
        for mask in [0, 0x44, 0x1fe, 0x1008] {
            assert_eq!(throttle_mask(&throttle_names(mask)), mask);
        }
    }

    #[tokio::test]
    async fn no_gpu_says_why() {
        let error = NoGpu("a rehearsal has none".into()).read().await.unwrap_err();
        assert!(error.is_final());
        assert_eq!(error.to_string(), "GPU not available: a rehearsal has none");
    }
}
