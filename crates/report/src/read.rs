//! A run directory as far as it can be read.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tapedeck_answers::Answers;
use tapedeck_config::{Recorded, key};
use tapedeck_record::{CallRecord, StepId};
pub use tapedeck_rundir::blocks::Reading;
use tapedeck_rundir::blocks::{Bad, Odd, Owners, current, walk};
use tapedeck_rundir::{
    CommittedStep, DERIVED, Event, Journal, RunDirError, RunInfo, events_of, read_json, refuse_newer,
};
use tapedeck_sizing::PromisePlan;
use tapedeck_slo::{Limits, StepEvidence, TierReport};

use crate::csv;
use crate::data::{Rows, Tables};
use crate::integrity::IntegrityWarning;
use crate::line::Line;
use crate::messages::{MessageId, message};
use crate::newrun::Derived;
use crate::samples::Samples;
use crate::series::Series;

/// Why a run cannot be reported on at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not a folder.
    #[error("{} is no folder; give the run directory, e.g. results/tc03-20260301T080000Z", path.display())]
    NoFolder {
        /// What was given.
        path: PathBuf,
    },
    /// A folder without anything of a run in it.
    #[error("{} holds nothing of a run: none of {looked_for}; give the folder that a case made", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// Names that were looked for.
        looked_for: String,
    },
    /// A run that a newer version wrote.
    #[error(transparent)]
    Newer(#[from] RunDirError),
}

/// One current step with what was found of it.
#[derive(Debug, Clone)]
pub struct Step {
    /// Name in every file, e.g. `N048` or `tc05-soak`.
    pub name: String,
    /// Which step it is.
    pub id: StepId,
    /// Whether a later step stands in its place: the same with more loops.
    pub superseded: bool,
    /// Whether it was cut short.
    pub partial: bool,
    /// Its judgement as the journal has it.
    pub report: TierReport,
    /// What it was judged from; empty in a run of schema 1.
    pub evidence: Option<StepEvidence>,
    /// Its calls, in the order of their ends.
    pub calls: Vec<CallRecord>,
    /// Whether its calls and its judgement belong together; distributions are shown only then.
    pub calls_agree: bool,
    /// Its samples, thinned out for plots.
    pub series: Series,
}

impl Step {
    /// Whether it is a tier of the ladder that N* follows from, as far as it was played to its end.
    #[must_use]
    pub fn of_ladder(&self) -> bool {
        self.id.is_tier() && !self.superseded
    }

    /// Counted calls whose figures enter percentiles.
    pub fn figures(&self) -> impl Iterator<Item = &CallRecord> {
        use tapedeck_record::OutcomeClass::{Ok, Quality};
        self.calls.iter().filter(|c| c.counted && matches!(c.class, Ok | Quality))
    }
}

/// Everything of a run that could be read, and what could not.
#[derive(Debug)]
pub struct Run {
    /// The folder.
    pub path: PathBuf,
    /// What the run is.
    pub info: Option<RunInfo>,
    /// The effective config, as far as it could be read.
    pub config: Option<Recorded>,
    /// The limits that decided, as far as the config tells.
    pub limits: Option<Limits>,
    /// What the capacity statement promises, as the config tells; the defaults where it does not.
    pub promise: PromisePlan,
    /// What was under test.
    pub environment: Option<toml::Table>,
    /// Standing steps, in the order of the journal.
    pub steps: Vec<Step>,
    /// Lines of the journal that could not be read: tiers that are missing here.
    pub steps_unread: usize,
    /// The answers of the cases.
    pub answers: Answers,
    /// What the run was made from, where it was not measured as it stands.
    pub derived: Option<Derived>,
    /// What happened when.
    pub events: Vec<Event>,
    /// `ladder.csv` as it stands, header first.
    pub ladder_csv: Option<Vec<Vec<String>>>,
    /// What is wrong or missing.
    pub warnings: Vec<IntegrityWarning>,
}

/// Files of which one at least makes a folder a run.
const SIGNS: [&str; 6] =
    ["run.json", "steps.jsonl", "ladder.csv", "calls.jsonl", "environment.toml", "capacity.json"];

