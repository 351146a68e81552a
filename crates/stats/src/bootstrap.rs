//! Bootstrap by group: whole groups are drawn again, because what lies within one is not independent.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use crate::order::{ConfidenceInterval, percentile_sorted, rank, sort};
use crate::rng::Draws;

/// How to draw again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// Resamples.
    pub resamples: u32,
    /// Two-sided confidence.
    pub confidence: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// Separates uses of one seed.
    pub stream: u64,
}

/// Interval of the `q` quantile over `(group, value)` pairs, by drawing groups with replacement.
///
/// The bounds are percentiles of the resampled quantiles. Empty with fewer than two groups: one group cannot show
/// how groups differ. Each resample costs draws plus a walk from the nearer end of the sorted sample, so 1,000
/// resamples of 1,000 values take a few milliseconds.
#[must_use]
pub fn bootstrap_quantile(pairs: &[(u32, f64)], q: f64, how: &Resampling) -> ConfidenceInterval {
    let mut sizes: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (group, _) in pairs {
        let next = sizes.len();
        sizes.entry(*group).or_insert((next, 0)).1 += 1;
    }
    let mut group_size = vec![0_usize; sizes.len()];
    for &(index, size) in sizes.values() {
        group_size[index] = size;
    }
    let mut sorted: Vec<(f64, usize)> =
        pairs.iter().filter_map(|(group, value)| Some((*value, sizes.get(group)?.0))).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    if q >= 0.5 {
        sorted.reverse();
    }
    resample(group_size.len(), how, |drawn| {
        let total: usize = drawn.iter().zip(&group_size).map(|(&times, &size)| times as usize * size).sum();
        let from_bottom = rank(NonZeroUsize::new(total)?, q);
        let mut to_pass = if q >= 0.5 { total - 1 - from_bottom } else { from_bottom };
        sorted.iter().find_map(|&(value, group)| {
            let times = drawn[group] as usize;
            if times > to_pass {
                Some(value)
            } else {
                to_pass -= times;
                None
            }
        })
    })
}

/// Interval of a pooled ratio (sum of numerators / sum of denominators) over `(group, numerator, denominator)`.
#[must_use]
pub fn bootstrap_ratio(parts: &[(u32, f64, f64)], how: &Resampling) -> ConfidenceInterval {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for &(group, numerator, denominator) in parts {
        let sum = sums.entry(group).or_default();
        sum.0 += numerator;
        sum.1 += denominator;
    }
    let sums: Vec<(f64, f64)> = sums.into_values().collect();
    resample(sums.len(), how, |drawn| {
        let (numerator, denominator) = drawn
            .iter()
            .zip(&sums)
            .fold((0.0, 0.0), |(n, d), (&times, s)| (n + f64::from(times) * s.0, d + f64::from(times) * s.1));
        (denominator > 0.0).then(|| numerator / denominator)
    })
}

/// Draws `groups` groups with replacement, as many as there are, `resamples` times, each place from `pick`; `statistic`
/// sees how often each group was drawn, and where it gives nothing the resample is left out. The values come back in
/// ascending order.
pub fn resampled(
    groups: usize,
    resamples: u32,
    mut pick: impl FnMut() -> usize,
    mut statistic: impl FnMut(&[u32]) -> Option<f64>,
) -> Vec<f64> {
    let mut drawn = vec![0_u32; groups];
    let mut values = Vec::with_capacity(resamples as usize);
    for _ in 0..resamples {
        drawn.fill(0);
        for _ in 0..groups {
            drawn[pick()] += 1;
        }
        values.extend(statistic(&drawn));
    }
    sort(&mut values);
    values
}

