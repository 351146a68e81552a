//! Calls, tiers and samples as tables for other tools: CSV always, Parquet with the feature `parquet`.
//!
//! An unknown value is an empty cell (CSV) or null (Parquet), never a zero. Times are seconds from the run's origin.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tapedeck_record::CallRecord;
use tapedeck_slo::{Limit, Spread, TierReport};

use crate::frame::Frame;
use crate::output::{WriteError, folder};
use crate::read::{Run, Step};
use crate::samples::{self, Samples};

/// What all calls of a step have in common.
#[derive(Debug, Clone, Copy, Default)]
struct Common<'a> {
    step: &'a str,
    streams: u32,
    tape: &'a str,
    simulated: bool,
}

/// Calls of a standing step.
fn calls<'a>(common: Common<'a>, rows: &'a [CallRecord]) -> Frame<'a> {
    let mut f = Frame::default();
    f.text("step", rows, |_| Some(common.step));
    f.count("streams", rows, |_| Some(common.streams.into()));
    f.text("tape", rows, |c| Some(c.tape.as_deref().unwrap_or(common.tape)));
    f.flag("simulated", rows, |_| Some(common.simulated));
    f.count("stream", rows, |c| Some(c.stream.into()));
    f.count("seq", rows, |c| Some(c.seq.into()));
    f.count("call", rows, |c| Some(c.call.into()));
    f.count("bucket_s", rows, |c| Some(c.bucket_s.into()));
    f.flag("counted", rows, |c| Some(c.counted));
    f.text("instance", rows, |c| c.instance.as_deref());
    f.text("outcome", rows, |c| Some(c.outcome.outcome.name()));
    f.text("words", rows, |c| c.outcome.words.as_deref());
    f.number("start_s", rows, |c| Some(c.start_s));
    f.number("done_s", rows, |c| Some(c.done_s));
    f.number("audio_s", rows, |c| Some(c.audio_s));
    f.number("connect_s", rows, |c| c.connect_s);
    f.number("ttft_wire_s", rows, |c| c.ttft_wire_s);
    f.number("ttft_speech_s", rows, |c| c.ttft_speech_s);
    f.number("ttft_window_s", rows, |c| c.ttft_window_s);
    f.number("first_response_s", rows, |c| c.first_response_s);
    f.number("final_s", rows, |c| c.final_s);
    f.number("final_speech_s", rows, |c| c.final_speech_s);
    f.number("rtf", rows, |c| c.rtf);
    f.number("pace", rows, |c| c.pace);
    f.number("lag_max_s", rows, |c| c.lag_max_s);
    f.number("age_slope_ms_per_min", rows, |c| c.age_slope_ms_per_min);
    f.number("stall_max_s", rows, |c| c.stall_max_s);
    f.number("wake_late_p99_ms", rows, |c| c.wake_late_p99_ms);
    f.number("blocked_max_ms", rows, |c| c.blocked_max_ms);
    f.number("rtt_p50_ms", rows, |c| c.rtt_p50_ms);
    f.number("revisions", rows, |c| c.revisions);
    f.count("messages", rows, |c| Some(c.messages.into()));
    f.count("violations", rows, |c| Some(c.violations.into()));
    f.count("word_errors", rows, |c| c.words.map(|w| w.errors().into()));
    f.count("word_tokens", rows, |c| c.words.map(|w| w.ref_tokens.into()));
    f.count("char_errors", rows, |c| c.chars.map(|w| w.errors().into()));
    f.count("char_tokens", rows, |c| c.chars.map(|w| w.ref_tokens.into()));
    f
}

/// Every standing step.
fn tiers(rows: &[Step]) -> Frame<'_> {
    let mut f = Frame::default();
    f.text("step", rows, |s| Some(s.name.as_str()));
    f.flag("partial", rows, |s| Some(s.partial));
    f.count("streams", rows, |s| Some(s.report.streams.into()));
    f.text("tape", rows, |s| Some(s.report.tape.as_str()));
    f.flag("simulated", rows, |s| Some(s.report.simulated));
    f.flag("refinement", rows, |s| Some(s.report.refinement));
    f.text("verdict", rows, |s| Some(s.report.verdict.name()));
    f.flag("point_only", rows, |s| Some(s.report.point_only));
    f.text("ttft_basis", rows, |s| Some(s.report.ttft_basis.name()));
    for limit in Limit::ALL {
        f.text(&format!("limit_{}", limit.name()), rows, |s| Some(s.report.limit(limit).name()));
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
        f.number(&format!("{name}_p50"), rows, |s| get(&s.report).map(|s| s.p50.value));
        f.number(&format!("{name}_p95"), rows, |s| get(&s.report).map(|s| s.p95.value));
        f.number(&format!("{name}_p95_low"), rows, |s| get(&s.report).and_then(|s| s.p95.low));
        f.number(&format!("{name}_p95_high"), rows, |s| get(&s.report).and_then(|s| s.p95.high));
        f.number(&format!("{name}_max"), rows, |s| get(&s.report).map(|s| s.max));
        f.count(&format!("{name}_n"), rows, |s| get(&s.report).map(|s| s.p95.n));
    }
    let quality = |s: &Step| s.report.quality.clone();
    f.number("wer", rows, |s| quality(s)?.wer.map(|e| e.value));
    f.number("cer", rows, |s| quality(s)?.cer.map(|e| e.value));
    f.number("kv_pool_p95", rows, |s| s.report.kv_pool_p95);
    f.number("preempt_delta", rows, |s| s.report.preempt_delta);
    f.number("gpu_util_avg", rows, |s| s.report.gpu.as_ref()?.utilisation_avg);
    f.count("vram_used_bytes", rows, |s| s.report.gpu.as_ref()?.vram_used_bytes);
    f.count("calls_counted", rows, |s| Some(s.report.calls_counted));
    f.count("calls_clean", rows, |s| Some(s.report.calls_clean));
    f.count("err_streams", rows, |s| Some(s.report.err_streams.into()));
    f.number("throughput_per_h", rows, |s| s.report.throughput_per_h);
    f.number("goodput_per_h", rows, |s| s.report.goodput_per_h);
    f.number("little_calls", rows, |s| s.report.little_calls);
    f.number("wake_late_p99_ms", rows, |s| s.report.wake_late_p99_ms);
    f.number("client_drift_ppm", rows, |s| s.report.client_drift_ppm);
    f.number("drain_s", rows, |s| s.report.drain_s);
    f.text("reasons", rows, |s| Some(s.report.reasons_text().en));
    f
}

