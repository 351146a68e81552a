//! The ladder against the built-in engine: the same bytes again, and the truth found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{climb, tenth};
use tapedeck_cases::{Observer, Progress, Quiet, World, ladder};
use tapedeck_config::Config;
use tapedeck_record::CallFigure;
use tapedeck_rehearsal::{Settings, run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::TierReport;
use tokio::sync::watch;

#[test]
fn one_seed_gives_the_same_files_byte_for_byte() {
    let tmp = tempfile::tempdir().unwrap();
    let first = climb(tenth(7, &[3, 6]), tmp.path()).run;
    let second = climb(tenth(7, &[3, 6]), tmp.path()).run;
    for file in ["ladder.csv", "tiers.csv", "calls.jsonl", "series.jsonl", "events.jsonl", "steps.jsonl"] {
        let (a, b) = (fs::read(first.join(file)).unwrap(), fs::read(second.join(file)).unwrap());
        assert!(!a.is_empty(), "{file} is empty");
        assert!(a == b, "{file} differs between two runs of one seed");
    }
    let other = climb(tenth(8, &[3, 6]), tmp.path()).run;
    assert_ne!(fs::read(first.join("calls.jsonl")).unwrap(), fs::read(other.join("calls.jsonl")).unwrap());
}

#[test]
fn every_tier_counts_n_times_c_times_loops_and_says_simulated() {
    let tmp = tempfile::tempdir().unwrap();
    let answer = climb(tenth(1, &[3, 9]), tmp.path());
    let counted: Vec<u64> = answer.tiers.iter().map(|t| t.calls_counted).collect();
    // Nine calls on the tape; three loops up to six streams, one above.
    assert_eq!(counted, [3 * 9 * 3, 9 * 9]);
    assert!(answer.tiers.iter().all(|t| t.simulated && t.wake_late_p99_ms.is_none()));
    for row in fs::read_to_string(answer.run.join("ladder.csv")).unwrap().lines().skip(1) {
        assert!(row.contains("simulated"), "{row}");
    }
}

/// Four tiers on engines that differ from step to step in every way that chance or age has.
fn four() -> Config {
    let rehearsal = toml::from_str(
        "[engine]\njitter = 0.2\nfaults = { tail_lost_share = 0.02, slowdown_per_hour = 0.2 }\n\
         step = { base_ns = 18000000, per_stream_ns = 7000000, per_prefill_token_ns = 300000, per_context_token_ns = 400 }\n\
         vram = { noise_bytes = 1e8, leak_bytes_per_hour = 1e9 }\n",
    );
    Config { rehearsal: rehearsal.unwrap(), ..tenth(3, &[3, 6, 12, 18]) }
}

/// A ladder that ends in some way, and is resumed in another world to its end; the run's folder.
fn in_two_parts(
    out: &Path,
    id: &str,
    first: impl AsyncFnOnce(&World, &mut RunDir, watch::Sender<bool>),
) -> PathBuf {
    let info = RunInfo { run_id: id.into(), case: "tc03".into(), seed: 3, ..RunInfo::default() };
    let toml = run(async {
        let (stop, interrupt) = watch::channel(false);
        let world = world(four(), interrupt).unwrap();
        let toml = world.config.to_toml().unwrap();
        let mut dir = RunDir::create(out, &info, &toml).unwrap();
        first(&world, &mut dir, stop).await;
        toml
    })
    .unwrap();
    run(async {
        let (_keep, interrupt) = watch::channel(false);
        let mut world = world(four(), interrupt).unwrap();
        let mut dir = RunDir::resume(&out.join(id), &toml).unwrap();
        assert_eq!(dir.steps().iter().filter(|s| !s.partial).count(), 2, "{id}");
        world.resume_clock(&dir).await;
        assert!(!ladder::run(&world, &mut dir, &Quiet).await.unwrap().interrupted);
        dir.path().to_path_buf()
    })
    .unwrap()
}

#[test]
fn a_ladder_that_is_taken_up_gives_the_bytes_of_one_that_was_never_interrupted() {
    let tmp = tempfile::tempdir().unwrap();
    let whole = climb(four(), tmp.path());
    assert_eq!(whole.tiers.len(), 4);
    // Stopped by a user in the rest after the second tier.
    let stopped = in_two_parts(tmp.path(), "stopped", async |world, dir, stop| {
        let stopper = Stopper { stop, when: |p| matches!(p, Progress::StepDone { step: "N006", .. }) };
        let answer = ladder::run(world, dir, &stopper).await.unwrap();
        assert!(answer.interrupted);
        assert_eq!(answer.tiers.len(), 2);
    });
    // Gone in the middle of the third, as a process that is killed.
    let killed = in_two_parts(tmp.path(), "killed", async |world, dir, _| {
        let begun = Begun::default();
        let climbing = ladder::run(world, dir, &begun);
        tokio::pin!(climbing);
        loop {
            tokio::select! {
                biased;
                _ = &mut climbing => panic!("it came to its end"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            if begun.0.load(Ordering::SeqCst) > 40 {
                return;
            }
        }
    });
    for (how, run) in [("stopped", stopped), ("killed", killed)] {
        for file in ["calls.jsonl", "series.jsonl", "steps.jsonl", "tiers.csv", "ladder.csv", "capacity.json"]
        {
            let (a, b) = (fs::read(whole.run.join(file)).unwrap(), fs::read(run.join(file)).unwrap());
            assert!(!a.is_empty(), "{file} is empty");
            assert!(a == b, "{how}: {file} differs");
        }
    }
    // Stopped by a user in the middle of the third: what was played of it is kept beside the whole steps.
    let cut = in_two_parts(tmp.path(), "cut", async |world, dir, stop| {
        let stopper = Stopper { stop, when: |p| matches!(p, Progress::Call { step: "N012", .. }) };
        assert!(ladder::run(world, dir, &stopper).await.unwrap().interrupted);
    });
    let [(calls, reports), other] = [whole.run, cut].map(|run| {
        let dir = RunDir::resume(&run, &fs::read_to_string(run.join("run.toml")).unwrap()).unwrap();
        let steps: Vec<_> = dir.steps().iter().filter(|s| !s.partial).cloned().collect();
        let calls: Vec<_> = steps.iter().map(|s| dir.calls_of(&s.step).unwrap()).collect();
        (calls, steps.into_iter().map(|s| (s.report, s.evidence)).collect::<Vec<_>>())
    });
    assert_eq!(reports.len(), 4);
    assert_eq!(reports, other.1);
    assert!(calls == other.0, "the calls differ");
}

#[test]
fn a_tier_depends_on_nothing_that_was_played_before_it() {
    let tmp = tempfile::tempdir().unwrap();
    let of = |tiers: &[u32]| climb(tenth(3, tiers), tmp.path()).tiers.pop().unwrap();
    let (after, alone) = (of(&[3, 12]), of(&[12]));
    let figures = |t: &TierReport| {
        (t.ttft().cloned(), t.summary(CallFigure::Rtf).cloned(), t.final_latency().cloned(), t.kv_pool_p95)
    };
    assert_eq!(figures(&after), figures(&alone));
}

/// Says stop as soon as something is so.
struct Stopper {
    stop: watch::Sender<bool>,
    when: fn(&Progress<'_>) -> bool,
}

impl Observer for Stopper {
    fn on(&self, progress: &Progress<'_>) {
        if (self.when)(progress) {
            self.stop.send_replace(true);
        }
    }
}

/// Counts the calls of the third tier that have ended.
#[derive(Default)]
struct Begun(AtomicU32);

impl Observer for Begun {
    fn on(&self, progress: &Progress<'_>) {
        if matches!(progress, Progress::Call { step: "N012", .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn settings_of_the_engine_come_from_the_config() {
    let mut config = tenth(1, &[3]);
    config.rehearsal = toml::from_str("instances = 5\n").unwrap();
    assert_eq!(Settings::of(&config).unwrap().instances, 5);
    config.rehearsal = toml::from_str("instances = 0\n").unwrap();
    assert!(Settings::of(&config).is_err());
    config.rehearsal = toml::from_str("[engine]\nno_such_key = 1\n").unwrap();
    assert!(Settings::of(&config).unwrap_err().to_string().contains("no_such_key"));
}
