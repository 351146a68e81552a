//! TC-06: one of three instances is killed, and what is reported is what happened.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use common::tenth;
use tapedeck_answers::{Fault, FaultAnswer, NStar};
use tapedeck_cases::fault;
use tapedeck_cases::{CaseError, Observer, Progress, Quiet};
use tapedeck_config::Config;
use tapedeck_record::{ExitCode, HasExitCode, Outcome};
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tokio::sync::watch;

/// About what the demo carries on the short tape; two instances carry two thirds of it.
const N_STAR: u32 = 48;

/// A shorter fault on the short tape.
fn config(seed: u64, shares: &[f64]) -> Config {
    let mut config = tenth(seed, &[3]);
    config.fault.shares = shares.to_vec();
    config.fault.steady_s = 20.0;
    config.fault.down_s = 80.0;
    config.fault.after_s = 80.0;
    config
}

fn inject(config: Config, fault: Fault) -> Result<FaultAnswer, CaseError> {
    at(config, N_STAR, fault)
}

fn at(config: Config, n_star: u32, fault: Fault) -> Result<FaultAnswer, CaseError> {
    let out = tempfile::tempdir().unwrap();
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config, interrupt)?;
        let info =
            RunInfo { run_id: "faults".into(), case: "tc06".into(), simulated: true, ..RunInfo::default() };
        let mut dir = RunDir::create(out.path(), &info, &world.config.to_toml()?)?;
        fault::run(&world, &mut dir, Some(NStar::new(n_star, "the test")), fault, &Quiet).await
    })
    .unwrap()
}

#[test]
fn at_two_thirds_the_others_carry_on_and_the_instance_comes_back() {
    let answer = inject(config(1, &[2.0 / 3.0]), Fault::Kill).unwrap();
    let incident = &answer.incidents[0];
    assert_eq!(answer.exit_code(), ExitCode::Ok, "{:?}", answer.complaints);
    assert_eq!(incident.timeline.instance, "inst2");
    // A third of the streams was on it, less the one that is pinned there.
    let on_it = u64::from(incident.streams / 3) - 1;
    assert!(incident.in_flight.calls.abs_diff(on_it) <= 2, "{:?}", incident.in_flight);
    assert_eq!(incident.in_flight.broken(), incident.in_flight.calls);
    assert_eq!(incident.in_flight_elsewhere.broken(), 0);
    assert_eq!(incident.new_calls.broken(), 0);
    assert_eq!(incident.ejected_s, Some(0.0));
    assert_eq!(incident.recovered(), Some(true));
    assert!(incident.retries_needed && incident.rejoined_s.unwrap() < 10.0);
}

#[test]
fn at_full_load_only_the_return_ends_the_overload() {
    let answer = at(config(1, &[1.0]), 60, Fault::Kill).unwrap();
    let incident = &answer.incidents[0];
    assert!(incident.alone.overloaded && incident.alone_back_s.is_none(), "{:?}", incident.alone);
    let back_s = incident.back_s.unwrap();
    assert!(back_s >= incident.timeline.start_s.unwrap() - incident.timeline.fault_s, "{back_s}");
    // That the others cannot carry it all is arithmetic, not a complaint.
    assert_eq!(answer.exit_code(), ExitCode::Ok, "{:?}", answer.complaints);
}

#[test]
fn pinned_streams_tell_the_instances_apart() {
    let answer = inject(config(2, &[2.0 / 3.0]), Fault::Kill).unwrap();
    for pinned in &answer.incidents[0].pinned {
        let broke = pinned.after.broken() > 0;
        assert_eq!(broke, pinned.instance == "inst2", "{pinned:?}");
        assert_eq!(pinned.before.broken(), 0);
    }
    assert_eq!(answer.incidents[0].pinned.len(), 3);
}

#[test]
fn a_balancer_that_goes_on_dealing_calls_to_the_dead_is_found() {
    for (blind_s, lost) in [(15.0, true), (600.0, true), (0.0, false)] {
        let mut config = config(3, &[2.0 / 3.0]);
        config.rehearsal.insert("balancer_blind_s".into(), blind_s.into());
        let answer = inject(config, Fault::Kill).unwrap();
        let incident = &answer.incidents[0];
        assert_eq!(incident.new_calls.broken() > 0, lost, "{:?}", incident.new_calls);
        match incident.ejected_s {
            // Lost for as long as the fault lasted.
            None => assert!(blind_s > 100.0 && answer.exit_code() == ExitCode::No),
            Some(s) => assert!(s <= blind_s && s >= blind_s - 5.0, "{s} of {blind_s}"),
        }
    }
}

#[test]
fn a_frozen_instance_leaves_its_callers_without_text() {
    let mut config = config(1, &[2.0 / 3.0]);
    config.load.timeouts.mute_s = 10.0;
    config.rehearsal.insert("balancer_blind_s".into(), 5.0.into());
    let answer = inject(config, Fault::Freeze).unwrap();
    let incident = &answer.incidents[0];
    assert!(incident.in_flight.calls > 5, "{:?}", incident.in_flight);
    let silent = [Outcome::Mute, Outcome::FinalTimeout, Outcome::IdleTimeout];
    assert!(incident.in_flight.errors.keys().all(|o| silent.contains(o)), "{:?}", incident.in_flight);
    assert!(incident.in_flight.broken() > 0 && incident.rejoined_s.is_some());
}

/// Wants to stop as soon as it is told of a wait.
struct Impatient(watch::Sender<bool>);

impl Observer for Impatient {
    fn on(&self, progress: &Progress<'_>) {
        if let Progress::Note { text } = progress
            && text.starts_with("waiting for inst2")
        {
            self.0.send_replace(true);
        }
    }
}

#[test]
fn nobody_has_to_wait_for_an_instance_to_come_back() {
    let out = tempfile::tempdir().unwrap();
    let (answer, events) = run(async {
        let (stop, interrupt) = watch::channel(false);
        let world = world(config(1, &[2.0 / 3.0]), interrupt)?;
        let info =
            RunInfo { run_id: "faults".into(), case: "tc06".into(), simulated: true, ..RunInfo::default() };
        let mut dir = RunDir::create(out.path(), &info, &world.config.to_toml()?)?;
        let n_star = NStar::new(N_STAR, "the test");
        let answer = fault::run(&world, &mut dir, Some(n_star), Fault::Kill, &Impatient(stop)).await?;
        Ok::<_, CaseError>((answer, std::fs::read_to_string(dir.path().join("events.jsonl")).unwrap()))
    })
    .unwrap()
    .unwrap();
    assert!(answer.interrupted && answer.incidents.is_empty());
    assert!(events.contains("\"start\"") && !events.contains("well_again"), "{events}");
}

#[test]
fn one_seed_gives_the_same_report_again() {
    let once = inject(config(5, &[2.0 / 3.0]), Fault::Kill).unwrap().incidents;
    assert_eq!(once, inject(config(5, &[2.0 / 3.0]), Fault::Kill).unwrap().incidents);
}

#[test]
fn what_may_not_be_touched_is_refused_before_any_load() {
    let mut config = config(1, &[1.0]);
    config.fault.instance = Some("inst9".into());
    let error = inject(config, Fault::Kill).unwrap_err();
    assert!(error.to_string().contains("inst9 cannot be told to kill"), "{error}");
    assert_eq!(error.exit_code(), ExitCode::Usage);
    // The rehearsal has no process for its balancer.
    let error = inject(self::config(1, &[1.0]), Fault::BalancerRestart).unwrap_err();
    assert!(error.to_string().contains("balancer cannot be told to stop"), "{error}");
}
