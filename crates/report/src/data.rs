//! Calls, tiers and samples as tables for other tools: CSV always, Parquet with the feature `parquet`.
//!
//! An unknown value is an empty cell (CSV) or null (Parquet), never a zero. Times are seconds from the run's origin.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tapedeck_record::Metric;
use tapedeck_slo::{Limit, Spread, TierReport};

use crate::output::{WriteError, folder};
use crate::read::{Run, Step};
use crate::series::Line;

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Number(Vec<Option<f64>>),
    Count(Vec<Option<u64>>),
    Text(Vec<Option<String>>),
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

    fn text<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<String>) {
        self.columns.push((name.into(), Values::Text(rows.iter().map(value).collect())));
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

    fn write_csv(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for row in 0..self.rows() {
            for (at, (_, values)) in self.columns.iter().enumerate() {
                if at > 0 {
                    out.write_all(b",")?;
                }
                match values {
                    Values::Number(v) => cell(out, v.get(row).copied().flatten())?,
                    Values::Count(v) => cell(out, v.get(row).copied().flatten())?,
                    Values::Flag(v) => cell(out, v.get(row).copied().flatten())?,
                    Values::Text(v) => cell(out, v.get(row).and_then(Option::as_deref).map(quote))?,
                }
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn cell(out: &mut dyn Write, value: Option<impl std::fmt::Display>) -> std::io::Result<()> {
    value.map_or(Ok(()), |v| write!(out, "{v}"))
}

/// Quotes a cell where CSV needs it, and takes the sting out of what a spreadsheet would run as a formula.
fn quote(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula || text.contains([',', '"', '\n', '\r']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// Every call of the standing steps.
pub(crate) fn calls(run: &Run) -> Frame {
    let rows: Vec<(&Step, &tapedeck_record::CallRecord)> =
        run.steps.iter().flat_map(|s| s.calls.iter().map(move |c| (s, c))).collect();
    let mut f = Frame::default();
    f.text("step", &rows, |(s, _)| Some(s.name.clone()));
    f.count("streams", &rows, |(s, _)| Some(s.report.streams.into()));
    f.text("tape", &rows, |(s, c)| Some(c.tape.clone().unwrap_or_else(|| s.report.tape.clone())));
    f.flag("simulated", &rows, |(s, _)| Some(s.report.simulated));
    f.count("stream", &rows, |(_, c)| Some(c.stream.into()));
    f.count("seq", &rows, |(_, c)| Some(c.seq.into()));
    f.count("call", &rows, |(_, c)| Some(c.call.into()));
    f.count("bucket_s", &rows, |(_, c)| Some(c.bucket_s.into()));
    f.flag("counted", &rows, |(_, c)| Some(c.counted));
    f.text("instance", &rows, |(_, c)| c.instance.clone());
    f.text("outcome", &rows, |(_, c)| Some(c.outcome.outcome.name().into()));
    f.text("words", &rows, |(_, c)| c.outcome.words.clone());
    f.number("start_s", &rows, |(_, c)| Some(c.start_s));
    f.number("done_s", &rows, |(_, c)| Some(c.done_s));
    f.number("audio_s", &rows, |(_, c)| Some(c.audio_s));
    f.number("connect_s", &rows, |(_, c)| c.connect_s);
    f.number("ttft_wire_s", &rows, |(_, c)| c.ttft_wire_s);
    f.number("ttft_speech_s", &rows, |(_, c)| c.ttft_speech_s);
    f.number("ttft_window_s", &rows, |(_, c)| c.ttft_window_s);
    f.number("first_response_s", &rows, |(_, c)| c.first_response_s);
    f.number("final_s", &rows, |(_, c)| c.final_s);
    f.number("final_speech_s", &rows, |(_, c)| c.final_speech_s);
    f.number("rtf", &rows, |(_, c)| c.rtf);
    f.number("pace", &rows, |(_, c)| c.pace);
    f.number("lag_max_s", &rows, |(_, c)| c.lag_max_s);
    f.number("age_slope_ms_per_min", &rows, |(_, c)| c.age_slope_ms_per_min);
    f.number("stall_max_s", &rows, |(_, c)| c.stall_max_s);
    f.number("wake_late_p99_ms", &rows, |(_, c)| c.wake_late_p99_ms);
    f.number("blocked_max_ms", &rows, |(_, c)| c.blocked_max_ms);
    f.number("rtt_p50_ms", &rows, |(_, c)| c.rtt_p50_ms);
    f.number("revisions", &rows, |(_, c)| c.revisions);
    f.count("messages", &rows, |(_, c)| Some(c.messages.into()));
    f.count("violations", &rows, |(_, c)| Some(c.violations.into()));
    f.count("word_errors", &rows, |(_, c)| c.words.map(|w| w.errors().into()));
    f.count("word_tokens", &rows, |(_, c)| c.words.map(|w| w.ref_tokens.into()));
    f.count("char_errors", &rows, |(_, c)| c.chars.map(|w| w.errors().into()));
    f.count("char_tokens", &rows, |(_, c)| c.chars.map(|w| w.ref_tokens.into()));
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
    f.text("verdict", &rows, |s| Some(s.report.verdict.name().into()));
    f.flag("point_only", &rows, |s| Some(s.report.point_only));
    f.text("ttft_basis", &rows, |s| Some(s.report.ttft_basis.name().into()));
    for limit in Limit::ALL {
        f.text(&format!("limit_{}", limit.name()), &rows, |s| Some(s.report.limit(limit).name().into()));
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
    f.number("drain_s", &rows, |s| s.report.drain_s);
    f.text("reasons", &rows, |s| Some(s.report.reasons.join("; ")));
    f
}

/// Scalars of a sample, a column each.
const SCALARS: [&str; 7] = [
    "gpu_utilisation",
    "gpu_memory_used_bytes",
    "gpu_power_w",
    "gpu_temperature_c",
    "gpu_sm_clock_mhz",
    "client_cpu_share",
    "client_rss_bytes",
];

struct Sampled {
    step: String,
    at_s: f64,
    source: String,
    kind: String,
    scalars: Vec<Option<f64>>,
}

fn scalar_names() -> impl Iterator<Item = &'static str> {
    Metric::ALL.into_iter().map(Metric::name).chain(SCALARS)
}

fn series_frame(rows: &[Sampled]) -> Frame {
    let mut f = Frame::default();
    f.text("step", rows, |r| Some(r.step.clone()));
    f.number("at_s", rows, |r| Some(r.at_s));
    f.text("source", rows, |r| Some(r.source.clone()));
    f.text("kind", rows, |r| Some(r.kind.clone()));
    for (at, name) in scalar_names().enumerate() {
        f.number(name, rows, |r| r.scalars.get(at).copied().flatten());
    }
    f
}

/// Rows of the series that are held before they are written.
const BATCH: usize = 100_000;

/// Writes every sample while it passes by, so that memory does not grow with them.
pub struct SeriesWriter {
    csv: BufWriter<File>,
    csv_path: PathBuf,
    #[cfg(feature = "parquet")]
    parquet: crate::parquet::Batches,
    rows: Vec<Sampled>,
    failed: Option<WriteError>,
}

impl std::fmt::Debug for SeriesWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesWriter").field("csv", &self.csv_path).finish_non_exhaustive()
    }
}

impl SeriesWriter {
    /// Opens `series.csv` (and `series.parquet`) in a folder, which is made.
    ///
    /// # Errors
    /// What the operating system refused.
    pub fn create(out: &Path) -> Result<Self, WriteError> {
        folder(out)?;
        let csv_path = out.join("series.csv");
        let mut csv = BufWriter::new(File::create(&csv_path).map_err(|e| WriteError::io(&csv_path, e))?);
        writeln!(csv, "{}", series_frame(&[]).header()).map_err(|e| WriteError::io(&csv_path, e))?;
        Ok(Self {
            csv,
            csv_path,
            #[cfg(feature = "parquet")]
            parquet: crate::parquet::Batches::create(&out.join("series.parquet"), &series_frame(&[]))?,
            rows: Vec::new(),
            failed: None,
        })
    }

    /// Takes one sample of a step.
    pub fn add(&mut self, step: &str, line: &Line<'_>) {
        let mut scalars = vec![None; Metric::ALL.len() + SCALARS.len()];
        for (name, value) in line.scalars() {
            if let Some(slot) = scalar_names().position(|n| n == name).and_then(|at| scalars.get_mut(at)) {
                *slot = Some(value);
            }
        }
        self.rows.push(Sampled {
            step: step.into(),
            at_s: line.at_s,
            source: line.source.clone().into_owned(),
            kind: line.kind.clone().into_owned(),
            scalars,
        });
        if self.rows.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            let frame = series_frame(&self.rows);
            let written = frame.write_csv(&mut self.csv).map_err(|e| WriteError::io(&self.csv_path, e));
            #[cfg(feature = "parquet")]
            let written = written.and_then(|()| self.parquet.write(&frame));
            self.failed = written.err();
        }
        self.rows.clear();
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first thing that went wrong since it was opened.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, WriteError> {
        self.flush();
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        self.csv.flush().map_err(|e| WriteError::io(&self.csv_path, e))?;
        let files = vec![self.csv_path];
        #[cfg(feature = "parquet")]
        let files = files.into_iter().chain([self.parquet.finish()?]).collect();
        Ok(files)
    }
}

/// Writes `calls` and `tiers` as CSV (and Parquet) into a folder, which is made.
///
/// # Errors
/// What the operating system refused.
pub fn write_tables(run: &Run, out: &Path) -> Result<Vec<PathBuf>, WriteError> {
    folder(out)?;
    let mut files = Vec::new();
    for (name, frame) in [("calls", calls(run)), ("tiers", tiers(run))] {
        let path = out.join(format!("{name}.csv"));
        tapedeck_rundir::atomic::write_with(&path, |file| {
            writeln!(file, "{}", frame.header())?;
            frame.write_csv(file)
        })?;
        files.push(path);
        #[cfg(feature = "parquet")]
        {
            let mut batches = crate::parquet::Batches::create(&out.join(format!("{name}.parquet")), &frame)?;
            batches.write(&frame)?;
            files.push(batches.finish()?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_empty_when_unknown_and_no_formulas() {
        let rows = ["=HYPERLINK(1)", "a,\"b\"", "plain"];
        let mut f = Frame::default();
        f.text("t", &rows, |r| Some((*r).to_string()));
        f.number("n", &rows, |r| (*r == "plain").then_some(0.5));
        f.number("x", &rows, |_| Some(f64::NAN));
        let mut out = Vec::new();
        f.write_csv(&mut out).unwrap();
        assert_eq!(f.header(), "t,n,x");
        assert_eq!(String::from_utf8(out).unwrap(), "\"'=HYPERLINK(1)\",,\n\"a,\"\"b\"\"\",,\nplain,0.5,\n");
    }
}
