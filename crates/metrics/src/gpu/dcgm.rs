//! GPUs from the page of a DCGM exporter, or of any exporter that speaks with its names, `tape-gpu-exporter` among them.

use std::collections::BTreeMap;

use super::page::{NOT_AVAILABLE, PROCESS_MEMORY};
use super::{FIELDS, GpuDevice, GpuError, GpuProcess, PROCESSES, throttle_names};
use crate::parse::{Page, Series};
use crate::pool::to_whole;

/// What DCGM writes for "no value", as integer and as float; it means everything from here up so.
const BLANK: f64 = 140_737_488_355_328.0;
const MIB: f64 = 1_048_576.0;

/// The GPUs of a page.
///
/// # Errors
/// When the page has none.
pub fn from_dcgm_page(page: &Page) -> Result<Vec<GpuDevice>, GpuError> {
    let mut by_gpu: BTreeMap<String, Vec<&Series>> = BTreeMap::new();
    let ours = [NOT_AVAILABLE, PROCESS_MEMORY];
    let known =
        |series: &&Series| series.name.starts_with("DCGM_FI_") || ours.contains(&series.name.as_str());
    for series in page.series.iter().filter(known) {
        let id = series.label("UUID").or_else(|| series.label("uuid")).map(str::to_owned);
        if let Some(id) = id.or_else(|| Some(format!("gpu{}", series.label("gpu")?))) {
            by_gpu.entry(id).or_default().push(series);
        }
    }
    if by_gpu.is_empty() {
        return Err(GpuError::Absent("the page has no DCGM_FI_* series".into()));
    }
    Ok(by_gpu.into_iter().map(|(id, series)| one(id, &series)).collect())
}

fn one(id: String, series: &[&Series]) -> GpuDevice {
    let mut gpu = GpuDevice { id, ..GpuDevice::default() };
    let label = |name: &str| series.iter().find_map(|one| one.label(name).map(str::to_owned));
    gpu.name = label("modelName");
    gpu.driver = label("DCGM_FI_DRIVER_VERSION");
    let sliced = series.iter().any(|one| one.label("GPU_I_ID").is_some_and(|slice| !slice.is_empty()));
    let mode = series.iter().find(|one| one.name == "DCGM_FI_DEV_MIG_MODE").map(|one| one.value > 0.0);
    gpu.mig = sliced.then_some(true).or(mode);
    // The whole GPU's own series, or the sum over its MIG slices where `add` says that a sum means something.
    let value = |names: &[&str], add: bool| -> Result<f64, String> {
        let mut found = Vec::new();
        for one in series.iter().filter(|one| names.contains(&one.name.as_str())) {
            let slice = one.label("GPU_I_ID").filter(|slice| !slice.is_empty());
            if one.value.is_finite() && one.value < BLANK {
                found.push((slice.is_some(), one.value));
            }
        }
        if let Some((_, whole)) = found.iter().find(|(slice, _)| !slice) {
            return Ok(*whole);
        }
        if add && !found.is_empty() {
            return Ok(found.iter().map(|(_, value)| value).sum());
        }
        let first = names.first().copied().unwrap_or_default();
        Err(match (found.is_empty(), series.iter().any(|one| names.contains(&one.name.as_str()))) {
            (false, _) => format!("{first} is told per MIG slice only"),
            (true, true) => format!("{first} is blank"),
            (true, false) => format!("the page has no {first}"),
        })
    };
    let used = value(&["DCGM_FI_DEV_FB_USED"], true);
    let total = value(&["DCGM_FI_DEV_FB_TOTAL"], true).or_else(|why| {
        let free = value(&["DCGM_FI_DEV_FB_FREE"], true).map_err(|_| why)?;
        let reserved = value(&["DCGM_FI_DEV_FB_RESERVED"], true).unwrap_or(0.0);
        Ok(used.clone()? + free + reserved)
    });
    let mut told = |field: &'static str, answer: Result<f64, String>| match answer {
        Ok(value) => Some(value),
        Err(why) => {
            gpu.not_available.insert(field, why);
            None
        }
    };
    let bytes = |mib: f64| to_whole((mib * MIB).round());
    let reading = tapedeck_record::GpuReading {
        utilisation: told("utilisation", value(&["DCGM_FI_DEV_GPU_UTIL"], false))
            .map(|percent| percent / 100.0),
        memory_used_bytes: told("memory_used_bytes", used.clone()).and_then(bytes),
        memory_total_bytes: told("memory_total_bytes", total).and_then(bytes),
        power_w: told("power_w", value(&["DCGM_FI_DEV_POWER_USAGE"], false)),
        temperature_c: told("temperature_c", value(&["DCGM_FI_DEV_GPU_TEMP"], false)),
        sm_clock_mhz: told("sm_clock_mhz", value(&["DCGM_FI_DEV_SM_CLOCK"], false)),
        throttle: told(
            "throttle",
            value(&["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"], false),
        )
        .and_then(to_whole)
        .map(throttle_names)
        .unwrap_or_default(),
    };
    gpu.reading = reading;
    // Our own exporter knows the reason why.
    for one in series.iter().filter(|one| one.name == NOT_AVAILABLE) {
        let field = FIELDS.into_iter().chain([PROCESSES]).find(|field| one.label("field") == Some(field));
        if let (Some(field), Some(why)) = (field, one.label("why")) {
            gpu.not_available.insert(field, why.to_owned());
        }
    }
    gpu.processes =
        series.iter().filter(|one| one.name == PROCESS_MEMORY).filter_map(|one| process(one)).collect();
    gpu.processes.sort_by_key(|process| process.pid);
    gpu
}

