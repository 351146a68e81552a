//! `tc07`: the comparison of topologies on the command line.

use clap::Parser;
use tapedeck_answers::{Candidate, TopologyAnswer};
use tapedeck_cases::topology;
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::{Common, NStarFlag};
use crate::console::go_on;

/// Compare ways to cut the GPUs into instances: the same load on each, and N* by three tiers.
#[derive(Debug, Parser)]
#[command(
    name = "tc07",
    version,
    after_help = "Examples:\n  tc07 --rehearse --n-star 39\n  tc07 --config site.toml --into results/tc03-20260101T080000Z\n\n\
                  Exit codes: 0 the first topology stands, 1 another is better, 2 usage or config, 3 environment, \
                  4 not decidable, 130 interrupted."
)]
pub struct Cli {
    /// N* of the first topology, where the run directory holds none.
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
    let n_star = cli.n_star.given(&cli.common, "tc07")?;
    let config = cli.common.config()?;
    let (answer, console) = cli.common.carry_out(config, "tc07", &[], async |world, dir, console| {
        console.head(&world.config.slo);
        topology::run(world, dir, n_star, console).await
    })?;
    console.conclude("tc07", &answer, summary);
    Ok(console.exit(answer.exit_code()))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &TopologyAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("N* = {} from {}{simulated}", answer.n_star.streams, answer.n_star.source),
        "topology      instances  N*                    streams    RTF p95    lag p95   KV room  errors"
            .into(),
    ];
    for candidate in &answer.candidates {
        lines.push(row(candidate));
        lines.extend(candidate.predicted.iter().map(|one| format!("              {}", one.text())));
    }
    lines.extend(answer.prediction_notes.iter().map(ToString::to_string));
    match &answer.recommended {
        Some(name) => lines.push(format!("Take {name}: {}", answer.why)),
        None if answer.interrupted => {}
        None => lines.push(format!("No recommendation: {}", answer.why)),
    }
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}

fn row(c: &Candidate) -> String {
    let cell = |v: Option<f64>, unit: &str| v.map_or_else(|| "-".to_string(), |v| format!("{v:.3}{unit}"));
    format!(
        "{:<13} {:>9}  {:<20} {:>8} {:>10} {:>10} {:>9} {:>7}",
        c.name,
        c.instances,
        c.capacity.display(),
        c.tiers.first().map_or(0, |t| t.streams),
        cell(c.rtf_p95, ""),
        cell(c.lag_p95_s, " s"),
        c.kv_room.map_or_else(|| "-".to_string(), |kv| format!("{:.0} %", kv * 100.0)),
        c.err_streams,
    )
}
