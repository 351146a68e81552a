//! The CSV files, derived from committed steps: one header, one row a step, unknown cells empty.

use std::fmt::Write as _;

use tapedeck_record::Outcome;
use tapedeck_slo::{Estimate, LADDER_HEADER, Limit, Spread, TierReport, ladder_row};

use crate::step::CommittedStep;

/// `ladder.csv`: the fixed columns of a ladder and nothing else.
pub(crate) fn ladder_csv(steps: &[&CommittedStep]) -> String {
    let mut out = format!("{LADDER_HEADER}\n");
    for step in steps {
        let superseded = !step.partial && steps.iter().any(|s| !s.partial && s.id.supersedes(&step.id));
        let extra = notes(step.partial, superseded);
        out.push_str(&ladder_row(&step.report, extra));
        out.push('\n');
    }
    out
}

/// What the notes of a row begin with: whether the step was cut short, or was played again with more loops so that N*
/// does not follow from it.
#[must_use]
pub const fn notes(partial: bool, superseded: bool) -> &'static [&'static str] {
    match (partial, superseded) {
        (true, _) => &["partial"],
        (false, true) => &["superseded"],
        (false, false) => &[],
    }
}

/// `tiers.csv`: everything that is known of each tier.
pub(crate) fn tiers_csv(steps: &[&CommittedStep]) -> String {
    let mut out = String::new();
    let names: Vec<String> = columns(None).into_iter().map(|(name, _)| name).collect();
    let _ = writeln!(out, "{}", names.join(","));
    for step in steps {
        let cells: Vec<String> = columns(Some(step)).into_iter().map(|(_, cell)| cell).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

type Column = (String, String);

/// Every column with its cell; without a step the cells are empty, which gives the header.
fn columns(step: Option<&CommittedStep>) -> Vec<Column> {
    let r = step.map(|s| &s.report);
    let mut all: Vec<Column> = vec![
        column("step", step.map(|s| s.step.clone())),
        column("partial", step.map(|s| s.partial.to_string())),
        column("streams", r.map(|r| r.streams.to_string())),
        column("tape", r.map(|r| r.tape.clone())),
        column("simulated", r.map(|r| r.simulated.to_string())),
        column("refinement", r.map(|r| r.refinement.to_string())),
        column("verdict", r.map(|r| r.verdict.name().to_string())),
        column("point_only", r.map(|r| r.point_only.to_string())),
        column("ttft_basis", r.map(|r| r.ttft_basis.name().to_string())),
    ];
    for limit in Limit::ALL {
        all.push(column(&format!("limit_{}", limit.name()), r.map(|r| r.limit(limit).name().to_string())));
    }
    type Figure = fn(&TierReport) -> Option<&Spread>;
    let spreads: [(&str, Figure); 13] = [
        ("ttft_s", |r| r.ttft.as_ref()),
        ("ttft_wire_s", |r| r.ttft_wire.as_ref()),
        ("ttft_speech_s", |r| r.ttft_speech.as_ref()),
        ("ttft_window_s", |r| r.ttft_window.as_ref()),
        ("rtf", |r| r.rtf.as_ref()),
        ("final_s", |r| r.final_latency.as_ref()),
        ("pace", |r| r.pace.as_ref()),
        ("connect_s", |r| r.connect.as_ref()),
        ("lag_max_s", |r| r.lag_max.as_ref()),
        ("stall_max_s", |r| r.stall_max.as_ref()),
        ("blocked_max_ms", |r| r.blocked_max_ms.as_ref()),
        ("rtt_ms", |r| r.rtt_ms.as_ref()),
        ("revisions", |r| r.revisions.as_ref()),
    ];
    for (name, get) in spreads {
        all.extend(spread(name, r.and_then(get)));
    }
    let quality = r.and_then(|r| r.quality.as_ref());
    all.extend(estimate("cer", quality.and_then(|q| q.cer)));
    all.extend(estimate("wer", quality.and_then(|q| q.wer)));
    all.extend(estimate("wer_finals", quality.and_then(|q| q.wer_finals)));
    let gpu = r.and_then(|r| r.gpu.as_ref());
    all.extend([
        column("kv_pool_p95", number(r.and_then(|r| r.kv_pool_p95))),
        column("preempt_delta", number(r.and_then(|r| r.preempt_delta))),
        column("prefix_hit_rate", number(r.and_then(|r| r.prefix_hit_rate))),
        column("mm_hit_rate", number(r.and_then(|r| r.mm_hit_rate))),
        column("gpu_util_avg", number(gpu.and_then(|g| g.utilisation_avg))),
        column("gpu_util_max", number(gpu.and_then(|g| g.utilisation_max))),
        column("vram_used_bytes", gpu.and_then(|g| g.vram_used_bytes).map(|b| b.to_string())),
        column("gpu_temperature_max_c", number(gpu.and_then(|g| g.temperature_max_c))),
        column("gpu_power_avg_w", number(gpu.and_then(|g| g.power_avg_w))),
        column("calls_counted", r.map(|r| r.calls_counted.to_string())),
        column("calls_clean", r.map(|r| r.calls_clean.to_string())),
        column("err_streams", r.map(|r| r.err_streams.to_string())),
        column("delivered_streams", r.map(|r| r.delivered_streams.to_string())),
        column("violations", r.map(|r| r.violations.to_string())),
        column("age_slope_ms_per_min", number(r.and_then(|r| r.age_slope_ms_per_min))),
        column("throughput_calls_per_h", number(r.and_then(|r| r.throughput_per_h))),
        column("goodput_calls_per_h", number(r.and_then(|r| r.goodput_per_h))),
        column("little_calls", number(r.and_then(|r| r.little_calls))),
        column("wake_late_p99_ms", number(r.and_then(|r| r.wake_late_p99_ms))),
        column("client_drift_ppm", number(r.and_then(|r| r.client_drift_ppm))),
        column("client_cpu_share", number(r.and_then(|r| r.client_cpu_share))),
        column("drain_s", number(r.and_then(|r| r.drain_s))),
        column("window_from_s", number(r.map(|r| r.window_from_s))),
        column("window_to_s", number(r.map(|r| r.window_to_s))),
    ]);
    for outcome in Outcome::ALL {
        let count = r.map(|r| r.outcomes.get(&outcome).copied().unwrap_or(0).to_string());
        all.push(column(&format!("outcome_{}", outcome.name()), count));
    }
    all.push(column("reasons", r.map(|r| r.reasons_text().en)));
    all
}

fn spread(name: &str, spread: Option<&Spread>) -> Vec<Column> {
    let mut all = vec![column(&format!("{name}_p50"), number(spread.map(|s| s.p50.value)))];
    all.extend(estimate(&format!("{name}_p95"), spread.map(|s| s.p95)));
    all.push(column(&format!("{name}_max"), number(spread.map(|s| s.max))));
    all
}

fn estimate(name: &str, estimate: Option<Estimate>) -> Vec<Column> {
    vec![
        column(name, number(estimate.map(|e| e.value))),
        column(&format!("{name}_low"), number(estimate.and_then(|e| e.low))),
        column(&format!("{name}_high"), number(estimate.and_then(|e| e.high))),
        column(&format!("{name}_n"), estimate.map(|e| e.n.to_string())),
    ]
}

fn number(value: Option<f64>) -> Option<String> {
    value.filter(|v| v.is_finite()).map(|v| format!("{v}"))
}

fn column(name: &str, cell: Option<String>) -> Column {
    (name.to_string(), cell.map_or_else(String::new, |c| quote(&c)))
}

/// Quotes a cell where CSV needs it (RFC 4180).
fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