impl Run {
    /// Reads a run directory; what is missing or damaged is said in [`Run::warnings`], never guessed.
    ///
    /// # Errors
    /// Only where there is nothing of a run at all.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::read_with(path, None, Reading::default())
    }

    /// Whether a folder holds anything of a run at all.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn probe(path: &Path) -> Result<(), ReadError> {
        if !path.is_dir() {
            return Err(ReadError::NoFolder { path: path.to_path_buf() });
        }
        if !SIGNS.iter().any(|name| path.join(name).is_file()) {
            return Err(ReadError::NoRun { path: path.to_path_buf(), looked_for: SIGNS.join(", ") });
        }
        Ok(refuse_newer(path)?)
    }

    /// As [`Run::read`], and writes every call and sample of current steps into tables while they pass by (samples
    /// are not kept: ten million of them would not fit).
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn read_with(path: &Path, tables: Option<&Tables>, reading: Reading) -> Result<Self, ReadError> {
        Self::probe(path)?;
        let mut warnings = Vec::new();
        let info = json(path, "run.json", &mut warnings);
        if !path.join("run.json").exists() {
            warnings.push(IntegrityWarning::missing("run.json"));
        }
        let config = config(path, &mut warnings);
        // A limit must never be the wrong one: where any is not understood, none is known.
        let limits = config.as_ref().and_then(|c| c.section(key!(slo), |config| config.slo.clone()));
        let promise = config.as_ref().map(|c| c.config.sizing.promise.clone()).unwrap_or_default();
        let environment = toml_table(path, "environment.toml", &mut warnings);
        let (committed, steps_unread) = journal(path, &mut warnings);
        let (answers, unread) = Answers::read(path);
        warnings.extend(unread.into_iter().map(IntegrityWarning::of));
        let derived = json(path, DERIVED, &mut warnings);
        let events = events(path, &mut warnings);
        let ladder_csv = std::fs::read_to_string(path.join("ladder.csv")).ok().map(|text| csv::cells(&text));
        let mut steps: Vec<Step> = current(&committed)
            .map(|(_, step)| Step {
                name: step.step.clone(),
                id: step.id.clone(),
                superseded: !step.partial
                    && current(&committed).any(|(_, s)| !s.partial && s.id.supersedes(&step.id)),
                partial: step.partial,
                report: step.report.clone(),
                evidence: step.evidence.clone(),
                calls: Vec::new(),
                calls_agree: false,
                series: Series::new((step.report.window_from_s, step.report.window_to_s)),
            })
            .collect();
        let growing = Growing { path, reading, committed: &committed, steps: &steps, tables };
        let series = growing.series(&mut warnings);
        let calls = growing.calls(&mut warnings);
        for (step, (series, calls)) in steps.iter_mut().zip(series.into_iter().zip(calls)) {
            step.series = series;
            step.calls = calls;
        }
        let mut run = Self {
            path: path.to_path_buf(),
            info,
            config,
            limits,
            promise,
            environment,
            steps,
            steps_unread,
            answers,
            derived,
            events,
            ladder_csv,
            warnings,
        };
        crate::integrity::cross_check(&mut run);
        Ok(run)
    }

    /// The whole tiers of the ladder on Tape-A, by streams.
    #[must_use]
    pub fn ladder(&self) -> Vec<&Step> {
        let mut tiers: Vec<&Step> = self.steps.iter().filter(|s| s.of_ladder() && !s.partial).collect();
        tiers.sort_by_key(|s| s.report.streams);
        tiers
    }

    /// Whether the figures come from the built-in engine; unknown where nothing says so.
    #[must_use]
    pub fn simulated(&self) -> Option<bool> {
        let of_steps = self.steps.iter().map(|s| s.report.simulated);
        let said = self.info.as_ref().map(|i| i.simulated);
        of_steps.chain(said).reduce(|a, b| a || b)
    }

    /// Name of the run.
    #[must_use]
    pub fn name(&self) -> String {
        let folder = || self.path.file_name().map(|n| n.to_string_lossy().into_owned());
        self.info.as_ref().map(|i| i.run_id.clone()).or_else(folder).unwrap_or_default()
    }
}

