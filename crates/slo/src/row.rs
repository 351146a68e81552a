//! A tier as one line of `ladder.csv`.

use crate::reason::Reason;
use crate::report::{Estimate, Spread, TierReport};

/// The columns of `ladder.csv`, and nothing else.
pub const LADDER_HEADER: &str = "N_total,tape,ttft_p50,ttft_p95,ttft_max,rtf_p50,rtf_p95,rtf_max,err_streams,\
kv_pool_p95,preempt_delta,calls_clean,drain_s,gpu_util_avg,gpu_util_max,vram_used_gb,cer,notes";

/// A number with so many decimals, or an empty cell.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(String::new, |v| format!("{v:.decimals$}"))
}

/// Free text without what would end the cell or the line.
fn free_text(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| match c {
            ',' => ';',
            '"' => '\'',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    flat.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One line of `ladder.csv`, without the line's end; an unknown figure is an empty cell.
///
/// Latencies are seconds, shares (`kv_pool_p95`, `gpu_util_*`, `cer`) run from 0 to 1, `vram_used_gb` counts
/// 10^9 bytes. `calls_clean` counts the calls that ended `ok`; `extra` goes in front of the notes.
#[must_use]
pub fn ladder_row(report: &TierReport, extra: &[&str]) -> String {
    let p50 = |s: &Option<Spread>| s.as_ref().map(|s| s.p50.value);
    let p95 = |s: &Option<Spread>| s.as_ref().map(|s| s.p95.value);
    let max = |s: &Option<Spread>| s.as_ref().map(|s| s.max);
    let gpu = report.gpu.as_ref();
    let cer = report.quality.as_ref().and_then(|q| q.cer).map(|Estimate { value, .. }| value);
    #[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^53")]
    let vram = gpu.and_then(|g| g.vram_used_bytes).map(|bytes| bytes as f64 / 1e9);
    [
        report.streams.to_string(),
        free_text(&report.tape),
        cell(p50(&report.ttft), 3),
        cell(p95(&report.ttft), 3),
        cell(max(&report.ttft), 3),
        cell(p50(&report.rtf), 3),
        cell(p95(&report.rtf), 3),
        cell(max(&report.rtf), 3),
        report.err_streams.to_string(),
        cell(report.kv_pool_p95, 3),
        cell(report.preempt_delta, 0),
        report.calls_clean.to_string(),
        cell(report.drain_s, 1),
        cell(gpu.and_then(|g| g.utilisation_avg), 3),
        cell(gpu.and_then(|g| g.utilisation_max), 3),
        cell(vram, 2),
        cell(cer, 4),
        free_text(&report.row_notes(extra)),
    ]
    .join(",")
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
