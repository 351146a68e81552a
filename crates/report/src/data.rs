//! Calls, tiers and samples as tables for other tools: CSV always, Parquet with the feature `parquet`.
//!
//! An unknown value is an empty cell (CSV) or null (Parquet), never a zero. Times are seconds from the run's origin.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tapedeck_record::CallRecord;
use tapedeck_slo::{Limit, Spread, TierReport};

use crate::line::{Line, SCALARS, scalar_names};
use crate::output::{WriteError, folder};
use crate::read::{Run, Step};

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Number(Vec<Option<f64>>),
    Count(Vec<Option<u64>>),
    Text(Vec<Option<Arc<str>>>),
    Flag(Vec<Option<bool>>),
}

/// A table by columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) columns: Vec<(String, Values)>,
}

impl Frame {
    fn number<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<f64>) {
        let values = rows.iter().map(|r| value(r).filter(|v| v.is_finite())).collect();
        self.columns.push((name.into(), Values::Number(values)));
    }

    fn count<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<u64>) {
        self.columns.push((name.into(), Values::Count(rows.iter().map(value).collect())));
    }

    fn text<T, S: Into<Arc<str>>>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<S>) {
        let values = rows.iter().map(|r| value(r).map(Into::into)).collect();
        self.columns.push((name.into(), Values::Text(values)));
    }

    fn flag<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<bool>) {
        self.columns.push((name.into(), Values::Flag(rows.iter().map(value).collect())));
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, v)| match v {
            Values::Number(v) => v.len(),
            Values::Count(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Flag(v) => v.len(),
        })
    }

    fn header(&self) -> String {
        self.columns.iter().map(|(name, _)| quote(name)).collect::<Vec<_>>().join(",")
    }

    /// Adds every row as a line.
    fn write_csv(&self, out: &mut Vec<u8>) {
        for row in 0..self.rows() {
            for (at, (_, values)) in self.columns.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                match values {
                    Values::Number(v) => number(out, v.get(row).copied().flatten()),
                    Values::Count(v) => v.get(row).copied().flatten().into_iter().for_each(|n| whole(out, n)),
                    Values::Flag(v) => {
                        let word =
                            v.get(row).copied().flatten().map(|flag| if flag { "true" } else { "false" });
                        out.extend_from_slice(word.unwrap_or_default().as_bytes());
                    }
                    Values::Text(v) => {
                        let text = v.get(row).and_then(Option::as_deref).unwrap_or_default();
                        out.extend_from_slice(quote(text).as_bytes());
                    }
                }
            }
            out.push(b'\n');
        }
    }
}

/// The digits of a whole number; there are hundreds of millions in a large run.
fn whole(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(n % 10).unwrap_or(0);
        n /= 10;
        used += 1;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// A number as short as it can be said; whole ones, which most are, need no search for their digits.
fn number(out: &mut Vec<u8>, value: Option<f64>) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only where nothing is lost")]
    match value {
        Some(v) if v.trunc().total_cmp(&v).is_eq() && (0.0..1e15).contains(&v) => whole(out, v as u64),
        // What is written into memory cannot fail.
        Some(v) => drop(write!(out, "{v}")),
        None => {}
    }
}

