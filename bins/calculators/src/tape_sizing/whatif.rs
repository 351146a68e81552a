//! Predictions from a run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use tapedeck_engine_model::reference_capacity::synthetic_tape;
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::ExitCode;
use tapedeck_sizing::whatif::{
    Figure, Fit, Grade, Ladder, Prediction, Scenario, Supposition, fit, pool_tokens, predict,
};
use tapedeck_sizing::{SizingPlan, Topology};
use tapedeck_slo::TtftBasis;
use tapedeck_tape::Manifest;

use super::lengths::Lengths;
use super::output::{Answer, figure, row};
use super::topologies;
use tapedeck_cli::Failure;
use tapedeck_cli::usage;
use tapedeck_what_if::{Run, Told, calls, ladder, ms};

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
    /// The balancer is round-robin, instead of least-connections
    #[arg(long, alias = "dealt-in-turn")]
    pub round_robin: bool,
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

impl WhatIfArgs {
    fn told(&self) -> Told<'_> {
        Told { manifest: self.run_manifest.as_deref(), rolling: self.rolling, round_robin: self.round_robin }
    }
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
            let manifest = Manifest::read(path).map_err(usage)?;
            (Some(calls(&manifest)), vec![localized!("calls of {}", "{} 的通话", manifest.name)])
        }
        (None, Some((name, lengths))) => {
            if let Some(bad) = lengths.iter().find(|s| !(s.is_finite() && **s > 0.0 && **s <= 86_400.0)) {
                return Err(Failure::Usage(format!(
                    "call length {bad} s: give lengths above 0 and up to a day"
                )));
            }
            let lengths: Vec<u32> = lengths.iter().map(|s| ms(*s)).collect();
            (
                Some(synthetic_tape(&lengths)),
                vec![localized!("calls of {name} (made-up pauses)", "{name} 的通话（停顿为虚构）")],
            )
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
        changed.push(localized!("windows of {window_ms} ms", "窗口 {window_ms} ms"));
    }
    let changed = match changed.is_empty() {
        true => LocalizedText::default(),
        false => localized!(", {}", "，{}"; LocalizedText::join(&changed, ", ", "，")),
    };
    let with = |name: LocalizedText, instances: u32, pool_tokens: Option<f64>, step_factor: f64| Scenario {
        name,
        instances,
        pool_tokens,
        step_factor,
        tape: tape.clone(),
        window_ms: args.window_ms,
        session: None,
    };
    let mut all = vec![measured.clone()];
    if changed != LocalizedText::default() {
        all.push(with(
            localized!("{}{}", "{}{}"; measured.name, changed),
            ladder.instances,
            measured.pool_tokens,
            1.0,
        ));
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
            let given = match sharing == Sharing::Both && !same {
                true => localized!(", {}", "，{}"; Supposition::Independent.text()),
                false => LocalizedText::default(),
            };
            let name = localized!("{topology}{}{}", "{topology}{}{}"; changed, given);
            all.push(with(name, topology.all_instances(), Some(pool), 1.0));
        }
        if sharing != Sharing::Independent && !same {
            let given = Supposition::Shared.text();
            let name = localized!("{topology}{}, {}", "{topology}{}，{}"; changed, given);
            all.push(with(name, topology.all_instances(), Some(pool), factor));
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
    .lines(fitted.notes.iter().map(ToString::to_string))
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
    .lines(predictions.iter().map(|p| p.text().en))
    .lines(notes)
    .code(code)
}
