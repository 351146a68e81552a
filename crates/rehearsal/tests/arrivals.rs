//! Open arrivals against the built-in engine: what its lines do must be what Erlang says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use std::path::Path;
use std::time::Duration;

use tapedeck_answers::{ArrivalRate, ArrivalsAnswer, Caveat};
use tapedeck_cases::arrivals::{Asked, run as arrivals};
use tapedeck_cases::{Quiet, Role};
use tapedeck_config::{Config, LoadConfig};
use tapedeck_erlang::erlang_b;
use tapedeck_load::arrivals::{ArrivalProcess, Lengths, Trunks};
use tapedeck_record::ExitCode;
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tokio::sync::watch;

use common::fixtures;

/// One engine with so many lines (0 for no limit); chunks of a second, which say as much here and cost less.
fn config(seed: u64, lines: u32) -> Config {
    let mut config = Config {
        load: LoadConfig {
            chunk_ms: 1000,
            sample_s: 60.0,
            ping_s: 0.0,
            cool_down_s: 6.0,
            ..LoadConfig::default()
        },
        ..Config::default()
    };
    config.server.window_ms = Some(2000);
    config.tape.manifest = fixtures().join("tapes/tape-a-tenth.json");
    config.tape.pool = fixtures().join("pool-tenth");
    config.run.seed = seed;
    let limit = if lines > 0 { format!("engine.max_sessions = {lines}\n") } else { String::new() };
    config.rehearsal = toml::from_str(&format!("instances = 1\n{limit}")).unwrap();
    config
}

fn asked(per_hour: f64, lines: Trunks, calls: u32) -> Asked {
    Asked {
        laws: vec![ArrivalProcess::Poisson { per_hour }],
        lengths: Lengths::PreparedCalls,
        role: Role::A,
        lines,
        server_lines: None,
        calls,
        warm_up: Duration::from_secs(60),
        max_blocking: None,
    }
}

fn play(config: Config, asked: &Asked, out: &Path) -> ArrivalsAnswer {
    let seed = config.run.seed;
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config, interrupt).unwrap();
        let info =
            RunInfo { run_id: format!("seed{seed}"), case: "arrivals".into(), seed, ..RunInfo::default() };
        let mut dir = RunDir::create(out, &info, &world.config.to_toml().unwrap()).unwrap();
        arrivals(&world, &mut dir, asked, &Quiet).await.unwrap()
    })
    .unwrap()
}

fn one(config: Config, asked: &Asked) -> ArrivalRate {
    let out = tempfile::tempdir().unwrap();
    let mut answer = play(config, asked, out.path());
    assert_eq!(answer.rates.len(), 1);
    answer.rates.remove(0)
}

/// Calls last 5.3 s on average: 3600 an hour are about 5.6 Erlang with the time it takes to answer.
const PER_HOUR: f64 = 3600.0;

#[test]
fn an_engine_with_eight_lines_blocks_as_erlang_b_says() {
    let mut agreed = 0;
    for seed in 1..=20 {
        let ask = Asked { server_lines: Some(8), ..asked(PER_HOUR, Trunks::Server, 1_000) };
        let rate = one(config(seed, 8), &ask);
        let blocking = rate.figures.blocking.clone().unwrap();
        let f = &rate.figures;
        assert_eq!((f.callers, f.carried + f.blocked, f.cut, rate.failed), (1_000, 1_000, 0, 0), "{rate:?}");
        assert!((0.02..0.25).contains(&blocking.measured.value), "{blocking:?}");
        agreed += u32::from(blocking.agrees.unwrap());
    }
    assert!(agreed >= 17, "only {agreed} of 20 seeds agree");
}

#[test]
fn lines_of_our_own_block_as_erlang_b_says_and_wrong_lines_do_not_agree() {
    let rate = one(config(3, 0), &asked(PER_HOUR, Trunks::Lose(6), 3_000));
    let blocking = rate.figures.blocking.clone().unwrap();
    assert_eq!(blocking.agrees, Some(true), "{blocking:?}");
    let wrong = erlang_b::blocking(rate.figures.offered_erl, 7).unwrap();
    assert_eq!(blocking.measured.holds(wrong), Some(false), "{blocking:?} {wrong}");
    let little = rate.figures.little.unwrap();
    assert!((little.ratio - 1.0).abs() < 0.03, "{little:?}");
}

