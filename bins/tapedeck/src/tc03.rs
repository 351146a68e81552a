//! `tc03`: the concurrency ladder on the command line.

use std::path::PathBuf;

use clap::Parser;
use tapedeck_cases::Config;
use tapedeck_cases::tc03::{Answer, run as climb};
use tapedeck_record::ExitCode;

use crate::common::{Common, Failure};
use crate::console::Console;

/// Climb a ladder of concurrent calls and find N*, the most that meet every limit.
#[derive(Debug, Parser)]
#[command(
    name = "tc03",
    version,
    after_help = "Examples:\n  tc03 --rehearse\n  tc03 --config site.toml --tiers 3,6,12,24\n  \
                  tc03 --config site.toml --resume --require 30\n\nExit codes: 0 N* found (and at least --require), \
                  1 the answer is no, 2 usage or config, 3 environment, 4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// Concurrent streams of each tier, ascending [default: 3,6,12,18,24,30,36,48,60,75,90]
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    pub tiers: Option<Vec<u32>>,
    /// Tape manifest made by `tapectl freeze`
    #[arg(long, value_name = "MANIFEST")]
    pub tape: Option<PathBuf>,
    /// Folder that the manifest's paths are relative to
    #[arg(long, value_name = "DIR")]
    pub pool: Option<PathBuf>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

impl Cli {
    fn config(&self) -> Result<Config, Failure> {
        let mut config = self.common.config()?;
        if let Some(tiers) = &self.tiers {
            config.ladder.tiers.clone_from(tiers);
        }
        if let Some(tape) = &self.tape {
            config.tape.manifest.clone_from(tape);
        }
        if let Some(pool) = &self.pool {
            config.tape.pool.clone_from(pool);
        }
        config.check()?;
        Ok(config)
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let config = cli.config()?;
    let (answer, console) = cli.common.carry_out(config, "tc03", &[], async |world, dir, console| {
        console.head(&world.config.slo);
        climb(world, dir, console).await
    })?;
    conclude(cli, &console, &answer);
    Ok(answer.exit_code(cli.common.require))
}

fn conclude(cli: &Cli, console: &Console, answer: &Answer) {
    if cli.common.json {
        if let Ok(capacity) = serde_json::to_value(&answer.capacity) {
            let object = serde_json::json!({
                "progress": "answer",
                "capacity": capacity,
                "sentence": answer.capacity.sentence(),
                "interrupted": answer.interrupted,
                "run": answer.run,
            });
            console.line(&object.to_string());
        }
        return;
    }
    for line in summary(answer) {
        console.line(&line);
    }
}

/// The last lines: N* with its state, what may be published, what limits, how sure, simulated or not.
#[must_use]
pub fn summary(answer: &Answer) -> Vec<String> {
    let capacity = &answer.capacity;
    let list = |tiers: &[u32]| tiers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let state = if capacity.n_star.is_some() && capacity.display().chars().all(|c| c.is_ascii_digit()) {
        format!(" ({})", capacity.state_name())
    } else {
        String::new()
    };
    let mut lines = vec![String::new(), format!("N* = {}{state}{simulated}", capacity.display())];
    if let Some(published) = capacity.published {
        lines.push(format!(
            "{} x N* = {published} calls may be published as capacity",
            capacity.safety_factor
        ));
    }
    if let (Some(fail), false) = (capacity.first_fail, capacity.limited_by.is_empty()) {
        let limits = capacity.limited_by.iter().map(|l| l.name()).collect::<Vec<_>>().join(" and ");
        lines.push(format!("Limited by {limits}: {fail} streams broke it"));
    }
    if !capacity.undecided.is_empty() {
        let tiers =
            capacity.undecided.iter().map(|(n, v)| format!("{n} is {}", v.name())).collect::<Vec<_>>();
        lines.push(format!("Proves nothing: {}", tiers.join(", ")));
    }
    if !capacity.point_verdict_tiers.is_empty() {
        lines.push(format!(
            "* only the estimate decides, its interval straddles a limit: {}",
            list(&capacity.point_verdict_tiers)
        ));
    }
    if !capacity.non_monotonic.is_empty() {
        lines.push(format!(
            "Not monotonic: {} passed above a failure and do not count",
            list(&capacity.non_monotonic)
        ));
    }
    if answer.simulated {
        lines.push("Simulated: measured on the built-in engine, not on your servers".into());
    }
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with --resume {}", answer.run.display()));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}
