//! Everything that is counted and computed of a tier before anything is decided.

use std::collections::{BTreeMap, BTreeSet};

use tapedeck_record::Outcome;

use crate::evidence::{Expected, TierEvidence};
use crate::figures::{Counted, Summariser, age_slope, final_basis, flow};
use crate::limits::Limits;
use crate::quality::quality;
use crate::report::{TierReport, Verdict};
use crate::servers::{gpus, instance, server_rtf};
use crate::stationarity::stationarity;

/// The report without a verdict, which stays `unknown` until the results decide.
pub(crate) fn measure(evidence: &TierEvidence<'_>, counted: &Counted<'_>, limits: &Limits) -> TierReport {
    let instances: BTreeMap<_, _> = evidence
        .instances
        .iter()
        .map(|facts| (facts.name.clone(), instance(evidence.samples, facts, &evidence.bounds)))
        .collect();
    let err_streams = counted.errors.iter().map(|c| c.stream).collect::<BTreeSet<_>>().len();
    let err_streams = u32::try_from(err_streams).unwrap_or(u32::MAX);
    let highest = |values: Vec<Option<f64>>| values.into_iter().flatten().reduce(f64::max);
    let flow = flow(evidence, counted, limits);
    let telling = |tells: fn(&Expected) -> bool| {
        evidence.instances.iter().filter(move |i| tells(&i.expected)).filter_map(|i| instances.get(&i.name))
    };
    let preempted: Option<Vec<f64>> = telling(|e| e.preemptions).map(|i| i.preempt_delta).collect();
    TierReport {
        streams: evidence.streams,
        tape: evidence.tape.to_owned(),
        simulated: evidence.simulated,
        refinement: evidence.refinement,
        verdict: Verdict::Unknown,
        point_only: false,
        reasons: Vec::new(),
        notes: Vec::new(),
        labels: Vec::new(),
        limits: Vec::new(),
        stationarity: stationarity(evidence, counted, limits),
        calls_expected: evidence.calls_expected,
        calls_counted: counted.total(),
        calls_clean: counted.with(Outcome::Ok),
        calls_excluded: counted.excluded,
        outcomes: counted.outcomes.clone(),
        err_streams,
        err_calls: counted.errors.len() as u64,
        err_calls_outside: counted.errors_outside,
        abort: evidence.abort.clone(),
        cut_short: evidence.cut_short.clone(),
        ttft_basis: limits.ttft_basis,
        final_basis: final_basis(evidence),
        summaries: Summariser { counted, limits, seed: evidence.seed }.all(),
        server_rtf: server_rtf(evidence),
        age_slope_ms_per_min: age_slope(counted).0,
        violations: counted.figures.iter().chain(&counted.errors).map(|c| u64::from(c.violations)).sum(),
        kv_pool_p95: highest(instances.values().map(|i| i.kv_pool_p95).collect()),
        preempt_delta: preempted.filter(|p| !p.is_empty()).map(|p| p.iter().sum()),
        prefix_hit_rate: highest(instances.values().map(|i| i.prefix_hit_rate).collect()),
        mm_hit_rate: highest(instances.values().map(|i| i.mm_hit_rate).collect()),
        gpu: gpus(evidence.samples, &evidence.bounds),
        quality: quality(counted, evidence.baseline.as_ref(), limits, evidence.seed),
        wake_late_p99_ms: evidence.wake_late_p99_ms.filter(|_| !evidence.paused),
        client_drift_ppm: evidence.client_drift_ppm.filter(|_| !evidence.paused),
        client_cpu_share: evidence.client_cpu_share.filter(|_| !evidence.paused),
        delivered_streams: evidence.streams.saturating_sub(err_streams),
        throughput_per_h: flow.throughput_per_h,
        goodput_per_h: flow.goodput_per_h,
        little_calls: flow.little_calls,
        drain_s: evidence.drain_s,
        drained: evidence.drained,
        window_from_s: evidence.bounds.window_from_s,
        window_to_s: evidence.bounds.window_to_s,
        instances,
    }
}