#[test]
fn exponential_calls_wait_as_erlang_c_says() {
    let (mut share, mut mean) = (0, 0);
    for seed in 1..=10 {
        let ask = Asked {
            lengths: Lengths::Exponential { mean: Duration::from_secs(20) },
            ..asked(720.0, Trunks::Wait(6), 1_500)
        };
        let f = one(config(seed, 0), &ask).figures;
        let cv = f.cv_hold.unwrap();
        assert!((cv - 1.0).abs() < 0.1, "{cv}");
        assert!(f.caveats.is_empty() && f.mean_wait_guide_s.is_none(), "{:?}", f.caveats);
        assert!(!f.growth.unwrap().unstable, "{:?}", f.growth);
        share += u32::from(f.waiting.unwrap().agrees.unwrap());
        mean += u32::from(f.mean_wait_s.unwrap().agrees.unwrap());
    }
    assert!(share >= 8 && mean >= 8, "of 10 seeds {share} agree on the share and {mean} on the mean");
}

#[test]
fn where_the_theory_does_not_apply_it_says_so() {
    let f = one(config(7, 0), &asked(PER_HOUR, Trunks::Wait(8), 500)).figures;
    assert_eq!(f.mean_wait_s.as_ref().unwrap().agrees, None);
    assert!(f.caveats.contains(&Caveat::NotExponential), "{:?}", f.caveats);
    assert!(f.mean_wait_guide_s.is_some());
    let bursts = Asked {
        laws: vec![ArrivalProcess::Bursty { per_hour: PER_HOUR, burst: 5 }],
        ..asked(PER_HOUR, Trunks::Lose(8), 500)
    };
    let f = one(config(7, 0), &bursts).figures;
    let blocking = f.blocking.unwrap();
    assert_eq!(blocking.agrees, None);
    assert!(blocking.measured.value > blocking.theory.unwrap(), "bursts block more: {blocking:?}");
}

#[test]
fn a_queue_without_an_end_is_found_by_raising_the_rate() {
    let laws = [1800.0, 5400.0, 7200.0].map(|per_hour| ArrivalProcess::Poisson { per_hour }).to_vec();
    let ask = Asked { laws, ..asked(0.0, Trunks::Wait(6), 400) };
    let out = tempfile::tempdir().unwrap();
    let answer = play(config(1, 0), &ask, out.path());
    assert_eq!(answer.unstable_from_per_h, Some(5400.0), "{answer:?}");
    assert_eq!(answer.rates.len(), 2, "nothing beyond an unstable rate is played");
    assert_eq!(answer.exit_code(), ExitCode::Ok);
    assert!(answer.rates[1].figures.caveats.iter().any(|c| c.to_string().contains("unstable")));
    assert!(answer.run.join("arrivals-A05400.000.csv").is_file());
}

#[test]
fn a_seed_means_the_same_bytes() {
    let ask = asked(PER_HOUR, Trunks::Lose(4), 60);
    let bytes = || {
        let out = tempfile::tempdir().unwrap();
        let answer = play(config(11, 0), &ask, out.path());
        let read = |name: &str| std::fs::read(answer.run.join(name)).unwrap();
        (read("arrivals-A03600.000.csv"), read("calls.jsonl"), read("arrivals-A03600.000.json"))
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn resuming_takes_over_what_is_there() {
    let out = tempfile::tempdir().unwrap();
    let ask = asked(PER_HOUR, Trunks::Lose(4), 40);
    let first = play(config(2, 0), &ask, out.path());
    let again = run(async {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config(2, 0), interrupt).unwrap();
        let mut dir = RunDir::resume(&first.run, &world.config.to_toml().unwrap()).unwrap();
        let answer = arrivals(&world, &mut dir, &ask, &Quiet).await.unwrap();
        assert!(world.now_s() < 1.0, "nothing was played again");
        answer
    });
    assert_eq!(again.unwrap(), first);
}
