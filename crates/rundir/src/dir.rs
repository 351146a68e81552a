//! The folder of one run and its journal.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, Sample, Schema, StepId, ladder_tiers};

use crate::atomic;
use crate::blocks::Bad;
use crate::delta::BucketBounds;
use crate::error::RunDirError;
use crate::event::EventDetail;
use crate::step::{CommittedStep, StepWriter};
use crate::tables;
use tapedeck_slo::{StepEvidence, TierReport};

/// What a run is: `run.json`, written once when the folder is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the run's files.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Name of the folder; unique among the runs beside it.
    pub run_id: String,
    /// Case that made it, e.g. `tc03`.
    pub case: String,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Zero of the run's clock, seconds since 1970-01-01 UTC; empty in a rehearsal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_unix_s: Option<f64>,
    /// MD5 of every tape manifest that the run plays, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tapes: BTreeMap<String, String>,
}

/// Something that happened, for `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, seconds from the run's origin.
    pub at_s: f64,
    /// Step during which it happened, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What, in one word: `step_begins`, `abort`, `drained`...
    pub what: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<EventDetail>,
}

/// A file that only grows, and is cut back to a known length when a run is taken up again.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    len: u64,
}

impl AppendFile {
    fn open(path: PathBuf, keep_bytes: Option<u64>) -> Result<Self, RunDirError> {
        let open = || {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            if let Some(keep) = keep_bytes {
                file.set_len(keep)?;
            }
            let len = file.metadata()?.len();
            Ok((file, len))
        };
        match open() {
            Ok((file, len)) => Ok(Self { path, file, len }),
            Err(e) => Err(RunDirError::io("open", &path, e)),
        }
    }

    /// Appends whole lines. On failure the file is cut back to what it was.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), RunDirError> {
        if let Err(e) = self.file.write_all(lines) {
            // Best effort: a half line would otherwise spoil the file for every reader.
            let _ = self.file.set_len(self.len);
            return Err(RunDirError::io("write", &self.path, e));
        }
        self.len += lines.len() as u64;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<u64, RunDirError> {
        self.file.sync_data().map_err(|e| RunDirError::io("write", &self.path, e))?;
        Ok(self.len)
    }
}

/// The folder of one run.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    info: RunInfo,
    steps: Vec<CommittedStep>,
    pub(crate) calls: AppendFile,
    pub(crate) series: AppendFile,
    journal: AppendFile,
    events: AppendFile,
    derived: bool,
    _lock: File,
}

const CALLS: &str = "calls.jsonl";
const SERIES: &str = "series.jsonl";
const EVENTS: &str = "events.jsonl";
/// What a run was made from that was not measured as it stands.
pub const DERIVED: &str = "derived.json";
const JOURNAL: &str = "steps.jsonl";
const CONFIG: &str = "run.toml";
const INFO: &str = "run.json";

