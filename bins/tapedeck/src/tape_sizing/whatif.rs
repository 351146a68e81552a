//! Predictions from a run.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use tapedeck_config::key;
use tapedeck_engine_model::truth::{Balance, TapeCall, TruthRules, synthetic_tape};
use tapedeck_engine_model::{Params, SessionModel, StepCost};
use tapedeck_record::{CallFigure, ExitCode};
use tapedeck_rehearsal::Settings;
use tapedeck_rundir::ladder_of;
use tapedeck_sizing::whatif::{
    Figure, Fit, Grade, Known, Ladder, Prediction, Scenario, TierSeen, fit, pool_tokens, predict,
};
use tapedeck_sizing::{Session, SizingPlan, Topology};
use tapedeck_slo::{Summary, TierReport, TtftBasis};
use tapedeck_tape::Manifest;

use super::lengths::Lengths;
use super::measured::Run;
use super::output::{Answer, figure, row};
use super::{topologies, usage};
use crate::common::Failure;

/// Whether instances on one card slow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sharing {
    /// They do not: each has compute to itself (built-in engines; one instance a card)
    Independent,
    /// They share the card's time: half as many instances, steps twice as fast
    Shared,
    /// Nobody knows: predict both ends
    Both,
}

/// Which run, and what if.
#[derive(Debug, Clone, Args)]
pub struct WhatIfArgs {
    /// Run directory of a ladder
    #[arg(long, value_name = "RUN_DIR")]
    pub from: PathBuf,
    /// Manifest of the tape that it played, where the config's path no longer leads to it
    #[arg(long, value_name = "FILE")]
    pub run_manifest: Option<PathBuf>,
    /// Other topologies: INSTANCESxSHARE or CARDS*INSTANCESxSHARE, parted by commas
    #[arg(long, value_name = "TOPOLOGY", value_delimiter = ',')]
    pub topology: Vec<String>,
    /// Another inference window, milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(100..=60_000))]
    pub window_ms: Option<u32>,
    /// Whether instances on one card slow each other [default: independent for simulated runs, else both]
    #[arg(long, value_enum)]
    pub sharing: Option<Sharing>,
    /// The engine re-sends all audio in each window (rolling); without it, what the run or --session says
    #[arg(long)]
    pub rolling: bool,
    /// The balancer deals connections out in turn, instead of to the least busy instance
    #[arg(long)]
    pub dealt_in_turn: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Other calls.
    #[command(flatten)]
    pub other: Lengths,
}

pub(super) fn what_if(plan: &SizingPlan, args: &WhatIfArgs) -> Result<Answer, Failure> {
    let new = topologies(&args.topology)?;
    let old = plan.topology().map_err(usage)?;
    let run = Run::read(&args.from)?;
    let ladder = ladder(plan, &args.told(), &run)?;
    if let Some(old) = old
        && old.all_instances() != ladder.instances
    {
        return Err(Failure::Usage(format!(
            "--deployment {old} has {} instances, the run has {}",
            old.all_instances(),
            ladder.instances
        )));
    }
    let fitted = fit(&ladder, args.seed).map_err(usage)?;
    let mut predictions = Vec::new();
    for scenario in scenarios(plan, args, &run, &ladder, &new, old)? {
        predictions.push(predict(&ladder, &fitted, &scenario).map_err(usage)?);
    }
    Ok(answer(args, &run, &ladder, &fitted, &predictions))
}

/// What a run does not tell of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told<'a> {
    pub(super) manifest: Option<&'a Path>,
    pub(super) rolling: bool,
    pub(super) dealt_in_turn: bool,
}

impl WhatIfArgs {
    fn told(&self) -> Told<'_> {
        Told {
            manifest: self.run_manifest.as_deref(),
            rolling: self.rolling,
            dealt_in_turn: self.dealt_in_turn,
        }
    }
}

/// The measured ladder of a run: its own tiers, not those of other cases in the same run.
pub(super) fn ladder(plan: &SizingPlan, told: &Told<'_>, run: &Run) -> Result<Ladder, Failure> {
    let manifest = run.manifest(told.manifest)?;
    let mut reports: Vec<&TierReport> =
        ladder_of(&run.steps.iter().collect::<Vec<_>>()).into_iter().map(|s| &s.report).collect();
    reports.sort_by_key(|r| r.streams);
    let (load, slo) = (&run.config.load, &run.config.slo);
    let rules = TruthRules {
        ramp_ms: ms(load.ramp_s),
        warm_up_ms: ms(load.warm_up_s),
        loops: load.loops,
        loops_few: load.loops_small,
        few_streams: load.small_up_to,
        chunk_ms: load.chunk_ms,
        balance: if told.dealt_in_turn { Balance::RoundRobin } else { Balance::LeastConnections },
        step: 0,
        max_streams: reports.last().map_or(90, |r| r.streams),
        ttft_ms: ms(slo.ttft_p95_s),
        rtf: slo.rtf_p95,
        final_ms: ms(slo.final_p95_s),
        kv: slo.kv_pool_p95,
    };
    Ok(Ladder {
        tiers: reports.iter().map(|report| tier(report)).collect(),
        tape: calls(&manifest),
        rules,
        instances: run.instances(),
        known: Known { params: known(plan, told.rolling, run)?, pool_tokens: run.pool_tokens() },
        n_star: run.capacity.as_ref().and_then(|c| c.n_star),
        age_slope_ms_per_min: reports.first().and_then(|r| r.age_slope_ms_per_min),
    })
}

