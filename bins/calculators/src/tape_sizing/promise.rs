//! The capacity statement.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tapedeck_l10n::LocalizedText;
use tapedeck_record::ExitCode;
use tapedeck_sizing::kv::{TAPE_A_S, TAPE_B_S};
use tapedeck_sizing::statement::{Basis, Measured, state};
use tapedeck_sizing::{Durations, PromisePlan};
use tapedeck_slo::Capacity;
use tapedeck_tape::Manifest;

use super::lengths::Lengths;
use super::output::Answer;
use super::{Sized, section};
use tapedeck_cli::Failure;
use tapedeck_cli::usage;
use tapedeck_what_if::Run;

/// What the statement rests on.
#[derive(Debug, Clone, Args)]
pub struct StatementArgs {
    /// Run that found N* with short calls; where it played the long tape too (tc03b), that N* as well
    #[arg(long, value_name = "RUN_DIR", required_unless_present = "n_star", conflicts_with = "n_star")]
    pub from: Option<PathBuf>,
    /// N* with short calls, by hand: calls as on Tape-A of the plan
    #[arg(long, value_name = "STREAMS")]
    pub n_star: Option<u32>,
    /// Manifest of the tape that --from played, where the config's path no longer leads to it
    #[arg(long, value_name = "FILE", requires = "from")]
    pub run_manifest: Option<PathBuf>,
    /// Another run that found N* with long calls: of tc03b, or a ladder of its own on the long tape
    #[arg(long, value_name = "RUN_DIR", conflicts_with = "n_star_long")]
    pub from_long: Option<PathBuf>,
    /// N* with long calls, by hand: calls as on Tape-B of the plan
    #[arg(long, value_name = "STREAMS")]
    pub n_star_long: Option<u32>,
    /// Manifest of the long tape, where the config's path no longer leads to it
    #[arg(long, value_name = "FILE")]
    pub long_manifest: Option<PathBuf>,
    /// Streams at which nothing keeps up any more, latency aside [default: from a ladder of --from with --pace off]
    #[arg(long, value_name = "STREAMS")]
    pub hard_ceiling: Option<u32>,
    /// Share of N* that is promised [default: the run's, else 0.7]
    #[arg(long = "safety-factor", alias = "safety", value_name = "FACTOR", allow_negative_numbers = true)]
    pub safety: Option<f64>,
    /// Instances that carry the calls [default: the run's, else 1]
    #[arg(long, value_name = "N")]
    pub instances: Option<u32>,
    /// The balancer is round-robin: connections go to instances in turn, whatever instance has room
    #[arg(long, alias = "dealt-in-turn")]
    pub round_robin: bool,
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

impl StatementArgs {
    /// What the flags alone promise.
    fn flags(&self) -> PromisePlan {
        PromisePlan {
            blocking: self.blocking,
            service_level: self.service_level,
            within_s: self.within_s,
            calls_per_hour: self.calls_per_hour,
            hard_ceiling: self.hard_ceiling,
            round_robin: self.round_robin,
            ..PromisePlan::default()
        }
    }
}

pub(super) fn statement(sized: &Sized, args: &StatementArgs) -> Result<Answer, Failure> {
    let run = args.from.as_deref().map(Run::read).transpose()?;
    let long_run = args.from_long.as_deref().map(Run::read).transpose()?;
    // A file that was named wins over what the run was made with.
    let of_file = sized.plan.as_deref().map(section).transpose()?;
    let of_run = run.as_ref().map(|run| run.config.sizing.clone());
    let plan = of_file.or(of_run).unwrap_or_default();
    let promise = plan.promise.with(&args.flags());
    let topology = sized.deployment.clone().or(plan.topology);

    let short = match &run {
        Some(run) => measured(run.capacity()?, &run.manifest(args.run_manifest.as_deref())?, &run.path)?,
        None => by_hand(args.n_star.unwrap_or(0), "Tape-A", &TAPE_A_S)?,
    };
    let long = match (args.n_star_long, &long_run, &run) {
        (Some(n_star), ..) => Some(by_hand(n_star, "Tape-B", &TAPE_B_S)?),
        (None, Some(run), _) => Some(match run.long() {
            Some(capacity) => of_tape_b(run, capacity, args)?,
            None => measured(run.capacity()?, &run.manifest(args.long_manifest.as_deref())?, &run.path)?,
        }),
        // A run whose long tape carried nothing says so in its own answer; here it is not known.
        (None, None, Some(run)) => match run.long().filter(|capacity| capacity.n_star.is_some()) {
            Some(capacity) => Some(of_tape_b(run, capacity, args)?),
            None => None,
        },
        (None, None, None) => None,
    };
    let capacity = run.as_ref().and_then(|run| run.capacity.as_ref());
    let most = long.as_ref().map_or(0, |long| long.n_star).max(short.n_star);
    // A ladder without pace that had too few streams to reach N* found no ceiling.
    let seen = run.as_ref().and_then(Run::hard_ceiling).filter(|streams| *streams >= most);
    let basis = Basis {
        short,
        long,
        hard_ceiling: promise.hard_ceiling.or(seen),
        safety: args.safety.or(capacity.map(|c| c.safety_factor)).unwrap_or(0.7),
        instances: args.instances.or(run.as_ref().map(Run::instances).filter(|n| *n > 0)).unwrap_or(1),
        topology,
        round_robin: promise.round_robin,
        promise: promise.promise().map_err(usage)?,
        own: args.own.own(&promise)?,
        demand_per_h: promise.calls_per_hour,
        simulated: [&run, &long_run].into_iter().flatten().any(|run| run.info.simulated),
    };
    let said = state(&basis).map_err(usage)?;
    let code = if said.enough == Some(false) { ExitCode::No } else { ExitCode::Ok };
    Ok(Answer::new(&json!({
        "run": run.as_ref().map(|run| &run.info.run_id), "basis": basis, "carried": said.carried,
        "sentences": english(&said.sentences), "caveats": english(&said.caveats), "enough": said.enough,
    }))
    .lines(english(&said.sentences))
    .line("What is uncertain:")
    .lines(english(&said.caveats).into_iter().map(|caveat| format!("- {caveat}")))
    .code(code))
}

fn by_hand(n_star: u32, tape: &str, calls_s: &[f64]) -> Result<Measured, Failure> {
    Ok(Measured::said(n_star, Durations::of_calls(tape, calls_s).map_err(usage)?))
}

fn of_tape_b(run: &Run, capacity: &Capacity, args: &StatementArgs) -> Result<Measured, Failure> {
    measured(capacity, &run.long_manifest(args.long_manifest.as_deref())?, &run.path)
}

fn measured(capacity: &Capacity, manifest: &Manifest, path: &Path) -> Result<Measured, Failure> {
    let calls: Vec<f64> = manifest.calls.iter().map(|call| f64::from(call.duration_ms) / 1e3).collect();
    let played = Durations::of_calls(manifest.name.clone(), &calls).map_err(usage)?;
    Measured::found(capacity, played).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: N* is {}; there is nothing to promise",
            path.display(),
            capacity.display()
        ))
    })
}

fn english(texts: &[LocalizedText]) -> Vec<String> {
    texts.iter().map(|text| text.en.clone()).collect()
}
