//! What happened in a window: differences of counters, of histograms, and gaps.

use std::collections::BTreeMap;

use tapedeck_record::{Histogram, Metric, Sample, SampleBody};

/// What a counter grew by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delta {
    /// Growth, restarts bridged; a lower bound when there were any, because what was counted between the last reading
    /// and the restart is lost.
    pub delta: f64,
    /// How often the counter fell: each time its process was started anew.
    pub resets: u32,
    /// How many readings it rests on.
    pub n: usize,
    /// Time between the first and the last of them, seconds.
    pub seconds: f64,
}

/// Growth of a counter over readings `(at_s, value)`, ordered by time. A value below the one before it is a restart from
/// zero. Readings that are not finite are left out; nothing is known from fewer than two.
#[must_use]
pub fn counter_delta(readings: &[(f64, f64)]) -> Option<Delta> {
    let mut readings = readings.iter().filter(|(_, value)| value.is_finite());
    let &(first_s, mut before) = readings.next()?;
    let mut delta = Delta { delta: 0.0, resets: 0, n: 1, seconds: 0.0 };
    for &(at_s, value) in readings {
        if value < before {
            delta.resets = delta.resets.saturating_add(1);
            delta.delta += value;
        } else {
            delta.delta += value - before;
        }
        before = value;
        delta.n += 1;
        delta.seconds = at_s - first_s;
    }
    (delta.n > 1).then_some(delta)
}

/// What a histogram gained in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramDelta {
    /// Finite upper bounds, ascending.
    pub bounds: Vec<f64>,
    /// Observations in each bucket (not cumulative), the last one above every bound.
    pub counts: Vec<f64>,
    /// Sum of the observations, where it is known throughout.
    pub sum: Option<f64>,
    /// How often the histogram was seen to start anew.
    pub resets: u32,
    /// How many readings it rests on.
    pub n: usize,
}

/// A quantile as far as buckets tell it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketQuantile {
    /// Lower end of the bucket that holds it.
    pub lower: f64,
    /// Upper end of that bucket; infinite for the last one.
    pub upper: f64,
    /// Linear interpolation inside the bucket; empty in the last one, where there is nothing to interpolate to.
    pub estimate: Option<f64>,
}

impl HistogramDelta {
    /// Observations in all.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Mean, where the sum is known and there is anything to divide by.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        self.sum.filter(|_| total > 0.0).map(|sum| sum / total)
    }

    /// The bucket that holds quantile `q` (0..1): a histogram knows no more than that interval. Empty without
    /// observations.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<BucketQuantile> {
        let total = self.total();
        if total <= 0.0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = q * total;
        let mut below = 0.0;
        let mut lower = self.bounds.first().map_or(0.0, |first| first.min(0.0));
        for (index, &count) in self.counts.iter().enumerate() {
            let upper = self.bounds.get(index).copied();
            if count > 0.0 && below + count >= rank {
                let estimate =
                    upper.map(|upper| lower + (upper - lower) * ((rank - below) / count).clamp(0.0, 1.0));
                return Some(BucketQuantile { lower, upper: upper.unwrap_or(f64::INFINITY), estimate });
            }
            below += count;
            lower = upper.unwrap_or(lower);
        }
        None
    }
}

