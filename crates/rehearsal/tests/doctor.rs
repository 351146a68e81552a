//! The doctor looks at built-in engines as it looks at real ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::Path;

use tapedeck_cases::Seams;
use tapedeck_cases::doctor::{Check, State, examine};
use tapedeck_config::Config;
use tapedeck_rehearsal::{run, world};
use tokio::sync::watch;

/// Examines three built-in engines with this config on top of the demo's.
fn examined(more: &str) -> Vec<Check> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/demo.toml");
    let config = Config::read(&demo).unwrap();
    let more: Config = Config::parse(more, "more".as_ref()).unwrap();
    let config = Config {
        tape_b: Default::default(),
        labelled: Default::default(),
        sizing: more.sizing,
        environment: more.environment,
        rehearsal: more.rehearsal,
        ..config
    };
    run(async {
        let (_nobody, interrupt) = watch::channel(false);
        let world = world(config, interrupt).unwrap();
        let seams = Seams {
            connector: world.connector.clone(),
            control: world.control.clone(),
            gpus: world.gpus.clone(),
            client: None,
            machine: world.machine.clone(),
            prepare: None,
            paused: true,
            interrupt: world.interrupt.clone(),
        };
        let mut checks = Vec::new();
        examine(&world.config, &seams, Some(90), |check| checks.push(check)).await.unwrap();
        checks
    })
    .unwrap()
}

fn find<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks.iter().find(|check| check.name == name).unwrap()
}

#[test]
fn engines_that_are_well_have_nothing_to_mend() {
    let checks = examined("[environment.commands]\nversions = \"echo never run\"\n");
    let failed: Vec<_> = checks.iter().filter(|check| check.state == State::Fail).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let session = find(&checks, "session");
    assert_eq!(session.state, State::Ok, "{session}");
    for name in ["health inst1", "metrics inst2", "red lines inst3", "caches inst1"] {
        assert_eq!(find(&checks, name).state, State::Ok, "{}", find(&checks, name));
    }
    // A paused clock proves nothing of our own lateness, and a rehearsal runs no command.
    assert_eq!(find(&checks, "clock").state, State::Skipped);
    assert_eq!(find(&checks, "command versions").state, State::Skipped);
    assert_eq!(find(&checks, "kv pool inst1").state, State::Skipped);
}

#[test]
fn a_pool_far_from_theory_is_a_warning() {
    let checks = examined("[sizing]\ntopology = \"1x0.92\"\n");
    let pool = find(&checks, "kv pool inst1");
    assert_eq!(pool.state, State::Warn, "{pool}");
    assert!(pool.says.contains("1x0.92 should leave"), "{pool}");
}
