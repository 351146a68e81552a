//! The ladder against the built-in engine: the same bytes again, and the truth found.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::fs;

use common::{climb, tenth};
use tapedeck_cases::Quiet;
use tapedeck_cases::ladder;
use tapedeck_rehearsal::{Settings, run, world};
use tapedeck_rundir::{RunDir, RunInfo};
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

#[test]
fn a_ladder_that_is_interrupted_is_taken_up_where_it_was() {
    let tmp = tempfile::tempdir().unwrap();
    let whole = climb(tenth(3, &[3, 6]), tmp.path());
    // Stopped before its second tier, by a user who changes their mind during the first rest.
    let config = tenth(3, &[3, 6]);
    let info = RunInfo { run_id: "stopped".into(), case: "tc03".into(), seed: 3, ..RunInfo::default() };
    let out = tmp.path().to_path_buf();
    let toml = run(async {
        let (stop, interrupt) = watch::channel(false);
        let world = world(config.clone(), interrupt).unwrap();
        let toml = world.config.to_toml().unwrap();
        let mut dir = RunDir::create(&out, &info, &toml).unwrap();
        let stopper = Stopper(stop);
        let answer = ladder::run(&world, &mut dir, &stopper).await.unwrap();
        assert!(answer.interrupted);
        assert_eq!(answer.tiers.len(), 1);
        toml
    })
    .unwrap();
    let resumed = run(async {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config.clone(), interrupt).unwrap();
        let mut dir = RunDir::resume(&out.join("stopped"), &toml).unwrap();
        ladder::run(&world, &mut dir, &Quiet).await.unwrap()
    })
    .unwrap();
    assert_eq!(resumed.tiers.len(), 2);
    assert_eq!(resumed.tiers[0], whole.tiers[0]);
    assert_eq!(resumed.capacity.n_star, whole.capacity.n_star);
}

/// Says stop as soon as a tier is done.
struct Stopper(watch::Sender<bool>);

impl tapedeck_cases::Observer for Stopper {
    fn on(&self, progress: &tapedeck_cases::Progress<'_>) {
        if matches!(progress, tapedeck_cases::Progress::StepDone { .. }) {
            self.0.send_replace(true);
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
