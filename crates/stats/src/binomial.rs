//! Which order statistics bracket a quantile, and how large a sample has to be to bracket it at all.

use crate::normal::normal_quantile;
use std::num::NonZeroUsize;

use crate::order::ConfidenceInterval;

/// Non-negligible probabilities of a binomial count, `(count, probability)` in ascending order.
///
/// Ratios are followed outward from the most likely count, so that neither a large `n` nor a `q` near 1 loses
/// digits; what is left out is below 1e-300.
fn probabilities(n: usize, q: f64) -> Vec<(usize, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
    let real = |k: usize| k as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "q lies in 0..1")]
    let mode = ((real(n) + 1.0) * q).floor() as usize;
    let mode = mode.min(n);
    let odds = q / (1.0 - q);
    let mut weights = vec![(mode, 1.0_f64)];
    let mut weight = 1.0;
    for k in mode..n {
        weight *= real(n - k) / real(k + 1) * odds;
        if weight < 1e-300 {
            break;
        }
        weights.push((k + 1, weight));
    }
    weight = 1.0;
    for k in (1..=mode).rev() {
        weight *= real(k) / real(n - k + 1) / odds;
        if weight < 1e-300 {
            break;
        }
        weights.push((k - 1, weight));
    }
    weights.sort_unstable_by_key(|w| w.0);
    let total: f64 = weights.iter().map(|w| w.1).sum();
    weights.iter_mut().for_each(|w| w.1 /= total);
    weights
}

/// 0-based ranks of the order statistics that bracket the `q` quantile with at least the two-sided `confidence`.
///
/// With B ~ Binomial(n, q) observations at or below the quantile, the lower bound is the highest order statistic
/// `l` (from 1) with `P(B <= l - 1) <= alpha / 2` and the upper one the lowest `k` with `P(B >= k) <= alpha / 2`.
/// A bound that no order statistic can give is empty: at 95 %, the 0.95 quantile has an upper bound from n = 72.
#[must_use]
pub fn interval_ranks(n: NonZeroUsize, q: f64, confidence: f64) -> (Option<usize>, Option<usize>) {
    if !(q > 0.0 && q < 1.0) {
        return (None, None);
    }
    let n = n.get();
    let half_alpha = (1.0 - confidence) / 2.0;
    let weights = probabilities(n, q);
    let below = |weights: &mut dyn Iterator<Item = &(usize, f64)>| {
        let mut sum = 0.0;
        weights
            .take_while(|w| {
                sum += w.1;
                sum <= half_alpha
            })
            .last()
            .map(|w| w.0)
    };
    let first = weights.first().map_or(0, |w| w.0);
    let last = weights.last().map_or(n, |w| w.0);
    // P(B <= j) is within alpha / 2 for the largest j found, so the bound has rank j + 1 counted from 1.
    let low = below(&mut weights.iter()).or(first.checked_sub(1));
    let high = below(&mut weights.iter().rev()).or((last < n).then_some(last + 1));
    (low, high.map(|k| k - 1))
}

/// The interval of the `q` quantile of a sorted sample from its own order statistics.
#[must_use]
pub fn quantile_interval(sorted: &[f64], q: f64, confidence: f64) -> ConfidenceInterval {
    let Some(n) = NonZeroUsize::new(sorted.len()) else { return ConfidenceInterval::default() };
    let (low, high) = interval_ranks(n, q, confidence);
    ConfidenceInterval {
        low: low.and_then(|l| sorted.get(l).copied()),
        high: high.and_then(|h| sorted.get(h).copied()),
    }
}

