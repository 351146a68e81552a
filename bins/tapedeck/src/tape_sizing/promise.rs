//! The capacity statement.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tapedeck_record::ExitCode;
use tapedeck_sizing::Durations;
use tapedeck_sizing::kv::{TAPE_A_S, TAPE_B_S};
use tapedeck_sizing::statement::{Basis, Firmness, Measured, Promise, state};
use tapedeck_slo::CapacityState;

use super::lengths::Lengths;
use super::measured::Run;
use super::output::Answer;
use super::usage;
use crate::common::Failure;

/// What the statement rests on.
#[derive(Debug, Clone, Args)]
pub struct StatementArgs {
    /// Run that found N* with short calls (its capacity.json)
    #[arg(long, value_name = "RUN_DIR", required_unless_present = "n_star", conflicts_with = "n_star")]
    pub from: Option<PathBuf>,
    /// N* with short calls, by hand: calls as on Tape-A of the plan
    #[arg(long, value_name = "STREAMS")]
    pub n_star: Option<u32>,
    /// Manifest of the tape that --from played, where the config's path no longer leads to it
    #[arg(long, value_name = "FILE", requires = "from")]
    pub run_manifest: Option<PathBuf>,
    /// N* with long calls, as on Tape-B of the plan
    #[arg(long, value_name = "STREAMS")]
    pub n_star_long: Option<u32>,
    /// Streams at which nothing kept up any more, latency aside (a ladder with --pace off)
    #[arg(long, value_name = "STREAMS")]
    pub hard_ceiling: Option<u32>,
    /// Share of N* that is promised [default: the run's, else 0.7]
    #[arg(long = "safety-factor", alias = "safety", value_name = "FACTOR", allow_negative_numbers = true)]
    pub safety: Option<f64>,
    /// Instances that carry the calls [default: the run's, else 1]
    #[arg(long, value_name = "N")]
    pub instances: Option<u32>,
    /// Connections are dealt out in turn, whatever instance has room
    #[arg(long)]
    pub dealt_in_turn: bool,
    /// At most this share of calls may find no free line (Erlang B) [default: 0.01]
    #[arg(long, value_name = "SHARE", conflicts_with = "service_level", allow_negative_numbers = true)]
    pub blocking: Option<f64>,
    /// Instead: at least this share of calls is taken within --within-s (Erlang C)
    #[arg(long, value_name = "SHARE", requires = "within_s", allow_negative_numbers = true)]
    pub service_level: Option<f64>,
    /// Seconds for --service-level
    #[arg(long, value_name = "SECONDS", requires = "service_level", allow_negative_numbers = true)]
    pub within_s: Option<f64>,
    /// Calls per hour that are expected: are the lines enough?
    #[arg(long, value_name = "CALLS", allow_negative_numbers = true)]
    pub calls_per_hour: Option<f64>,
    /// The business's own calls.
    #[command(flatten)]
    pub own: Lengths,
}

pub(super) fn statement(args: &StatementArgs) -> Result<Answer, Failure> {
    let (short, run) = match (&args.from, args.n_star) {
        (Some(path), _) => {
            let run = Run::read(path)?;
            let capacity = run.capacity()?;
            let n_star = capacity.n_star.ok_or_else(|| {
                Failure::Usage(format!(
                    "{}: N* is {}; there is nothing to promise",
                    path.display(),
                    capacity.display()
                ))
            })?;
            let firmness = match capacity.state {
                CapacityState::Exact => Firmness::Exact,
                CapacityState::Censored | CapacityState::AtLeastUnproven => Firmness::AtLeast,
                _ => Firmness::Unknown,
            };
            let manifest = run.manifest(args.run_manifest.as_deref())?;
            let calls: Vec<f64> =
                manifest.calls.iter().map(|call| f64::from(call.duration_ms) / 1e3).collect();
            let played = Durations::of_calls(manifest.name, &calls).map_err(usage)?;
            (Measured { n_star, firmness, played }, Some(run))
        }
        (None, n_star) => {
            let played = Durations::of_calls("Tape-A", &TAPE_A_S).map_err(usage)?;
            (Measured { n_star: n_star.unwrap_or(0), firmness: Firmness::Unknown, played }, None)
        }
    };
    let long = args
        .n_star_long
        .map(|n_star| {
            let played = Durations::of_calls("Tape-B", &TAPE_B_S).map_err(usage)?;
            Ok::<_, Failure>(Measured { n_star, firmness: Firmness::Unknown, played })
        })
        .transpose()?;
    let promise = match (args.service_level, args.within_s) {
        (Some(share), Some(within_s)) => Promise::ServiceLevel { share, within_s },
        _ => Promise::Blocking(args.blocking.unwrap_or(0.01)),
    };
    let capacity = run.as_ref().and_then(|run| run.capacity.as_ref());
    let basis = Basis {
        short,
        long,
        hard_ceiling: args.hard_ceiling,
        safety: args.safety.or(capacity.map(|c| c.safety_factor)).unwrap_or(0.7),
        instances: args.instances.or(run.as_ref().map(Run::instances).filter(|n| *n > 0)).unwrap_or(1),
        dealt_in_turn: args.dealt_in_turn,
        promise,
        own: args.own.durations()?,
        demand_per_h: args.calls_per_hour,
        simulated: run.as_ref().is_some_and(|run| run.info.simulated),
    };
    let mut said = state(&basis).map_err(usage)?;
    if let Some(capacity) = capacity {
        if let Some(cap) = capacity.quality_cap {
            said.doubts
                .push(format!("Words get worse above {cap} streams: do not use more lines than {cap}."));
        }
        if !capacity.point_verdict_tiers.is_empty() {
            let tiers: Vec<String> = capacity.point_verdict_tiers.iter().map(u32::to_string).collect();
            said.doubts.push(format!("The verdict at {} rests on an estimate alone.", tiers.join(", ")));
        }
    }
    let code = if said.enough == Some(false) { ExitCode::No } else { ExitCode::Ok };
    Ok(Answer::new(&json!({
        "run": run.as_ref().map(|run| &run.info.run_id), "basis": basis, "carried": said.carried,
        "sentences": said.sentences, "doubts": said.doubts, "enough": said.enough,
    }))
    .lines(said.sentences)
    .line("What is uncertain:")
    .lines(said.doubts.into_iter().map(|doubt| format!("- {doubt}")))
    .code(code))
}
