//! Calls, tiers and samples as tables for other tools: CSV always, Parquet with the feature `parquet`.
//!
//! An unknown value is an empty cell (CSV) or null (Parquet), never a zero. Times are seconds from the run's origin.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tapedeck_record::{CallFigure, CallRecord, Unit};
use tapedeck_slo::table::{Cells, Column};
use tapedeck_slo::tier_columns;

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

/// Calls of a current step.
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
    for figure in CallFigure::ALL {
        match figure.spec().unit {
            Unit::Count => f.count(figure.spec().id, rows, |c| figure.get(c).map(whole)),
            _ => f.number(figure.spec().id, rows, |c| figure.get(c)),
        }
    }
    f.count("messages", rows, |c| Some(c.messages.into()));
    f.count("word_errors", rows, |c| c.words.map(|w| w.errors().into()));
    f.count("word_tokens", rows, |c| c.words.map(|w| w.ref_tokens.into()));
    f.count("char_errors", rows, |c| c.chars.map(|w| w.errors().into()));
    f.count("char_tokens", rows, |c| c.chars.map(|w| w.ref_tokens.into()));
    f
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that was one before")]
fn whole(count: f64) -> u64 {
    count as u64
}

/// Every current step.
fn tiers(rows: &[Step]) -> Frame<'_> {
    let mut f = Frame::default();
    f.text("step", rows, |s| Some(s.name.as_str()));
    f.flag("partial", rows, |s| Some(s.partial));
    for Column { name, cells } in tier_columns() {
        match cells {
            Cells::Text(of) => f.text(&name, rows, |s| of(&s.report)),
            Cells::Flag(of) => f.flag(&name, rows, |s| of(&s.report)),
            Cells::Count(of) => f.count(&name, rows, |s| of(&s.report)),
            Cells::Number(of) => f.number(&name, rows, |s| of(&s.report)),
        }
    }
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