/// Quotes a cell where CSV needs it, and takes the sting out of what a spreadsheet would run as a formula.
fn quote(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula || text.contains([',', '"', '\n', '\r']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// Calls of standing steps.
fn calls(rows: &[(&Step, &CallRecord)]) -> Frame {
    let mut f = Frame::default();
    f.text("step", rows, |(s, _)| Some(s.name.as_str()));
    f.count("streams", rows, |(s, _)| Some(s.report.streams.into()));
    f.text("tape", rows, |(s, c)| Some(c.tape.as_deref().unwrap_or(&s.report.tape)));
    f.flag("simulated", rows, |(s, _)| Some(s.report.simulated));
    f.count("stream", rows, |(_, c)| Some(c.stream.into()));
    f.count("seq", rows, |(_, c)| Some(c.seq.into()));
    f.count("call", rows, |(_, c)| Some(c.call.into()));
    f.count("bucket_s", rows, |(_, c)| Some(c.bucket_s.into()));
    f.flag("counted", rows, |(_, c)| Some(c.counted));
    f.text("instance", rows, |(_, c)| c.instance.as_deref());
    f.text("outcome", rows, |(_, c)| Some(c.outcome.outcome.name()));
    f.text("words", rows, |(_, c)| c.outcome.words.as_deref());
    f.number("start_s", rows, |(_, c)| Some(c.start_s));
    f.number("done_s", rows, |(_, c)| Some(c.done_s));
    f.number("audio_s", rows, |(_, c)| Some(c.audio_s));
    f.number("connect_s", rows, |(_, c)| c.connect_s);
    f.number("ttft_wire_s", rows, |(_, c)| c.ttft_wire_s);
    f.number("ttft_speech_s", rows, |(_, c)| c.ttft_speech_s);
    f.number("ttft_window_s", rows, |(_, c)| c.ttft_window_s);
    f.number("first_response_s", rows, |(_, c)| c.first_response_s);
    f.number("final_s", rows, |(_, c)| c.final_s);
    f.number("final_speech_s", rows, |(_, c)| c.final_speech_s);
    f.number("rtf", rows, |(_, c)| c.rtf);
    f.number("pace", rows, |(_, c)| c.pace);
    f.number("lag_max_s", rows, |(_, c)| c.lag_max_s);
    f.number("age_slope_ms_per_min", rows, |(_, c)| c.age_slope_ms_per_min);
    f.number("stall_max_s", rows, |(_, c)| c.stall_max_s);
    f.number("wake_late_p99_ms", rows, |(_, c)| c.wake_late_p99_ms);
    f.number("blocked_max_ms", rows, |(_, c)| c.blocked_max_ms);
    f.number("rtt_p50_ms", rows, |(_, c)| c.rtt_p50_ms);
    f.number("revisions", rows, |(_, c)| c.revisions);
    f.count("messages", rows, |(_, c)| Some(c.messages.into()));
    f.count("violations", rows, |(_, c)| Some(c.violations.into()));
    f.count("word_errors", rows, |(_, c)| c.words.map(|w| w.errors().into()));
    f.count("word_tokens", rows, |(_, c)| c.words.map(|w| w.ref_tokens.into()));
    f.count("char_errors", rows, |(_, c)| c.chars.map(|w| w.errors().into()));
    f.count("char_tokens", rows, |(_, c)| c.chars.map(|w| w.ref_tokens.into()));
    f
}

/// Every standing step.
pub(crate) fn tiers(run: &Run) -> Frame {
    let rows: Vec<&Step> = run.steps.iter().collect();
    let mut f = Frame::default();
    f.text("step", &rows, |s| Some(s.name.clone()));
    f.flag("partial", &rows, |s| Some(s.partial));
    f.count("streams", &rows, |s| Some(s.report.streams.into()));
    f.text("tape", &rows, |s| Some(s.report.tape.clone()));
    f.flag("simulated", &rows, |s| Some(s.report.simulated));
    f.flag("refinement", &rows, |s| Some(s.report.refinement));
    f.text("verdict", &rows, |s| Some(s.report.verdict.name()));
    f.flag("point_only", &rows, |s| Some(s.report.point_only));
    f.text("ttft_basis", &rows, |s| Some(s.report.ttft_basis.name()));
    for limit in Limit::ALL {
        f.text(&format!("limit_{}", limit.name()), &rows, |s| Some(s.report.limit(limit).name()));
    }
    type Figure = fn(&TierReport) -> Option<&Spread>;
    let spreads: [(&str, Figure); 9] = [
        ("ttft_s", |r| r.ttft.as_ref()),
        ("rtf", |r| r.rtf.as_ref()),
        ("final_s", |r| r.final_latency.as_ref()),
        ("connect_s", |r| r.connect.as_ref()),
        ("lag_max_s", |r| r.lag_max.as_ref()),
        ("stall_max_s", |r| r.stall_max.as_ref()),
        ("blocked_max_ms", |r| r.blocked_max_ms.as_ref()),
        ("pace", |r| r.pace.as_ref()),
        ("revisions", |r| r.revisions.as_ref()),
    ];
    for (name, get) in spreads {
        f.number(&format!("{name}_p50"), &rows, |s| get(&s.report).map(|s| s.p50.value));
        f.number(&format!("{name}_p95"), &rows, |s| get(&s.report).map(|s| s.p95.value));
        f.number(&format!("{name}_p95_low"), &rows, |s| get(&s.report).and_then(|s| s.p95.low));
        f.number(&format!("{name}_p95_high"), &rows, |s| get(&s.report).and_then(|s| s.p95.high));
        f.number(&format!("{name}_max"), &rows, |s| get(&s.report).map(|s| s.max));
        f.count(&format!("{name}_n"), &rows, |s| get(&s.report).map(|s| s.p95.n));
    }
    let quality = |s: &&Step| s.report.quality.clone();
    f.number("wer", &rows, |s| quality(s)?.wer.map(|e| e.value));
    f.number("cer", &rows, |s| quality(s)?.cer.map(|e| e.value));
    f.number("kv_pool_p95", &rows, |s| s.report.kv_pool_p95);
    f.number("preempt_delta", &rows, |s| s.report.preempt_delta);
    f.number("gpu_util_avg", &rows, |s| s.report.gpu.as_ref()?.utilisation_avg);
    f.count("vram_used_bytes", &rows, |s| s.report.gpu.as_ref()?.vram_used_bytes);
    f.count("calls_counted", &rows, |s| Some(s.report.calls_counted));
    f.count("calls_clean", &rows, |s| Some(s.report.calls_clean));
    f.count("err_streams", &rows, |s| Some(s.report.err_streams.into()));
    f.number("throughput_per_h", &rows, |s| s.report.throughput_per_h);
    f.number("goodput_per_h", &rows, |s| s.report.goodput_per_h);
    f.number("little_calls", &rows, |s| s.report.little_calls);
    f.number("wake_late_p99_ms", &rows, |s| s.report.wake_late_p99_ms);
    f.number("client_drift_ppm", &rows, |s| s.report.client_drift_ppm);
    f.number("drain_s", &rows, |s| s.report.drain_s);
    f.text("reasons", &rows, |s| Some(s.report.reasons.join("; ")));
    f
}

/// Samples by columns, as they will be written.
#[derive(Default)]
struct Samples {
    step: Vec<Option<Arc<str>>>,
    at_s: Vec<Option<f64>>,
    source: Vec<Option<Arc<str>>>,
    kind: Vec<Option<Arc<str>>>,
    scalars: [Vec<Option<f64>>; SCALARS],
}

impl Samples {
    /// Nothing yet, with room for a batch: growing would copy everything several times.
    fn batch() -> Self {
        Self {
            step: Vec::with_capacity(BATCH),
            at_s: Vec::with_capacity(BATCH),
            source: Vec::with_capacity(BATCH),
            kind: Vec::with_capacity(BATCH),
            scalars: std::array::from_fn(|_| Vec::with_capacity(BATCH)),
        }
    }

    fn frame(self) -> Frame {
        let mut columns = vec![
            ("step".into(), Values::Text(self.step)),
            ("at_s".into(), Values::Number(self.at_s)),
            ("source".into(), Values::Text(self.source)),
            ("kind".into(), Values::Text(self.kind)),
        ];
        let scalars = scalar_names().zip(self.scalars);
        columns.extend(scalars.map(|(name, values)| (name.to_owned(), Values::Number(values))));
        Frame { columns }
    }
}

/// Rows that are held before they are written.
const BATCH: usize = 50_000;

/// A table as files that grow batch by batch.
struct TableFiles {
    csv: File,
    csv_path: PathBuf,
    lines: Vec<u8>,
    #[cfg(feature = "parquet")]
    parquet: crate::parquet::Batches,
}

impl TableFiles {
    /// Opens `<name>.csv` (and `<name>.parquet`) in a folder, with the columns of a frame.
    fn create(out: &Path, name: &str, like: &Frame) -> Result<Self, WriteError> {
        let csv_path = out.join(format!("{name}.csv"));
        let mut csv = File::create(&csv_path).map_err(|e| WriteError::io(&csv_path, e))?;
        writeln!(csv, "{}", like.header()).map_err(|e| WriteError::io(&csv_path, e))?;
        Ok(Self {
            csv,
            csv_path,
            lines: Vec::new(),
            #[cfg(feature = "parquet")]
            parquet: crate::parquet::Batches::create(&out.join(format!("{name}.parquet")), like)?,
        })
    }

    fn write(&mut self, frame: &Frame) -> Result<(), WriteError> {
        self.lines.clear();
        frame.write_csv(&mut self.lines);
        self.csv.write_all(&self.lines).map_err(|e| WriteError::io(&self.csv_path, e))?;
        #[cfg(feature = "parquet")]
        self.parquet.write(frame)?;
        Ok(())
    }

    #[cfg_attr(not(feature = "parquet"), expect(clippy::unnecessary_wraps, reason = "Parquet can fail"))]
    fn finish(self) -> Result<Vec<PathBuf>, WriteError> {
        let files = vec![self.csv_path];
        #[cfg(feature = "parquet")]
        let files = files.into_iter().chain([self.parquet.finish()?]).collect();
        Ok(files)
    }
}

/// Writes every sample while it passes by, so that memory does not grow with them. A thread of its own writes while
/// the next samples are read.
pub struct SeriesWriter {
    rows: Samples,
    /// Names that were met, so that each is held once.
    names: Vec<Arc<str>>,
    batches: SyncSender<Samples>,
    writer: JoinHandle<Result<Vec<PathBuf>, WriteError>>,
}

impl std::fmt::Debug for SeriesWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesWriter").field("rows", &self.rows.at_s.len()).finish_non_exhaustive()
    }
}