impl RunDir {
    /// Makes `root/<run_id>` with its effective config (secrets already redacted by the caller). Where that
    /// folder exists, `-2`, `-3`... is appended to the name.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn create(root: &Path, info: &RunInfo, config_toml: &str) -> Result<Self, RunDirError> {
        fs::create_dir_all(root).map_err(|e| RunDirError::io("create", root, e))?;
        let mut info = info.clone();
        let asked = info.run_id.clone();
        let path = (1..)
            .find_map(|n| {
                if n > 1 {
                    info.run_id = format!("{asked}-{n}");
                }
                let path = root.join(&info.run_id);
                match fs::create_dir(&path) {
                    Ok(()) => Some(Ok(path)),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => None,
                    Err(e) => Some(Err(RunDirError::io("create", &path, e))),
                }
            })
            .unwrap_or_else(|| Err(RunDirError::Busy { path: root.to_path_buf() }))?;
        let lock = lock(&path)?;
        atomic::write(&path.join(CONFIG), config_toml.as_bytes())?;
        atomic::write(&path.join(INFO), json_line(&info, &path)?.as_bytes())?;
        Self::assemble(path, info, Vec::new(), lock, None)
    }

    /// Makes a run of what was measured elsewhere: merged, or scored anew. `origin` is kept as `derived.json`, steps get no
    /// traces, and a run that was derived before gives way.
    ///
    /// # Errors
    /// [`RunDirError::Measured`] where the folder holds a run that was measured, or what the operating system refused.
    pub fn derive(
        path: &Path,
        info: &RunInfo,
        config_toml: &str,
        origin: &impl Serialize,
    ) -> Result<Self, RunDirError> {
        Self::may_derive(path)?;
        fs::create_dir_all(path).map_err(|e| RunDirError::io("create", path, e))?;
        let lock = lock(path)?;
        // First of all: a folder with this file holds nothing that was measured.
        atomic::write(&path.join(DERIVED), json_line(origin, path)?.as_bytes())?;
        for old in [JOURNAL, EVENTS, "capacity.json", "environment.toml"].map(|name| path.join(name)) {
            match fs::remove_file(&old) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(RunDirError::io("remove", &old, e));
                }
                _ => {}
            }
        }
        atomic::write(&path.join(CONFIG), config_toml.as_bytes())?;
        atomic::write(&path.join(INFO), json_line(info, path)?.as_bytes())?;
        let made = Self::assemble(path.to_path_buf(), info.clone(), Vec::new(), lock, Some(0))?;
        Ok(Self { derived: true, ..made })
    }

    /// Whether a folder may hold what is derived from other runs: nothing that was measured may give way to it.
    ///
    /// # Errors
    /// [`RunDirError::Measured`].
    pub fn may_derive(path: &Path) -> Result<(), RunDirError> {
        let there = |name: &str| path.join(name).exists();
        if !there(DERIVED) && [INFO, JOURNAL, CALLS, "trace"].into_iter().any(there) {
            return Err(RunDirError::Measured { path: path.to_path_buf() });
        }
        Ok(())
    }

    /// Opens a run to go on with it: growing files are cut back to the last commit. `config_toml` must be the
    /// one that the run was made with.
    ///
    /// # Errors
    /// [`RunDirError::NotARun`], [`RunDirError::Busy`], [`RunDirError::OtherSettings`], or what the operating
    /// system refused.
    pub fn resume(path: &Path, config_toml: &str) -> Result<Self, RunDirError> {
        let (info, steps, journal_bytes) = read(path)?;
        let made_with = read_text(&path.join(CONFIG))?;
        if made_with != config_toml {
            let what = first_difference(&made_with, config_toml);
            return Err(RunDirError::OtherSettings { path: path.to_path_buf(), what });
        }
        let lock = lock(path)?;
        Self::assemble(path.to_path_buf(), info, steps, lock, Some(journal_bytes))
    }

    /// Opens a run, also one that another case made, to write further steps into it. Tapes that it has not met yet
    /// are added to its description, and the effective config of the newcomer is kept as `run-<case>.toml`.
    /// `differs` is shown the config that the run was made with, and names what of it the newcomer cannot share.
    ///
    /// # Errors
    /// [`RunDirError::NotARun`], [`RunDirError::Busy`], or [`RunDirError::OtherSettings`] where the two differ in
    /// what is simulated, in a tape of the same name, or as `differs` says.
    pub fn join(
        path: &Path,
        newcomer: &RunInfo,
        config_toml: &str,
        differs: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self, RunDirError> {
        let (mut info, steps, journal_bytes) = read(path)?;
        let other = |what: String| Err(RunDirError::OtherSettings { path: path.to_path_buf(), what });
        if info.simulated != newcomer.simulated {
            let kind = |simulated| if simulated { "simulated" } else { "measured on real servers" };
            return other(format!("it is {}, this is {}", kind(info.simulated), kind(newcomer.simulated)));
        }
        for (name, md5) in &newcomer.tapes {
            if let Some(was) = info.tapes.get(name).filter(|was| *was != md5) {
                return other(format!("tape {name} had MD5 {was}, now {md5}"));
            }
        }
        if let Some(what) = differs(&read_text(&path.join(CONFIG))?) {
            return other(what);
        }
        let lock = lock(path)?;
        info.tapes.extend(newcomer.tapes.clone());
        atomic::write(&path.join(INFO), json_line(&info, path)?.as_bytes())?;
        if info.case != newcomer.case {
            atomic::write(&path.join(format!("run-{}.toml", newcomer.case)), config_toml.as_bytes())?;
        }
        Self::assemble(path.to_path_buf(), info, steps, lock, Some(journal_bytes))
    }

    fn assemble(
        path: PathBuf,
        info: RunInfo,
        steps: Vec<CommittedStep>,
        lock: File,
        journal_bytes: Option<u64>,
    ) -> Result<Self, RunDirError> {
        let kept = |bytes: fn(&CommittedStep) -> u64| journal_bytes.map(|_| steps.last().map_or(0, bytes));
        let calls = AppendFile::open(path.join(CALLS), kept(|s| s.calls_bytes))?;
        let series = AppendFile::open(path.join(SERIES), kept(|s| s.series_bytes))?;
        let journal = AppendFile::open(path.join(JOURNAL), journal_bytes)?;
        let events = AppendFile::open(path.join(EVENTS), None)?;
        let dir = Self { path, info, steps, calls, series, journal, events, derived: false, _lock: lock };
        dir.write_tables()?;
        Ok(dir)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run is.
    #[must_use]
    pub const fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Every committed step, in the order of commits; a step that was cut short may be followed by its whole
    /// repetition.
    #[must_use]
    pub fn steps(&self) -> &[CommittedStep] {
        &self.steps
    }

    /// The committed whole step of this name, if there is one.
    #[must_use]
    pub fn finished(&self, step: &str) -> Option<&CommittedStep> {
        self.steps.iter().rev().find(|s| s.step == step && !s.partial)
    }

    /// Writes a whole file into the folder, atomically; `name` may lie in a folder of its own (`control/1.log`), which
    /// is made.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<(), RunDirError> {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| RunDirError::io("create", folder, e))?;
        }
        atomic::write(&path, content)
    }

    /// Writes a value into the folder as indented JSON.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), RunDirError> {
        let mut json = serde_json::to_vec_pretty(value)
            .map_err(|e| RunDirError::io("write", &self.path.join(name), e.into()))?;
        json.push(b'\n');
        self.write_file(name, &json)
    }

    /// Reads a JSON file of the folder; nothing where there is none.
    ///
    /// # Errors
    /// As [`read_json`].
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunDirError> {
        read_json(&self.path, name)
    }

    /// Appends one event.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn event(&mut self, event: &Event) -> Result<(), RunDirError> {
        let line = json_line(event, &self.path)?;
        self.events.append(line.as_bytes())
    }

    /// Opens a step for writing.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn begin(&self, id: &StepId) -> Result<StepWriter, RunDirError> {
        StepWriter::new(&self.path, id, !self.derived)
    }

    /// Commits a step with its verdict and what it was judged from: its traces are renamed into place, the growing files synced, the journal extended and
    /// the tables made anew.
    ///
    /// # Errors
    /// What the operating system refused; earlier steps are then intact.
    pub fn commit(
        &mut self,
        writer: StepWriter,
        report: TierReport,
        evidence: impl Into<Option<StepEvidence>>,
        partial: bool,
    ) -> Result<(), RunDirError> {
        let (step, id) = (writer.step().to_string(), writer.id().clone());
        writer.finish(self)?;
        let committed = CommittedStep {
            step,
            id,
            partial,
            calls_bytes: self.calls.sync()?,
            series_bytes: self.series.sync()?,
            report,
            evidence: evidence.into(),
        };
        self.journal.append(json_line(&committed, &self.path)?.as_bytes())?;
        self.journal.sync()?;
        self.steps.push(committed);
        self.write_tables()
    }

    /// Puts another verdict in the place of the one that a whole step was committed with, where the two differ: some
    /// tests can only be decided when all steps of a ladder are known. The journal is written anew in one piece, and
    /// the tables follow it. A step that is not there is passed over.
    ///
    /// # Errors
    /// What the operating system refused; the journal is then what it was.
    pub fn revise<'a>(
        &mut self,
        verdicts: impl IntoIterator<Item = (&'a str, &'a TierReport)>,
    ) -> Result<(), RunDirError> {
        let mut changed = false;
        for (name, report) in verdicts {
            let whole = self.steps.iter_mut().rev().find(|s| s.step == name && !s.partial);
            if let Some(step) = whole.filter(|s| s.report != *report) {
                step.report = report.clone();
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
        let lines: Result<Vec<String>, _> = self.steps.iter().map(|s| json_line(s, &self.path)).collect();
        let path = self.path.join(JOURNAL);
        atomic::write(&path, lines?.concat().as_bytes())?;
        self.journal = AppendFile::open(path, None)?;
        self.write_tables()
    }

    /// The steps that tables and verdicts are made of: whole ones, and a cut one only while nothing followed it.
    pub fn current(&self) -> impl Iterator<Item = &CommittedStep> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(i, step)| !self.steps[i + 1..].iter().any(|later| later.step == step.step))
            .map(|(_, step)| step)
    }

    /// The tiers that N* follows from, in the order of commits; see [`ladder_tiers`].
    #[must_use]
    pub fn ladder(&self) -> Vec<&CommittedStep> {
        ladder_of(&self.current().collect::<Vec<_>>())
    }

    /// Every call of a finished whole step, in the order of their ends; empty for a step that is not there.
    ///
    /// # Errors
    /// [`RunDirError::BadLine`], or what the operating system refused.
    pub fn calls_of(&self, step: &str) -> Result<Vec<CallRecord>, RunDirError> {
        lines_of(&self.calls.path, &self.steps, step, |s| s.calls_bytes)
    }

    /// Every sample of a finished whole step, in order; empty for a step that is not there.
    ///
    /// # Errors
    /// [`RunDirError::BadLine`], or what the operating system refused.
    pub fn series_of(&self, step: &str) -> Result<Vec<Sample>, RunDirError> {
        samples_of(&self.path, &self.steps, step)
    }

    fn write_tables(&self) -> Result<(), RunDirError> {
        let current: Vec<_> = self.current().collect();
        let written = |name: &str, made: io::Result<Vec<u8>>| {
            let bytes = made.map_err(|e| RunDirError::io("write", &self.path.join(name), e))?;
            self.write_file(name, &bytes)
        };
        let rows = current.iter().map(|step| {
            let superseded = !step.partial && current.iter().any(|s| !s.partial && s.id.supersedes(&step.id));
            (&step.report, tables::notes(step.partial, superseded))
        });
        written("ladder.csv", tables::ladder_csv(rows))?;
        written("tiers.csv", tables::tiers_csv(&current))
    }
}