/// What a histogram gained over readings `(at_s, histogram)`, ordered by time. Any bucket that falls is a restart from
/// zero. Empty for fewer than two readings, or if the bounds changed on the way.
#[must_use]
pub fn histogram_delta(readings: &[(f64, &Histogram)]) -> Option<HistogramDelta> {
    let (&(_, first), rest) = readings.split_first()?;
    let mut cumulative = vec![0.0; first.counts.len()];
    let mut sum = Some(0.0);
    let mut resets = 0_u32;
    let mut before = first;
    for &(_, now) in rest {
        let same = now.counts.len() == first.counts.len()
            && now.bounds.len() == first.bounds.len()
            && now.bounds.iter().zip(&first.bounds).all(|(a, b)| a.total_cmp(b).is_eq());
        if !same {
            return None;
        }
        let fell = now.counts.iter().zip(&before.counts).any(|(now, before)| now < before);
        if fell {
            resets = resets.saturating_add(1);
        }
        for ((slot, now), before) in cumulative.iter_mut().zip(&now.counts).zip(&before.counts) {
            *slot += if fell { *now } else { now - before };
        }
        sum = match (sum, now.sum, before.sum) {
            (Some(so_far), Some(now), _) if fell => Some(so_far + now),
            (Some(so_far), Some(now), Some(before)) if now >= before => Some(so_far + now - before),
            _ => None,
        };
        before = now;
    }
    if rest.is_empty() {
        return None;
    }
    let mut below = 0.0;
    let counts = cumulative
        .into_iter()
        .map(|count: f64| {
            // A page that was torn between two buckets may count backwards by one.
            let own = (count - below).max(0.0);
            below = count.max(below);
            own
        })
        .collect();
    Some(HistogramDelta { bounds: first.bounds.clone(), counts, sum, resets, n: readings.len() })
}

/// The readings of one metric of one source, as [`counter_delta`] takes them, within `[from_s, to_s]`.
#[must_use]
pub fn readings(samples: &[Sample], source: &str, metric: Metric, from_s: f64, to_s: f64) -> Vec<(f64, f64)> {
    pages(samples, source, from_s, to_s)
        .filter_map(|(at_s, scrape)| Some((at_s, *scrape.values.get(&metric)?)))
        .collect()
}

/// The readings of one histogram of one source, as [`histogram_delta`] takes them, within `[from_s, to_s]`.
#[must_use]
pub fn histograms<'a>(
    samples: &'a [Sample],
    source: &str,
    name: &str,
    from_s: f64,
    to_s: f64,
) -> Vec<(f64, &'a Histogram)> {
    pages(samples, source, from_s, to_s)
        .filter_map(|(at_s, scrape)| Some((at_s, scrape.histograms.get(name)?)))
        .collect()
}

fn pages<'a>(
    samples: &'a [Sample],
    source: &str,
    from_s: f64,
    to_s: f64,
) -> impl Iterator<Item = (f64, &'a tapedeck_record::Scrape)> {
    samples
        .iter()
        .filter(move |sample| sample.source == source && (from_s..=to_s).contains(&sample.at_s))
        .filter_map(|sample| match &sample.body {
            SampleBody::Engine(scrape) => Some((sample.at_s, scrape)),
            _ => None,
        })
}

/// What was not seen of a source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gaps {
    /// Readings that failed.
    pub failed: u32,
    /// Readings that succeeded.
    pub read: u32,
    /// Longest time without a successful reading inside the window, its edges included, seconds.
    pub longest_s: f64,
    /// Why readings failed, and how often.
    pub reasons: BTreeMap<String, u32>,
}

/// Gaps of one source within `[from_s, to_s]`.
#[must_use]
pub fn gaps(samples: &[Sample], source: &str, from_s: f64, to_s: f64) -> Gaps {
    let mut gaps = Gaps::default();
    let mut last_s = from_s;
    let inside = |sample: &&Sample| sample.source == source && (from_s..=to_s).contains(&sample.at_s);
    for sample in samples.iter().filter(inside) {
        if let SampleBody::Gap { why } = &sample.body {
            gaps.failed = gaps.failed.saturating_add(1);
            *gaps.reasons.entry(why.clone()).or_default() += 1;
        } else {
            gaps.read = gaps.read.saturating_add(1);
            gaps.longest_s = gaps.longest_s.max(sample.at_s - last_s);
            last_s = sample.at_s;
        }
    }
    gaps.longest_s = gaps.longest_s.max(to_s - last_s).max(0.0);
    gaps
}

#[cfg(test)]
mod tests {
    use tapedeck_record::Scrape;

    use super::*;

    #[test]
    fn counters_grow_across_restarts() {
        let delta = counter_delta(&[(0.0, 10.0), (1.0, 12.0), (2.0, 3.0), (3.0, 5.0), (4.0, 1.0)]).unwrap();
        assert_eq!(delta, Delta { delta: 8.0, resets: 2, n: 5, seconds: 4.0 });
    }

