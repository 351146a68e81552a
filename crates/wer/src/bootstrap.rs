//! How far to trust a pooled rate: the bootstrap by call.
//!
//! Errors come in clumps: a call on a bad line has many. So whole calls are drawn with replacement, as many
//! as there are, and the pooled rate is computed from each draw; the percentiles of these rates bound the
//! interval. For two loads the same calls are drawn on both sides, because what makes one call harder than
//! another is then on both sides too and cancels.
//!
//! The random numbers are ChaCha8, seeded with `seed_from_u64`, and call `k` of `n` is the upper half of
//! the 128-bit product of `n` with the next 64-bit number: the same seed gives the same interval everywhere.
//! Few calls make any bootstrap too narrow; below about 20 read it as a guide.

use serde::{Deserialize, Serialize};
use tapedeck_stats::resampled;
use tapedeck_stats::rng::Draws;
use thiserror::Error;

use crate::counts::Counts;

/// Why no interval can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// There is nothing to draw from.
    #[error("no calls to draw from: give at least one call with a reference")]
    NoCalls,
    /// All references are empty.
    #[error(
        "every reference is empty, so there is no rate: give at least one call with words in its reference"
    )]
    NoReference,
    /// The two sides are not the same calls.
    #[error("{baseline} calls on the baseline's side and {other} on the other: pair them call by call")]
    NotPaired {
        /// Calls of the baseline.
        baseline: usize,
        /// Calls of the other side.
        other: usize,
    },
    /// The settings cannot give an interval.
    #[error("a bootstrap needs at least one draw and a level between 0 and 1, both excluded, such as 0.95")]
    Settings,
}

/// How an interval is made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BootstrapSettings {
    /// Draws.
    pub draws: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Share of draws inside the interval, 0..1.
    pub level: f64,
}