/// Rows of a table, ready to be written.
pub(crate) struct Rows {
    csv: Vec<u8>,
    #[cfg(feature = "parquet")]
    parquet: Result<crate::parquet::Group, WriteError>,
}

/// A table as files that grow. Rows can be made by several threads, and are written in the order that one of them gives.
#[derive(Debug)]
struct TableFiles {
    csv: File,
    csv_path: PathBuf,
    #[cfg(feature = "parquet")]
    parquet: crate::parquet::Groups,
    /// Why the table cannot be written.
    failed: OnceLock<WriteError>,
}

impl TableFiles {
    /// Opens `<name>.csv` (and `<name>.parquet`) in a folder, with the columns of a frame.
    fn create(out: &Path, name: &str, like: &Frame<'_>) -> Result<Self, WriteError> {
        let csv_path = out.join(format!("{name}.csv"));
        let mut csv = File::create(&csv_path).map_err(|e| WriteError::io(&csv_path, e))?;
        writeln!(csv, "{}", like.header()).map_err(|e| WriteError::io(&csv_path, e))?;
        Ok(Self {
            csv,
            csv_path,
            #[cfg(feature = "parquet")]
            parquet: crate::parquet::Groups::create(&out.join(format!("{name}.parquet")), like)?,
            failed: OnceLock::new(),
        })
    }

    /// Makes rows ready: their lines are given, a frame of them is only made where it is needed.
    fn rows<'a>(&self, csv: Vec<u8>, _frame: impl FnOnce() -> Frame<'a>) -> Rows {
        Rows {
            csv,
            #[cfg(feature = "parquet")]
            parquet: self.parquet.encode(&_frame()),
        }
    }

    fn rows_of(&self, frame: Frame<'_>) -> Rows {
        let mut csv = Vec::new();
        frame.write_csv(&mut csv);
        self.rows(csv, || frame)
    }

    /// Writes rows; what goes wrong is told at the end.
    fn write(&self, rows: Rows) {
        let write = || -> Result<(), WriteError> {
            (&self.csv).write_all(&rows.csv).map_err(|e| WriteError::io(&self.csv_path, e))?;
            #[cfg(feature = "parquet")]
            self.parquet.write(rows.parquet?)?;
            Ok(())
        };
        if self.failed.get().is_none()
            && let Err(e) = write()
        {
            // Nobody else writes, so nothing was there.
            let _ = self.failed.set(e);
        }
    }

    fn finish(self) -> Result<Vec<PathBuf>, WriteError> {
        if let Some(e) = self.failed.into_inner() {
            return Err(e);
        }
        let files = vec![self.csv_path];
        #[cfg(feature = "parquet")]
        let files = files.into_iter().chain([self.parquet.finish()?]).collect();
        Ok(files)
    }
}

/// The tables of a run, written while it is read: calls and samples pass by once, and memory does not grow with them.
#[derive(Debug)]
pub struct Tables {
    out: PathBuf,
    calls: TableFiles,
    series: TableFiles,
}

impl Tables {
    /// Opens `calls.csv` and `series.csv` (and `.parquet`) in a folder, which is made.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn create(out: &Path) -> Result<Self, WriteError> {
        folder(out)?;
        Ok(Self {
            out: out.to_path_buf(),
            calls: TableFiles::create(out, "calls", &calls(Common::default(), &[]))?,
            series: TableFiles::create(out, "series", &samples::frame("", &Samples::default()))?,
        })
    }

    /// Makes calls of a step ready for [`Tables::write_calls`].
    pub(crate) fn calls(&self, step: &Step, rows: &[CallRecord]) -> Rows {
        let common = Common {
            step: &step.name,
            streams: step.report.streams,
            tape: &step.report.tape,
            simulated: step.report.simulated,
        };
        self.calls.rows_of(calls(common, rows))
    }

    pub(crate) fn write_calls(&self, rows: Rows) {
        self.calls.write(rows);
    }

    /// Makes samples of a step ready for [`Tables::write_samples`].
    pub(crate) fn samples(&self, step: &Step, samples: &Samples) -> Rows {
        let mut csv = Vec::new();
        samples.write_csv(&step.name, &mut csv);
        self.series.rows(csv, || samples::frame(&step.name, samples))
    }

    pub(crate) fn write_samples(&self, rows: Rows) {
        self.series.write(rows);
    }

    /// Ends them and adds `tiers.csv` (and `tiers.parquet`).
    ///
    /// # Errors
    /// The first thing that went wrong since they were opened.
    pub fn finish(self, run: &Run) -> Result<Vec<PathBuf>, WriteError> {
        let mut files = self.calls.finish()?;
        files.extend(self.series.finish()?);
        let tiers = tiers(&run.steps);
        let table = TableFiles::create(&self.out, "tiers", &tiers)?;
        table.write(table.rows_of(tiers));
        files.extend(table.finish()?);
        Ok(files)
    }
}
