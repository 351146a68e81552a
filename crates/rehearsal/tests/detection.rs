//! Faults against cases: what is found, what is not, what alarms without cause. The table is `docs/detection.md`.
//!
//! Every row plays the same case with and without the fault, over several seeds, and asks the same question of both.
//! `TAPEDECK_WRITE_TABLE=1 cargo test -p tapedeck-rehearsal --test detection` writes the table anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{fixtures, tenth};
use tapedeck_cases::tc06::Fault;
use tapedeck_cases::{CaseError, Config, Decision, Quiet, Role, World, tc03, tc04, tc05, tc06, tc08};
use tapedeck_engine_model::{Degradation, Faults, Outage, Params, StepCost, Vram, VramSeries};
use tapedeck_record::{ExitCode, Outcome};
use tapedeck_rehearsal::{run, world_with};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::{LeakRules, LeakVerdict, Verdict, leak};
use tokio::sync::watch;

/// One fault and the case that exists to find it.
struct Row {
    fault: &'static str,
    case: &'static str,
    /// How it is seen.
    seen: &'static str,
    seeds: u64,
    /// Whether the case complains, with the fault (true) and without it.
    complains: fn(u64, bool) -> bool,
}

const ROWS: [Row; 15] = [
    Row {
        fault: "sessions that never answer, 2 %",
        case: "TC-03",
        seen: "errors",
        seeds: 3,
        complains: mute,
    },
    Row { fault: "engine hangs for 15 s", case: "TC-03", seen: "latencies", seeds: 3, complains: hang },
    Row {
        fault: "engine crashes for 20 s",
        case: "TC-03",
        seen: "errors, instance down",
        seeds: 3,
        complains: crash,
    },
    Row {
        fault: "refuses the sixth call of each instance",
        case: "TC-03",
        seen: "errors",
        seeds: 3,
        complains: refusal,
    },
    Row {
        fault: "KV pool too small by a third",
        case: "TC-03",
        seen: "preemption red line",
        seeds: 3,
        complains: preemption,
    },
    Row { fault: "prefix cache hits 3 %", case: "TC-03", seen: "suspect", seeds: 3, complains: prefix },
    Row {
        fault: "lag grows with the age of a call",
        case: "TC-03",
        seen: "unstable, or the final's limit",
        seeds: 3,
        complains: age,
    },
    Row {
        fault: "last segment never made final in 1 % of calls",
        case: "TC-03",
        seen: "quality flag",
        seeds: 3,
        complains: tails,
    },
    Row {
        fault: "words suffer under load",
        case: "TC-04",
        seen: "alarm above 1.0 point",
        seeds: 3,
        complains: words,
    },
    Row { fault: "steps grow longer by the hour", case: "TC-08", seen: "drift", seeds: 3, complains: drift },
    Row {
        fault: "leak of 1 % of VRAM per hour (memory series alone)",
        case: "TC-05",
        seen: "leak",
        seeds: 200,
        complains: leak_series,
    },
    Row {
        fault: "the same, ten times as fast, played for 24 min",
        case: "TC-05",
        seen: "leak",
        seeds: 3,
        complains: leak_played,
    },
    Row {
        fault: "first texts come later and later",
        case: "TC-05",
        seen: "drift of TTFT p95",
        seeds: 3,
        complains: creep,
    },
    Row {
        fault: "balancer goes on dealing calls to a dead instance",
        case: "TC-06",
        seen: "new calls lost",
        seeds: 3,
        complains: blind,
    },
    Row {
        fault: "two instances cannot carry 2/3 of the load",
        case: "TC-06",
        seen: "no recovery in 30 s",
        seeds: 3,
        complains: weak,
    },
];

fn play<A>(
    config: Config,
    needs: &[Role],
    script: impl AsyncFnOnce(&World, &mut RunDir) -> Result<A, CaseError>,
) -> Result<A, CaseError> {
    let out = tempfile::tempdir().unwrap();
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let world = world_with(config, needs, interrupt)?;
        let info = RunInfo { run_id: "run".into(), simulated: true, ..RunInfo::default() };
        let mut dir = RunDir::create(out.path(), &info, &world.config.to_toml()?)?;
        script(&world, &mut dir).await
    })
    .unwrap()
}

fn with(mut config: Config, engine: Params) -> Config {
    config.rehearsal.insert("engine".into(), toml::Value::try_from(engine).unwrap());
    config
}

/// A tier of 18 streams, far below what the healthy demo carries.
fn tier(seed: u64, engine: Params) -> Result<tapedeck_slo::TierReport, CaseError> {
    of(with(tenth(seed, &[18]), engine))
}

