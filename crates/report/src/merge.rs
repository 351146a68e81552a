//! Rows that were measured on different days, in one ladder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tapedeck_config::key;
use tapedeck_record::StepId;
use tapedeck_rundir::{Event, RunDir, RunDirError, RunInfo, read_run, samples_of};
use tapedeck_slo::{StepBounds, StepEvidence};

use crate::compare::{Change, changes, labels, refusals};
use crate::messages::{LocalizedText, MessageId, message};
use crate::newrun::{Derived, NewRun, NewStep};
use crate::read::Run;
use crate::settings::flatten;

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
        why: Vec<LocalizedText>,
    },
    /// Fewer than two runs, or one without what is needed.
    #[error("{what}")]
    Nothing {
        /// What is missing.
        what: String,
    },
    /// A run cannot be read, the result cannot be written, or its folder holds something that was measured.
    #[error(transparent)]
    Run(#[from] RunDirError),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Tiers of the new ladder.
    pub tiers: usize,
    /// Settings that differ from the first run's, by the name of the run that has others; they did not forbid the merge,
    /// and a reader should know them.
    pub changes: Vec<(String, Vec<Change>)>,
}

/// Keys of the config that decide what a figure means.
const MEANING: [&str; 6] = [
    key!(server.dialect),
    key!(server.window_ms),
    key!(load.chunk_ms),
    key!(load.tail_silence_ms),
    key!(load.ramp_s),
    key!(load.unique_per_session),
];

/// What must be the same because it decides what a figure means, or what was measured: keys of the config, the model
/// and the version of the engines, and how a rehearsed engine was made.
fn meaning(run: &Run) -> BTreeMap<String, String> {
    let mut rows = Vec::new();
    for (name, table) in
        [("config", run.config.as_ref().map(|c| &c.tree)), ("environment", run.environment.as_ref())]
    {
        if let Some(table) = table {
            flatten(name, &toml::Value::Table(table.clone()), &mut rows);
        }
    }
    rows.retain(|(key, _)| {
        let of_engine = key.starts_with("environment.instances.")
            && (key.ends_with(".model") || key.ends_with(".engine_version"));
        of_engine
            || key.starts_with("config.rehearsal.")
            || MEANING.iter().any(|m| key.strip_prefix("config.") == Some(m))
    });
    rows.into_iter().collect()
}

/// Names of the instances that were measured.
fn instances(run: &Run) -> Option<Vec<String>> {
    let table = run.environment.as_ref()?.get("instances")?.as_table()?;
    Some(table.keys().cloned().collect())
}

/// Why two runs must not be mixed.
fn unmixable(a: &Run, b: &Run) -> Vec<LocalizedText> {
    let mut why = refusals(a, b);
    let same_place = match (a.path.canonicalize(), b.path.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.path == b.path,
    };
    // A copy is the same evidence, too.
    let journal = |run: &Run| std::fs::read(run.path.join("steps.jsonl")).ok();
    if same_place || (a.name() == b.name() && journal(a).is_some() && journal(a) == journal(b)) {
        why.push(message!(MessageId::RefuseTwice));
    }
    if let (Some(of_a), Some(of_b)) = (instances(a), instances(b))
        && of_a != of_b
    {
        why.push(message!(MessageId::RefuseInstances, of_a.join(", "), of_b.join(", ")));
    }
    let (of_a, of_b) = (meaning(a), meaning(b));
    let keys: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    let show = |value: Option<&String>| value.map_or_else(|| "-".to_string(), Clone::clone);
    for key in keys.into_iter().filter(|key| of_a.get(*key) != of_b.get(*key)) {
        why.push(message!(MessageId::RefuseSetting, key.as_str(), show(of_a.get(key)), show(of_b.get(key))));
    }
    why
}

/// Merges the ladders of several runs into a new run directory. A tier that was played in more than one run stands more
/// than once: a failure then outweighs a pass, as for any repetition.
///
/// # Errors
/// [`MergeError::Refused`] where tapes, limits, engines, meaning of figures, or simulated and real would be mixed;
/// [`RunDirError::Measured`] where `out` holds a run that was measured.
pub fn merge(runs: &[Run], out: &Path) -> Result<Merged, MergeError> {
    let [first, rest @ ..] = runs else {
        return Err(MergeError::Nothing { what: "give two runs at least".into() });
    };
    if rest.is_empty() {
        return Err(MergeError::Nothing { what: "give two runs at least".into() });
    }
    for (at, one) in runs.iter().enumerate() {
        // Every pair: two runs may each go with a third and not with each other.
        for other in runs.iter().skip(at + 1) {
            let why = unmixable(one, other);
            if !why.is_empty() {
                return Err(MergeError::Refused { names: labels(one, other).into(), why });
            }
        }
    }
    RunDir::may_derive(out)?;
    let changes: Vec<(String, Vec<Change>)> = rest
        .iter()
        .map(|other| {
            let [_, name] = labels(first, other);
            (name, changes(first, other))
        })
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let missing =
        |what: &str| MergeError::Nothing { what: format!("{what} of {} is not known", first.name()) };
    let limits = first.limits.clone().ok_or_else(|| missing("[slo]"))?;
    let config = first.config.as_ref().map(|c| c.tree.clone()).ok_or_else(|| missing("the config"))?;
    let info = first.info.clone().ok_or_else(|| missing("run.json"))?;
    let (mut steps, mut events, mut seen) = (Vec::new(), Vec::new(), BTreeMap::<String, u32>::new());
    let mut free_s = 0.0_f64;
    for run in runs {
        let mut end_s = free_s;
        // Every run has a clock of its own: each begins a minute after the one before has ended.
        let shift_s = free_s;
        let (_, committed) = read_run(&run.path)?;
        for step in run.ladder() {
            let count = seen.entry(step.name.clone()).or_default();
            *count += 1;
            let id = StepId { merged: *count, ..step.id.clone() };
            let name = id.to_string();
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
            let mut samples = samples_of(&run.path, &committed, &step.name)?;
            samples.iter_mut().for_each(|sample| sample.at_s += shift_s);
            let evidence = step.evidence.clone().map(|e| shifted(e, shift_s));
            steps.push(NewStep { id, report, evidence, calls, samples });
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
        derived: Derived::Merged {
            merged_from: names,
            settings_that_differ: changes.iter().cloned().collect(),
        },
    };
    run.write(out)?;
    Ok(Merged { tiers, changes })
}

/// The evidence of a step that moved to a later time.
fn shifted(evidence: StepEvidence, shift_s: f64) -> StepEvidence {
    let StepBounds { ramp_from_s, window_from_s, window_to_s, drain_to_s } = evidence.bounds;
    let bounds = StepBounds {
        ramp_from_s: ramp_from_s + shift_s,
        window_from_s: window_from_s + shift_s,
        window_to_s: window_to_s + shift_s,
        drain_to_s: drain_to_s + shift_s,
    };
    StepEvidence { bounds, ..evidence }
}
