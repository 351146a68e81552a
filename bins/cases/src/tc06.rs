//! `tc06`: fault injection on the command line.

use clap::{Parser, ValueEnum};
use tapedeck_answers::{Fault, FaultAnswer};
use tapedeck_cases::fault;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::{Common, NStarFlag};
use crate::console::go_on;

/// Kill an instance under load, bring it back, and tell what the others, the balancer and the callers made of it.
#[derive(Debug, Parser)]
#[command(
    name = "tc06",
    version,
    after_help = "Examples:\n  tc06 --rehearse --n-star 39\n  tc06 --config site.toml --into results/tc03-20260101T080000Z\n  \
                  tc06 --config site.toml --n-star 30 --fault freeze --instance asr2\n\n\
                  Exit codes: 0 the others kept up in time and the instance came back, 1 they did not, \
                  2 usage or config, 3 environment, 4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// N*, where the run directory holds none.
    #[command(flatten)]
    pub n_star: NStarFlag,
    /// What is done
    #[arg(long, value_enum, default_value_t = Kind::Kill)]
    pub fault: Kind,
    /// Instance that suffers [default: the second]
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Loads, as shares of N* [default: 1,0.667]
    #[arg(long, value_name = "X,X", value_delimiter = ',')]
    pub shares: Option<Vec<f64>>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// What is done to an instance, or to the balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// End the process; start it later
    Kill,
    /// Stop it where it is (SIGSTOP); let it go on later
    Freeze,
    /// Restart the balancer
    Balancer,
}

impl From<Kind> for Fault {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Kill => Self::Kill,
            Kind::Freeze => Self::Freeze,
            Kind::Balancer => Self::BalancerRestart,
        }
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let n_star = cli.n_star.given(&cli.common, "tc06")?;
    let mut config = cli.common.config()?;
    if cli.instance.is_some() {
        config.fault.instance.clone_from(&cli.instance);
    }
    if let Some(shares) = &cli.shares {
        config.fault.shares.clone_from(shares);
    }
    let (answer, console) = cli.common.carry_out(config, "tc06", &[], async |world, dir, console| {
        fault::run(world, dir, n_star, cli.fault.into(), console).await
    })?;
    console.conclude("tc06", &answer, summary);
    Ok(console.exit(answer.exit_code()))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &FaultAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("N* = {} from {}{simulated}", answer.n_star.streams, answer.n_star.source),
    ];
    for incident in &answer.incidents {
        let mut sentences = incident.sentences().into_iter();
        lines.extend(sentences.next().map(|head| format!("* {head}")));
        lines.extend(sentences.map(|s| format!("    {s}")));
        for pinned in &incident.pinned {
            let lag = |s: Option<f64>| s.map_or_else(|| "-".into(), |s| format!("{s:.2} s"));
            lines.push(format!(
                "    straight to {}: {} of {} calls broke from the fault on; lag p95 {} before, {} during",
                pinned.instance,
                pinned.after.broken(),
                pinned.after.calls,
                lag(pinned.lag_before_p95_s),
                lag(pinned.lag_during_p95_s),
            ));
        }
    }
    if !answer.interrupted {
        match (answer.complaints.is_empty(), answer.unknown.is_empty()) {
            (true, true) => lines.push("Verdict: pass".into()),
            (true, false) => lines.push("Verdict: not decidable".into()),
            (false, _) => lines.push("Verdict: fail".into()),
        }
    }
    lines.extend(answer.complaints.iter().map(|c| format!("  - {c}")));
    lines.extend(answer.unknown.iter().map(|c| format!("  - not known: {c}")));
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}
