//! `tc03b`: long calls on the command line.

use clap::Parser;
use tapedeck_answers::LongCallsAnswer;
use tapedeck_cases::Role;
use tapedeck_cases::long_calls;
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::{Common, NStarFlag};
use crate::console::last_lines;

/// Play Tape-B at shares of N*: does N* hold with long calls, and if not, what does?
#[derive(Debug, Parser)]
#[command(
    name = "tc03b",
    version,
    after_help = "Examples:\n  tc03b --rehearse --n-star 39\n  tc03b --config site.toml --into results/tc03-20260101T080000Z\n\n\
                  Exit codes: 0 N* holds with long calls, 1 it does not, 2 usage or config, 3 environment, \
                  4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// N*, where the run directory holds none.
    #[command(flatten)]
    pub n_star: NStarFlag,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let n_star = cli.n_star.given(&cli.common, "tc03b")?;
    let config = cli.common.config()?;
    let (answer, console) =
        cli.common.carry_out(config, "tc03b", &[Role::B], async |world, dir, console| {
            console.head(&world.config.slo);
            long_calls::run(world, dir, console, n_star).await
        })?;
    console.conclude("tc03b", &answer, summary);
    Ok(console.exit(answer.decision.exit_code(answer.interrupted)))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &LongCallsAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![String::new(), format!("{}{simulated}", answer.text())];
    for expected in &answer.predicted {
        let played = answer.tiers.iter().find(|t| t.streams == expected.streams);
        let measured = played.and_then(|t| t.kv_pool_p95);
        if let (Some(share), Some(p95)) = (expected.share, measured) {
            lines.push(format!(
                "KV at {} streams: expected {:.0} % on average, measured p95 {:.0} % on the fullest instance",
                expected.streams,
                share * 100.0,
                p95 * 100.0
            ));
        }
    }
    lines.extend(last_lines(answer.decision, answer.simulated, answer.interrupted, &answer.run));
    lines
}