/// A JSON file; what is there and cannot be read is an integrity warning.
fn json<T: DeserializeOwned>(path: &Path, name: &str, warnings: &mut Vec<IntegrityWarning>) -> Option<T> {
    read_json(path, name).unwrap_or_else(|e| {
        warnings.push(IntegrityWarning::of(e));
        None
    })
}

fn toml_table(path: &Path, name: &str, warnings: &mut Vec<IntegrityWarning>) -> Option<toml::Table> {
    let Ok(text) = std::fs::read_to_string(path.join(name)) else {
        warnings.push(IntegrityWarning::missing(name));
        return None;
    };
    match toml::from_str(&text) {
        Ok(table) => Some(table),
        Err(e) => {
            warnings.push(IntegrityWarning::unreadable(name, e.message().to_string()));
            None
        }
    }
}

/// The config of the run; each section that cannot be read is an integrity warning.
fn config(path: &Path, warnings: &mut Vec<IntegrityWarning>) -> Option<Recorded> {
    const NAME: &str = "run.toml";
    let Ok(text) = std::fs::read_to_string(path.join(NAME)) else {
        warnings.push(IntegrityWarning::missing(NAME));
        return None;
    };
    match Recorded::parse(&text, Path::new(NAME)) {
        Ok(recorded) => {
            let unread = recorded.unread.iter();
            warnings
                .extend(unread.map(|u| {
                    IntegrityWarning::unreadable(&format!("{NAME} [{}]", u.section), u.why.clone())
                }));
            Some(recorded)
        }
        Err(e) => {
            warnings.push(IntegrityWarning::unreadable(NAME, e.to_string()));
            None
        }
    }
}

/// What happened when; lines that cannot be read are counted and said.
fn events(path: &Path, warnings: &mut Vec<IntegrityWarning>) -> Vec<Event> {
    let Some((events, bad)) = events_of(path) else {
        warnings.push(IntegrityWarning::missing("events.jsonl"));
        return Vec::new();
    };
    tell_bad(bad, "events.jsonl", warnings);
    events
}

/// The committed steps in order (with `None` for a line that could not be read), and how many could not be read.
fn journal(path: &Path, warnings: &mut Vec<IntegrityWarning>) -> (Vec<Option<CommittedStep>>, usize) {
    let Ok(journal) = Journal::read(path) else {
        warnings.push(IntegrityWarning::missing("steps.jsonl"));
        return (Vec::new(), 0);
    };
    let unread = journal.unread.len();
    warnings.extend(
        journal
            .unread
            .into_iter()
            .map(|(line, why)| IntegrityWarning::withhold(message!(MessageId::StepUnread, line, why))),
    );
    if journal.half_line {
        warnings.push(IntegrityWarning::note(message!(MessageId::HalfLine, "steps.jsonl")));
    }
    (journal.steps, unread)
}

/// Tells what is odd about a growing file of the run.
fn tell(odd: Option<Odd>, name: &str, warnings: &mut Vec<IntegrityWarning>) {
    let Some(odd) = odd else {
        warnings.push(IntegrityWarning::missing(name));
        return;
    };
    tell_bad(odd.bad, name, warnings);
    if odd.strays > 0 {
        warnings.push(IntegrityWarning::note(message!(MessageId::Strays, name, odd.strays)));
    }
    if odd.uncommitted > 0 {
        warnings.push(IntegrityWarning::note(message!(MessageId::Uncommitted, name, odd.uncommitted)));
    }
}

fn tell_bad(bad: Bad, name: &str, warnings: &mut Vec<IntegrityWarning>) {
    if let Some((line, why)) = bad.first {
        warnings.push(IntegrityWarning::note(message!(MessageId::BadLines, name, bad.count, line, why)));
    }
}

