//! What hours of load showed, from the records of the step alone.

use std::collections::BTreeMap;

use tapedeck_answers::{Drift, Liveness, Memory, Soak, SoakReason};
use tapedeck_record::{CallRecord, GpuReading, Metric, Sample, SampleBody};
use tapedeck_slo::{LeakRules, LeakVerdict, Limits, Period, TierReport, leak, periods};
use tapedeck_stats::theil_sen;

use crate::world::World;

/// Confidence of the drift's interval.
const DRIFT_CONFIDENCE: f64 = 0.99;
/// Fewest periods from which a drift is told.
const MIN_PERIODS: usize = 6;

/// What is told of an instance's process on its host.
const HOST_RSS: &str = "host rss";
/// What its growth is held against, as nobody tells how much memory the host has: at the default threshold of a leak, a
/// gigabyte a day.
const HOST_BYTES: u64 = 16 << 30;

/// `(seconds, bytes)` of one memory.
type Readings = Vec<(f64, f64)>;

/// Judges a soak.
#[must_use]
pub fn judge(tier: &TierReport, calls: &[CallRecord], samples: &[Sample], world: &World) -> Soak {
    let config = &world.config;
    // A soak that is shorter than usual has shorter periods, so that there are enough to tell a drift by.
    let period_s = config.soak.period_s.min(config.soak.hours * 3600.0 / 16.0);
    let inside: Vec<&Sample> = samples.iter().filter(|s| s.at_s <= tier.window_to_s).collect();
    let soak = Soak {
        memory: memory(&inside, &config.soak.leak, config.run.seed),
        periods: periods(calls, tier.final_basis, &config.slo, period_s),
        drift: Drift {
            per_h_s: None,
            low_per_h_s: None,
            high_per_h_s: None,
            rise_s: None,
            floor_s: 0.0,
            drifts: None,
        },
        liveness: liveness(tier, &inside),
        tier: tier.clone(),
        complaints: Vec::new(),
        unknown: Vec::new(),
    };
    let drift = drift(&soak.periods, &config.slo, period_s);
    conclude(Soak { drift, ..soak }, config.slo.live.silent_scrapes, config.load.sample_s)
}

/// Every memory that the samples tell of. Ours is told but never held against the servers.
fn memory(samples: &[&Sample], rules: &LeakRules, seed: u64) -> Vec<Memory> {
    let mut series: BTreeMap<(&str, &str), (u64, Readings)> = BTreeMap::new();
    for sample in samples {
        let (what, used, total) = match &sample.body {
            SampleBody::Gpu(GpuReading {
                memory_used_bytes: Some(used),
                memory_total_bytes: Some(total),
                ..
            }) => ("vram", *used, *total),
            // A leak is held against what there is; of our own memory a gibibyte is what we may take.
            SampleBody::Client { rss_bytes: Some(used), .. } => ("rss", *used, 1 << 30),
            SampleBody::Engine(scrape) => match scrape.values.get(&Metric::ResidentBytes) {
                Some(used) => (HOST_RSS, whole(*used), HOST_BYTES),
                None => continue,
            },
            _ => continue,
        };
        let entry = series.entry((what, sample.source.as_str())).or_default();
        entry.0 = total;
        entry.1.push((sample.at_s, bytes(used)));
    }
    let judged = series.into_iter().map(|((what, of), (total_bytes, readings))| Memory {
        what: what.into(),
        of: of.into(),
        total_bytes,
        leak: leak(&readings, bytes(total_bytes), rules, seed),
    });
    judged.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes of a process, never below 0"
)]
const fn whole(bytes: f64) -> u64 {
    bytes.max(0.0) as u64
}

#[expect(clippy::cast_precision_loss, reason = "2^53 bytes are beyond any card")]
const fn bytes(n: u64) -> f64 {
    n as f64
}

fn drift(periods: &[Period], limits: &Limits, period_s: f64) -> Drift {
    let rules = &limits.stationarity;
    let floor_s = (rules.min_rise_share * limits.ttft_p95_s).max(rules.min_rise_s);
    // The last period may be a sliver with few calls in it.
    let whole = periods.len().saturating_sub(1);
    let points: Vec<(f64, f64)> = periods
        .iter()
        .take(whole)
        .filter_map(|p| Some(((p.from_s + period_s / 2.0) / 3600.0, p.ttft_p95_s?)))
        .collect();
    let fit = theil_sen(&points, DRIFT_CONFIDENCE).filter(|_| points.len() >= MIN_PERIODS);
    let hours = points.last().map_or(0.0, |l| l.0) - points.first().map_or(0.0, |f| f.0);
    Drift {
        per_h_s: fit.map(|f| f.slope),
        low_per_h_s: fit.map(|f| f.low),
        high_per_h_s: fit.map(|f| f.high),
        rise_s: fit.map(|f| f.slope * hours),
        floor_s,
        drifts: fit.map(|f| f.low > 0.0 && f.slope * hours > floor_s),
    }
}

