//! What engines and GPUs said during a tier.

use std::collections::{BTreeMap, BTreeSet};

use tapedeck_record::{Metric, Sample, SampleBody, Scrape};
use tapedeck_stats::{CounterDelta, counter_delta, percentile};

use crate::evidence::{CacheSetting, InstanceFacts, StepBounds, TierEvidence};
use crate::report::{GpuReport, InstanceReport};

/// Samples of one instance in order of time: from the last page before the ramp, the baseline of its counters, to
/// the end of the drain.
fn pages<'a>(samples: &'a [Sample], name: &str, bounds: &StepBounds) -> Vec<(f64, &'a Scrape)> {
    let mut pages: Vec<(f64, &Scrape)> = samples
        .iter()
        .filter(|s| s.source == name && s.at_s <= bounds.drain_to_s)
        .filter_map(|s| match &s.body {
            SampleBody::Engine(scrape) => Some((s.at_s, scrape)),
            _ => None,
        })
        .collect();
    pages.sort_by(|a, b| a.0.total_cmp(&b.0));
    let first = pages.partition_point(|p| p.0 < bounds.ramp_from_s).saturating_sub(1);
    pages.split_off(first.min(pages.len()))
}

/// Hits / look-ups; no look-ups mean no hits only where the page says that the cache is off (and was read at all).
fn hit_rate(off: bool, queries: Option<CounterDelta>, hits: Option<CounterDelta>) -> Option<f64> {
    match (queries, hits) {
        (Some(q), Some(h)) if q.delta > 0.0 => Some(h.delta / q.delta),
        _ if off => Some(0.0),
        _ => None,
    }
}

/// What one instance's page said over the tier.
pub(crate) fn instance(samples: &[Sample], facts: &InstanceFacts, bounds: &StepBounds) -> InstanceReport {
    let pages = pages(samples, &facts.name, bounds);
    let inside = |at_s: f64| (bounds.ramp_from_s..=bounds.drain_to_s).contains(&at_s);
    let windowed = |at_s: f64| (bounds.window_from_s..=bounds.window_to_s).contains(&at_s);
    let gauge = |metric: Metric, during: &dyn Fn(f64) -> bool| -> Vec<f64> {
        let values = pages.iter().filter(|p| during(p.0)).filter_map(|p| p.1.values.get(&metric));
        values.copied().filter(|v| v.is_finite()).collect()
    };
    let counter =
        |metric: Metric| counter_delta(pages.iter().filter_map(|p| p.1.values.get(&metric).copied()));
    let gaps = samples
        .iter()
        .filter(|s| s.source == facts.name && inside(s.at_s) && matches!(s.body, SampleBody::Gap { .. }))
        .count() as u64;
    let off = |setting: CacheSetting| setting == CacheSetting::Off && !pages.is_empty();
    let mut kv = gauge(Metric::KvPool, &inside);
    let [prefix_queries, prefix_hits, mm_queries, mm_hits, preempted] =
        [Metric::PrefixQueries, Metric::PrefixHits, Metric::MmQueries, Metric::MmHits, Metric::Preemptions]
            .map(counter);
    InstanceReport {
        kv_pool_p95: percentile(&mut kv, 0.95),
        kv_pool_max: percentile(&mut kv, 1.0),
        preempt_delta: preempted.map(|d| d.delta),
        prefix_hit_rate: hit_rate(off(facts.prefix_cache), prefix_queries, prefix_hits),
        mm_hit_rate: hit_rate(off(facts.mm_cache), mm_queries, mm_hits),
        open_sessions_p50: percentile(&mut gauge(Metric::OpenSessions, &windowed), 0.5),
        scrapes: pages.iter().filter(|p| inside(p.0)).count() as u64,
        gaps,
        // One restart shows in every counter, so the largest count is the number of restarts.
        resets: Metric::ALL
            .into_iter()
            .filter(|m| m.is_counter())
            .filter_map(|m| counter(m).map(|d| d.resets))
            .max()
            .unwrap_or(0),
    }
}

/// Processing time, waiting for it included, that all engines counted during the window / audio played in it; empty
/// unless every instance tells.
pub(crate) fn server_rtf(evidence: &TierEvidence<'_>) -> Option<f64> {
    let bounds = &evidence.bounds;
    if !evidence.server_sums || evidence.instances.is_empty() {
        return None;
    }
    let counted_s: Option<Vec<f64>> = evidence
        .instances
        .iter()
        .map(|facts| {
            let inside = pages(evidence.samples, &facts.name, bounds)
                .into_iter()
                .filter(|p| (bounds.window_from_s..=bounds.window_to_s).contains(&p.0));
            // Of vLLM's finer sums (queue, prefill, inference) a page alone cannot tell whether they are sound.
            counter_delta(inside.filter_map(|p| p.1.histograms.get("e2e")?.sum)).map(|d| d.delta)
        })
        .collect();
    let played_s: f64 = evidence
        .calls
        .iter()
        .filter_map(|c| {
            let from_s = (c.start_s + c.connect_s?).max(bounds.window_from_s);
            let to_s = (c.start_s + c.connect_s? + c.audio_s).min(c.done_s).min(bounds.window_to_s);
            Some((to_s - from_s).max(0.0))
        })
        .sum();
    (played_s > 0.0).then_some(counted_s?.iter().sum::<f64>() / played_s)
}

/// What the GPUs did during the window, each uuid once; empty where none was read.
pub(crate) fn gpus(samples: &[Sample], bounds: &StepBounds) -> Option<GpuReport> {
    #[derive(Default)]
    struct Gpu {
        utilisation: Vec<f64>,
        used_bytes: Option<u64>,
        celsius: Option<f64>,
        watts: Vec<f64>,
    }
    let mut gpus: BTreeMap<&str, Gpu> = BTreeMap::new();
    let mut throttle: BTreeSet<&str> = BTreeSet::new();
    for sample in samples.iter().filter(|s| (bounds.window_from_s..=bounds.window_to_s).contains(&s.at_s)) {
        let SampleBody::Gpu(reading) = &sample.body else { continue };
        let gpu = gpus.entry(&sample.source).or_default();
        gpu.utilisation.extend(reading.utilisation);
        gpu.watts.extend(reading.power_w);
        gpu.used_bytes = gpu.used_bytes.max(reading.memory_used_bytes);
        if let Some(c) = reading.temperature_c {
            gpu.celsius = Some(gpu.celsius.map_or(c, |max| max.max(c)));
        }
        throttle.extend(reading.throttle.iter().map(String::as_str));
    }
    let mean = |values: &[f64]| tapedeck_stats::Moments::of(values).map(|m| m.mean);
    let largest = |values: Vec<f64>| values.into_iter().reduce(f64::max);
    let means: Vec<f64> = gpus.values().filter_map(|g| mean(&g.utilisation)).collect();
    let watts: Vec<f64> = gpus.values().filter_map(|g| mean(&g.watts)).collect();
    let used: Vec<u64> = gpus.values().filter_map(|g| g.used_bytes).collect();
    (!gpus.is_empty()).then(|| GpuReport {
        gpus: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
        utilisation_avg: mean(&means),
        utilisation_max: largest(gpus.values().flat_map(|g| g.utilisation.iter().copied()).collect()),
        vram_used_bytes: (!used.is_empty()).then(|| used.iter().sum()),
        temperature_max_c: largest(gpus.values().filter_map(|g| g.celsius).collect()),
        power_avg_w: (!watts.is_empty()).then(|| watts.iter().sum()),
        throttle: throttle.into_iter().map(str::to_owned).collect(),
    })
}