impl SeriesWriter {
    /// Opens `series.csv` (and `series.parquet`) in a folder, which is made.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn create(out: &Path) -> Result<Self, WriteError> {
        folder(out)?;
        let mut files = TableFiles::create(out, "series", &Samples::default().frame())?;
        // Two batches on their way: one being written, one waiting.
        let (batches, rows) = sync_channel::<Samples>(1);
        let writer = std::thread::spawn(move || {
            for batch in rows {
                files.write(&batch.frame())?;
            }
            files.finish()
        });
        Ok(Self { rows: Samples::batch(), names: Vec::new(), batches, writer })
    }

    /// Takes one sample of a step.
    pub fn add(&mut self, step: &str, line: &Line<'_>) {
        let [step, source, kind] = [step, &line.source, &line.kind].map(|name| self.name(name));
        self.rows.step.push(Some(step));
        self.rows.at_s.push(Some(line.at_s).filter(|v| v.is_finite()));
        self.rows.source.push(Some(source));
        self.rows.kind.push(Some(kind));
        for (column, value) in self.rows.scalars.iter_mut().zip(line.scalars()) {
            column.push(value.filter(|v| v.is_finite()));
        }
        if self.rows.at_s.len() >= BATCH {
            self.send();
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|n| ***n == *name) {
            return Arc::clone(known);
        }
        // Names that never repeat (a foreign run) must not be kept for ever.
        if self.names.len() >= 64 {
            self.names.clear();
        }
        let new: Arc<str> = name.into();
        self.names.push(Arc::clone(&new));
        new
    }

    fn send(&mut self) {
        // A writer that gave up says why when it is finished.
        let _ = self.batches.send(std::mem::replace(&mut self.rows, Samples::batch()));
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first thing that went wrong since it was opened.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, WriteError> {
        self.send();
        drop(self.batches);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Writes `calls` and `tiers` as CSV (and Parquet) into a folder, which is made.
///
/// # Errors
/// What the operating system refused.
pub fn write_tables(run: &Run, out: &Path) -> Result<Vec<PathBuf>, WriteError> {
    folder(out)?;
    let mut table = TableFiles::create(out, "calls", &calls(&[]))?;
    for step in &run.steps {
        for batch in step.calls.chunks(BATCH) {
            let rows: Vec<(&Step, &CallRecord)> = batch.iter().map(|call| (step, call)).collect();
            table.write(&calls(&rows))?;
        }
    }
    let mut files = table.finish()?;
    let tiers = tiers(run);
    let mut table = TableFiles::create(out, "tiers", &tiers)?;
    table.write(&tiers)?;
    files.extend(table.finish()?);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_empty_when_unknown_and_no_formulas() {
        let rows = ["=HYPERLINK(1)", "a,\"b\"", "plain"];
        let mut f = Frame::default();
        f.text("t", &rows, |r| Some(*r));
        f.number("n", &rows, |r| (*r == "plain").then_some(0.5));
        f.number("x", &rows, |_| Some(f64::NAN));
        f.number("w", &rows, |_| Some(-0.0));
        f.number("z", &rows, |_| Some(31_072.0));
        f.count("most", &rows, |_| Some(u64::MAX));
        f.flag("flag", &rows, |r| (*r != "plain").then_some(true));
        let mut out = Vec::new();
        f.write_csv(&mut out);
        assert_eq!(f.header(), "t,n,x,w,z,most,flag");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"'=HYPERLINK(1)\",,,0,31072,18446744073709551615,true\n\
             \"a,\"\"b\"\"\",,,0,31072,18446744073709551615,true\nplain,0.5,,0,31072,18446744073709551615,\n"
        );
    }
}
