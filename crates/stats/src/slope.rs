//! Robust slopes: Theil-Sen, with an interval for independent noise and one for noise with a memory.

use std::collections::BTreeMap;

use crate::bootstrap::Resampling;
use crate::normal::normal_quantile;
use crate::order::{percentile_sorted, sort};
use crate::rng::Draws;

/// A fitted line with the interval of its slope.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Slope {
    /// Median of the slopes between all pairs of points.
    pub slope: f64,
    /// Median of y minus slope x median of x.
    pub intercept: f64,
    /// Lower bound of the two-sided interval.
    pub low: f64,
    /// Upper bound of the two-sided interval.
    pub high: f64,
}

/// Median with the mean of the two middle values for an even sample, as slopes are usually given.
fn median_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(*sorted.get(middle - 1)?, upper)) }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    sort(&mut values);
    median_sorted(&values)
}

/// Slopes between all pairs of points with different x, unsorted.
fn pair_slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            let dx = b.0 - a.0;
            if dx != 0.0 {
                slopes.push((b.1 - a.1) / dx);
            }
        }
    }
    slopes
}

/// Sum of k (k - 1) (2 k + 5) over groups of `k` equal values: what ties take from the variance of Kendall's S.
fn tie_term(values: impl Iterator<Item = f64>) -> f64 {
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    for value in values {
        // Adding 0 makes -0 and 0 the same value.
        *counts.entry((value + 0.0).to_bits()).or_default() += 1.0;
    }
    counts.values().filter(|&&k| k > 1.0).map(|k| k * (k - 1.0) * (2.0 * k + 5.0)).sum()
}

/// Theil-Sen line through `(x, y)` points with Sen's interval of the slope, which assumes that noise has no memory.
///
/// Memory and time grow with the square of the sample: 2,000 points are 2 million pairs. Empty where no two points
/// differ in x.
#[must_use]
pub fn theil_sen(points: &[(f64, f64)], confidence: f64) -> Option<Slope> {
    let mut slopes = pair_slopes(points);
    sort(&mut slopes);
    let slope = median_sorted(&slopes)?;
    let x_median = median(points.iter().map(|p| p.0).collect())?;
    let y_median = median(points.iter().map(|p| p.1).collect())?;
    #[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
    let [n, pairs] = [points.len() as f64, slopes.len() as f64];
    let untied = n * (n - 1.0) * (2.0 * n + 5.0);
    let ties = tie_term(points.iter().map(|p| p.0)) + tie_term(points.iter().map(|p| p.1));
    let reach = normal_quantile(f64::midpoint(1.0, confidence)) * ((untied - ties).max(0.0) / 18.0).sqrt();
    let at = |rank: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the slopes")]
        let index = rank.round_ties_even().clamp(0.0, pairs - 1.0) as usize;
        slopes.get(index).copied()
    };
    Some(Slope {
        slope,
        intercept: y_median - slope * x_median,
        low: at(((pairs - reach) / 2.0).round_ties_even() - 1.0)?,
        high: at((pairs + reach) / 2.0)?,
    })
}

/// First-order autocorrelation of residuals in order of time, held to 0..0.95.
fn lag1_autocorrelation(residuals: &[f64]) -> f64 {
    let square: f64 = residuals.iter().map(|r| r * r).sum();
    let lagged: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(a, b)| a * b).sum();
    if square > 0.0 { (lagged / square).clamp(0.0, 0.95) } else { 0.0 }
}

/// By how much a moving-block interval has to be widened for noise with autocorrelations r, r^2, r^3...
///
/// The slope's variance is proportional to the sum of all autocorrelations, (1 + r) / (1 - r); blocks of length b only
/// see the sum of (1 - h / b) r^h over |h| < b. A line of two parameters takes the share 2 / n of that sum away from
/// the residuals' variance. And because that variance is itself estimated, from no more than n / ((1 + r) / (1 - r)) - 2
/// independent values, the deviation of Student's t takes the place of the normal one.
fn variance_inflation(r: f64, block: usize, n: f64) -> f64 {
    let whole = (1.0 + r) / (1.0 - r);
    #[expect(clippy::cast_precision_loss, reason = "blocks are far shorter than 2^53")]
    let length = block as f64;
    let (mut seen, mut power, mut h) = (1.0, r, 1.0);
    while h < length {
        seen += 2.0 * (1.0 - h / length) * power;
        power *= r;
        h += 1.0;
    }
    let kept = (1.0 - 2.0 * whole / n).max(0.25);
    let degrees_of_freedom = (n / whole - 2.0).max(3.0);
    (whole / seen / kept * degrees_of_freedom / (degrees_of_freedom - 2.0)).sqrt()
}