/// One process of our own exporter's page.
fn process(series: &Series) -> Option<GpuProcess> {
    let pid = series.label("pid")?.parse().ok()?;
    let name = series.label("process").filter(|name| !name.is_empty()).map(str::to_owned);
    Some(GpuProcess { pid, name, memory_bytes: to_whole(series.value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_page_of_the_exporter_is_read() {
        let page = parse(
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n\
             DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",modelName=\"NVIDIA A40\",DCGM_FI_DRIVER_VERSION=\"550.54.15\"} 37\n\
             DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\"} 1000\nDCGM_FI_DEV_FB_FREE{gpu=\"0\",UUID=\"GPU-1\"} 3000\n\
             DCGM_FI_DEV_FB_RESERVED{gpu=\"0\",UUID=\"GPU-1\"} 96\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\"} 61.2\n\
             DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 44\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-1\"} 9223372036854775794\n\
             DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"0\",UUID=\"GPU-1\"} 4\n",
        );
        let gpus = from_dcgm_page(&page).unwrap();
        let [gpu] = gpus.as_slice() else { panic!("{gpus:?}") };
        assert_eq!((gpu.id.as_str(), gpu.name.as_deref()), ("GPU-1", Some("NVIDIA A40")));
        assert_eq!(gpu.driver.as_deref(), Some("550.54.15"));
        assert_eq!((gpu.reading.utilisation, gpu.reading.power_w), (Some(0.37), Some(61.2)));
        assert_eq!(gpu.reading.memory_used_bytes, Some(1000 << 20));
        assert_eq!(gpu.reading.memory_total_bytes, Some(4096 << 20));
        assert_eq!(gpu.reading.throttle, ["sw_power_cap"]);
        assert_eq!(gpu.reading.sm_clock_mhz, None);
        assert_eq!(gpu.not_available["sm_clock_mhz"], "DCGM_FI_DEV_SM_CLOCK is blank");
    }

    #[test]
    fn slices_add_their_memory_and_share_no_utilisation() {
        let page = parse(
            "DCGM_FI_DEV_FB_USED{UUID=\"GPU-1\",GPU_I_ID=\"1\"} 100\nDCGM_FI_DEV_FB_USED{UUID=\"GPU-1\",GPU_I_ID=\"2\"} 200\n\
             DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\",GPU_I_ID=\"1\"} 5\nDCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-1\"} 40\n",
        );
        let gpus = from_dcgm_page(&page).unwrap();
        let gpu = &gpus[0];
        assert_eq!((gpus.len(), gpu.mig), (1, Some(true)));
        assert_eq!(gpu.reading.memory_used_bytes, Some(300 << 20));
        assert_eq!((gpu.reading.utilisation, gpu.reading.memory_total_bytes), (None, None));
        assert!(gpu.not_available["utilisation"].contains("MIG"));
        assert_eq!(gpu.reading.temperature_c, Some(40.0));
    }

    #[test]
    fn several_gpus_are_kept_apart_and_none_is_said() {
        let page = parse("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 40\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\"} 50\n");
        let ids: Vec<_> = from_dcgm_page(&page).unwrap().into_iter().map(|gpu| gpu.id).collect();
        assert_eq!(ids, ["gpu0", "gpu1"]);
        assert!(from_dcgm_page(&parse("up 1")).is_err());
    }
}