/// How many observations show, one-sided at `confidence`, that the `q` quantile keeps a limit when `violations`
/// of them break it: the smallest n with `P(Binomial(n, 1 - q) <= violations) <= 1 - confidence`.
///
/// For q = 0.95 at 95 %: 59 with no violation, 93 with one. Empty where `q` or `confidence` is not inside 0..1.
#[must_use]
pub fn observations_needed(q: f64, confidence: f64, violations: u32) -> Option<usize> {
    if !(q > 0.0 && q < 1.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let violations = violations as usize;
    let shown = |n: usize| {
        let at_most: f64 =
            probabilities(n, 1.0 - q).iter().take_while(|w| w.0 <= violations).map(|w| w.1).sum();
        at_most <= 1.0 - confidence
    };
    let mut enough = violations + 1;
    while !shown(enough) {
        enough = enough.checked_mul(2)?;
    }
    let mut too_few = violations;
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if shown(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Some(enough)
}

/// The smallest sample whose two-sided interval has an upper bound: 72 for the 0.95 quantile at 95 %.
#[must_use]
pub fn observations_for_upper_bound(q: f64, confidence: f64) -> Option<usize> {
    observations_needed(q, 1.0 - (1.0 - confidence) / 2.0, 0)
}

/// One-sided sign test: how often chance alone gives at least `rose` rises among `rose + fell` pairs that rise or fall
/// equally often, 0..1. Pairs that stay are left out beforehand.
#[must_use]
pub fn sign_test(rose: usize, fell: usize) -> f64 {
    probabilities(rose + fell, 0.5)
        .into_iter()
        .filter(|(k, _)| *k >= rose)
        .map(|(_, p)| p)
        .sum::<f64>()
        .min(1.0)
}

/// Wilson's two-sided interval of a share `p` (0..1) of `n` independent observations, at `confidence` (0..1).
#[must_use]
pub fn wilson_interval(p: f64, n: f64, confidence: f64) -> (f64, f64) {
    let z = normal_quantile(f64::midpoint(1.0, confidence));
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    (middle - half, middle + half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks from SciPy 1.17.1, counted from 1, 0 for none: the definition above with `scipy.stats.binom.cdf` and
    /// `.sf`. For n = 810, q = 0.95 `scipy.stats.quantile_test` on 1..810 gives the same (757, 782).
    const SCIPY: [(usize, f64, usize, usize); 36] = [
        (2, 0.5, 0, 0),
        (2, 0.95, 1, 0),
        (2, 0.99, 2, 0),
        (20, 0.5, 6, 15),
        (20, 0.95, 17, 0),
        (20, 0.99, 19, 0),
        (59, 0.5, 22, 38),
        (59, 0.95, 52, 0),
        (59, 0.99, 57, 0),
        (71, 0.5, 27, 45),
        (71, 0.95, 63, 0),
        (71, 0.99, 68, 0),
        (72, 0.5, 28, 45),
        (72, 0.95, 64, 72),
        (72, 0.99, 69, 0),
        (81, 0.5, 32, 50),
        (81, 0.95, 73, 81),
        (81, 0.99, 78, 0),
        (100, 0.5, 40, 61),
        (100, 0.95, 90, 100),
        (100, 0.99, 97, 0),
        (216, 0.5, 94, 123),
        (216, 0.95, 199, 212),
        (216, 0.99, 211, 0),
        (810, 0.5, 377, 434),
        (810, 0.95, 757, 782),
        (810, 0.99, 796, 808),
        (1000, 0.5, 469, 532),
        (1000, 0.95, 936, 964),
        (1000, 0.99, 983, 997),
        (14400, 0.5, 7082, 7319),
        (14400, 0.95, 13628, 13732),
        (14400, 0.99, 14232, 14280),
        (100_000, 0.5, 49690, 50311),
        (100_000, 0.95, 94864, 95136),
        (100_000, 0.99, 98938, 99062),
    ];

    #[test]
    fn the_sign_test_counts_coins() {
        let cases =
            [((0, 0), 1.0), ((3, 0), 0.125), ((6, 0), 1.0 / 64.0), ((8, 1), 10.0 / 512.0), ((0, 5), 1.0)];
        for ((rose, fell), p) in cases {
            assert!((sign_test(rose, fell) - p).abs() < 1e-12, "{rose} {fell}");
        }
    }

    #[test]
    fn ranks_agree_with_scipy() {
        for (n, q, low, high) in SCIPY {
            let got = interval_ranks(NonZeroUsize::new(n).unwrap(), q, 0.95);
            assert_eq!(got, (low.checked_sub(1), high.checked_sub(1)), "n = {n}, q = {q}");
        }
    }

    #[test]
    fn a_verdict_needs_as_many_calls_as_promised() {
        let needed: Vec<_> = (0..4).map(|v| observations_needed(0.95, 0.95, v)).collect();
        assert_eq!(needed, [Some(59), Some(93), Some(124), Some(153)]);
        assert_eq!(observations_for_upper_bound(0.95, 0.95), Some(72));
        assert_eq!(observations_needed(1.0, 0.95, 0), None);
    }

    #[test]
    fn an_upper_bound_exists_from_72() {
        let sample: Vec<f64> = (0..72).map(f64::from).collect();
        assert_eq!(quantile_interval(&sample[..71], 0.95, 0.95).high, None);
        assert_eq!(quantile_interval(&sample, 0.95, 0.95).high, Some(71.0));
        assert_eq!(quantile_interval(&[], 0.95, 0.95), ConfidenceInterval::default());
    }

    #[test]
    fn the_interval_covers_the_true_quantile_at_least_as_often_as_it_says() {
        let mut draws = crate::rng::Draws::new(11, 0);
        let mut missed = 0;
        for _ in 0..2_000 {
            let mut sample: Vec<f64> = (0..100).map(|_| draws.unit()).collect();
            crate::order::sort(&mut sample);
            let b = quantile_interval(&sample, 0.95, 0.95);
            if b.low.is_none_or(|l| l > 0.95) || b.high.is_none_or(|h| h < 0.95) {
                missed += 1;
            }
        }
        assert!(missed <= 100, "{missed} of 2000 intervals missed, 100 would be the promise");
        assert!(missed >= 30, "{missed} of 2000 intervals missed: far too wide to be right");
    }
}
