//! Faults that cases are played against, call by call, with the faulty engine and with a healthy one.

use tapedeck_answers::{Decision, Fault, NStar, Soak};
use tapedeck_cases::{CaseError, Quiet, Role, World, fault, ladder, quality, repeatability, soak};
use tapedeck_config::Config;
use tapedeck_engine_model::{Degradation, Faults, Outage, Params, SlowBatch, StepCost};
use tapedeck_record::{ExitCode, Outcome};
use tapedeck_rehearsal::{run, world_with};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::{LeakVerdict, Verdict};
use tokio::sync::watch;

use crate::common::{fixtures, tenth};
use crate::series::vram;

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
    let mut answer = play(config, &[], async |w, d| ladder::run(w, d, &Quiet).await)?;
    Ok(answer.tiers.remove(0))
}

fn demo(faulty: bool, faults: Faults) -> Params {
    Params { faults: if faulty { faults } else { Faults::default() }, ..Params::demo() }
}

/// Whether a tier is anything but a pass; a step that could not even be finished is.
fn no_pass(seed: u64, engine: Params) -> bool {
    tier(seed, engine).map_or(true, |t| t.verdict != Verdict::Pass)
}

pub(crate) fn no_response(seed: u64, faulty: bool) -> bool {
    no_pass(seed, demo(faulty, Faults { mute_share: 0.02, ..Faults::default() }))
}

pub(crate) fn hang(seed: u64, faulty: bool) -> bool {
    let hang = Some(Outage { at_ms: 60_000, for_ms: Some(15_000) });
    no_pass(seed, demo(faulty, Faults { hang, ..Faults::default() }))
}

pub(crate) fn crash(seed: u64, faulty: bool) -> bool {
    let crash = Some(Outage { at_ms: 60_000, for_ms: Some(20_000) });
    no_pass(seed, demo(faulty, Faults { crash, ..Faults::default() }))
}

pub(crate) fn refusal(seed: u64, faulty: bool) -> bool {
    no_pass(seed, Params { max_sessions: faulty.then_some(5), ..Params::demo() })
}

pub(crate) fn preemption(seed: u64, faulty: bool) -> bool {
    // Six sessions of up to 18 s, some 250 tokens each, want about 100 blocks on an instance.
    let kv_blocks = if faulty { 66 } else { Params::demo().kv_blocks };
    no_pass(seed, Params { kv_blocks, ..Params::demo() })
}

pub(crate) fn prefix(seed: u64, faulty: bool) -> bool {
    let prefix_hit_share = if faulty { 0.03 } else { 0.0 };
    let faults = Faults { prefix_hit_share, ..Faults::default() };
    tier(seed, Params { prefix_cache: faulty, faults, ..Params::demo() })
        .map_or(true, |t| t.verdict == Verdict::Suspect)
}

/// On the capacity tape itself, whose longest call lasts three minutes: the limit on the final is 2 s.
pub(crate) fn age(seed: u64, faulty: bool) -> bool {
    let faults = Faults { age_lag_ms_per_minute: 750, ..Faults::default() };
    let mut config = with(tenth(seed, &[18]), demo(faulty, faults));
    config.tape.manifest = fixtures().join("tapes/tape-a.json");
    config.tape.pool = fixtures().join("pool-a");
    config.load.warm_up_s = 60.0;
    config.ladder.refine = false;
    let played = play(config, &[], async |w, d| ladder::run(w, d, &Quiet).await);
    played.map_or(true, |a| a.tiers[0].verdict != Verdict::Pass)
}

pub(crate) fn tails(seed: u64, faulty: bool) -> bool {
    let mut config = tenth(seed, &[18]);
    if faulty {
        config.rehearsal.insert("fault_injection".into(), "tail-lost/100".into());
    }
    of(config).map_or(true, |t| t.outcomes.get(&Outcome::TailLost).is_some_and(|n| *n > 0))
}