fn of(mut config: Config) -> Result<tapedeck_slo::TierReport, CaseError> {
    config.ladder.refine = false;
    config.load.loops = 3;
    let mut answer = play(config, &[], async |w, d| tc03::run(w, d, &Quiet).await)?;
    Ok(answer.tiers.remove(0))
}

fn demo(faulty: bool, faults: Faults) -> Params {
    Params { faults: if faulty { faults } else { Faults::default() }, ..Params::demo() }
}

/// Whether a tier is anything but a pass; a step that could not even be finished is.
fn no_pass(seed: u64, engine: Params) -> bool {
    tier(seed, engine).map_or(true, |t| t.verdict != Verdict::Pass)
}

fn mute(seed: u64, faulty: bool) -> bool {
    no_pass(seed, demo(faulty, Faults { mute_share: 0.02, ..Faults::default() }))
}

fn hang(seed: u64, faulty: bool) -> bool {
    let hang = Some(Outage { at_ms: 60_000, for_ms: Some(15_000) });
    no_pass(seed, demo(faulty, Faults { hang, ..Faults::default() }))
}

fn crash(seed: u64, faulty: bool) -> bool {
    let crash = Some(Outage { at_ms: 60_000, for_ms: Some(20_000) });
    no_pass(seed, demo(faulty, Faults { crash, ..Faults::default() }))
}

fn refusal(seed: u64, faulty: bool) -> bool {
    no_pass(seed, Params { max_sessions: faulty.then_some(5), ..Params::demo() })
}

fn preemption(seed: u64, faulty: bool) -> bool {
    // Six sessions of up to 18 s, some 250 tokens each, want about 100 blocks on an instance.
    let kv_blocks = if faulty { 66 } else { Params::demo().kv_blocks };
    no_pass(seed, Params { kv_blocks, ..Params::demo() })
}

fn prefix(seed: u64, faulty: bool) -> bool {
    let prefix_hit_share = if faulty { 0.03 } else { 0.0 };
    let faults = Faults { prefix_hit_share, ..Faults::default() };
    tier(seed, Params { prefix_cache: faulty, faults, ..Params::demo() })
        .map_or(true, |t| t.verdict == Verdict::Suspect)
}

fn age(seed: u64, faulty: bool) -> bool {
    no_pass(seed, demo(faulty, Faults { age_lag_ms_per_minute: 8_000, ..Faults::default() }))
}

fn tails(seed: u64, faulty: bool) -> bool {
    let mut config = tenth(seed, &[18]);
    if faulty {
        config.rehearsal.insert("mischief".into(), "tail-lost/100".into());
    }
    of(config).map_or(true, |t| t.outcomes.get(&Outcome::TailLost).is_some_and(|n| *n > 0))
}

/// The tenth-length labelled tape has 8 calls: enough for a rise of several points, not for one of 1.5.
fn words(seed: u64, faulty: bool) -> bool {
    let step = StepCost { base_ns: 25_000_000, per_stream_ns: 6_000_000, ..StepCost::default() };
    let worst = if faulty { 0.3 } else { 0.0 };
    let degradation = Degradation { base: 0.0, worst, from_lag_ms: 400, full_lag_ms: 1500 };
    let mut config = with(tenth(seed, &[24]), Params { step, degradation, ..Params::demo() });
    config.labelled.manifest = fixtures().join("tapes/labelled-tenth.json");
    config.labelled.pool = fixtures().join("pool-longer-tenth");
    let answer = play(config, &[Role::Labelled], async |w, d| tc04::run(w, d, &Quiet, Some(24)).await);
    answer.map_or(true, |a| a.decision == Decision::No)
}

fn drift(seed: u64, faulty: bool) -> bool {
    let mut config =
        with(tenth(seed, &[12]), demo(faulty, Faults { slowdown_per_hour: 25.0, ..Faults::default() }));
    config.ladder.refine = false;
    let answer = play(config, &[], async |w, d| {
        tc03::run(w, d, &Quiet).await?;
        tc08::run(w, d, &Quiet, Some(12)).await
    });
    answer.map_or(true, |a| a.decision == Decision::No)
}

/// A card of 48 GB.
const CARD: f64 = 48e9;

