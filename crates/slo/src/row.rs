//! A tier as one line of `ladder.csv`.

use tapedeck_record::CallFigure;

use crate::reason::Reason;
use crate::report::{Summary, TierReport};
use crate::step_figure::StepFigure;

/// The columns of `ladder.csv`, and nothing else.
pub const LADDER_COLUMNS: [&str; 18] = [
    "N_total",
    "tape",
    "ttft_p50",
    "ttft_p95",
    "ttft_max",
    "rtf_p50",
    "rtf_p95",
    "rtf_max",
    "err_streams",
    "kv_pool_p95",
    "preempt_delta",
    "calls_clean",
    "drain_s",
    "gpu_util_avg",
    "gpu_util_max",
    "vram_used_gb",
    "cer",
    "notes",
];

/// A number with so many decimals, or an empty cell.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(String::new, |v| format!("{v:.decimals$}"))
}

/// Free text on one line.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The cells of one line of `ladder.csv`; an unknown figure is an empty cell.
///
/// Latencies are seconds, shares (`kv_pool_p95`, `gpu_util_*`, `cer`) run from 0 to 1, `vram_used_gb` counts
/// 10^9 bytes. `calls_clean` counts the calls that ended `ok`; `extra` goes in front of the notes.
#[must_use]
pub fn ladder_row(report: &TierReport, extra: &[&str]) -> [String; 18] {
    let (ttft, rtf) = (report.ttft(), report.summary(CallFigure::Rtf));
    let p50 = |s: Option<&Summary>| cell(s.map(|s| s.p50.value), 3);
    let p95 = |s: Option<&Summary>| cell(s.map(|s| s.p95.value), 3);
    let max = |s: Option<&Summary>| cell(s.map(|s| s.max), 3);
    let step = |figure: StepFigure, decimals| cell(figure.estimate(report).map(|e| e.value), decimals);
    [
        report.streams.to_string(),
        one_line(&report.tape),
        p50(ttft),
        p95(ttft),
        max(ttft),
        p50(rtf),
        p95(rtf),
        max(rtf),
        report.err_streams.to_string(),
        step(StepFigure::KvPoolP95, 3),
        step(StepFigure::Preemptions, 0),
        report.calls_clean.to_string(),
        step(StepFigure::DrainS, 1),
        step(StepFigure::GpuUtilAvg, 3),
        step(StepFigure::GpuUtilMax, 3),
        step(StepFigure::VramUsedGb, 2),
        step(StepFigure::Cer, 4),
        one_line(&report.row_notes(extra)),
    ]
}

impl TierReport {
    /// The notes of the tier's line: verdict, whether it is a point verdict, reasons, what else matters.
    fn row_notes(&self, extra: &[&str]) -> String {
        let mut notes: Vec<String> =
            extra.iter().map(|&e| e.to_owned()).chain(self.labels.iter().cloned()).collect();
        notes.push(if self.point_only {
            format!("{} (point)", self.verdict.name())
        } else {
            self.verdict.name().to_owned()
        });
        if self.simulated {
            notes.push("simulated".into());
        }
        if self.refinement {
            notes.push("refinement".into());
        }
        notes.push(format!("ttft_basis {}", self.ttft_basis.name()));
        notes.extend(self.reasons.iter().map(Reason::to_string));
        notes.join("; ")
    }
}
