//! What one step writes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, Sample, StepId, Texts, Trace};
use tapedeck_slo::{StepEvidence, TierReport};

use crate::atomic::{self, temporary_path};
use crate::delta::BucketBounds;
use crate::dir::{RunDir, json_line};
use crate::error::RunDirError;
use crate::lateness::ChunkSeries;

/// A step that was committed: one line of `steps.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "CommittedLine")]
pub struct CommittedStep {
    /// Name of the step, e.g. `N048`.
    pub step: String,
    /// Which step it is.
    pub id: StepId,
    /// Whether it was cut short (interrupted); a resumed run plays it again.
    pub partial: bool,
    /// Length of `calls.jsonl` after the step, bytes.
    pub calls_bytes: u64,
    /// Length of `series.jsonl` after the step, bytes.
    pub series_bytes: u64,
    /// Everything that was decided about it.
    pub report: TierReport,
    /// What it was decided from, beside calls and samples; a run of schema 1 does not hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<StepEvidence>,
}

/// A line of the journal as it is read: in one of schema 1 the name alone tells which step it is.
#[derive(Deserialize)]
struct CommittedLine {
    step: String,
    id: Option<StepId>,
    partial: bool,
    calls_bytes: u64,
    series_bytes: u64,
    report: TierReport,
    evidence: Option<StepEvidence>,
}

impl From<CommittedLine> for CommittedStep {
    fn from(line: CommittedLine) -> Self {
        let CommittedLine { step, id, partial, calls_bytes, series_bytes, report, evidence } = line;
        let of_name =
            || StepId { streams: report.streams, refinement: report.refinement, ..StepId::parse(&step) };
        // Files go by the name: where the two differ somebody changed one, and the name is what calls are found by.
        let id = id.filter(|id| id.to_string() == step).unwrap_or_else(of_name);
        Self { step, id, partial, calls_bytes, series_bytes, report, evidence }
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    step: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Serialize)]
struct Spoken<'a> {
    stream: u32,
    seq: u32,
    call: u32,
    #[serde(flatten)]
    texts: &'a Texts,
}

/// Collects what a step leaves; nothing of it counts before [`RunDir::commit`].
///
/// Traces go to `trace/<step>.jsonl.gz`, one call a line, through a neighbour that is renamed at the commit;
/// call records and samples are held until then (about 700 bytes a call, 200 bytes a sample). The two series
/// of every chunk go to `hdr/<step>.hlog` as well, as a HdrHistogram interval log.
#[derive(Debug)]
pub struct StepWriter {
    id: StepId,
    step: String,
    trace_path: PathBuf,
    /// Nothing where the step was not measured but derived.
    trace: Option<GzEncoder<BufWriter<File>>>,
    calls: Vec<u8>,
    series: Vec<u8>,
    bounds: BucketBounds,
    chunks: ChunkSeries,
    texts: Vec<u8>,
}

impl StepWriter {
    pub(crate) fn new(run: &Path, id: &StepId, traced: bool) -> Result<Self, RunDirError> {
        let step = id.to_string();
        let folder = run.join("trace");
        let trace_path = folder.join(format!("{step}.jsonl.gz"));
        let trace = || {
            fs::create_dir_all(&folder).map_err(|e| RunDirError::io("create", &folder, e))?;
            let file = File::create(temporary_path(&trace_path))
                .map_err(|e| RunDirError::io("create", &trace_path, e))?;
            Ok(GzEncoder::new(BufWriter::new(file), Compression::fast()))
        };
        Ok(Self {
            id: id.clone(),
            step,
            trace: traced.then(trace).transpose()?,
            trace_path,
            calls: Vec::new(),
            series: Vec::new(),
            bounds: BucketBounds::default(),
            chunks: ChunkSeries::default(),
            texts: Vec::new(),
        })
    }

    /// Name of the step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Which step it is.
    #[must_use]
    pub const fn id(&self) -> &StepId {
        &self.id
    }

    /// Adds one call: its figures and the raw trace they were made from.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn call(&mut self, record: &CallRecord, trace: &Trace) -> Result<(), RunDirError> {
        self.record(record)?;
        self.chunks.add(trace);
        let Some(out) = &mut self.trace else { return Ok(()) };
        let raw = json_line(trace, &self.trace_path)?;
        out.write_all(raw.as_bytes()).map_err(|e| RunDirError::io("write", &self.trace_path, e))
    }

    /// Adds the figures of one call whose trace stays where it was measured.
    ///
    /// # Errors
    /// Only a call that cannot be expressed as JSON.
    pub fn record(&mut self, record: &CallRecord) -> Result<(), RunDirError> {
        let line = json_line(&Line { step: &self.step, body: record }, &self.trace_path)?;
        self.calls.extend_from_slice(line.as_bytes());
        Ok(())
    }

    /// Adds one sample of an engine, a GPU or ourselves.
    ///
    /// # Errors
    /// Only a sample that cannot be expressed as JSON.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), RunDirError> {
        let body = self.bounds.shrink(sample);
        let line = json_line(&Line { step: &self.step, body: body.as_ref() }, &self.trace_path)?;
        self.series.extend_from_slice(line.as_bytes());
        Ok(())
    }

    /// Adds the words of one call. Calls are personal data: only for users who asked for it.
    ///
    /// # Errors
    /// Only words that cannot be expressed as JSON.
    pub fn texts(&mut self, record: &CallRecord, texts: &Texts) -> Result<(), RunDirError> {
        let spoken = Spoken { stream: record.stream, seq: record.seq, call: record.call, texts };
        let line = json_line(&Line { step: &self.step, body: &spoken }, &self.trace_path)?;
        self.texts.extend_from_slice(line.as_bytes());
        Ok(())
    }

    /// 99th percentile of our own lateness over every chunk so far, microseconds.
    #[must_use]
    pub fn wake_late_p99_us(&self) -> Option<u32> {
        self.chunks.wake_late_p99_us()
    }

    /// Median over the calls so far of how much later we woke the longer a call lasted, parts per million.
    #[must_use]
    pub fn drift_ppm(&self) -> Option<f64> {
        self.chunks.drift_ppm()
    }

    pub(crate) fn finish(self, dir: &mut RunDir) -> Result<(), RunDirError> {
        if !self.texts.is_empty() {
            dir.write_file(&format!("texts-{}.jsonl", self.step), &self.texts)?;
        }
        if let Some(trace) = self.trace {
            Self::finish_trace(trace, &self.trace_path, &self.chunks, &self.step, dir)?;
        }
        dir.calls.append(&self.calls)?;
        dir.series.append(&self.series)
    }

    /// Writes the series of every chunk, and moves the traces to their place.
    fn finish_trace(
        trace: GzEncoder<BufWriter<File>>,
        path: &Path,
        chunks: &ChunkSeries,
        step: &str,
        dir: &RunDir,
    ) -> Result<(), RunDirError> {
        let folder = dir.path().join("hdr");
        fs::create_dir_all(&folder).map_err(|e| RunDirError::io("create", &folder, e))?;
        let origin = dir.info().origin_unix_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let base = SystemTime::UNIX_EPOCH + origin.unwrap_or_default();
        atomic::write_with(&folder.join(format!("{step}.hlog")), |out| {
            chunks.write(out, base).map_err(std::io::Error::other)
        })?;
        let io = |e| RunDirError::io("write", path, e);
        let file = trace.finish().map_err(io)?.into_inner().map_err(|e| io(e.into_error()))?;
        file.sync_data().map_err(io)?;
        fs::rename(temporary_path(path), path).map_err(io)
    }
}