/// The tiers that N* follows from, among the current steps of a run.
#[must_use]
pub fn ladder_of<'a>(current: &[&'a CommittedStep]) -> Vec<&'a CommittedStep> {
    ladder_tiers(current, |step| (!step.partial).then_some(&step.id)).into_iter().copied().collect()
}

/// Every sample of a finished whole step of a run that is not open for writing, in order; empty for a step that is not
/// among `steps`, its committed ones.
///
/// # Errors
/// [`RunDirError::BadLine`], or what the operating system refused.
pub fn samples_of(run: &Path, steps: &[CommittedStep], step: &str) -> Result<Vec<Sample>, RunDirError> {
    let kept: Vec<Sample> = lines_of(&run.join(SERIES), steps, step, |s| s.series_bytes)?;
    let mut bounds = BucketBounds::default();
    Ok(kept.into_iter().map(|sample| bounds.restore(sample)).collect())
}

/// What a step added to a growing file lies between its commit and the one before.
fn lines_of<T: DeserializeOwned>(
    path: &Path,
    steps: &[CommittedStep],
    step: &str,
    end: fn(&CommittedStep) -> u64,
) -> Result<Vec<T>, RunDirError> {
    let Some(at) = steps.iter().rposition(|s| s.step == step && !s.partial) else {
        return Ok(Vec::new());
    };
    let from = at.checked_sub(1).and_then(|i| steps.get(i)).map_or(0, end);
    let to = steps.get(at).map_or(from, end);
    let io = |e| RunDirError::io("read", path, e);
    let mut file = File::open(path).map_err(io)?;
    file.seek(SeekFrom::Start(from)).map_err(io)?;
    let part = BufReader::new(file.take(to.saturating_sub(from)));
    let mut all = Vec::new();
    for (n, line) in part.lines().enumerate() {
        all.push(serde_json::from_str(&line.map_err(io)?).map_err(|e| RunDirError::BadLine {
            path: path.to_path_buf(),
            line: n + 1,
            why: format!("counted from the beginning of step {step}: {e}"),
        })?);
    }
    Ok(all)
}