/// What is known of the engine: of a built-in one its settings (less what they say of costs), of a real one what the
/// session preset and the run's environment tell.
fn known(plan: &SizingPlan, rolling_too: bool, run: &Run) -> Result<Params, Failure> {
    let mut params = if run.info.simulated {
        let own = Settings::of(&run.config)?.engine;
        Params { step: StepCost::default(), intake_ns: Params::default().intake_ns, ..own }
    } else {
        let session: Session = plan.session().map_err(usage)?;
        let rolling = session.model == tapedeck_sizing::SessionModel::Rolling;
        Params {
            session: if rolling { SessionModel::Rolling } else { SessionModel::Resident },
            audio_tokens_per_s_milli: milli(session.audio_tokens_per_s),
            text_tokens_per_s_milli: milli(session.text_tokens_per_s),
            template_tokens: if rolling { 30 } else { 10 },
            ..Params::default()
        }
    };
    if rolling_too {
        params.session = SessionModel::Rolling;
    }
    params.window_ms = run.window_ms().ok_or_else(|| {
        Failure::Usage(format!(
            "{}: the run knows no inference window ({}), and the model's law needs one",
            run.path.display(),
            key!(server.window_ms)
        ))
    })?;
    params.block_tokens = run.block_tokens().unwrap_or(params.block_tokens);
    params.max_model_len = run.max_model_len().unwrap_or(params.max_model_len);
    Ok(params)
}

fn tier(report: &TierReport) -> TierSeen {
    let summaries =
        [report.summary(CallFigure::TtftWindowS), report.summary(CallFigure::Rtf), report.final_latency()];
    let mut figures = [None; 6];
    let mut relative_se = [None; 6];
    for (at, summary) in summaries.into_iter().enumerate() {
        let Some(Summary { p50, p95, .. }) = summary else { continue };
        for (place, estimate) in [(2 * at, p50), (2 * at + 1, p95)] {
            // Half of a 95 % interval is 1.96 standard errors.
            let se = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / 3.92 / estimate.value);
            if let (Some(figure), Some(relative)) = (figures.get_mut(place), relative_se.get_mut(place)) {
                *figure = Some(estimate.value).filter(|v| *v > 0.0);
                *relative = se;
            }
        }
    }
    TierSeen {
        streams: report.streams,
        figures,
        relative_se,
        kv_p95: report.kv_pool_p95,
        preemptions: report.preempt_delta,
        broken: report.cut_short.is_some() || report.err_streams > 0,
    }
}

fn calls(manifest: &Manifest) -> Vec<TapeCall> {
    let speech = |call: &tapedeck_tape::ManifestCall| {
        call.speech.intervals().iter().map(|i| (i.start_ms, i.end_ms)).collect()
    };
    manifest
        .calls
        .iter()
        .map(|call| TapeCall { duration_ms: call.duration_ms, speech: speech(call) })
        .collect()
}

