//! `tc02`: what streams cost, on the command line.

use clap::Parser;
use tapedeck_answers::{FootprintAnswer, Level, TableRow};
use tapedeck_cases::footprint;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::last_lines;

/// Measure what streams cost: memory without any, and what each one adds to the KV pools.
#[derive(Debug, Parser)]
#[command(
    name = "tc02",
    version,
    after_help = "Examples:\n  tc02 --rehearse\n  tc02 --config site.toml --levels 1,8,24,48 --steady-s 300\n\n\
                  Exit codes: 0 the cost of a stream was measured, 2 usage or config, 3 environment, \
                  4 it could not be measured, 130 interrupted."
)]
pub struct Cli {
    /// Streams at each level, ascending; the level without streams comes before them [default: 1,8,24,48]
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    pub levels: Option<Vec<u32>>,
    /// How long each level lasts at least, seconds [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub steady_s: Option<f64>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let mut config = cli.common.config()?;
    if let Some(levels) = &cli.levels {
        config.footprint.levels.clone_from(levels);
    }
    if let Some(steady_s) = cli.steady_s {
        config.footprint.steady_s = steady_s;
    }
    let (answer, console) = cli.common.carry_out(config, "tc02", &[], async |world, dir, console| {
        console.head(&world.config.slo);
        footprint::run(world, dir, console).await
    })?;
    console.conclude("tc02", &answer, summary);
    Ok(console.exit(answer.decision.exit_code(answer.interrupted)))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &FootprintAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![String::new(), format!("What streams cost{simulated}")];
    for pool in &answer.pools {
        let tokens = pool.tokens.map_or_else(|| "unknown".into(), |t| format!("{t} tokens"));
        lines.push(format!("KV pool of {}: {tokens} ({})", pool.name, pool.source));
    }
    lines.push("streams   KV mean       n  preempted  errors   memory used".into());
    lines.extend(answer.levels.iter().map(level));
    lines.push("figure           theory    measured  95 % interval          n  unit, source".into());
    lines.extend(answer.table.iter().map(row));
    if let Some(streams) = answer.streams_by_memory {
        lines.push(format!(
            "Room in all pools for {streams:.0} streams at that mean cost (memory alone; limits come from tc03)"
        ));
    }
    match (answer.plain_difference_bytes, &answer.no_gpu) {
        (Some(bytes), _) => lines.push(format!(
            "Plain difference of memory used: {:.1} MB a stream; pools are taken at the start, so this is no cost",
            bytes / 1e6
        )),
        (None, Some(why)) => lines.push(format!("Memory of the GPUs: unknown, {why}")),
        (None, None) => {}
    }
    lines.extend(last_lines(answer.decision, answer.simulated, answer.interrupted, &answer.run));
    lines
}

fn level(level: &Level) -> String {
    let dash = || "-".to_string();
    format!(
        "{:>7} {:>9} {:>7} {:>10} {:>7} {:>13}{}",
        level.streams,
        level.kv_mean.map_or_else(dash, |kv| format!("{:.2} %", kv * 100.0)),
        level.n,
        level.preempt_delta.map_or_else(dash, |n| format!("{n:.0}")),
        level.err_streams,
        level.vram_used_bytes.map_or_else(dash, |b| format!("{:.2} GB", b / 1e9)),
        if level.fit { "" } else { "  not used" },
    )
}

fn row(row: &TableRow) -> String {
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_string(), |v| format!("{v:.2}"));
    let interval = match (row.low, row.high) {
        (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
        _ => "-".into(),
    };
    format!(
        "{:<14} {:>8} {:>11}  {interval:<20} {:>3}  {}; {}",
        row.figure,
        number(row.theory),
        number(row.measured),
        row.n.map_or_else(|| "-".to_string(), |n| n.to_string()),
        row.unit,
        row.note,
    )
}