    #[test]
    fn too_few_readings_tell_nothing() {
        assert_eq!(counter_delta(&[]), None);
        assert_eq!(counter_delta(&[(0.0, 5.0)]), None);
        assert_eq!(counter_delta(&[(0.0, 5.0), (1.0, f64::NAN)]), None);
        let skipped = counter_delta(&[(0.0, 5.0), (1.0, f64::INFINITY), (2.0, 6.0)]).unwrap();
        assert_eq!((skipped.delta, skipped.resets, skipped.n), (1.0, 0, 2));
    }

    fn histogram(counts: &[f64], sum: Option<f64>) -> Histogram {
        Histogram { bounds: vec![0.5, 1.0], counts: counts.to_vec(), sum }
    }

    #[test]
    fn histograms_are_compared_bucket_by_bucket() {
        let (a, b) = (histogram(&[10.0, 10.0, 10.0], Some(2.0)), histogram(&[12.0, 18.0, 20.0], Some(10.0)));
        let delta = histogram_delta(&[(0.0, &a), (1.0, &b)]).unwrap();
        assert_eq!((delta.counts.as_slice(), delta.sum, delta.resets), (&[2.0, 6.0, 2.0][..], Some(8.0), 0));
        assert_eq!(delta.mean(), Some(0.8));
        let median = delta.quantile(0.5).unwrap();
        assert_eq!((median.lower, median.upper, median.estimate), (0.5, 1.0, Some(0.75)));
        let p99 = delta.quantile(0.99).unwrap();
        assert_eq!((p99.lower, p99.upper, p99.estimate), (1.0, f64::INFINITY, None));
        let least = delta.quantile(0.0).unwrap();
        assert_eq!((least.lower, least.estimate), (0.0, Some(0.0)));
        assert_eq!(delta.quantile(1.5), None);
    }

    #[test]
    fn histogram_restarts_are_bridged() {
        let (a, b) = (histogram(&[10.0, 10.0, 10.0], Some(2.0)), histogram(&[1.0, 2.0, 3.0], Some(2.5)));
        let delta = histogram_delta(&[(0.0, &a), (1.0, &b)]).unwrap();
        assert_eq!((delta.counts.as_slice(), delta.sum, delta.resets), (&[1.0, 1.0, 1.0][..], Some(2.5), 1));
    }

    #[test]
    fn histograms_say_nothing_where_they_cannot() {
        let a = histogram(&[1.0, 1.0, 1.0], None);
        assert_eq!(histogram_delta(&[(0.0, &a)]), None);
        let other = Histogram { bounds: vec![0.5, 2.0], counts: vec![1.0, 1.0, 1.0], sum: None };
        assert_eq!(histogram_delta(&[(0.0, &a), (1.0, &other)]), None);
        let quiet = histogram_delta(&[(0.0, &a), (1.0, &a)]).unwrap();
        assert_eq!((quiet.quantile(0.5), quiet.mean(), quiet.sum), (None, None, None));
    }

    #[test]
    fn gaps_are_gaps_and_not_zeros() {
        let page = |at_s: f64, running: f64| Sample {
            at_s,
            source: "a".into(),
            body: SampleBody::Engine(Scrape {
                values: [(Metric::Running, running)].into(),
                ..Scrape::default()
            }),
        };
        let hole =
            |at_s: f64| Sample { at_s, source: "a".into(), body: SampleBody::Gap { why: "refused".into() } };
        let other = Sample { source: "b".into(), ..page(2.5, 99.0) };
        let samples = [page(1.0, 5.0), hole(2.0), hole(3.0), other, page(4.0, 7.0), page(9.0, 1.0)];
        assert_eq!(readings(&samples, "a", Metric::Running, 0.0, 5.0), [(1.0, 5.0), (4.0, 7.0)]);
        let gaps = gaps(&samples, "a", 0.0, 5.0);
        assert_eq!((gaps.failed, gaps.read, gaps.longest_s), (2, 2, 3.0));
        assert_eq!(gaps.reasons, [("refused".to_owned(), 2)].into());
        let never = super::gaps(&samples, "c", 0.0, 5.0);
        assert_eq!((never.read, never.longest_s), (0, 5.0));
    }
}