/// Reads a JSON file of a run; nothing where there is none.
///
/// # Errors
/// A file that is there and cannot be read: damaged, or written by a newer version.
pub fn read_json<T: DeserializeOwned>(run: &Path, name: &str) -> Result<Option<T>, RunDirError> {
    let path = run.join(name);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(RunDirError::io("read", &path, e)),
    };
    let bad = |e: serde_json::Error| RunDirError::BadLine { path, line: e.line(), why: e.to_string() };
    serde_json::from_str(&text).map(Some).map_err(bad)
}

/// What happened in a run when, and the lines that cannot be read; nothing where there is no such file.
#[must_use]
pub fn events_of(run: &Path) -> Option<(Vec<Event>, Bad)> {
    let text = fs::read(run.join(EVENTS)).ok()?;
    let (mut all, mut bad) = (Vec::new(), Bad::default());
    for (n, line) in text.split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(event) => all.push(event),
            Err(e) => bad.add(n + 1, &e),
        }
    }
    Some((all, bad))
}

/// Reads a run without opening it for writing: its description, its committed steps.
///
/// # Errors
/// [`RunDirError::NotARun`] or [`RunDirError::BadLine`].
pub fn read_run(path: &Path) -> Result<(RunInfo, Vec<CommittedStep>), RunDirError> {
    read(path).map(|(info, steps, _)| (info, steps))
}

