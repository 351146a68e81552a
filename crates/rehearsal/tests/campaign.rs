//! The campaign on the short tape: every part with an answer, N* flowing on, and taken up again where it was cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use std::path::Path;

use common::{fixtures, tenth};
use tapedeck_answers::{CampaignAnswer, Part};
use tapedeck_cases::campaign::{self, Plan, Policies};
use tapedeck_cases::{Observer, Progress, Quiet};
use tapedeck_config::{Config, Policy, TapeConfig};
use tapedeck_record::ExitCode;
use tapedeck_rehearsal::{run, world_with};
use tapedeck_rundir::{RunDir, RunInfo};
use tokio::sync::watch;

/// The whole plan at about a tenth of its length, on a few tiers.
fn config(seed: u64) -> Config {
    let mut config = tenth(seed, &[6, 24, 48, 60, 75]);
    config.tape_b = TapeConfig {
        manifest: fixtures().join("tapes/tape-b-tenth.json"),
        pool: fixtures().join("pool-longer-tenth"),
    };
    config.labelled = TapeConfig {
        manifest: fixtures().join("tapes/labelled-tenth.json"),
        pool: fixtures().join("pool-longer-tenth"),
    };
    config.pool.folder = fixtures().join("pool-tenth");
    config.footprint.levels = vec![1, 8];
    config.footprint.steady_s = 30.0;
    config.soak.hours = 0.2;
    (config.fault.steady_s, config.fault.down_s, config.fault.after_s) = (20.0, 80.0, 80.0);
    let demo = Config::read(&fixtures().join("plans/demo.toml")).unwrap();
    config.topologies = demo.topologies;
    config
}

const GO_ON: Policies = Policies { on_drift: Policy::Accept, on_better: Policy::Accept };

fn info() -> RunInfo {
    RunInfo { run_id: "campaign".into(), case: "campaign".into(), simulated: true, ..RunInfo::default() }
}

/// Plays a campaign in `out`, from the beginning or from where it was left.
fn play(config: Config, policies: Policies, out: &Path, stop_after: Option<&str>) -> CampaignAnswer {
    run(async move {
        let (stop, interrupt) = watch::channel(false);
        let needs = campaign::needs(&config);
        let mut world = world_with(config, &needs, interrupt).unwrap();
        let text = world.config.to_toml().unwrap();
        let path = out.join("campaign");
        let mut dir = if path.exists() {
            RunDir::resume(&path, &text).unwrap()
        } else {
            RunDir::create(out, &info(), &text).unwrap()
        };
        world.resume_clock(&dir).await;
        let watch: &dyn Observer = match stop_after {
            Some(step) => &Stopper { stop, step: step.into() },
            None => &Quiet,
        };
        campaign::run(&world, &mut dir, policies, watch).await.unwrap()
    })
    .unwrap()
}

/// Says stop when a step begins.
struct Stopper {
    stop: watch::Sender<bool>,
    step: String,
}

impl Observer for Stopper {
    fn on(&self, progress: &Progress<'_>) {
        if matches!(progress, Progress::StepBegins { step, .. } if *step == self.step) {
            self.stop.send_replace(true);
        }
    }
}

#[test]
fn every_part_has_an_answer_and_a_cut_campaign_goes_on_where_it_was() {
    let out = tempfile::tempdir().unwrap();
    let cut = play(config(1), GO_ON, out.path(), Some("N048"));
    assert!(cut.interrupted && cut.exit_code() == ExitCode::Interrupted);
    let done: Vec<Part> = cut.parts.iter().map(|p| p.part).collect();
    assert_eq!(done, [Part::Tc01, Part::Tc02]);

    let answer = play(config(1), GO_ON, out.path(), None);
    assert!(!answer.interrupted && answer.stopped.is_none());
    let done: Vec<Part> = answer.parts.iter().map(|p| p.part).collect();
    assert_eq!(done, Part::ALL);
    for part in &answer.parts {
        assert!(part.decision.is_some(), "{}: {}", part.part.name(), part.sentence);
    }
    // What was decided before the cut was not played again.
    assert_eq!(answer.parts[..2], cut.parts[..]);
    let run = out.path().join("campaign");
    let journal = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    assert_eq!(journal.matches("\"step\":\"N006\"").count(), 1);
    assert_eq!(journal.matches("\"step\":\"N048\"").count(), 2, "the cut step, and the whole one");
    for file in ["tc01", "tc02", "capacity", "tc03b", "tc08", "tc04", "tc05", "tc06", "tc07", "campaign"] {
        assert!(run.join(format!("{file}.json")).is_file(), "{file}.json is missing");
    }
    // N* of the ladder is what the others were played at.
    let n_star = answer.n_star.unwrap();
    let soak: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("tc05.json")).unwrap()).unwrap();
    let limited = soak["n_star"]["streams"].as_u64().unwrap();
    assert!(limited <= u64::from(n_star), "{limited} {n_star}");
    // A campaign that is asked again answers from its books.
    let again = play(config(1), GO_ON, out.path(), Some("any step at all"));
    assert_eq!(again, answer);
}

