//! A table in the shape of NVIDIA's published ones for Riva, for laying beside them.
//!
//! The columns are theirs; the figures are ours: a latency is the arrival of a text minus the *planned* end of the
//! audio that it covers, so back-pressure cannot hide a delay. RTFX is audio played by counted calls / the time from
//! the first of them to the last; in real-time streaming it cannot exceed the number of streams.

use std::fmt::Write as _;

use serde::Serialize;
use tapedeck_record::{MessageKind, OutcomeClass, Trace};
use tapedeck_stats::{Moments, percentile};

use crate::read::{Run, Step};
use crate::traces::{TraceError, traces};

/// Mean and percentiles of latencies, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latencies {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Texts behind it.
    pub n: u64,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Concurrent streams.
    pub streams: u32,
    /// Texts that may still change; empty where messages do not say which audio they cover.
    pub intermediate: Option<Latencies>,
    /// Texts that are final.
    pub last: Option<Latencies>,
    /// Audio / time.
    pub rtfx: Option<f64>,
    /// Errored streams.
    pub err_streams: u32,
}

fn latencies(mut values: Vec<f64>) -> Option<Latencies> {
    let mean_ms = Moments::of(&values)?.mean;
    let n = values.len() as u64;
    let mut at = |q| percentile(&mut values, q);
    Some(Latencies { mean_ms, p50_ms: at(0.5)?, p90_ms: at(0.9)?, p95_ms: at(0.95)?, p99_ms: at(0.99)?, n })
}

/// Milliseconds from the planned end of the audio that a message covers to its arrival.
fn lateness(trace: &Trace, final_text: bool) -> Vec<f64> {
    let Some(c1_ns) = trace.c1_ns else { return Vec::new() };
    trace
        .messages
        .iter()
        .filter(|m| {
            let is_final = matches!(m.kind, MessageKind::Final | MessageKind::End);
            is_final == final_text && (m.chars > 0 || m.kind == MessageKind::End)
        })
        .filter_map(|m| {
            let covered_ns = match (m.position_ms, m.kind) {
                (_, MessageKind::End) => trace.audio_ns,
                (Some(ms), _) => (u64::from(ms) * 1_000_000).min(trace.audio_ns),
                (None, _) => return None,
            };
            #[expect(clippy::cast_precision_loss, reason = "differences within a run")]
            let late_ms = (m.at_ns as f64 - (c1_ns + covered_ns) as f64) / 1e6;
            Some(late_ms)
        })
        .collect()
}

fn row(step: &Step, traces: &[Trace]) -> Row {
    let fine: Vec<&Trace> = traces
        .iter()
        .filter(|t| t.counted)
        .filter(|t| matches!(t.outcome.outcome.class(true), OutcomeClass::Ok | OutcomeClass::Quality))
        .collect();
    let all = |final_text| latencies(fine.iter().flat_map(|t| lateness(t, final_text)).collect());
    let from = step.figures().map(|c| c.start_s).fold(f64::INFINITY, f64::min);
    let to = step.figures().map(|c| c.done_s).fold(f64::NEG_INFINITY, f64::max);
    let audio: f64 = step.figures().map(|c| c.audio_s).sum();
    Row {
        streams: step.report.streams,
        intermediate: all(false),
        last: all(true),
        rtfx: (to > from).then(|| audio / (to - from)),
        err_streams: step.report.err_streams,
    }
}

/// A row for every whole tier of the ladder.
///
/// # Errors
/// Traces that cannot be read.
pub fn riva(run: &Run) -> Result<Vec<Row>, TraceError> {
    run.ladder().into_iter().map(|step| Ok(row(step, &traces(&run.path, &step.name)?))).collect()
}

/// The table as text.
#[must_use]
pub fn table(rows: &[Row], simulated: Option<bool>) -> String {
    let mut out = String::from(
        "         intermediate latency (ms)                    final latency (ms)\n\
         streams     mean      p50      p90      p95      p99     mean      p50      p90      p95      p99    RTFX  errors\n",
    );
    for row in rows {
        let _ = write!(out, "{:>7}", row.streams);
        for latencies in [&row.intermediate, &row.last] {
            let cells = latencies.map(|l| [l.mean_ms, l.p50_ms, l.p90_ms, l.p95_ms, l.p99_ms]);
            for at in 0..5 {
                match cells.and_then(|c| c.get(at).copied()) {
                    Some(ms) => {
                        let _ = write!(out, "{ms:>9.1}");
                    }
                    None => out.push_str("        -"),
                }
            }
        }
        let rtfx = row.rtfx.map_or_else(|| "-".to_string(), |v| format!("{v:.2}"));
        let _ = writeln!(out, "{rtfx:>8}{:>8}", row.err_streams);
    }
    out.push_str(
        "Latency: arrival of a text minus the planned end of the audio it covers. RTFX: audio / time.\n",
    );
    match simulated {
        Some(true) => out.push_str("Simulated: not to be laid beside figures of real servers.\n"),
        None => out.push_str("Simulated or real: not known.\n"),
        Some(false) => {}
    }
    out
}
