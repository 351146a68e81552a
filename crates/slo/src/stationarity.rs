//! Was the tier still getting worse when it ended?

use std::collections::BTreeMap;

use tapedeck_record::CallRecord;
use tapedeck_stats::{holm, percentile, rising_trend};

use crate::evidence::TierEvidence;
use crate::figures::{Counted, final_basis, rtf_applies};
use crate::limits::Limits;
use crate::reason::Reason;
use crate::report::{StationarityResult, TierReport, Verdict};

/// `(seconds, residual)` of a figure: what is left of each call when the median of the same call on the tape is taken
/// away, so that content does not look like a trend.
fn residuals(counted: &Counted<'_>, figure: &dyn Fn(&CallRecord) -> Option<f64>) -> Vec<(f64, f64)> {
    // A tier may play several tapes: an index alone does not name a call.
    let name = |call: &CallRecord| (call.tape.clone(), call.call);
    let mut by_call: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for call in &counted.figures {
        if let Some(value) = figure(call) {
            by_call.entry(name(call)).or_default().push(value);
        }
    }
    let medians: BTreeMap<_, f64> = by_call
        .into_iter()
        .filter_map(|(id, mut values)| Some((id, percentile(&mut values, 0.5)?)))
        .collect();
    counted.figures.iter().filter_map(|c| Some((c.start_s, figure(c)? - medians.get(&name(c))?))).collect()
}

/// Calls open at each tenth of a block, for open arrivals.
fn open_calls(counted: &Counted<'_>, from_s: f64, to_s: f64, step_s: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut at_s = from_s;
    while at_s < to_s && to_s.is_finite() && step_s > 0.0 {
        let calls = counted.figures.iter().chain(&counted.errors);
        let open = calls.filter(|c| c.start_s <= at_s && at_s < c.done_s).count();
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 calls are open at once")]
        points.push((at_s, open as f64));
        at_s += step_s;
    }
    points
}

/// Name, random stream (those from 2000 on belong to these tests), points and the smallest rise that counts.
type Series = (&'static str, u64, Vec<(f64, f64)>, f64);

/// Tests every series of a tier. The p-values are corrected for as many tests as the whole ladder will make
/// (Bonferroni), because later tiers are not known yet; [`adjust_by_holm`] replaces that by Holm once they are.
pub(crate) fn stationarity(
    evidence: &TierEvidence<'_>,
    counted: &Counted<'_>,
    limits: &Limits,
) -> Vec<StationarityResult> {
    let rules = &limits.stationarity;
    let basis = final_basis(evidence);
    let latency_floor = |limit: f64| (rules.min_rise_share * limit).max(rules.min_rise_s);
    let mut series: Vec<Series> = vec![
        ("ttft", 2000, residuals(counted, &|c| limits.ttft_basis.of(c)), latency_floor(limits.ttft_p95_s)),
        ("final", 2001, residuals(counted, &|c| basis.of(c)), latency_floor(limits.final_p95_s)),
    ];
    if rtf_applies(evidence) {
        series.push(("rtf", 2002, residuals(counted, &|c| c.rtf), rules.min_rise_share * limits.rtf_p95));
    }
    if evidence.open_arrivals {
        let b = &evidence.bounds;
        let points = open_calls(counted, b.window_from_s, b.window_to_s, rules.block_s / 10.0);
        let mean = tapedeck_stats::Moments::of(&points.iter().map(|p| p.1).collect::<Vec<_>>());
        series.push(("open_sessions", 2003, points, rules.min_rise_share * mean.map_or(0.0, |m| m.mean)));
    }
    let mut results: Vec<StationarityResult> = Vec::new();
    for (name, stream, points, floor) in series {
        let Some(trend) = rising_trend(&points, rules.block_s, rules.resamples, evidence.seed, stream) else {
            continue;
        };
        results.push(StationarityResult {
            series: name.to_owned(),
            n: trend.n as u64,
            blocks: u32::try_from(trend.blocks).unwrap_or(u32::MAX),
            rise: trend.rise,
            floor,
            p: trend.p,
            p_adjusted: trend.p,
            alarm: false,
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "a tier has a handful of series")]
    let family = results.len() as f64 * f64::from(evidence.tiers_planned.max(1));
    for result in &mut results {
        result.p_adjusted = (result.p * family).min(1.0);
        result.alarm = alarmed(result, limits);
    }
    results
}

fn alarmed(result: &StationarityResult, limits: &Limits) -> bool {
    result.p_adjusted <= limits.stationarity.alpha && result.rise >= result.floor
}

/// The reason of a series that got worse.
pub(crate) fn kept_rising(result: &StationarityResult) -> Reason {
    Reason::KeptRising {
        series: result.series.clone(),
        rise: result.rise,
        blocks: result.blocks,
        p_adjusted: result.p_adjusted,
    }
}

/// Corrects the stationarity tests of a whole ladder together (Holm over series and tiers), once all tiers are known.
///
/// Holm finds everything that the tier-by-tier correction found and perhaps more, so a tier can only turn from `pass`
/// to `unstable`. Where fewer tiers ran than were planned, the family is smaller too.
pub fn adjust_by_holm(tiers: &mut [TierReport], limits: &Limits) {
    let p: Vec<f64> = tiers.iter().flat_map(|t| t.stationarity.iter().map(|s| s.p)).collect();
    let mut adjusted = holm(&p).into_iter();
    for tier in tiers {
        for (result, p_adjusted) in tier.stationarity.iter_mut().zip(&mut adjusted) {
            result.p_adjusted = p_adjusted;
            let before = result.alarm;
            result.alarm = alarmed(result, limits);
            if result.alarm && !before && matches!(tier.verdict, Verdict::Pass | Verdict::Suspect) {
                tier.reasons.insert(0, kept_rising(result));
                tier.verdict = Verdict::Unstable;
            }
        }
    }
}