#[test]
fn a_better_topology_is_asked_about_and_climbed_on_request() {
    let out = tempfile::tempdir().unwrap();
    let mut config = config(2);
    config.campaign.skip =
        vec![Part::Tc01, Part::Tc02, Part::Tc03b, Part::Tc08, Part::Tc04, Part::Tc05, Part::Tc06];
    config.ladder.tiers = vec![24, 48, 75];
    config.ladder.refine = false;
    config.topology.shares = vec![1.0, 2.0];
    config.topologies.truncate(1);
    let mut better = config.topologies[0].clone();
    better.name = "better".into();
    // Twice as many engines, with pools so small that the card holds them all.
    better.rehearsal = toml::from_str("instances = 6\n[engine]\nkv_blocks = 2000\n").unwrap();
    config.topologies.push(better);
    let asked = play(config.clone(), Policies::default(), out.path(), None);
    let stopped = asked.stopped.as_ref().unwrap().to_string();
    assert!(stopped.contains("--on-better rerun"), "{asked:#?}");
    assert_eq!(asked.exit_code(), ExitCode::Undecidable);
    assert!(asked.parts.iter().filter(|p| p.sentence.to_string().contains("left out")).count() == 7);

    let policies = Policies { on_better: Policy::Rerun, ..Policies::default() };
    let climbed = play(config, policies, out.path(), None);
    assert!(climbed.stopped.is_none(), "{:?}", climbed.stopped);
    let rerun = &climbed.reruns[0];
    assert!(rerun.run.ends_with("campaign-better") && rerun.run.join("capacity.json").is_file());
    assert!(rerun.n_star >= climbed.n_star, "{:?} {:?}", rerun.n_star, climbed.n_star);
}

#[test]
fn drift_is_asked_about_and_a_ladder_with_restarts_is_climbed_on_request() {
    let out = tempfile::tempdir().unwrap();
    let mut config = config(3);
    config.campaign.skip =
        Part::ALL.into_iter().filter(|part| ![Part::Tc03, Part::Tc08].contains(part)).collect();
    config.ladder.tiers = vec![6, 12];
    config.ladder.refine = false;
    config.rehearsal = toml::from_str("[engine.faults]\nslowdown_per_hour = 25.0\n").unwrap();
    let asked = play(config.clone(), Policies::default(), out.path(), None);
    assert!(asked.stopped.as_ref().unwrap().to_string().contains("--on-drift rerun"), "{asked:#?}");
    assert_eq!(asked.exit_code(), ExitCode::Undecidable);

    let policies = Policies { on_drift: Policy::Rerun, ..Policies::default() };
    let climbed = play(config, policies, out.path(), None);
    assert!(climbed.stopped.is_none(), "{:?}", climbed.stopped);
    let rerun = &climbed.reruns[0];
    assert!(rerun.run.ends_with("campaign-restarted"), "{rerun:?}");
    assert_eq!(rerun.n_star, climbed.n_star);
    let read = |file: &str| std::fs::read_to_string(rerun.run.join(file)).unwrap();
    assert!(read("run.toml").contains("restart_each_tier = true"));
    // One before each tier.
    assert_eq!(read("events.jsonl").matches("\"what\":\"restarted\"").count(), 2);
}

#[test]
fn the_plan_is_the_twelve_hours_of_the_design() {
    let mut config = Config::read(&fixtures().join("plans/demo.toml")).unwrap();
    let length = |role: tapedeck_cases::Role| {
        (role != tapedeck_cases::Role::Labelled).then_some(campaign::plan::Length {
            tape_s: 480.0,
            longest_s: 180.0,
            calls: 9,
        })
    };
    let plan = Plan::from_lengths(&config, length, 3, Some(30));
    let hours = plan.seconds() / 3600.0;
    assert!((10.0..14.0).contains(&hours), "{hours}");
    let left_out: Vec<Part> = plan.parts.iter().filter(|p| p.left_out.is_some()).map(|p| p.part).collect();
    assert_eq!(left_out, [Part::Tc04]);
    config.campaign.skip = vec![Part::Tc05];
    let shorter = Plan::from_lengths(&config, length, 3, Some(30));
    assert!(plan.seconds() - shorter.seconds() > 4.0 * 3600.0);
}
