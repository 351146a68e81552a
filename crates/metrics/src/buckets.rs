//! What a page's cumulative histogram says of the observations since its server started.

use tapedeck_record::Histogram;

/// The observations in a histogram's buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets {
    /// Finite upper bounds, ascending.
    bounds: Vec<f64>,
    /// Observations in each bucket (not cumulative), the last one above every bound.
    counts: Vec<f64>,
    sum: Option<f64>,
}

/// The bucket that holds a quantile: a histogram knows no more than that interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BucketQuantile {
    /// Its lower end.
    pub lower: f64,
    /// Its upper end; infinite for the last one.
    pub upper: f64,
}

impl Buckets {
    /// The buckets of a cumulative histogram. A page that was torn between two buckets may count backwards by one.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let mut below = 0.0;
        let own = |count: &f64| {
            let own = (count - below).max(0.0);
            below = count.max(below);
            own
        };
        Self {
            counts: histogram.counts.iter().map(own).collect(),
            bounds: histogram.bounds.clone(),
            sum: histogram.sum,
        }
    }

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

    /// The bucket that holds quantile `q` (0..1); empty without observations.
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
                return Some(BucketQuantile { lower, upper: upper.unwrap_or(f64::INFINITY) });
            }
            below += count;
            lower = upper.unwrap_or(lower);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(counts: &[f64], sum: Option<f64>) -> Buckets {
        Buckets::of(&Histogram { bounds: vec![0.5, 1.0], counts: counts.to_vec(), sum })
    }

    #[test]
    fn observations_are_counted_bucket_by_bucket() {
        let some = buckets(&[2.0, 8.0, 10.0], Some(8.0));
        assert_eq!(
            (some.counts.as_slice(), some.total(), some.mean()),
            (&[2.0, 6.0, 2.0][..], 10.0, Some(0.8))
        );
        let median = some.quantile(0.5).unwrap();
        assert_eq!((median.lower, median.upper), (0.5, 1.0));
        let p99 = some.quantile(0.99).unwrap();
        assert_eq!((p99.lower, p99.upper), (1.0, f64::INFINITY));
        assert!(some.quantile(0.0).unwrap().lower.abs() < 1e-12);
        assert_eq!(some.quantile(1.5), None);
    }

    #[test]
    fn a_histogram_says_nothing_where_it_cannot() {
        let quiet = buckets(&[0.0, 0.0, 0.0], Some(0.0));
        assert_eq!((quiet.quantile(0.5), quiet.mean()), (None, None));
        assert_eq!(buckets(&[1.0, 1.0, 1.0], None).mean(), None);
        assert_eq!(buckets(&[3.0, 2.0, 4.0], None).counts, [3.0, 0.0, 1.0], "torn between two buckets");
    }
}