impl Default for BootstrapSettings {
    fn default() -> Self {
        Self { draws: 2_000, seed: 1, level: 0.95 }
    }
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateEstimate {
    /// The figure of the calls themselves.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The pooled rate of all calls (all errors / all tokens of the references), with its interval.
///
/// # Errors
///
/// [`BootstrapError`] where there is no call, no reference, or no sense in the settings.
pub fn pooled_rate(calls: &[Counts], settings: BootstrapSettings) -> Result<RateEstimate, BootstrapError> {
    let value = checked(calls)?;
    let draws = draw(calls.len(), settings, |drawn| pooled(calls, drawn).rate())?;
    interval(value, draws, settings.level)
}

/// The pooled rate of `other` minus the pooled rate of `baseline`, with its interval. Element `k` of both is
/// the same call, so leave out calls that are missing on one side, or count them as deleted.
///
/// # Errors
///
/// [`BootstrapError`] where the sides differ in length, or where there is no call, no reference, or no sense
/// in the settings.
pub fn paired_difference(
    baseline: &[Counts],
    other: &[Counts],
    settings: BootstrapSettings,
) -> Result<RateEstimate, BootstrapError> {
    if baseline.len() != other.len() {
        return Err(BootstrapError::NotPaired { baseline: baseline.len(), other: other.len() });
    }
    let value = checked(other)? - checked(baseline)?;
    let draws = draw(baseline.len(), settings, |drawn| {
        Some(pooled(other, drawn).rate()? - pooled(baseline, drawn).rate()?)
    })?;
    interval(value, draws, settings.level)
}

/// The counts of all calls, each as often as it was drawn.
fn pooled(calls: &[Counts], drawn: &[u32]) -> Counts {
    calls.iter().zip(drawn).map(|(counts, times)| counts.times(u64::from(*times))).sum()
}

fn checked(calls: &[Counts]) -> Result<f64, BootstrapError> {
    let pooled: Counts = calls.iter().sum();
    if calls.is_empty() {
        Err(BootstrapError::NoCalls)
    } else if pooled.ref_tokens == 0 {
        Err(BootstrapError::NoReference)
    } else {
        pooled.rate().ok_or(BootstrapError::NoReference)
    }
}

/// The figure of every draw; a draw of nothing but empty references has none and is left out.
fn draw(
    calls: usize,
    settings: BootstrapSettings,
    figure: impl FnMut(&[u32]) -> Option<f64>,
) -> Result<Vec<f64>, BootstrapError> {
    let level_is_sound = settings.level > 0.0 && settings.level < 1.0;
    if settings.draws == 0 || !level_is_sound {
        return Err(BootstrapError::Settings);
    }
    let mut draws = Draws::new(settings.seed, 0);
    Ok(resampled(calls, settings.draws, || draws.index(calls), figure))
}

fn interval(value: f64, sorted: Vec<f64>, level: f64) -> Result<RateEstimate, BootstrapError> {
    let outside = (1.0 - level) / 2.0;
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of the number of draws"
        )]
        let rank = (share * (sorted.len() - 1) as f64).round() as usize;
        sorted.get(rank).copied()
    };
    if sorted.is_empty() {
        return Err(BootstrapError::NoReference);
    }
    match (at(outside), at(1.0 - outside)) {
        (Some(low), Some(high)) => Ok(RateEstimate { value, low, high }),
        _ => Err(BootstrapError::NoReference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(ref_tokens: u64, sub: u64) -> Counts {
        Counts { ref_tokens, sub, ..Counts::default() }
    }

    #[test]
    fn one_seed_is_one_interval_and_another_seed_is_close() {
        let calls: Vec<Counts> = (0..60).map(|k| call(50, k % 7)).collect();
        let a = pooled_rate(&calls, BootstrapSettings::default()).unwrap();
        assert_eq!(a, pooled_rate(&calls, BootstrapSettings::default()).unwrap());
        let b = pooled_rate(&calls, BootstrapSettings { seed: 2, ..BootstrapSettings::default() }).unwrap();
        assert_ne!(a, b);
        assert!(a.low < a.value && a.value < a.high);
        assert!((a.low - b.low).abs() < 0.003 && (a.high - b.high).abs() < 0.003, "{a:?} {b:?}");
    }

    #[test]
    fn the_interval_is_as_wide_as_theory_says() {
        // Equal lengths: the pooled rate is a mean of 100 calls whose rates are 0 or 0.1, half and half, so
        // its standard error is 0.05 / 10 and a 95 % interval is 4 x 0.98 standard errors wide.
        let calls: Vec<Counts> = (0..100).map(|k| call(10, k % 2)).collect();
        let found =
            pooled_rate(&calls, BootstrapSettings { draws: 20_000, ..BootstrapSettings::default() }).unwrap();
        let width = found.high - found.low;
        assert!((width / (2.0 * 1.96 * 0.005) - 1.0).abs() < 0.05, "{width}");
    }

    #[test]
    fn what_both_sides_share_cancels_in_the_difference() {
        let baseline: Vec<Counts> = (0..40).map(|k| call(100, k)).collect();
        let worse: Vec<Counts> = (0..40).map(|k| call(100, k + 2)).collect();
        let found = paired_difference(&baseline, &worse, BootstrapSettings::default()).unwrap();
        for bound in [found.value, found.low, found.high] {
            assert!((bound - 0.02).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn the_paired_difference_agrees_with_scipy() {
        // scipy.stats.bootstrap((before, after, tokens), difference of the pooled rates, paired=True,
        // method="percentile", n_resamples=100000, rng=1), SciPy 1.17.1; both sides are random, hence the tolerance.
        // `fixtures/stats/references.py` makes the figures.
        let side = |errors: [u64; 8]| -> Vec<Counts> {
            [50, 60, 40, 30, 70, 55, 45, 65].into_iter().zip(errors).map(|(n, sub)| call(n, sub)).collect()
        };
        let (before, after) = (side([3, 5, 1, 0, 8, 2, 4, 6]), side([4, 9, 1, 1, 9, 2, 7, 6]));
        let how = BootstrapSettings { draws: 20_000, ..BootstrapSettings::default() };
        let found = paired_difference(&before, &after, how).unwrap();
        assert!((found.value - 10.0 / 415.0).abs() < 1e-12, "{found:?}");
        assert!((found.low - 0.007_143).abs() < 0.002 && (found.high - 0.044_444).abs() < 0.003, "{found:?}");
    }

    #[test]
    fn every_refusal_has_its_reason() {
        let settings = BootstrapSettings::default();
        assert_eq!(pooled_rate(&[], settings), Err(BootstrapError::NoCalls));
        assert_eq!(pooled_rate(&[call(0, 0)], settings), Err(BootstrapError::NoReference));
        let uneven = paired_difference(&[call(1, 0)], &[], settings);
        assert_eq!(uneven, Err(BootstrapError::NotPaired { baseline: 1, other: 0 }));
        for bad in [BootstrapSettings { draws: 0, ..settings }, BootstrapSettings { level: 1.0, ..settings }]
        {
            assert_eq!(pooled_rate(&[call(1, 0)], bad), Err(BootstrapError::Settings));
        }
        let nan = BootstrapSettings { level: f64::NAN, ..settings };
        assert_eq!(pooled_rate(&[call(1, 0)], nan), Err(BootstrapError::Settings));
    }
}
