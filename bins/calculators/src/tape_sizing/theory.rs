//! Theory beside a run.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tapedeck_sizing::{Seen, SizingPlan, Theory, calibrate as compare, kv};

use super::output::{Answer, figure, row};
use tapedeck_cli::Failure;
use tapedeck_cli::usage;
use tapedeck_what_if::Run;

/// Which run.
#[derive(Debug, Clone, Args)]
pub struct CalibrateArgs {
    /// Run directory
    #[arg(long, value_name = "RUN_DIR")]
    pub from: PathBuf,
    /// Manifest of the tape that it played, where the config's path no longer leads to it
    #[arg(long, value_name = "FILE")]
    pub run_manifest: Option<PathBuf>,
}

pub(super) fn calibrate(plan: &SizingPlan, args: &CalibrateArgs) -> Result<Answer, Failure> {
    let run = Run::read(&args.from)?;
    let mut session = plan.session().map_err(usage)?;
    if plan.window_s.is_none() && session.window_s.is_some() {
        session.window_s = run.window_ms().map(|ms| f64::from(ms) / 1e3).or(session.window_s);
    }
    let manifest = run.manifest(args.run_manifest.as_deref())?;
    let calls: Vec<f64> = manifest.calls.iter().map(|call| f64::from(call.duration_ms) / 1e3).collect();
    let token_bytes = plan.architecture().and_then(|a| a.kv_bytes_per_token()).map_err(usage)?;
    let theory = Theory {
        card: plan.card().map_err(usage)?,
        topology: plan.topology().map_err(usage)?,
        token_bytes,
        tape: kv::tape(&session, token_bytes, &calls).map_err(usage)?,
    };
    let (points, used_bytes) = run.series()?;
    let seen = Seen { instances: run.instances_seen(), points, used_bytes };
    let found = compare(&theory, &seen).map_err(usage)?;
    let mut rows = vec![row(["figure", "theory", "measured", "95 % interval", "n", "unit"])];
    for line in &found.rows {
        let places = if line.unit.starts_with("tokens") { 0 } else { 2 };
        rows.push(vec![
            line.figure.to_owned(),
            figure(line.theory, places),
            figure(line.measured, places),
            line.interval.map_or_else(
                || "-".to_owned(),
                |(low, high)| format!("{} to {}", figure(Some(low), places), figure(Some(high), places)),
            ),
            line.n.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            line.unit.to_owned(),
        ]);
    }
    let simulated =
        run.info.simulated.then_some("Simulated: measured on the built-in engine, not on your servers.");
    Ok(Answer::new(&json!({
        "run": run.info.run_id, "simulated": run.info.simulated, "session": session, "theory_tape": theory.tape,
        "seen": seen, "rows": found.rows,
    }))
    .line(format!("{} ({}), session `{}`, tape {}", run.info.run_id, run.info.case, plan.session, manifest.name))
    .table(rows)
    .lines(found.rows.iter().map(|line| format!("{}: {}", line.figure, line.note)))
    .lines(simulated))
}
