//! `tc05`: the soak on the command line.

use clap::Parser;
use tapedeck_answers::{Soak, SoakAnswer};
use tapedeck_cases::soak;
use tapedeck_l10n::Localize;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::{Common, NStarFlag};
use crate::console::go_on;

/// Soak: restart, play 0.8 N* for hours, and look for leaks, creeping latencies, errors and vanished instances.
#[derive(Debug, Parser)]
#[command(
    name = "tc05",
    version,
    after_help = "Examples:\n  tc05 --rehearse --n-star 39 --hours 4\n  tc05 --config site.toml --into results/tc03-20260101T080000Z\n\n\
                  Exit codes: 0 no complaint, 1 something leaks, creeps, errs or vanished, 2 usage or config, \
                  3 environment, 4 something could not be told, 130 interrupted."
)]
pub struct Cli {
    /// N*, where the run directory holds none.
    #[command(flatten)]
    pub n_star: NStarFlag,
    /// N* with long calls, where the run directory holds none
    #[arg(long = "n-star-long", alias = "n-star-b", value_name = "N")]
    pub n_star_b: Option<u32>,
    /// How long the counted calls last, hours [default: 4]
    #[arg(long, value_name = "H")]
    pub hours: Option<f64>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let n_star = cli.n_star.given(&cli.common, "tc05")?;
    let mut config = cli.common.config()?;
    if let Some(hours) = cli.hours {
        config.soak.hours = hours;
    }
    let needs = soak::needs(&config);
    let (answer, console) = cli.common.carry_out(config, "tc05", &needs, async |world, dir, console| {
        console.head(&world.config.slo);
        soak::run(world, dir, n_star, cli.n_star_b, console).await
    })?;
    console.conclude("tc05", &answer, summary);
    Ok(console.exit(answer.exit_code()))
}

/// The last lines.
#[must_use]
pub fn summary(answer: &SoakAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![
        String::new(),
        format!(
            "Soak of {} streams (N* = {} from {}); played {}; {}{simulated}",
            answer.streams, answer.n_star.streams, answer.n_star.source, answer.content, answer.restarted
        ),
    ];
    if let Some(soak) = &answer.soak {
        lines.extend(told(soak));
    }
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}

fn told(soak: &Soak) -> Vec<String> {
    let mut lines = Vec::new();
    for memory in &soak.memory {
        let sentence = memory.leak.text().en;
        lines.push(format!("Memory ({} {}): {sentence}", memory.what, memory.of));
    }
    lines.push("   from     calls  errors  TTFT p95    RTF p95  final p95".into());
    let start_s = soak.periods.first().map_or(0.0, |p| p.from_s);
    let cell = |v: Option<f64>, unit: &str| v.map_or_else(|| "-".to_string(), |v| format!("{v:.3}{unit}"));
    for p in &soak.periods {
        lines.push(format!(
            "{:>7}  {:>8} {:>7} {:>9} {:>10} {:>10}",
            format!("{:.2} h", (p.from_s - start_s) / 3600.0),
            p.calls,
            p.errors,
            cell(p.ttft_p95_s, " s"),
            cell(p.rtf_p95, ""),
            cell(p.final_p95_s, " s"),
        ));
    }
    if let (Some(rise_s), Some(low), Some(high)) =
        (soak.drift.rise_s, soak.drift.low_per_h_s, soak.drift.high_per_h_s)
    {
        lines.push(format!(
            "First-text p95 rose by {rise_s:.3} s in all (99 % interval of the slope {low:.3} to {high:.3} s per hour)"
        ));
    }
    let longest = soak.liveness.longest_silence_s.iter().map(|(name, s)| format!("{name} {s:.0} s"));
    let longest: Vec<String> = longest.collect();
    if !longest.is_empty() {
        lines.push(format!("Longest silence of a metrics page: {}", longest.join(", ")));
    }
    match (soak.complaints.is_empty(), soak.unknown.is_empty()) {
        (true, true) => lines.push("Verdict: pass, nothing to complain of".into()),
        (true, false) => lines.push("Verdict: not decidable".into()),
        (false, _) => lines.push("Verdict: fail".into()),
    }
    lines.extend(soak.complaints.iter().map(|c| format!("  - {c}")));
    lines.extend(soak.unknown.iter().map(|c| format!("  - not known: {c}")));
    lines
}
