//! Judges an existing run anew: other limits for N*, and a limit of one's own on its calls.
//!
//! `cargo run -p tapedeck-rundir --example judge -- results/tc03-rehearsal-seed1`

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tapedeck_l10n::Localize;
use tapedeck_record::CallRecord;
use tapedeck_rundir::{CommittedStep, ladder_of, read_run};
use tapedeck_slo::{Assertion, AssertionResult, Limits, TierReport, capacity};

fn main() -> Result<(), Box<dyn Error>> {
    let run = std::env::args_os().nth(1).map(PathBuf::from);
    let run = run.ok_or("give a run directory, e.g. results/tc03-rehearsal-seed1")?;
    judge(&run)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// One line of `calls.jsonl`.
#[derive(Deserialize)]
struct Line {
    step: String,
    #[serde(flatten)]
    call: CallRecord,
}

/// What the run says.
fn judge(run: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let (info, steps) = read_run(run)?;
    let mut lines = Vec::new();

    // The journal holds every tier whole: N* follows from it, and so does any other question about tiers.
    let steps: Vec<&CommittedStep> = steps.iter().collect();
    let whole = ladder_of(&steps);
    let tiers: Vec<TierReport> = whole.iter().map(|s| s.report.clone()).collect();
    let careful = Limits { safety_factor: 0.5, ..Limits::default() };
    let found = capacity(&tiers, &careful);
    let simulated = if info.simulated { " [simulated]" } else { "" };
    lines.push(format!("{}{simulated}: N* = {} ({})", info.run_id, found.display(), found.state.text().en));
    let half = found.published.map_or_else(|| "not known".to_string(), |calls| format!("{calls} calls"));
    lines.push(format!("half of it: {half}"));

    // The calls stand beside it, one a line, so a limit can be held against each tier and each bucket.
    let calls = BufReader::new(std::fs::File::open(run.join("calls.jsonl"))?);
    let calls = calls.lines().map(|line| Ok(serde_json::from_str::<Line>(&line?)?));
    let calls = calls.collect::<Result<Vec<Line>, Box<dyn Error>>>()?;
    let assertion: Assertion = "final_s:p95<=0.8 by bucket".parse()?;
    for step in whole {
        let own = calls.iter().filter(|l| l.step == step.step).map(|l| l.call.clone());
        let findings = assertion.check(&step.step, &step.report, &own.collect::<Vec<_>>());
        lines.extend(findings.iter().map(AssertionResult::sentence));
    }
    Ok(lines)
}
