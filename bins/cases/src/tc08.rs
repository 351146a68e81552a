//! `tc08`: the middle tier again, on the command line.

use clap::Parser;
use tapedeck_answers::RepeatabilityAnswer;
use tapedeck_cases::repeatability;
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::last_lines;

/// Play the middle tier of a ladder again: does the same load give the same figures?
#[derive(Debug, Parser)]
#[command(
    name = "tc08",
    version,
    after_help = "Examples:\n  tc08 --config site.toml --into results/tc03-20260101T080000Z\n  \
                  tc08 --rehearse --into results/tc03-rehearsal-seed1 --streams 24\n\n\
                  Exit codes: 0 no drift, 1 drift, 2 usage or config, 3 environment, 4 not decidable, \
                  130 interrupted."
)]
pub struct Cli {
    /// The tier to repeat [default: repeat.middle of the config, or the passing tier nearest below]
    #[arg(long, value_name = "N")]
    pub streams: Option<u32>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    if !cli.common.has_run() {
        return Err(Failure::Usage(
            "tc08 repeats a tier of a ladder: climb it first with `tc03`, and name its folder with --into RUN_DIR".into(),
        ));
    }
    let config = cli.common.config()?;
    let (answer, console) = cli.common.carry_out(config, "tc08", &[], async |world, dir, console| {
        console.head(&world.config.slo);
        repeatability::run(world, dir, console, cli.streams).await
    })?;
    console.conclude("tc08", &answer, summary);
    Ok(console.exit(answer.decision.exit_code(answer.interrupted)))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &RepeatabilityAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_string(), |v| format!("{v:.3}"));
    let mut lines = vec![
        String::new(),
        format!("{} streams, {} once more{simulated}", answer.streams, answer.first_step),
        "figure          first    again   change  drift".into(),
    ];
    for f in &answer.repeatability.figures {
        // Rounded first: what rounds to nothing has no sign.
        let percent = |c: f64| format!("{:+.1} %", (c * 1000.0).round() / 10.0 + 0.0);
        let change = f.change.map_or_else(|| "-".to_string(), percent);
        let drift = match f.drift {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        lines.push(format!(
            "{:<12} {:>8} {:>8} {change:>8}  {drift}",
            f.figure,
            number(f.before),
            number(f.after)
        ));
    }
    let calls = |n: Option<u64>| n.map_or_else(|| "-".to_string(), |n| n.to_string());
    lines.push(format!(
        "n = {} and {} counted calls",
        answer.before.calls_counted,
        calls(answer.after.as_ref().map(|a| a.calls_counted))
    ));
    lines.push(answer.repeatability.text().en);
    lines.extend(last_lines(answer.decision, answer.simulated, answer.interrupted, &answer.run));
    lines
}
