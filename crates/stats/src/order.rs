//! Percentiles as exact order statistics, and how far a sample can be trusted about them.

use std::num::NonZeroUsize;

/// Two-sided interval of a figure; an empty bound means that the sample is too small to give one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower bound.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
}

impl ConfidenceInterval {
    /// The wider of two intervals, bound by bound: an unknown bound is wider than any known one.
    #[must_use]
    pub fn widest(self, other: Self) -> Self {
        let pick = |a: Option<f64>, b: Option<f64>, f: fn(f64, f64) -> f64| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            _ => None,
        };
        Self { low: pick(self.low, other.low, f64::min), high: pick(self.high, other.high, f64::max) }
    }
}

/// 0-based rank of the `q` quantile among `n` sorted values: the smallest value with at least `q * n` of the
/// sample at or below it. A product that misses a whole number by rounding (0.95 x 20 = 19.000000000000004)
/// counts as that number.
#[must_use]
pub fn rank(n: NonZeroUsize, q: f64) -> usize {
    let n = n.get();
    #[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
    let product = q.clamp(0.0, 1.0) * n as f64;
    let nearest = product.round();
    let k = if (product - nearest).abs() <= 1e-9 * product.max(1.0) { nearest } else { product.ceil() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= k <= n")]
    let k = k as usize;
    k.clamp(1, n) - 1
}

/// The `q` quantile of `values` (0..1), which end up partly reordered; empty for an empty sample.
///
/// It is always one of the values: the smallest with at least `q * n` of the sample at or below it. Values may be
/// `+infinity` (a failed call); `NaN` sorts above everything and should not be passed.
pub fn percentile(values: &mut [f64], q: f64) -> Option<f64> {
    let k = rank(NonZeroUsize::new(values.len())?, q);
    let (_, value, _) = values.select_nth_unstable_by(k, f64::total_cmp);
    Some(*value)
}

/// The same for values that are already sorted in ascending order.
#[must_use]
pub fn percentile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    sorted.get(rank(NonZeroUsize::new(sorted.len())?, q)).copied()
}

/// Sorts in ascending order, `+infinity` last.
pub fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_value_with_enough_at_or_below_it() {
        let ten = || (1..=10).map(f64::from).collect::<Vec<_>>();
        assert_eq!(percentile(&mut ten(), 0.5), Some(5.0));
        assert_eq!(percentile(&mut ten(), 0.51), Some(6.0));
        assert_eq!(percentile(&mut ten(), 0.95), Some(10.0));
        assert_eq!(percentile(&mut ten(), 0.0), Some(1.0));
        assert_eq!(percentile(&mut ten(), 1.0), Some(10.0));
        // numpy.percentile(range(1, 21), 95, method="inverted_cdf") is 19: 0.95 x 20 is 19 exactly.
        let mut twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile(&mut twenty, 0.95), Some(19.0));
        assert_eq!(percentile(&mut [], 0.5), None);
        assert_eq!(percentile(&mut [1.0, f64::INFINITY], 0.95), Some(f64::INFINITY));
    }

    #[test]
    fn an_unknown_bound_is_wider_than_any_known_one() {
        let a = ConfidenceInterval { low: Some(1.0), high: Some(2.0) };
        let b = ConfidenceInterval { low: Some(0.5), high: None };
        assert_eq!(a.widest(b), ConfidenceInterval { low: Some(0.5), high: None });
    }

    proptest! {
        #[test]
        fn the_definition_holds(values in prop::collection::vec(-1e6..1e6_f64, 1..200), per_mille in 0..=1000_u32) {
            let q = f64::from(per_mille) / 1000.0;
            let mut copy = values.clone();
            let p = percentile(&mut copy, q).unwrap();
            let needed = q * values.len() as f64;
            let at_or_below = values.iter().filter(|&&v| v <= p).count() as f64;
            let below = values.iter().filter(|&&v| v < p).count() as f64;
            prop_assert!(at_or_below >= needed - 1e-6);
            prop_assert!(below < needed + 1e-6 || q == 0.0);
            sort(&mut copy);
            prop_assert_eq!(percentile_sorted(&copy, q), Some(p));
        }
    }
}