fn liveness(tier: &TierReport, samples: &[&Sample]) -> Liveness {
    let mut last_s: BTreeMap<&str, f64> = BTreeMap::new();
    let mut silence: BTreeMap<String, f64> = BTreeMap::new();
    let from_s = samples.first().map_or(0.0, |s| s.at_s);
    let to_s = samples.last().map_or(0.0, |s| s.at_s);
    let mut silent = |source: &str, gap_s: f64| {
        let longest = silence.entry(source.to_owned()).or_default();
        *longest = longest.max(gap_s);
    };
    for sample in samples {
        match &sample.body {
            SampleBody::Engine(_) => {
                let before_s = last_s.insert(&sample.source, sample.at_s).unwrap_or(from_s);
                silent(&sample.source, sample.at_s - before_s);
            }
            SampleBody::Gap { .. } => silent(&sample.source, 0.0),
            _ => {}
        }
    }
    for source in tier.instances.keys().filter(|name| last_s.contains_key(name.as_str())) {
        silent(source, to_s - last_s.get(source.as_str()).copied().unwrap_or(to_s));
    }
    #[expect(clippy::cast_precision_loss, reason = "a soak has far fewer than 2^53 calls")]
    let share =
        |part: u64| if tier.calls_counted > 0 { part as f64 / tier.calls_counted as f64 } else { 0.0 };
    Liveness {
        longest_silence_s: silence,
        restarts: tier.instances.iter().map(|(name, i)| (name.clone(), i.resets)).collect(),
        clean_share: share(tier.calls_clean),
    }
}

/// Turns figures into complaints.
fn conclude(mut soak: Soak, silent_scrapes: u32, sample_s: f64) -> Soak {
    let (mut complaints, mut unknown) = (Vec::new(), Vec::new());
    if !soak.memory.iter().any(|m| m.what == "vram") {
        unknown.push(SoakReason::NoMemory);
    }
    for memory in soak.memory.iter().filter(|m| m.what == "vram" || m.what == HOST_RSS) {
        let Memory { what, of, leak, .. } = memory.clone();
        match leak.verdict {
            LeakVerdict::Leak => complaints.push(SoakReason::Memory { what, of, leak }),
            LeakVerdict::Unknown => unknown.push(SoakReason::Memory { what, of, leak }),
            LeakVerdict::NoLeak | LeakVerdict::Step => {}
        }
    }
    let drift = &soak.drift;
    match (drift.drifts, drift.rise_s) {
        (Some(true), Some(rise_s)) => {
            complaints.push(SoakReason::Drift { rise_s, floor_s: drift.floor_s });
        }
        (None, _) => unknown.push(SoakReason::TooFewPeriods),
        _ => {}
    }
    for (name, &seconds) in &soak.liveness.longest_silence_s {
        if seconds > f64::from(silent_scrapes) * sample_s {
            complaints.push(SoakReason::Silence { instance: name.clone(), seconds });
        }
    }
    for (name, &times) in soak.liveness.restarts.iter().filter(|(_, n)| **n > 0) {
        complaints.push(SoakReason::Restarted { instance: name.clone(), times });
    }
    let tier = |verdict| SoakReason::Tier { verdict, reasons: soak.tier.reasons.clone() };
    match soak.tier.verdict {
        tapedeck_slo::Verdict::Pass => {}
        verdict if verdict.undecided() && verdict != tapedeck_slo::Verdict::Unstable => {
            unknown.push(tier(verdict));
        }
        verdict => complaints.push(tier(verdict)),
    }
    soak.complaints = complaints;
    soak.unknown = unknown;
    soak
}

#[cfg(test)]
mod tests {
    use tapedeck_record::Scrape;

    use super::*;

    /// Four hours of pages, one in ten seconds, of a process that grows by so many bytes an hour.
    fn pages(per_h: f64, told: bool) -> Vec<Sample> {
        let page = |i: u32| {
            let at_s = f64::from(i) * 10.0;
            // Some wobble, so that the interval is not a point.
            let bytes = 1.4e9 + per_h * at_s / 3600.0 + f64::from(i % 7) * 1e5;
            let values = told.then_some((Metric::ResidentBytes, bytes)).into_iter().collect();
            let body = SampleBody::Engine(Scrape { values, ..Scrape::default() });
            Sample { at_s, source: "inst1".into(), body }
        };
        (0..1440).map(page).collect()
    }

    fn host(per_h: f64, told: bool) -> Vec<Memory> {
        let pages = pages(per_h, told);
        memory(&pages.iter().collect::<Vec<_>>(), &LeakRules::default(), 1)
    }

    #[test]
    fn a_process_that_grows_on_its_host_leaks_and_one_that_nobody_tells_of_is_not_judged() {
        let leaks = host(100e6, true);
        let [memory] = &leaks[..] else { panic!("{leaks:?}") };
        assert_eq!((memory.what.as_str(), memory.of.as_str()), (HOST_RSS, "inst1"));
        assert_eq!(memory.leak.verdict, LeakVerdict::Leak, "{memory:?}");
        assert_eq!(host(0.0, true)[0].leak.verdict, LeakVerdict::NoLeak);
        assert!(host(100e6, false).is_empty());
    }
}
