//! `tc03`: the concurrency ladder on the command line.

use std::path::PathBuf;

use clap::Parser;
use tapedeck_answers::{LadderAnswer, Repeats};
use tapedeck_cases::Role;
use tapedeck_cases::ladder::run as climb;
use tapedeck_config::{Config, LadderContent, Pace};
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::{Console, go_on};

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
    #[arg(long, value_delimiter = ',', value_name = "N,N,...", value_parser = crate::common::streams)]
    pub tiers: Option<Vec<u32>>,
    /// One tier of so many streams, and no refinement
    #[arg(long, value_name = "N", conflicts_with = "tiers")]
    pub streams: Option<u32>,
    /// What the streams play: `tape`, or `pool` for calls that each stream draws for itself from the pool
    #[arg(long, value_name = "WHAT", value_parser = ["tape", "pool"])]
    pub content: Option<String>,
    /// `off` sends whole calls as fast as the server takes them: the hard ceiling, never N*
    #[arg(long, value_name = "HOW", value_parser = ["real", "off"])]
    pub pace: Option<String>,
    /// Audio per message, milliseconds [default: 100]
    #[arg(long, value_name = "MS")]
    pub chunk_ms: Option<u32>,
    /// Play each tier so many times, and tell how far the repetitions lie apart
    #[arg(long, value_name = "K")]
    pub repeat: Option<u32>,
    /// Play a tier again with twice the loops while only its estimate decides
    #[arg(long)]
    pub until_sure: bool,
    /// Restart the instances before each tier
    #[arg(long)]
    pub restart_each_tier: bool,
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
        let ladder = &mut config.ladder;
        if let Some(streams) = self.streams {
            (ladder.tiers, ladder.refine) = (vec![streams], false);
        }
        match self.content.as_deref() {
            Some("pool") => ladder.content = LadderContent::Pool,
            Some(_) => ladder.content = LadderContent::Tape,
            None => {}
        }
        match self.pace.as_deref() {
            Some("off") => ladder.pace = Pace::Off,
            Some(_) => ladder.pace = Pace::Real,
            None => {}
        }
        ladder.repeat = self.repeat.unwrap_or(ladder.repeat);
        ladder.until_sure |= self.until_sure;
        ladder.restart_each_tier |= self.restart_each_tier;
        config.load.chunk_ms = self.chunk_ms.unwrap_or(config.load.chunk_ms);
        if let Some(tape) = &self.tape {
            config.tape.manifest.clone_from(tape);
        }
        if let Some(pool) = &self.pool {
            config.tape.pool.clone_from(pool);
        }
        Ok(config)
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let config = cli.config()?;
    let needs: &[Role] = if config.ladder.content == LadderContent::Pool { &[Role::Pool] } else { &[] };
    let (answer, console) = cli.common.carry_out(config, "tc03", needs, async |world, dir, console| {
        console.head(&world.config.slo);
        climb(world, dir, console).await
    })?;
    conclude(cli, &console, &answer);
    Ok(console.exit(answer.exit_code(cli.common.require)))
}

fn conclude(cli: &Cli, console: &Console, answer: &LadderAnswer) {
    if cli.common.json {
        let told = serde_json::json!({
            "capacity": answer.capacity,
            "offline": answer.offline,
            "spread": answer.spread,
            "sentence": answer.capacity.text().en,
            "interrupted": answer.interrupted,
            "run": answer.run,
        });
        console.answer("tc03", &told);
        return;
    }
    for line in summary(answer) {
        console.line(&line);
    }
}

/// The last lines of a ladder without pace.
fn ceilings(answer: &LadderAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_string(), |v| format!("{v:.3}"));
    let mut lines = vec![
        String::new(),
        format!(
            "Offline: whole calls as fast as the server took them. No capacity follows from this.{simulated}"
        ),
        "streams  audio s per s    RTF p50    RTF p95   calls  errors".into(),
    ];
    for c in &answer.offline {
        lines.push(format!(
            "{:>7} {:>14} {:>10} {:>10} {:>7} {:>7}",
            c.streams,
            number(c.audio_s_per_s),
            number(c.rtf_p50),
            number(c.rtf_p95),
            c.calls,
            c.errors,
        ));
    }
    lines.push("RTF here: (final - session ready) / audio of a call".into());
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}

/// The last lines: N* with its state, what may be published, what limits, how sure, simulated or not.
#[must_use]
pub fn summary(answer: &LadderAnswer) -> Vec<String> {
    if !answer.offline.is_empty() {
        return ceilings(answer);
    }
    let capacity = &answer.capacity;
    let list = |tiers: &[u32]| tiers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let state = if capacity.n_star.is_some() && capacity.display().chars().all(|c| c.is_ascii_digit()) {
        format!(" ({})", capacity.state.text().en)
    } else {
        String::new()
    };
    let found = capacity.display();
    let is = if found.starts_with('>') { "" } else { "= " };
    let mut lines = vec![String::new(), format!("N* {is}{found}{state}{simulated}")];
    if let Some(published) = capacity.published {
        lines.push(format!(
            "{published} concurrent calls may be published as capacity: {} x N*, rounded down",
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
    for Repeats { streams, figure, mean, cv, n } in &answer.spread {
        let cv = cv.map_or_else(|| "-".to_string(), |cv| format!("{:.1} %", cv * 100.0));
        lines.push(format!("{streams} streams, {n} times: {figure} {mean:.3} on average, spread {cv}"));
    }
    if answer.simulated {
        lines.push("Simulated: measured on the built-in engine, not on your servers".into());
    }
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}
