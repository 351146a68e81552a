//! `tc01`: one stream on the command line.

use clap::Parser;
use tapedeck_answers::{ErrorRate, Few, Floor, SingleStreamAnswer, SingleStreamFigures};
use tapedeck_cases::single_stream;
use tapedeck_config::key;
use tapedeck_record::{Evidence, ExitCode};
use tapedeck_slo::TtftBasis;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::last_lines;

/// Play one stream: what a call costs when nobody else is there, and whether the limits can be met at all.
#[derive(Debug, Parser)]
#[command(
    name = "tc01",
    version,
    after_help = "Examples:\n  tc01 --rehearse\n  tc01 --config site.toml\n  tc01 --config site.toml --into results/tc03-20260101T080000Z\n\n\
                  Exit codes: 0 every call went well within the limits, 1 the answer is no, 2 usage or config, \
                  3 environment, 4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let config = cli.common.config()?;
    let (answer, console) = cli.common.carry_out(config, "tc01", &[], async |world, dir, console| {
        console.head(&world.config.slo);
        single_stream::run(world, dir, console).await
    })?;
    console.conclude("tc01", &answer, summary);
    Ok(console.exit(answer.decision.exit_code(answer.interrupted)))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &SingleStreamAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("One stream on {}: {} calls{simulated}", answer.tape, answer.calls.len()),
        "                          cold: p50      max   n      warm: p50      max   n".into(),
    ];
    type Get = fn(&SingleStreamFigures) -> Option<Few>;
    let rows: [(&str, Get); 6] = [
        ("RTF1", |f| f.rtf),
        ("TTFT from the wire, s", |f| f.ttft_wire_s),
        ("TTFT from speech, s", |f| f.ttft_speech_s),
        ("TTFT from the window, s", |f| f.ttft_window_s),
        ("final, s", |f| f.final_s),
        ("connect, s", |f| f.connect_s),
    ];
    for (name, get) in rows {
        lines.push(format!("{name:<24}  {}  {}", few(get(&answer.cold)), few(get(&answer.warm))));
    }
    for (name, rate) in [("WER", answer.warm.words), ("CER", answer.warm.chars)] {
        if let Some(ErrorRate { rate, errors, ref_tokens, calls }) = rate {
            lines.push(format!(
                "{name} of the warm calls: {:.2} % ({errors} errors in {ref_tokens} tokens, {calls} calls)",
                rate * 100.0
            ));
        }
    }
    if answer.evidence == Evidence::None {
        lines.push("No RTF: this dialect does not tell when audio has been answered".into());
    }
    for floor in &answer.floors {
        lines.push(floor_line(floor, answer.ttft_basis));
    }
    for reason in &answer.reasons {
        lines.push(format!("- {reason}"));
    }
    lines.extend(last_lines(answer.decision, answer.simulated, answer.interrupted, &answer.run));
    lines
}

fn few(few: Option<Few>) -> String {
    few.map_or_else(
        || format!("{:>11} {:>8} {:>3}", "-", "-", "-"),
        |Few { p50, max, n }| format!("{p50:>11.3} {max:>8.3} {n:>3}"),
    )
}

fn floor_line(floor: &Floor, basis: TtftBasis) -> String {
    let Floor { basis: anchor, p95_s, max_s, n, reachable } = floor;
    let verdict = if *reachable { "can be met" } else { "cannot be met, whoever serves it" };
    let chosen = if *anchor == basis { format!(" <- {}", key!(slo.ttft_basis)) } else { String::new() };
    format!(
        "TTFT floor from `{}`: p95 {p95_s:.3} s, max {max_s:.3} s over {n} calls; the limit {verdict}{chosen}",
        anchor.name()
    )
}
