//! Rows that were measured on different days, in one ladder.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tapedeck_rundir::{Event, RunInfo};

use crate::compare::refusals;
use crate::newrun::{NewRun, NewStep, write};
use crate::output::WriteError;
use crate::read::{Run, of_ladder};
use crate::words::Said;

/// Why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// They must not be mixed.
    #[error("{} and {} must not be mixed", names.0, names.1)]
    Refused {
        /// The first of the pair and the other.
        names: (String, String),
        /// Why.
        why: Vec<Said>,
    },
    /// Fewer than two runs, or one without what is needed.
    #[error("{what}")]
    Nothing {
        /// What is missing.
        what: String,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What must be the same because it decides what a figure means.
fn meaning(run: &Run) -> BTreeMap<String, String> {
    let get = |table: &Option<toml::Table>, path: &str| {
        let (section, key) = path.split_once('.')?;
        Some(table.as_ref()?.get(section)?.get(key)?.to_string())
    };
    [
        "server.dialect",
        "server.window_ms",
        "load.chunk_ms",
        "load.tail_silence_ms",
        "load.ramp_s",
        "load.unique_per_session",
    ]
    .into_iter()
    .map(|key| (key.to_string(), get(&run.config, key).unwrap_or_default()))
    .collect()
}

/// Merges the ladders of several runs into a new run directory and returns how many tiers it has. A tier that was
/// played in more than one run stands more than once: a failure then outweighs a pass, as for any repetition.
///
/// # Errors
/// [`MergeError::Refused`] where tapes, limits, meaning of figures, or simulated and real would be mixed.
pub fn merge(runs: &[Run], out: &Path) -> Result<usize, MergeError> {
    let [first, rest @ ..] = runs else {
        return Err(MergeError::Nothing { what: "give two runs at least".into() });
    };
    if rest.is_empty() {
        return Err(MergeError::Nothing { what: "give two runs at least".into() });
    }
    for other in rest {
        let mut why = refusals(first, other);
        for (key, value) in meaning(first) {
            let theirs = meaning(other).remove(&key).unwrap_or_default();
            if theirs != value {
                why.push(Said::same(format!("{key}: {value} / {theirs}")));
            }
        }
        if !why.is_empty() {
            return Err(MergeError::Refused { names: (first.name(), other.name()), why });
        }
    }
    let missing =
        |what: &str| MergeError::Nothing { what: format!("{what} of {} is not known", first.name()) };
    let limits = first.limits.clone().ok_or_else(|| missing("[slo]"))?;
    let config = first.config.clone().ok_or_else(|| missing("the config"))?;
    let info = first.info.clone().ok_or_else(|| missing("run.json"))?;
    let (mut steps, mut events, mut seen) = (Vec::new(), Vec::new(), BTreeMap::<String, u32>::new());
    let mut free_s = 0.0_f64;
    for run in runs {
        let mut end_s = free_s;
        // Every run has a clock of its own: each begins a minute after the one before has ended.
        let shift_s = free_s;
        for step in run.ladder() {
            let count = seen.entry(step.name.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { step.name.clone() } else { format!("{}-{count}", step.name) };
            debug_assert!(of_ladder(&name));
            let mut report = step.report.clone();
            report.window_from_s += shift_s;
            report.window_to_s += shift_s;
            let calls: Vec<_> = step
                .calls
                .iter()
                .map(|call| {
                    let mut call = call.clone();
                    call.start_s += shift_s;
                    call.done_s += shift_s;
                    end_s = end_s.max(call.done_s);
                    call
                })
                .collect();
            events.extend(
                run.events.iter().filter(|e| e.step.as_deref() == Some(&step.name)).map(|e| Event {
                    at_s: e.at_s + shift_s,
                    step: Some(name.clone()),
                    ..e.clone()
                }),
            );
            let series = series_of(run, &step.name, &name, shift_s);
            steps.push(NewStep { name, report, calls, series });
        }
        free_s = end_s + 60.0;
    }
    let tiers = steps.len();
    let tapes = runs.iter().filter_map(|r| r.info.as_ref()).flat_map(|i| i.tapes.clone()).collect();
    let names: Vec<String> = runs.iter().map(Run::name).collect();
    let run = NewRun {
        info: RunInfo { run_id: names.join("+"), case: "merged".into(), origin_unix_s: None, tapes, ..info },
        config,
        environment: first.environment.clone(),
        steps,
        events,
        limits,
        derived: json!({ "merged_from": names }),
    };
    write(&run, out)?;
    Ok(tiers)
}

/// Lines of a step in `series.jsonl`, with another name and time.
pub(crate) fn series_of(run: &Run, step: &str, name: &str, shift_s: f64) -> Vec<u8> {
    let text = std::fs::read_to_string(run.path.join("series.jsonl")).unwrap_or_default();
    let mark = format!("{{\"step\":\"{step}\",");
    let mut out = Vec::new();
    for line in text.lines().filter(|l| l.starts_with(&mark)) {
        let Ok(mut value) = serde_json::from_str::<Value>(line) else { continue };
        let Some(object) = value.as_object_mut() else { continue };
        object.insert("step".into(), name.into());
        if let Some(at_s) = object.get("at_s").and_then(Value::as_f64) {
            object.insert("at_s".into(), (at_s + shift_s).into());
        }
        if serde_json::to_writer(&mut out, &value).is_ok() {
            out.push(b'\n');
        }
    }
    out
}