/// What was found of a step in a block, beside what was found of others.
fn of<T: Default>(found: &mut Vec<(usize, T)>, step: usize) -> Option<&mut T> {
    if found.last().is_none_or(|(last, _)| *last != step) {
        found.push((step, T::default()));
    }
    found.last_mut().map(|(_, found)| found)
}

/// The two large files of a run, and what is made of them.
struct Growing<'a> {
    path: &'a Path,
    reading: Reading,
    committed: &'a [Option<CommittedStep>],
    steps: &'a [Step],
    tables: Option<&'a Tables>,
}

impl Growing<'_> {
    /// The calls of every current step, by its place.
    fn calls(&self, warnings: &mut Vec<IntegrityWarning>) -> Vec<Vec<CallRecord>> {
        #[derive(serde::Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            step: std::borrow::Cow<'a, str>,
        }
        let of_step = |at: usize, text: &str, calls: &mut Vec<(usize, Vec<CallRecord>)>| {
            let Some(name) = self.steps.get(at).map(|s| s.name.as_str()) else { return Ok(true) };
            // As we write it, the step comes first; whoever else wrote the line is read twice.
            let ours = text.strip_prefix("{\"step\":\"").and_then(|t| t.strip_prefix(name));
            if !ours.is_some_and(|rest| rest.starts_with("\",")) {
                let named: Named<'_> = serde_json::from_str(text)?;
                if named.step != name {
                    return Ok(false);
                }
            }
            let call = serde_json::from_str(text)?;
            if let Some(calls) = of(calls, at) {
                calls.push(call);
            }
            Ok::<_, serde_json::Error>(true)
        };
        let mut all = vec![Vec::new(); self.steps.len()];
        let odd = walk(
            &self.path.join("calls.jsonl"),
            self.reading,
            &Owners::new(self.committed, |s| s.calls_bytes),
            |lines| {
                let mut calls = Vec::new();
                lines.each(|at, text| of_step(at, text, &mut calls).map_err(|e| e.to_string()));
                self.with_rows(calls, |tables, step, calls| tables.calls(step, calls))
            },
            |found| {
                for (at, mut calls, rows) in found {
                    all.get_mut(at).into_iter().for_each(|all| all.append(&mut calls));
                    self.tables.zip(rows).into_iter().for_each(|(tables, rows)| tables.write_calls(rows));
                }
            },
        );
        tell(odd, "calls.jsonl", warnings);
        all
    }

    /// The samples of every current step, by its place.
    fn series(&self, warnings: &mut Vec<IntegrityWarning>) -> Vec<Series> {
        let mut all: Vec<Series> = self.steps.iter().map(|step| step.series.clone()).collect();
        let odd = walk(
            &self.path.join("series.jsonl"),
            self.reading,
            &Owners::new(self.committed, |s| s.series_bytes),
            |lines| {
                let mut samples: Vec<(usize, Samples)> = Vec::new();
                lines.each(|at, text| {
                    let line: Line<'_> = serde_json::from_str(text).map_err(|e| e.to_string())?;
                    if self.steps.get(at).is_none_or(|step| line.step != step.name) {
                        return Ok(false);
                    }
                    if let Some(samples) = of(&mut samples, at) {
                        samples.add(&line);
                    }
                    Ok(true)
                });
                self.with_rows(samples, |tables, step, samples| tables.samples(step, samples))
            },
            |found| {
                for (at, samples, rows) in found {
                    all.get_mut(at).into_iter().for_each(|series| series.add(&samples));
                    self.tables.zip(rows).into_iter().for_each(|(tables, rows)| tables.write_samples(rows));
                }
            },
        );
        tell(odd, "series.jsonl", warnings);
        all
    }

    /// Makes rows of what was found, where tables are wanted.
    fn with_rows<T>(
        &self,
        found: Vec<(usize, T)>,
        rows: impl Fn(&Tables, &Step, &T) -> Rows,
    ) -> Vec<(usize, T, Option<Rows>)> {
        let with = |(at, found)| {
            let rows = self.tables.zip(self.steps.get(at)).map(|(tables, step)| rows(tables, step, &found));
            (at, found, rows)
        };
        found.into_iter().map(with).collect()
    }
}