fn read(path: &Path) -> Result<(RunInfo, Vec<CommittedStep>, u64), RunDirError> {
    let not_a_run = |why: String| RunDirError::NotARun { path: path.to_path_buf(), why };
    let info = fs::read_to_string(path.join(INFO)).map_err(|e| not_a_run(format!("{INFO}: {e}")))?;
    refuse_newer(path)?;
    let info: RunInfo = serde_json::from_str(&info).map_err(|e| not_a_run(format!("{INFO}: {e}")))?;
    let journal = Journal::read(path).map_err(|e| not_a_run(format!("{JOURNAL}: {e}")))?;
    if let Some((line, why)) = journal.unread.into_iter().next() {
        return Err(RunDirError::BadLine { path: path.join(JOURNAL), line, why });
    }
    Ok((info, journal.steps.into_iter().flatten().collect(), journal.bytes))
}

/// The journal of a run as far as it can be read.
#[derive(Debug, Default)]
pub struct Journal {
    /// The committed steps in order, with nothing for a line that could not be read.
    pub steps: Vec<Option<CommittedStep>>,
    /// Lines that could not be read, counted from 1, and why not.
    pub unread: Vec<(usize, String)>,
    /// Whether it ends in half a line: that was being written when the process died, and was never committed.
    pub half_line: bool,
    /// Length of its whole lines, bytes.
    bytes: u64,
}

impl Journal {
    /// Reads what can be read of the journal of a run.
    ///
    /// # Errors
    /// A file that is not there or cannot be opened.
    pub fn read(run: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(run.join(JOURNAL))?;
        let mut journal = Self::default();
        for (n, line) in text.split_inclusive('\n').enumerate() {
            if !line.ends_with('\n') {
                journal.half_line = true;
                break;
            }
            journal.bytes += line.len() as u64;
            match serde_json::from_str(line) {
                Ok(step) => journal.steps.push(Some(step)),
                Err(e) => {
                    journal.steps.push(None);
                    journal.unread.push((n + 1, e.to_string()));
                }
            }
        }
        Ok(journal)
    }
}

/// Refuses a run that a newer version wrote; one whose description is missing or damaged is not refused here.
///
/// # Errors
/// [`RunDirError::Newer`].
pub fn refuse_newer(path: &Path) -> Result<(), RunDirError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let text = fs::read_to_string(path.join(INFO)).unwrap_or_default();
    match serde_json::from_str::<Version>(&text) {
        Ok(Version { schema }) if !Schema::reads(schema) => {
            Err(RunDirError::Newer { path: path.to_path_buf(), schema })
        }
        _ => Ok(()),
    }
}

fn lock(path: &Path) -> Result<File, RunDirError> {
    let lock_path = path.join(".lock");
    let file = File::create(&lock_path).map_err(|e| RunDirError::io("create", &lock_path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(RunDirError::Busy { path: path.to_path_buf() }),
        Err(fs::TryLockError::Error(e)) => Err(RunDirError::io("lock", &lock_path, e)),
    }
}

fn read_text(path: &Path) -> Result<String, RunDirError> {
    fs::read_to_string(path).map_err(|e| RunDirError::io("read", path, e))
}

fn first_difference(before: &str, now: &str) -> String {
    let (mut before, mut now) = (before.lines(), now.lines());
    loop {
        match (before.next(), now.next()) {
            (Some(a), Some(b)) if a == b => {}
            (a, b) => {
                return format!("then `{}`, now `{}`", a.unwrap_or("(nothing)"), b.unwrap_or("(nothing)"));
            }
        }
    }
}

/// One value as one line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T, path: &Path) -> Result<String, RunDirError> {
    let mut line =
        serde_json::to_string(value).map_err(|e| RunDirError::io("write", path, io::Error::other(e)))?;
    line.push('\n');
    Ok(line)
}
