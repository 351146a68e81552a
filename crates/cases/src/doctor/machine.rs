//! This machine: files, cores, clock, disk, network.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::{Check, Patient};

/// Bytes of a second of 16 kHz s16le audio.
const SECOND_BYTES: usize = 32_000;
/// Free room that a run should find, bytes.
const DISK_BYTES: u64 = 512 << 20;

pub(super) async fn examine(patient: &Patient<'_>, tell: &mut impl FnMut(Check)) {
    tell(open_files(patient));
    tell(cpu(patient));
    tell(clock(patient).await);
    tell(disk(patient));
    tell(network(patient).await);
}

fn open_files(patient: &Patient<'_>) -> Check {
    let needed = u64::from(patient.streams) * 2 + 64;
    let streams = patient.streams;
    match patient.seams.machine.max_open_files() {
        None => Check::skipped("open files", "the limit of this process is not known here"),
        Some(may) if may < needed => Check::fail(
            "open files",
            format!("{streams} streams need {needed} open files, this process may hold {may}"),
            "raise the limit with `ulimit -n` (or LimitNOFILE= in a unit file)",
        ),
        Some(may) => Check::ok("open files", format!("{may} allowed, {streams} streams need {needed}")),
    }
}

fn cpu(patient: &Patient<'_>) -> Check {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let limit = patient.config.slo.loadgen_cpu_share;
    #[expect(clippy::cast_precision_loss, reason = "a machine has far fewer than 2^53 cores")]
    let cores_f = cores as f64;
    match patient.seams.machine.load_average() {
        None => Check::skipped("cpu", "how busy this machine is is not known here"),
        Some(load) if load > limit * cores_f => Check::warn(
            "cpu",
            format!(
                "{load:.1} processes want to run here already, on {cores} cores (the last minute's mean)"
            ),
            "stop what else runs here, or use another machine: a sender that wakes late proves nothing",
        ),
        Some(load) => Check::ok(
            "cpu",
            format!("{cores} cores, on which {load:.1} processes want to run (the last minute's mean)"),
        ),
    }
}

/// Sleeps as a sender sleeps and sees how late it wakes.
async fn clock(patient: &Patient<'_>) -> Check {
    if patient.seams.paused {
        return Check::skipped("clock", "it is paused: nothing can be said of our own lateness");
    }
    const STEP: Duration = Duration::from_millis(10);
    const STEPS: u32 = 100;
    let from = Instant::now();
    let mut late_ms = Vec::new();
    for step in 1..=STEPS {
        let due = from + STEP * step;
        sleep_until(due).await;
        late_ms.push(Instant::now().saturating_duration_since(due).as_secs_f64() * 1e3);
    }
    let p99 = tapedeck_stats::percentile(&mut late_ms, 0.99).unwrap_or(0.0);
    let limit = patient.config.slo.wake_late_p99_ms;
    let says = format!("sleeps end {p99:.1} ms late at p99 of {STEPS}, {limit:.0} ms are allowed");
    if p99 > limit {
        Check::warn("clock", says, "use a machine with less to do, or one that is not shared")
    } else {
        Check::ok("clock", says)
    }
}

fn disk(patient: &Patient<'_>) -> Check {
    let out = &patient.config.run.out;
    // The folder itself is made by the first run; what decides is the nearest one that is there.
    let there = out.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let hint = "free some room, or give --out another folder";
    match patient.seams.machine.disk_free_bytes(there) {
        None => Check::skipped("disk", "free room is not known here"),
        Some(free) if free < DISK_BYTES => {
            Check::fail("disk", format!("only {} MiB are free under {}", free >> 20, out.display()), hint)
        }
        Some(free) if !writable(there) => Check::fail(
            "disk",
            format!("{} cannot be written to ({} GiB are free)", there.display(), free >> 30),
            "mend its permissions, or give --out another folder",
        ),
        Some(free) => Check::ok("disk", format!("{} GiB are free under {}", free >> 30, out.display())),
    }
}

fn writable(folder: &Path) -> bool {
    let probe = folder.join(format!(".tapedeck-{}", std::process::id()));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe).is_ok();
    // What was made is taken away again; if that fails, an empty file of a telling name stays.
    made && std::fs::remove_file(&probe).is_ok()
}

/// What this many streams send, against what the way to the server carries.
async fn network(patient: &Patient<'_>) -> Check {
    let mbit_s = stream_mbit_s(patient) * f64::from(patient.streams);
    let says = format!("{} streams send {mbit_s:.1} Mbit/s", patient.streams);
    let endpoint = &patient.target.endpoint;
    let Some(link) = patient.seams.machine.link(endpoint.host(), endpoint.port()).await else {
        return Check::skipped("network", format!("{says}; the way to the server is not known here"));
    };
    let name = &link.name;
    match link.mbit_s {
        None if link.local => Check::ok("network", format!("{says}; the server is on this machine")),
        None => Check::skipped("network", format!("{says}; {name} does not tell its speed")),
        Some(speed) if mbit_s > speed => Check::fail(
            "network",
            format!("{says}, {name} carries {speed:.0} Mbit/s"),
            "use a faster link, or fewer streams",
        ),
        Some(speed) if mbit_s > speed / 2.0 => Check::warn(
            "network",
            format!("{says}, more than half of the {speed:.0} Mbit/s that {name} carries"),
            "use a faster link, or make sure that nothing else needs it",
        ),
        Some(speed) => Check::ok("network", format!("{says}, {name} carries {speed:.0} Mbit/s")),
    }
}

/// What one stream sends, Mbit/s of payload, as the dialect frames it. Headers add some 5 % at 100 ms a message.
fn stream_mbit_s(patient: &Patient<'_>) -> f64 {
    let chunk_bytes = (SECOND_BYTES / 1000).saturating_mul(patient.config.load.chunk_ms as usize).max(2);
    let silence = Bytes::from(vec![0; SECOND_BYTES]);
    let frames = patient.target.dialect.prepare(&silence, chunk_bytes);
    let bytes: usize = frames
        .iter()
        .map(|frame| match frame {
            tapedeck_protocol::Frame::Text(text) => text.len(),
            tapedeck_protocol::Frame::Binary(bytes) => bytes.len(),
        })
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "a second of audio")]
    let bits = bytes as f64 * 8.0;
    bits / 1e6
}
