//! Writes a run directory that was not measured but derived: rescored or merged.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, StepId, ladder_tiers};
use tapedeck_rundir::tables::{ladder_csv, notes};
use tapedeck_rundir::{CommittedStep, Event, RunInfo, atomic};
use tapedeck_slo::{Limits, StepEvidence, TierReport, capacity};

use crate::compare::Change;
use crate::output::{WriteError, folder};

/// One step of a derived run.
#[derive(Debug)]
pub(crate) struct NewStep {
    pub(crate) id: StepId,
    pub(crate) report: TierReport,
    pub(crate) evidence: Option<StepEvidence>,
    pub(crate) calls: Vec<CallRecord>,
    /// Lines of `series.jsonl`, each with its end.
    pub(crate) series: Vec<u8>,
}

/// What a derived run was made from and how: `derived.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Derived {
    /// The ladders of several runs in one.
    Merged {
        /// Names of the runs.
        merged_from: Vec<String>,
        /// Settings that differ from the first run's, by the name of the run that has others.
        settings_that_differ: BTreeMap<String, Vec<Change>>,
    },
    /// Another run, scored anew.
    Rescored {
        /// Steps that could not be scored anew.
        left_out: Vec<String>,
        /// Name of the run.
        rescored_from: String,
        /// Settings that were changed, `slo.rtf_p95 = 0.3`.
        settings: Vec<String>,
    },
}

/// A derived run.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) info: RunInfo,
    pub(crate) config: toml::Table,
    pub(crate) environment: Option<toml::Table>,
    pub(crate) steps: Vec<NewStep>,
    pub(crate) events: Vec<Event>,
    pub(crate) limits: Limits,
    /// What it was derived from and how, for `derived.json`.
    pub(crate) derived: Derived,
}

#[derive(Serialize)]
struct Line<'a> {
    step: &'a str,
    #[serde(flatten)]
    call: &'a CallRecord,
}

fn line<T: Serialize>(path: &Path, value: &T, out: &mut Vec<u8>) -> Result<(), WriteError> {
    serde_json::to_writer(&mut *out, value).map_err(|e| WriteError::io(path, std::io::Error::other(e)))?;
    out.push(b'\n');
    Ok(())
}

/// Whether a folder holds a run that was measured, which nothing derived may replace.
pub(crate) fn taken(out: &Path) -> bool {
    let there = |name: &str| out.join(name).exists();
    !there("derived.json") && ["run.json", "steps.jsonl", "calls.jsonl", "trace"].into_iter().any(there)
}

/// Writes it; files of an earlier derived run are replaced. Ask [`taken`] before.
pub(crate) fn write(run: &NewRun, out: &Path) -> Result<(), WriteError> {
    folder(out)?;
    let (mut calls, mut series, mut journal, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let rows = run.steps.iter().map(|step| {
        let superseded = run.steps.iter().any(|s| s.id.supersedes(&step.id));
        (&step.report, notes(false, superseded))
    });
    let ladder = ladder_csv(rows).map_err(|e| WriteError::io(out, e))?;
    for step in &run.steps {
        let name = step.id.to_string();
        for call in &step.calls {
            line(out, &Line { step: &name, call }, &mut calls)?;
        }
        series.extend_from_slice(&step.series);
        let committed = CommittedStep {
            step: name,
            id: step.id.clone(),
            partial: false,
            calls_bytes: calls.len() as u64,
            series_bytes: series.len() as u64,
            report: step.report.clone(),
            evidence: step.evidence.clone(),
        };
        line(out, &committed, &mut journal)?;
    }
    for event in &run.events {
        line(out, event, &mut events)?;
    }
    let tiers: Vec<TierReport> =
        ladder_tiers(&run.steps, |s| Some(&s.id)).into_iter().map(|s| s.report.clone()).collect();
    let (mut info, mut derived, mut capacity_json) = (Vec::new(), Vec::new(), Vec::new());
    line(out, &run.info, &mut info)?;
    line(out, &run.derived, &mut derived)?;
    if !tiers.is_empty() {
        line(out, &capacity(&tiers, &run.limits), &mut capacity_json)?;
    }
    let text = |table: &toml::Table| {
        toml::to_string_pretty(table).map_err(|e| WriteError::io(out, std::io::Error::other(e)))
    };
    let mut files: Vec<(&str, Vec<u8>)> = vec![
        ("run.json", info),
        ("run.toml", text(&run.config)?.into_bytes()),
        ("calls.jsonl", calls),
        ("series.jsonl", series),
        ("events.jsonl", events),
        ("ladder.csv", ladder),
        ("derived.json", derived),
        ("steps.jsonl", journal),
    ];
    if let Some(environment) = &run.environment {
        files.push(("environment.toml", text(environment)?.into_bytes()));
    }
    if !capacity_json.is_empty() {
        files.push(("capacity.json", capacity_json));
    }
    for (name, content) in files {
        atomic::write(&out.join(name), &content)?;
    }
    Ok(())
}
