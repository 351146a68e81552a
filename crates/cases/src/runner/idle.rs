//! Before and after a load: can it be played at all, and are the engines and GPUs back where they were?

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tapedeck_config::key;
use tapedeck_fleet::{Drain, DrainRules, WaitRules, drain, wait_healthy};
use tapedeck_record::DrainReason;
use tapedeck_slo::CutShort;
use tokio::time::sleep;

use crate::error::CaseError;
use crate::world::{World, seconds};

/// Whether this machine and these engines can take so many streams at all.
pub(super) async fn preflight(world: &World, results: &Path, streams: u32) -> Result<(), CaseError> {
    if let Some(files) = world.machine.max_open_files() {
        // One socket a stream, one more while it changes calls, and the scrapes.
        let needed = u64::from(streams) * 2 + 64;
        if files < needed {
            return Err(CaseError::Preflight {
                what: format!("{streams} streams need {needed} open files, this process may hold {files}"),
                hint: "raise the limit with `ulimit -n` (or LimitNOFILE= in a unit file)".into(),
            });
        }
    }
    // The largest tier leaves some tens of megabytes; half a gigabyte keeps the run honest to its end.
    const DISK_BYTES: u64 = 512 << 20;
    if let Some(free) = world.machine.disk_free_bytes(results).filter(|free| *free < DISK_BYTES) {
        return Err(CaseError::Preflight {
            what: format!("only {} MiB are free under {}", free >> 20, results.display()),
            hint: "free some room, or give --out another disk".into(),
        });
    }
    let rules = WaitRules { timeout: Duration::from_secs(30), ..WaitRules::default() };
    wait_healthy(&*world.connector, &world.instances, rules, |_| {}).await.map_err(|e| {
        CaseError::Preflight {
            what: e.to_string(),
            hint: format!("start the instances, or mend {} in the config", key!(instances[].health)),
        }
    })?;
    Ok(())
}

/// Memory in use on each GPU, bytes by uuid; what cannot be read is left out.
pub(super) async fn gpu_memory(world: &World) -> BTreeMap<String, u64> {
    let mut used = BTreeMap::new();
    for way in &world.gpus {
        for device in way.read().await.unwrap_or_default() {
            if let Some(bytes) = device.reading.memory_used_bytes {
                used.entry(device.id).or_insert(bytes);
            }
        }
    }
    used
}

/// Waits until the engines have nothing left to do, and until the memory in use on each GPU is back where it was without
/// streams, as far as that is known.
pub(super) async fn wait_drained(
    world: &World,
    cut: Option<&CutShort>,
    vram: &BTreeMap<String, u64>,
) -> Drain {
    let rules = DrainRules { timeout: seconds(world.config.load.drain_s), ..DrainRules::default() };
    let down = matches!(cut, Some(CutShort::InstanceDown { .. }));
    let rules = if down { DrainRules { timeout: Duration::ZERO, ..rules } } else { rules };
    let mut drained = drain(&*world.connector, &world.instances, rules, |_| {}).await;
    while drained.drained == Some(true) {
        let Some(held) = held(world, vram).await else { break };
        if drained.seconds >= rules.timeout.as_secs_f64() {
            (drained.drained, drained.why) = (Some(false), vec![held]);
            break;
        }
        sleep(rules.interval).await;
        drained.seconds += rules.interval.as_secs_f64();
    }
    drained
}

/// Which GPU holds more memory than without streams, by more than is let pass; nothing where none does or none is known.
async fn held(world: &World, vram: &BTreeMap<String, u64>) -> Option<DrainReason> {
    if vram.is_empty() {
        return None;
    }
    let tolerance = world.config.slo.live.vram_over_baseline_bytes;
    let now = gpu_memory(world).await;
    now.into_iter().find_map(|(gpu, used)| {
        let bytes = used.checked_sub(*vram.get(&gpu)?).filter(|over| *over > tolerance)?;
        Some(DrainReason::GpuMemory { gpu, bytes })
    })
}

/// The GPUs that are not below `slo.live.gpu_resume_c`, with their temperatures; one that cannot be read or tells no
/// temperature is not waited for.
pub(crate) async fn hot_gpus(world: &World) -> BTreeMap<String, f64> {
    let mut seen = BTreeMap::new();
    for way in &world.gpus {
        for device in way.read().await.unwrap_or_default() {
            if let Some(celsius) = device.reading.temperature_c {
                seen.entry(device.id).or_insert(celsius);
            }
        }
    }
    seen.retain(|_, celsius| *celsius >= world.config.slo.live.gpu_resume_c);
    seen
}