/// The percentile interval of a statistic over groups.
fn resample(
    groups: usize,
    how: &Resampling,
    statistic: impl FnMut(&[u32]) -> Option<f64>,
) -> ConfidenceInterval {
    let Some(n) = u32::try_from(groups).ok().filter(|&n| n >= 2) else {
        return ConfidenceInterval::default();
    };
    let mut draws = Draws::new(how.seed, how.stream);
    let values = resampled(groups, how.resamples, || draws.below(n) as usize, statistic);
    let half_alpha = (1.0 - how.confidence) / 2.0;
    ConfidenceInterval {
        low: percentile_sorted(&values, half_alpha),
        high: percentile_sorted(&values, 1.0 - half_alpha),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Resampling = Resampling { resamples: 4_000, confidence: 0.95, seed: 1, stream: 0 };

    /// The same bootstrap without any cleverness: copy the groups, sort, take the percentile.
    fn plainly(pairs: &[(u32, f64)], q: f64, how: &Resampling) -> ConfidenceInterval {
        let mut groups: Vec<Vec<f64>> = Vec::new();
        let mut names = Vec::new();
        for &(g, v) in pairs {
            let at = names.iter().position(|&n| n == g).unwrap_or_else(|| {
                names.push(g);
                groups.push(Vec::new());
                names.len() - 1
            });
            groups[at].push(v);
        }
        let mut draws = Draws::new(how.seed, how.stream);
        let n = u32::try_from(groups.len()).unwrap();
        let mut values: Vec<f64> = (0..how.resamples)
            .map(|_| {
                let mut sample: Vec<f64> =
                    (0..n).flat_map(|_| groups[draws.below(n) as usize].clone()).collect();
                crate::order::percentile(&mut sample, q).unwrap()
            })
            .collect();
        sort(&mut values);
        let half = (1.0 - how.confidence) / 2.0;
        ConfidenceInterval {
            low: percentile_sorted(&values, half),
            high: percentile_sorted(&values, 1.0 - half),
        }
    }

    #[test]
    fn the_quick_walk_equals_the_plain_bootstrap() {
        let mut draws = Draws::new(5, 0);
        let pairs: Vec<(u32, f64)> = (0..120)
            .map(|i| (i % 7, if draws.below(20) == 0 { f64::INFINITY } else { draws.unit() }))
            .collect();
        let how = Resampling { resamples: 300, ..HOW };
        for q in [0.05, 0.5, 0.95, 1.0] {
            assert_eq!(bootstrap_quantile(&pairs, q, &how), plainly(&pairs, q, &how), "q = {q}");
        }
    }

    #[test]
    fn groups_that_differ_widen_the_interval() {
        // 9 streams x 20 calls; within a stream all calls are alike, so there are really only 9 observations.
        let alike: Vec<(u32, f64)> = (0..180).map(|i| (i / 20, f64::from(i / 20))).collect();
        let mixed: Vec<(u32, f64)> = (0..180).map(|i| (i % 9, f64::from(i / 20))).collect();
        let width = |pairs: &[(u32, f64)]| {
            let b = bootstrap_quantile(pairs, 0.5, &HOW);
            b.high.unwrap() - b.low.unwrap()
        };
        assert!(width(&alike) >= 3.0, "{}", width(&alike));
        assert!(width(&mixed) < 0.5, "{}", width(&mixed));
    }

    #[test]
    fn one_group_gives_no_interval() {
        assert_eq!(bootstrap_quantile(&[(3, 1.0), (3, 2.0)], 0.5, &HOW), ConfidenceInterval::default());
        assert_eq!(bootstrap_ratio(&[(3, 1.0, 2.0)], &HOW), ConfidenceInterval::default());
        assert_eq!(bootstrap_quantile(&[], 0.5, &HOW), ConfidenceInterval::default());
    }

    #[test]
    fn the_ratio_interval_agrees_with_scipy() {
        let parts = [
            (0, 3.0, 50.0),
            (1, 5.0, 60.0),
            (2, 1.0, 40.0),
            (3, 0.0, 30.0),
            (4, 8.0, 70.0),
            (5, 2.0, 55.0),
            (6, 4.0, 45.0),
            (7, 6.0, 65.0),
        ];
        let b = bootstrap_ratio(&parts, &Resampling { resamples: 20_000, ..HOW });
        // scipy.stats.bootstrap((num, den), ratio of sums, paired=True, method="percentile", n_resamples=100000,
        // rng=1), SciPy 1.17.1; both sides are random, hence the tolerance.
        assert!((b.low.unwrap() - 0.043_836).abs() < 0.003, "{b:?}");
        assert!((b.high.unwrap() - 0.090_909).abs() < 0.003, "{b:?}");
    }

    #[test]
    fn the_quantile_interval_agrees_with_scipy() {
        // One value per group makes it the ordinary bootstrap: scipy.stats.bootstrap((x,), statistic = percentile
        // with method="inverted_cdf" at 90 %, method="percentile", n_resamples=20000, rng=1).
        let pairs: Vec<(u32, f64)> = (0..40_u32).map(|i| (i, f64::from((i * 17) % 40))).collect();
        let b = bootstrap_quantile(&pairs, 0.9, &Resampling { resamples: 20_000, ..HOW });
        assert_eq!((b.low, b.high), (Some(30.0), Some(38.0)));
    }
}
