//! Histograms as they are kept: without the buckets that tell nothing.
//!
//! A page repeats some twenty bounds and counts for each histogram, most of them empty or full, every second. In
//! `series.jsonl` the first sample of a source in a step has them all; later ones leave out every bound whose count is
//! that of both its neighbours. What was left out is known: a cumulative count that does not change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tapedeck_record::{Histogram, Sample, SampleBody};

/// Bucket bounds of the last whole histogram, by source and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct BucketBounds(BTreeMap<String, BTreeMap<String, Vec<f64>>>);

impl BucketBounds {
    /// The sample as it is written.
    pub(crate) fn shrink<'a>(&mut self, sample: &'a Sample) -> Cow<'a, Sample> {
        let SampleBody::Engine(scrape) = &sample.body else { return Cow::Borrowed(sample) };
        if scrape.histograms.is_empty() {
            return Cow::Borrowed(sample);
        }
        let known = self.0.entry(sample.source.clone()).or_default();
        let mut scrape = scrape.clone();
        for (name, histogram) in &mut scrape.histograms {
            if known.get(name) == Some(&histogram.bounds) {
                *histogram = shrunk(histogram);
            } else {
                known.insert(name.clone(), histogram.bounds.clone());
            }
        }
        Cow::Owned(Sample { body: SampleBody::Engine(scrape), ..sample.clone() })
    }

    /// The sample as it was; one that was written whole stays as it is.
    pub(crate) fn restore(&mut self, mut sample: Sample) -> Sample {
        if let SampleBody::Engine(scrape) = &mut sample.body {
            let known = self.0.entry(sample.source.clone()).or_default();
            for (name, histogram) in &mut scrape.histograms {
                match known.get(name).and_then(|bounds| restored(histogram, bounds)) {
                    Some(whole) => *histogram = whole,
                    None => drop(known.insert(name.clone(), histogram.bounds.clone())),
                }
            }
        }
        sample
    }
}

/// Without every bound whose count is that of both its neighbours; the last count (+Inf) stays.
fn shrunk(histogram: &Histogram) -> Histogram {
    let counts = &histogram.counts;
    let mut delta = Histogram { sum: histogram.sum, ..Histogram::default() };
    let mut before = 0.0_f64;
    for (i, (bound, count)) in histogram.bounds.iter().zip(counts).enumerate() {
        let after = counts.get(i + 1).copied().unwrap_or(f64::NAN);
        if before.total_cmp(count).is_ne() || after.total_cmp(count).is_ne() {
            delta.bounds.push(*bound);
            delta.counts.push(*count);
        }
        before = *count;
    }
    delta.counts.extend(counts.get(histogram.bounds.len()..).unwrap_or_default());
    delta
}

/// With all bounds again; nothing if it has one that is not among them.
fn restored(delta: &Histogram, bounds: &[f64]) -> Option<Histogram> {
    let mut kept = delta.bounds.iter().zip(&delta.counts).peekable();
    let mut counts = Vec::with_capacity(bounds.len() + 1);
    let mut count = 0.0;
    for bound in bounds {
        if let Some((_, own)) = kept.next_if(|(own, _)| own.total_cmp(bound).is_eq()) {
            count = *own;
        }
        counts.push(count);
    }
    if kept.next().is_some() {
        return None;
    }
    counts.extend(delta.counts.get(delta.bounds.len()..).unwrap_or_default());
    Some(Histogram { bounds: bounds.to_vec(), counts, sum: delta.sum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapedeck_record::Scrape;

    fn sample(source: &str, bounds: &[f64], counts: &[f64]) -> Sample {
        let histogram = Histogram { bounds: bounds.to_vec(), counts: counts.to_vec(), sum: Some(1.5) };
        let histograms = [("ttft".to_string(), histogram)].into();
        Sample {
            at_s: 1.0,
            source: source.into(),
            body: SampleBody::Engine(Scrape { values: BTreeMap::new(), histograms }),
        }
    }

    fn bounds_of(sample: &Sample) -> Vec<f64> {
        match &sample.body {
            SampleBody::Engine(scrape) => scrape.histograms["ttft"].bounds.clone(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_sample_comes_back_whole_and_the_later_ones_are_short() {
        let bounds = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2];
        let all = [
            sample("a", &bounds, &[0.0; 7]),
            sample("b", &bounds, &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]),
            sample("a", &bounds, &[0.0, 0.0, 5.0, 9.0, 9.0, 9.0, 9.0]),
            sample("b", &bounds, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
            // A restart, other bounds, then the old ones again.
            sample("a", &bounds, &[0.0; 7]),
            sample("a", &[0.5, 1.0], &[0.0, 1.0, 1.0]),
            sample("a", &bounds, &[2.0; 7]),
        ];
        let (mut writer, mut reader) = (BucketBounds::default(), BucketBounds::default());
        let kept: Vec<Sample> = all.iter().map(|s| writer.shrink(s).into_owned()).collect();
        let back: Vec<Sample> = kept.iter().map(|s| reader.restore(s.clone())).collect();
        assert_eq!(back, all);
        assert_eq!(bounds_of(&kept[2]), [0.2, 0.4, 0.8]);
        assert_eq!(bounds_of(&kept[3]), bounds);
        assert_eq!(bounds_of(&kept[4]), [0.0_f64; 0]);
        // A run of an earlier version has every sample whole.
        let mut reader = BucketBounds::default();
        let same: Vec<Sample> = all.iter().map(|s| reader.restore(s.clone())).collect();
        assert_eq!(same, all);
    }
}
