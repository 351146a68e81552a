//! Three made-up steps of a load test, judged, and their N*: `cargo run -p tapedeck-slo --example ladder`. The calls are
//! read from JSON, as `calls.jsonl` of a run holds them.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use serde_json::json;
use tapedeck_l10n::Localize;
use tapedeck_record::CallRecord;
use tapedeck_slo::{Limits, StepBounds, TierEvidence, TierReport, capacity, judge};

fn main() -> Result<(), serde_json::Error> {
    let limits = Limits::default();
    // The busier the server, the later it answers.
    let steps = [(12, 0.5), (24, 0.8), (36, 1.4)];
    let reports = steps.map(|(streams, ttft_s)| step(streams, ttft_s, &limits));
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    for report in &reports {
        let why: Vec<String> = report.reasons.iter().map(|reason| reason.text().en).collect();
        println!("{:>3} streams: {} {}", report.streams, report.verdict.name(), why.join("; "));
    }
    println!("{}", capacity(&reports, &limits).text().en);
    Ok(())
}

/// Each stream plays 30 calls of 30 s, the first four of which only warm the server up.
fn step(streams: u32, ttft_s: f64, limits: &Limits) -> Result<TierReport, serde_json::Error> {
    let mut calls = Vec::new();
    for stream in 0..streams {
        for seq in 0..30 {
            let start_s = 0.5 * f64::from(stream) + 30.5 * f64::from(seq);
            let spread = 0.02 * f64::from((7 * stream + 3 * seq) % 11);
            calls.push(serde_json::from_value::<CallRecord>(json!({
                "stream": stream, "seq": seq, "call": seq % 9, "bucket_s": 30, "counted": seq >= 4,
                "start_s": start_s, "done_s": start_s + 30.5, "audio_s": 30.0,
                "outcome": "ok", "class": "ok", "messages": 15, "violations": 0,
                "ttft_wire_s": ttft_s + spread, "final_s": 0.4 + spread, "rtf": 0.2 + spread / 10.0,
            }))?);
        }
    }
    let counted = || calls.iter().filter(|call| call.counted);
    let bounds = StepBounds {
        ramp_from_s: 0.0,
        window_from_s: counted().map(|call| call.start_s).fold(f64::INFINITY, f64::min),
        window_to_s: counted().map(|call| call.done_s).fold(0.0, f64::max),
        drain_to_s: calls.iter().map(|call| call.done_s).fold(0.0, f64::max),
    };
    let mut evidence = TierEvidence::new(streams, "made up", &calls, bounds);
    evidence.wake_late_p99_ms = Some(1.3);
    evidence.client_cpu_share = Some(0.1);
    Ok(judge(&evidence, limits))
}
