//! N* against the reference capacity: the ladder measures, over frames, pages and percentiles, what the model alone knows.
//!
//! The reference is found exhaustively by code that shares nothing with the client. The two may differ by one step
//! of the refinement, which is the number of instances.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use common::{climb, fixtures, tenth};
use tapedeck_config::{Config, LoadConfig};
use tapedeck_engine_model::reference_capacity::{Deployment, ReferenceRules, TapeCall, catalogue};
use tapedeck_engine_model::{Params, StepCost};
use tapedeck_slo::{Capacity, CapacityState};
use tapedeck_tape::Tape;

const TIERS: [u32; 11] = [3, 6, 12, 18, 24, 30, 36, 48, 60, 75, 90];

fn deployment(name: &str) -> Deployment {
    catalogue().into_iter().find(|d| d.name == name).unwrap()
}

fn calls(config: &Config) -> Vec<TapeCall> {
    let tape = Tape::load(&config.tape.manifest, &config.tape.pool).unwrap();
    let speech = |c: &tapedeck_tape::TapeCall| {
        c.meta.speech.intervals().iter().map(|i| (i.start_ms, i.end_ms)).collect()
    };
    tape.calls.iter().map(|c| TapeCall { duration_ms: c.meta.duration_ms, speech: speech(c) }).collect()
}

/// A deployment so slow that six streams are all it takes.
fn crawl() -> Deployment {
    let step = StepCost {
        base_ns: 60_000_000,
        per_stream_ns: 12_000_000,
        per_prefill_token_ns: 600_000,
        per_context_token_ns: 400,
    };
    let demo = deployment("demo");
    Deployment { name: "crawl", params: Params { step, ..demo.params }, ..demo }
}

/// What the deployment really carries when it plays this config's tape.
fn reference_capacity(deployment: &Deployment, config: &Config, rules: &ReferenceRules) -> u32 {
    deployment.typical(&calls(config), rules, &[1, 2, 3, 4, 5, 6, 7]).unwrap()
}

/// What a ladder finds.
fn found(deployment: &Deployment, mut config: Config) -> Capacity {
    config.rehearsal = toml::Table::new();
    config.rehearsal.insert("instances".into(), i64::from(deployment.instances).into());
    config.rehearsal.insert("engine".into(), toml::Value::try_from(&deployment.params).unwrap());
    config.server.window_ms = Some(deployment.params.window_ms);
    let tmp = tempfile::tempdir().unwrap();
    climb(config, tmp.path()).capacity
}

/// Whether N* is the truth within one step of the refinement.
fn agree(deployment: &Deployment, capacity: &Capacity, reference: u32) -> bool {
    let found = capacity.n_star.unwrap_or(0);
    match capacity.state {
        // Nothing failed up to the last tier, which is where the truth stops looking as well.
        CapacityState::Censored => {
            found == *TIERS.last().unwrap() && reference + deployment.instances >= found
        }
        CapacityState::Exact => found.abs_diff(reference) <= deployment.instances,
        CapacityState::None => reference <= deployment.instances,
        CapacityState::AtLeastUnproven | CapacityState::Undecided => false,
    }
}

/// Runs the jobs on two threads and returns what did not agree.
fn disagreements<T: Send + Sync>(jobs: &[T], job: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let (even, odd): (Vec<_>, Vec<_>) = (0..jobs.len()).partition(|i| i % 2 == 0);
    thread::scope(|scope| {
        let run = |half: Vec<usize>| {
            let (job, jobs) = (&job, &jobs);
            scope.spawn(move || half.into_iter().filter_map(|i| job(&jobs[i])).collect::<Vec<_>>())
        };
        let halves = [run(even), run(odd)];
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    })
}

fn seeds_find_the_reference_on_the_short_tape(seeds: &[u64]) {
    let demo = deployment("demo");
    let reference = reference_capacity(&demo, &tenth(1, &TIERS), &ReferenceRules::default().tenth());
    let wrong = disagreements(seeds, |&seed| {
        let capacity = found(&demo, tenth(seed, &TIERS));
        let said = format!("seed {seed}: {}, reference {reference}", capacity.display());
        (!agree(&demo, &capacity, reference)).then_some(said)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn two_seeds_find_the_reference_on_the_short_tape() {
    seeds_find_the_reference_on_the_short_tape(&[1, 2]);
}

#[test]
#[ignore = "takes minutes; `just validity` runs it"]
fn twenty_seeds_find_the_reference_on_the_short_tape() {
    seeds_find_the_reference_on_the_short_tape(&(1..=20).collect::<Vec<u64>>());
}

#[test]
#[ignore = "takes minutes; `just validity` runs it"]
fn every_deployment_is_found_on_the_short_tape() {
    let mut all = catalogue();
    all.push(crawl());
    let references = Mutex::new(BTreeSet::new());
    let wrong = disagreements(&all, |deployment| {
        let config = tenth(1, &TIERS);
        let reference = reference_capacity(deployment, &config, &ReferenceRules::default().tenth());
        let capacity = found(deployment, config);
        let limited_by = capacity.limited_by.iter().map(|l| l.name()).collect::<Vec<_>>().join("+");
        references.lock().unwrap().insert((reference, limited_by));
        let said = format!("{}: {}, reference {reference}", deployment.name, capacity.display());
        (!agree(deployment, &capacity, reference)).then_some(said)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A catalogue whose references were all alike, or all broke the same limit, would prove little.
    let references = references.into_inner().unwrap();
    assert!(references.len() >= 10, "{references:?}");
    assert_eq!((references.first().unwrap().0, references.last().unwrap().0), (6, 90));
    for limit in ["preemption", "rtf", "ttft", "errors"] {
        assert!(
            references.iter().any(|(_, by)| by.contains(limit)),
            "nothing is limited by {limit}: {references:?}"
        );
    }
}

#[test]
#[ignore = "takes minutes; `just validity` runs it"]
fn three_seeds_find_the_reference_on_the_whole_tape() {
    let demo = deployment("demo");
    let whole = |seed| {
        let mut config = tenth(seed, &TIERS);
        config.load = LoadConfig::default();
        config.tape.manifest = fixtures().join("tapes/tape-a.json");
        config.tape.pool = fixtures().join("pool-a");
        config
    };
    let reference = reference_capacity(&demo, &whole(1), &ReferenceRules::default());
    let wrong = disagreements(&[1, 2, 3], |&seed| {
        let capacity = found(&demo, whole(seed));
        let said = format!("seed {seed}: {}, reference {reference}", capacity.display());
        (!agree(&demo, &capacity, reference)).then_some(said)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