fn scenarios(
    plan: &SizingPlan,
    args: &WhatIfArgs,
    run: &Run,
    ladder: &Ladder,
    new: &[Topology],
    old: Option<Topology>,
) -> Result<Vec<Scenario>, Failure> {
    let measured = Scenario::as_measured(ladder);
    let (tape, mut changed) = match (&args.other.manifest, args.other.calls()?) {
        (Some(path), _) => {
            let manifest = Manifest::read(path).map_err(tapedeck_cases::CaseError::from)?;
            (Some(calls(&manifest)), vec![format!("calls of {}", manifest.name)])
        }
        (None, Some((name, lengths))) => {
            if let Some(bad) = lengths.iter().find(|s| !(s.is_finite() && **s > 0.0 && **s <= 86_400.0)) {
                return Err(Failure::Usage(format!(
                    "call length {bad} s: give lengths above 0 and up to a day"
                )));
            }
            let lengths: Vec<u32> = lengths.iter().map(|s| ms(*s)).collect();
            (Some(synthetic_tape(&lengths)), vec![format!("calls of {name} (made-up pauses)")])
        }
        (None, None) => {
            if args.other.histogram.is_some() || args.other.mean_s.is_some() {
                return Err(Failure::Usage(
                    "what-if plays single calls: give --tape, --manifest, --durations or --pool".into(),
                ));
            }
            (None, Vec::new())
        }
    };
    if let Some(window_ms) = args.window_ms {
        changed.push(format!("windows of {window_ms} ms"));
    }
    let changed = if changed.is_empty() { String::new() } else { format!(", {}", changed.join(", ")) };
    let with = |name: String, instances: u32, pool_tokens: Option<f64>, step_factor: f64| Scenario {
        name,
        instances,
        pool_tokens,
        step_factor,
        tape: tape.clone(),
        window_ms: args.window_ms,
        session: None,
    };
    let mut all = vec![measured.clone()];
    if !changed.is_empty() {
        all.push(with(format!("as measured{changed}"), ladder.instances, measured.pool_tokens, 1.0));
    }
    let card = plan.card().map_err(usage)?;
    let token_bytes = plan.architecture().and_then(|a| a.kv_bytes_per_token()).map_err(usage)?;
    let sharing =
        args.sharing.unwrap_or(if run.info.simulated { Sharing::Independent } else { Sharing::Both });
    // Without a word on it, all measured instances are taken to share one card.
    let on_a_card = old.map_or(ladder.instances, |old| old.instances);
    for &topology in new {
        let known = ladder.known.pool_tokens.zip(old);
        let pool = pool_tokens(known, topology, &card, token_bytes).map_err(usage)?;
        let factor = f64::from(topology.instances) / f64::from(on_a_card.max(1));
        let same = topology.instances == on_a_card;
        if sharing != Sharing::Shared || same {
            let note =
                if sharing == Sharing::Both && !same { ", if instances do not slow each other" } else { "" };
            all.push(with(format!("{topology}{changed}{note}"), topology.all_instances(), Some(pool), 1.0));
        }
        if sharing != Sharing::Independent && !same {
            let note = ", if instances of a card share its time";
            all.push(with(
                format!("{topology}{changed}{note}"),
                topology.all_instances(),
                Some(pool),
                factor,
            ));
        }
    }
    Ok(all)
}

fn answer(args: &WhatIfArgs, run: &Run, ladder: &Ladder, fitted: &Fit, predictions: &[Prediction]) -> Answer {
    let mut rows =
        vec![row(["tier left out", "TTFT p95 s", "fit", "RTF p95", "fit", "final p95 s", "fit", "off by"])];
    for tier in &fitted.left_out {
        let mut cells = vec![tier.streams.to_string()];
        for wanted in [Figure::TtftP95, Figure::RtfP95, Figure::FinalP95] {
            let place = Figure::ALL.iter().position(|f| *f == wanted).unwrap_or(0);
            for side in [&tier.measured, &tier.predicted] {
                cells.push(figure(side.get(place).copied().flatten(), 3));
            }
        }
        cells.push(format!("{:.0} %", 100.0 * tier.error.exp_m1()));
        rows.push(cells);
    }
    let costs = &fitted.costs;
    let measured = ladder.n_star.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let mut notes = Vec::new();
    if run.config.slo.ttft_basis != TtftBasis::Window {
        notes.push(format!(
            "The run judged first text from the {}; predictions apply that limit from the end of the first window with speech.",
            run.config.slo.ttft_basis.name()
        ));
    }
    if run.info.simulated {
        notes.push("Simulated: the ladder was measured on the built-in engine, which follows the law that is fitted.".into());
    } else if !args.topology.is_empty() && args.sharing.is_none() {
        notes.push("How far instances on one card slow each other is not known from one topology: the truth lies between the two ends (TC-07 measures it).".into());
    }
    let code = if fitted.grade == Grade::Poor { ExitCode::Undecidable } else { ExitCode::Ok };
    Answer::new(&json!({
        "run": run.info.run_id, "simulated": run.info.simulated, "seed": args.seed, "n_star_measured": ladder.n_star,
        "fit": fitted, "predictions": predictions, "notes": notes,
    }))
    .line(format!("{} ({} instances), N* measured: {measured}", run.info.run_id, ladder.instances))
    .lines(fitted.sentences.clone())
    .table(rows)
    .line(format!(
        "Costs of a step (x / : one standard error): {:.1} ms (x {:.2}), a stream {:.2} ms (x {:.2}), a prompt token {:.0} us (x {:.2}), a context token {:.2} us (x {:.2}); intake {:.1} ms (x {:.2}).",
        costs.base_ms,
        fitted.factors[0],
        costs.per_stream_ms,
        fitted.factors[1],
        costs.per_prompt_token_us,
        fitted.factors[2],
        costs.per_context_token_us,
        fitted.factors[3],
        costs.intake_ms,
        fitted.factors[4],
    ))
    .lines(predictions.iter().map(Prediction::sentence))
    .lines(notes)
    .code(code)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
fn ms(seconds: f64) -> u32 {
    (seconds * 1e3).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

fn milli(tokens_per_s: f64) -> u32 {
    ms(tokens_per_s)
}