/// Theil-Sen line whose interval allows for noise with a memory (an AR(1) process, say): residuals are drawn again
/// in moving blocks, put back onto the line, and the line is fitted again.
///
/// Points must be in order of x and roughly evenly spaced. The block length follows the residuals' first
/// autocorrelation r: `(2 r / (1 - r^2))^(2/3) n^(1/3)`, at least 1 and at most a quarter of the sample. Three things
/// make such an interval too narrow for short samples, and each is put right for an AR(1) memory: a fitted line takes
/// some of r with it (Marriott and Pope: r is replaced by `(n r + 2) / (n - 4)`), blocks forget what reaches across
/// their ends, and the line takes some of the noise with it (both widen the interval, see `variance_inflation`).
/// What remains: for 48 points with r up to 0.95, intervals that say 95 % hold the true slope in 86 to 94 % of runs
/// (measured in 400 runs each), so a verdict should ask for more confidence than it needs.
///
/// Costs `resamples` fits, so average long series down to about 60 points first. Empty below 8 points.
#[must_use]
pub fn theil_sen_with_memory(points: &[(f64, f64)], how: &Resampling) -> Option<Slope> {
    let n = points.len();
    let line = theil_sen(points, how.confidence).filter(|_| n >= 8)?;
    let fitted = |x: f64| line.intercept + line.slope * x;
    let raw: Vec<f64> = points.iter().map(|p| p.1 - fitted(p.0)).collect();
    #[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
    let size = n as f64;
    let mean = raw.iter().sum::<f64>() / size;
    let residuals: Vec<f64> = raw.iter().map(|r| r - mean).collect();
    let r = ((size * lag1_autocorrelation(&residuals) + 2.0) / (size - 4.0)).min(0.95);
    let wanted = (2.0 * r / (1.0 - r * r)).powf(2.0 / 3.0) * size.cbrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the sample")]
    let block = wanted.ceil().clamp(1.0, (size / 4.0).floor()) as usize;
    let widen = variance_inflation(r, block, size);
    let starts = u32::try_from(n - block + 1).ok()?;
    let mut draws = Draws::new(how.seed, how.stream);
    let mut again = points.to_vec();
    let mut deviations = Vec::with_capacity(how.resamples as usize);
    for _ in 0..how.resamples {
        let mut at = 0;
        while at < n {
            let start = draws.below(starts) as usize;
            for (point, residual) in again.iter_mut().skip(at).zip(&residuals[start..start + block]) {
                point.1 = fitted(point.0) + residual;
            }
            at += block;
        }
        let mut slopes = pair_slopes(&again);
        let middle = slopes.len() / 2;
        let (_, refitted, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
        deviations.push((*refitted - line.slope) * widen);
    }
    sort(&mut deviations);
    let half_alpha = (1.0 - how.confidence) / 2.0;
    let low = line.slope - percentile_sorted(&deviations, 1.0 - half_alpha)?;
    let high = line.slope - percentile_sorted(&deviations, half_alpha)?;
    Some(Slope { low, high, ..line })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.theilslopes(y, x, 0.95), SciPy 1.17.1.
        let y = [1.2, 0.9, 2.1, 2.0, 3.9, 2.5, 3.6, 4.4, 4.1, 9.0];
        let points: Vec<(f64, f64)> = (0..10).map(f64::from).zip(y).collect();
        let s = theil_sen(&points, 0.95).unwrap();
        assert!(close(s.slope, 0.533_333_333_333_333_2) && close(s.intercept, 0.65), "{s:?}");
        assert!(close(s.low, 0.266_666_666_666_666_66) && close(s.high, 0.985_714_285_714_285_8), "{s:?}");
        // With ties in x and y.
        let x = [0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0];
        let y = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0, 4.0, 6.0, 5.0];
        let s = theil_sen(&x.into_iter().zip(y).collect::<Vec<_>>(), 0.95).unwrap();
        assert!(close(s.slope, 0.75) && close(s.intercept, 1.125), "{s:?}");
        assert!(close(s.low, 0.5) && close(s.high, 1.0), "{s:?}");
    }

    #[test]
    fn no_slope_without_two_different_x() {
        assert_eq!(theil_sen(&[(1.0, 2.0), (1.0, 3.0)], 0.95), None);
        assert_eq!(theil_sen(&[], 0.95), None);
        assert_eq!(theil_sen_with_memory(&[(1.0, 2.0)], &HOW), None);
    }

    const HOW: Resampling = Resampling { resamples: 200, confidence: 0.95, seed: 1, stream: 0 };

    /// 48 points of AR(1) noise of deviation 1 around a line.
    fn noisy(slope: f64, phi: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut draws = Draws::new(seed, 9);
        let mut noise = draws.normal();
        (0..48)
            .map(|i| {
                noise = phi * noise + (1.0 - phi * phi).sqrt() * draws.normal();
                (f64::from(i), slope * f64::from(i) + noise)
            })
            .collect()
    }

    #[test]
    fn the_interval_with_memory_covers_where_the_plain_one_does_not() {
        let misses = |fit: fn(&[(f64, f64)]) -> Slope| {
            (0..200)
                .filter(|&seed| {
                    let s = fit(&noisy(0.1, 0.7, seed));
                    s.low > 0.1 || s.high < 0.1
                })
                .count()
        };
        let plain = misses(|p| theil_sen(p, 0.95).unwrap());
        let with_memory = misses(|p| theil_sen_with_memory(p, &HOW).unwrap());
        assert!(plain > 40, "plain missed only {plain} of 200");
        assert!(with_memory <= 34, "with memory missed {with_memory} of 200, 10 would be nominal");
    }

    #[test]
    fn without_memory_both_intervals_agree_roughly() {
        let points = noisy(0.1, 0.0, 3);
        let [plain, memory] =
            [theil_sen(&points, 0.95).unwrap(), theil_sen_with_memory(&points, &HOW).unwrap()];
        let ratio = (memory.high - memory.low) / (plain.high - plain.low);
        assert!((0.7..2.0).contains(&ratio), "{ratio}");
        assert!(close(plain.slope, memory.slope));
    }
}