/// Noise of half a percent of the card that forgets within seconds, and a gigabyte that is taken once at the start.
fn vram(instances: f64, leak_share_per_h: f64) -> Vram {
    Vram {
        noise_bytes: 0.005 * CARD / instances.sqrt(),
        noise_memory: 0.95,
        late_bytes: if instances > 1.0 { 333_000_000 } else { 1_000_000_000 },
        late_ms: if instances > 1.0 { 6_000 } else { 60_000 },
        leak_bytes_per_hour: leak_share_per_h * CARD / instances,
        ..Vram::default()
    }
}

fn leak_series(seed: u64, faulty: bool) -> bool {
    let vram = vram(1.0, if faulty { 0.01 } else { 0.0 });
    let readings: Vec<(f64, f64)> = VramSeries::new(&Params { vram, ..Params::demo() }, 1000 + seed)
        .take(4 * 3600)
        .enumerate()
        .map(|(second, bytes)| (second as f64, bytes as f64))
        .collect();
    leak(&readings, CARD, &LeakRules::default(), seed).verdict == LeakVerdict::Leak
}

fn soak(seed: u64, engine: Params) -> tc05::Soak {
    let mut config = with(tenth(seed, &[3]), engine);
    config.soak.hours = 0.4;
    let answer = play(config, &[], async |w, d| tc05::run(w, d, Some(12), None, &Quiet).await);
    answer.unwrap().soak.unwrap()
}

fn leak_played(seed: u64, faulty: bool) -> bool {
    let vram = vram(3.0, if faulty { 0.1 } else { 0.0 });
    let soak = soak(seed, Params { vram, ..Params::demo() });
    soak.memory.iter().any(|m| m.leak.verdict == LeakVerdict::Leak)
}

fn creep(seed: u64, faulty: bool) -> bool {
    let soak = soak(seed, demo(faulty, Faults { slowdown_per_hour: 3.0, ..Faults::default() }));
    soak.drift.drifts == Some(true)
}

fn injured(seed: u64, n_star: u32, blind_s: f64) -> bool {
    let mut config = tenth(seed, &[3]);
    config.fault.shares = vec![2.0 / 3.0];
    (config.fault.steady_s, config.fault.down_s, config.fault.after_s) = (20.0, 80.0, 60.0);
    config.rehearsal.insert("balancer_blind_s".into(), blind_s.into());
    let answer = play(config, &[], async |w, d| tc06::run(w, d, Some(n_star), Fault::Kill, &Quiet).await);
    answer.map_or(true, |a| a.exit_code() == ExitCode::No)
}

fn blind(seed: u64, faulty: bool) -> bool {
    injured(seed, 36, if faulty { 600.0 } else { 0.0 })
}

fn weak(seed: u64, faulty: bool) -> bool {
    injured(seed, if faulty { 81 } else { 36 }, 0.0)
}

/// Faults found, and false alarms.
fn counts(row: &Row) -> (u64, u64) {
    let count = |faulty| (1..=row.seeds).filter(|&seed| (row.complains)(seed, faulty)).count() as u64;
    (count(true), count(false))
}

/// Plays every row, on two threads.
fn all() -> Vec<(u64, u64)> {
    let results = Mutex::new(vec![(0, 0); ROWS.len()]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(row) = ROWS.get(at) else { return };
                    let counted = counts(row);
                    results.lock().unwrap()[at] = counted;
                }
            });
        }
    });
    results.into_inner().unwrap()
}

fn table(counted: &[(u64, u64)]) -> String {
    let mut out = String::from(
        "| fault | case | seen as | found | not found | false alarms without it |\n|---|---|---|---|---|---|\n",
    );
    for (row, (found, alarms)) in ROWS.iter().zip(counted) {
        let Row { fault, case, seen, seeds, .. } = row;
        let _ = writeln!(
            out,
            "| {fault} | {case} | {seen} | {found} of {seeds} | {} | {alarms} of {seeds} |",
            seeds - found
        );
    }
    out
}

#[test]
fn every_case_finds_its_fault_and_is_quiet_without_it_as_the_table_says() {
    let counted = all();
    let table = table(&counted);
    let path = fixtures().join("../docs/detection.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- table -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let wanted = format!("{before}<!-- table -->\n{table}<!-- end -->{after}");
    if std::env::var_os("TAPEDECK_WRITE_TABLE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    for (row, (found, alarms)) in ROWS.iter().zip(&counted) {
        assert!(found * 100 >= row.seeds * 95, "{}: {found} of {} found\n{table}", row.fault, row.seeds);
        assert!(alarms * 200 <= row.seeds, "{}: {alarms} false alarms in {}\n{table}", row.fault, row.seeds);
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/detection.md is not what was found; see above"
    );
}
