//! TC-05: finds what only hours show, and stays quiet where there is nothing.
//!
//! The study of error rates runs on the engine's memory series alone, hundreds of soaks of four hours; a few soaks are
//! played end to end, a tenth as long, with faults ten times as fast.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use std::path::Path;

use common::tenth;
use tapedeck_answers::{NStar, SoakAnswer, SoakReason, SoakRestart};
use tapedeck_cases::Quiet;
use tapedeck_cases::soak;
use tapedeck_config::Config;
use tapedeck_engine_model::{Faults, Params, Vram, VramSeries};
use tapedeck_record::ExitCode;
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::{LeakRules, LeakVerdict, leak};
use tokio::sync::watch;

/// A card of 48 GB.
const CARD: f64 = 48e9;
const SEEDS: u64 = 200;

/// What one instance that has the card to itself takes, with noise of half a percent of the card and a gigabyte that is
/// taken once, a minute after the start.
fn vram(leak_share_per_h: f64) -> Vram {
    Vram {
        noise_bytes: 0.005 * CARD,
        noise_memory: 0.95,
        late_bytes: 1_000_000_000,
        late_ms: 60_000,
        leak_bytes_per_hour: leak_share_per_h * CARD,
        ..Vram::default()
    }
}

/// How many of so many soaks of four hours, read once a second, are called leaks.
fn called_leaks(leak_share_per_h: f64) -> u64 {
    let params = Params { vram: vram(leak_share_per_h), ..Params::demo() };
    let leaks = (0..SEEDS).filter(|&seed| {
        let readings: Vec<(f64, f64)> = VramSeries::new(&params, seed)
            .take(4 * 3600)
            .enumerate()
            .map(|(second, bytes)| (second as f64, bytes as f64))
            .collect();
        leak(&readings, CARD, &LeakRules::default(), seed).verdict == LeakVerdict::Leak
    });
    leaks.count() as u64
}

#[test]
fn clean_hours_alarm_no_more_often_than_stated() {
    // The interval of the slope has 99 %, two-sided: half a percent of clean soaks may alarm.
    let stated = (1.0 - LeakRules::default().confidence) / 2.0;
    let alarms = called_leaks(0.0);
    assert!(alarms as f64 <= stated * SEEDS as f64, "{alarms} false alarms in {SEEDS} clean soaks");
}

#[test]
fn one_percent_an_hour_is_found() {
    let found = called_leaks(0.01);
    assert!(found * 100 >= SEEDS * 95, "{found} of {SEEDS} leaks found");
}

/// Soaks for 24 minutes on the short tape.
fn soak(mut config: Config, engine: &Params) -> SoakAnswer {
    config.rehearsal.insert("engine".into(), toml::Value::try_from(engine).unwrap());
    config.soak.hours = 0.4;
    let out = tempfile::tempdir().unwrap();
    play(config, out.path())
}

fn play(config: Config, out: &Path) -> SoakAnswer {
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config, interrupt).unwrap();
        let info =
            RunInfo { run_id: "soak".into(), case: "tc05".into(), simulated: true, ..RunInfo::default() };
        let mut dir = RunDir::create(out, &info, &world.config.to_toml().unwrap()).unwrap();
        soak::run(&world, &mut dir, Some(NStar::new(12, "the test")), None, &Quiet).await.unwrap()
    })
    .unwrap()
}

/// Each of three instances with a third of the card's noise and leak; the leak ten times as fast as the study's.
fn third(leak_share_per_h: f64) -> Params {
    let whole = vram(10.0 * leak_share_per_h);
    let vram = Vram {
        noise_bytes: whole.noise_bytes / 3_f64.sqrt(),
        leak_bytes_per_hour: whole.leak_bytes_per_hour / 3.0,
        late_bytes: whole.late_bytes / 3,
        late_ms: 6_000,
        ..whole
    };
    Params { vram, ..Params::demo() }
}

#[test]
fn three_clean_soaks_pass() {
    for seed in 1..=3 {
        let answer = soak(tenth(seed, &[3]), &third(0.0));
        let soak = answer.soak.as_ref().unwrap();
        assert_eq!(answer.exit_code(), ExitCode::Ok, "seed {seed}: {:?} {:?}", soak.complaints, soak.unknown);
        assert!(matches!(answer.restarted, SoakRestart::Restarted { .. }), "{}", answer.restarted);
        assert_eq!(answer.streams, 9);
        assert!(soak.periods.len() >= 16 && soak.periods.iter().all(|p| p.errors == 0));
    }
}

#[test]
fn three_leaking_soaks_are_found() {
    for seed in 1..=3 {
        let answer = soak(tenth(seed, &[3]), &third(0.01));
        let soak = answer.soak.as_ref().unwrap();
        assert_eq!(answer.exit_code(), ExitCode::No, "seed {seed}");
        assert_eq!(soak.memory[0].leak.verdict, LeakVerdict::Leak, "seed {seed}: {:?}", soak.memory);
        let per_h = soak.memory[0].leak.per_h.unwrap();
        assert!((per_h / (0.1 * CARD) - 1.0).abs() < 0.3, "seed {seed}: {per_h} bytes an hour");
    }
}

#[test]
fn first_texts_that_come_later_and_later_are_found() {
    let faults = Faults { slowdown_per_hour: 3.0, ..Faults::default() };
    let answer = soak(tenth(1, &[3]), &Params { faults, ..third(0.0) });
    let soak = answer.soak.as_ref().unwrap();
    assert_eq!(soak.drift.drifts, Some(true), "{:?}", soak.drift);
    assert!(soak.complaints.iter().any(|c| matches!(c, SoakReason::Drift { .. })), "{:?}", soak.complaints);
}