/// Steps that grow longer with company, so that every window of 24 streams is later than any of a single one.
pub(crate) fn words(seed: u64, faulty: bool) -> bool {
    let step = StepCost { base_ns: 18_000_000, per_stream_ns: 12_000_000, ..StepCost::default() };
    // Four windows in five are late, so that words get worse by 1.5 points.
    let worst = if faulty { 0.0495 } else { 0.03 };
    let degradation = Degradation { base: 0.03, worst, from_lag_ms: 499, full_lag_ms: 500 };
    let mut config = with(tenth(seed, &[24]), Params { step, degradation, ..Params::demo() });
    config.labelled.manifest = fixtures().join("tapes/labelled.json");
    config.labelled.pool = fixtures().join("pool-a");
    (config.quality.baseline_loops, config.quality.loops) = (12, 3);
    config.quality.shares = vec![1.0];
    let answer = play(config, &[Role::Labelled], async |w, d| {
        quality::run(w, d, &Quiet, Some(NStar::new(24, "the test"))).await
    });
    answer.map_or(true, |a| a.decision == Decision::No)
}

/// Batches of three to five requests fit no graph: some tiers fail and higher ones pass.
pub(crate) fn dip(seed: u64, faulty: bool) -> bool {
    let step = StepCost { base_ns: 20_000_000, per_stream_ns: 1_000_000, ..StepCost::default() };
    let slow_batch = Some(SlowBatch { from: 3, to: 5, factor: 4.4 });
    let mut config = with(
        tenth(seed, &[12, 30, 60]),
        Params { step, ..demo(faulty, Faults { slow_batch, ..Faults::default() }) },
    );
    config.ladder.refine = false;
    let played = play(config, &[], async |w, d| ladder::run(w, d, &Quiet).await);
    played.map_or(true, |a| !a.capacity.non_monotonic.is_empty())
}

pub(crate) fn drift(seed: u64, faulty: bool) -> bool {
    let mut config =
        with(tenth(seed, &[12]), demo(faulty, Faults { slowdown_per_hour: 10.0, ..Faults::default() }));
    config.ladder.refine = false;
    let answer = play(config, &[], async |w, d| {
        ladder::run(w, d, &Quiet).await?;
        repeatability::run(w, d, &Quiet, Some(12)).await
    });
    answer.map_or(true, |a| a.decision == Decision::No)
}

/// Four hours of three streams.
fn soak(seed: u64, engine: Params) -> Soak {
    let mut config = with(tenth(seed, &[3]), engine);
    // Fewer pages to read; the memory under them wobbles by the second all the same.
    config.load.sample_s = 5.0;
    let answer =
        play(config, &[], async |w, d| soak::run(w, d, Some(NStar::new(4, "the test")), None, &Quiet).await);
    answer.unwrap().soak.unwrap()
}

pub(crate) fn leak_played(seed: u64, faulty: bool) -> bool {
    let vram = vram(3, if faulty { 0.01 } else { 0.0 });
    let soak = soak(seed, Params { vram, ..Params::demo() });
    soak.memory.iter().any(|m| m.leak.verdict == LeakVerdict::Leak)
}

pub(crate) fn creep(seed: u64, faulty: bool) -> bool {
    let soak = soak(seed, demo(faulty, Faults { slowdown_per_hour: 0.3, ..Faults::default() }));
    soak.drift.drifts == Some(true)
}

fn injured(seed: u64, n_star: u32, blind_s: f64) -> bool {
    let mut config = tenth(seed, &[3]);
    config.fault.shares = vec![2.0 / 3.0];
    (config.fault.steady_s, config.fault.down_s, config.fault.after_s) = (20.0, 80.0, 60.0);
    config.rehearsal.insert("balancer_blind_s".into(), blind_s.into());
    let answer = play(config, &[], async |w, d| {
        fault::run(w, d, Some(NStar::new(n_star, "the test")), Fault::Kill, &Quiet).await
    });
    answer.map_or(true, |a| a.exit_code() == ExitCode::No)
}

pub(crate) fn blind(seed: u64, faulty: bool) -> bool {
    injured(seed, 36, if faulty { 600.0 } else { 0.0 })
}

pub(crate) fn weak(seed: u64, faulty: bool) -> bool {
    injured(seed, if faulty { 81 } else { 36 }, 0.0)
}
