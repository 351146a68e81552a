//! A run directory that was not measured but derived: rescored or merged.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapedeck_answers::files::CAPACITY;
use tapedeck_record::{CallRecord, Sample, StepId};
use tapedeck_rundir::{Event, RunDir, RunDirError, RunInfo};
use tapedeck_slo::{Limits, StepEvidence, TierReport, capacity};

use crate::compare::Change;

/// One step of a derived run.
#[derive(Debug)]
pub(crate) struct NewStep {
    pub(crate) id: StepId,
    pub(crate) report: TierReport,
    pub(crate) evidence: Option<StepEvidence>,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) samples: Vec<Sample>,
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
    pub(crate) derived: Derived,
}

impl NewRun {
    /// Writes it; an earlier derived run gives way.
    pub(crate) fn write(self, out: &Path) -> Result<(), RunDirError> {
        let mut dir = RunDir::derive(out, &self.info, &self.config.to_string(), &self.derived)?;
        for NewStep { id, report, evidence, calls, samples } in self.steps {
            let mut writer = dir.begin(&id)?;
            calls.iter().try_for_each(|call| writer.record(call))?;
            samples.iter().try_for_each(|sample| writer.sample(sample))?;
            dir.commit(writer, report, evidence, false)?;
        }
        self.events.iter().try_for_each(|event| dir.event(event))?;
        if let Some(environment) = self.environment {
            dir.write_file("environment.toml", environment.to_string().as_bytes())?;
        }
        let tiers: Vec<TierReport> = dir.ladder().into_iter().map(|step| step.report.clone()).collect();
        if !tiers.is_empty() {
            dir.write_json(CAPACITY, &capacity(&tiers, &self.limits))?;
        }
        Ok(())
    }
}
