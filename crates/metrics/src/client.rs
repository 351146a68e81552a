//! What our own process uses: a load generator that starves is no witness.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// What our own process used since the previous reading.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClientUse {
    /// CPU time / (wall time x cores this process may use), 0..1.
    pub cpu_share: Option<f64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
}

/// How that is found out. A rehearsal answers [`NoProbe`]: its clock is not the CPU's.
pub trait ClientProbe: Send + Sync + fmt::Debug {
    /// Reads once; the CPU share counts from the previous call and is empty in the first.
    fn read(&self) -> ClientUse;
}

/// Knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl ClientProbe for NoProbe {
    fn read(&self) -> ClientUse {
        ClientUse::default()
    }
}

/// Reads `/proc/self`; on systems without it everything is empty.
#[derive(Debug, Default)]
pub struct ProcSelf {
    before: Mutex<Option<(Instant, u64)>>,
}

/// Clock ticks a second in `/proc/self/stat`: 100 on every Linux this runs on, whatever the kernel's own rate.
const TICKS_PER_S: f64 = 100.0;

impl ClientProbe for ProcSelf {
    fn read(&self) -> ClientUse {
        let stat = std::fs::read_to_string("/proc/self/stat").ok();
        let ticks = stat.as_deref().and_then(cpu_ticks);
        let now = Instant::now();
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu_share = match (*before, ticks) {
            (Some((then, old)), Some(new)) => {
                share(new.saturating_sub(old), now.saturating_duration_since(then).as_secs_f64(), cores())
            }
            _ => None,
        };
        *before = ticks.map(|ticks| (now, ticks));
        let status = std::fs::read_to_string("/proc/self/status").ok();
        ClientUse { cpu_share, rss_bytes: status.as_deref().and_then(resident_bytes) }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn share(ticks: u64, wall_s: f64, cores: usize) -> Option<f64> {
    let cores = u32::try_from(cores).ok()?;
    let ticks = u32::try_from(ticks).ok()?;
    (wall_s > 0.0).then(|| (f64::from(ticks) / TICKS_PER_S / wall_s / f64::from(cores)).clamp(0.0, 1.0))
}

/// User and system time from `/proc/<pid>/stat`, ticks. The second field is a name in brackets that may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// Resident memory from `/proc/<pid>/status`, bytes.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_texts_are_read_by_field_and_not_by_name() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194304 2084 0 1 0 150 50 3 4 20 0 5 0 100 1000 200";
        assert_eq!(cpu_ticks(stat), Some(200));
        assert_eq!(cpu_ticks("42 (a"), None);
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  2048 kB\n"), Some(2 << 20));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }

    #[test]
    fn a_share_is_of_all_cores() {
        assert_eq!(share(200, 2.0, 2), Some(0.5));
        assert_eq!(share(200, 0.0, 2), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_very_process_has_memory_and_a_share_from_the_second_reading_on() {
        let probe = ProcSelf::default();
        let first = probe.read();
        assert_eq!(first.cpu_share, None);
        assert!(first.rss_bytes.is_some_and(|bytes| bytes > 100_000));
        let second = probe.read();
        assert!(second.cpu_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn no_probe_knows_nothing() {
        assert_eq!(NoProbe.read(), ClientUse { cpu_share: None, rss_bytes: None });
    }
}
