//! Samples of a step, thinned out for plots, and what histograms of the engines gained.

use std::collections::BTreeMap;

use crate::line::{End, SCALARS, place_of};
use crate::samples::Samples;

/// One bin of a thinned-out series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Middle of the bin, seconds from the run's origin.
    pub at_s: f64,
    /// Smallest value.
    pub min: f64,
    /// Mean value.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
}

#[derive(Debug, Clone, Copy)]
struct Sums {
    min: f64,
    max: f64,
    sum: f64,
    n: f64,
}

/// Bins of equal length whose length doubles when there are too many.
#[derive(Debug, Clone, Default)]
struct Thin {
    from_s: Option<f64>,
    width_s: f64,
    bins: Vec<Option<Sums>>,
}

/// More bins than this cannot be told apart on a plot.
const BINS: usize = 512;

impl Thin {
    fn add(&mut self, at_s: f64, value: f64) {
        if !at_s.is_finite() || !value.is_finite() {
            return;
        }
        if self.width_s <= 0.0 {
            self.width_s = 1.0;
        }
        let from_s = *self.from_s.get_or_insert_with(|| at_s.floor());
        let place = |width_s: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "held above 0; a float cast saturates"
            )]
            let index = ((at_s - from_s) / width_s).max(0.0) as usize;
            index
        };
        while place(self.width_s) >= BINS {
            self.width_s *= 2.0;
            self.bins = self.bins.chunks(2).map(|pair| pair.iter().flatten().copied().reduce(join)).collect();
        }
        let index = place(self.width_s);
        if self.bins.len() <= index {
            self.bins.resize(index + 1, None);
        }
        if let Some(bin) = self.bins.get_mut(index) {
            let one = Sums { min: value, max: value, sum: value, n: 1.0 };
            *bin = Some(bin.map_or(one, |b| join(b, one)));
        }
    }

    fn bins(&self) -> Vec<Bin> {
        let from_s = self.from_s.unwrap_or(0.0);
        let mut at_s = from_s - self.width_s / 2.0;
        self.bins
            .iter()
            .filter_map(|bin| {
                at_s += self.width_s;
                bin.map(|b| Bin { at_s, min: b.min, mean: b.sum / b.n, max: b.max })
            })
            .collect()
    }
}

fn join(a: Sums, b: Sums) -> Sums {
    Sums { min: a.min.min(b.min), max: a.max.max(b.max), sum: a.sum + b.sum, n: a.n + b.n }
}

/// What a cumulative histogram gained during a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gained {
    /// Observations.
    pub count: f64,
    /// Their sum, where the engine's sums can be used.
    pub sum: Option<f64>,
}

impl Gained {
    /// Mean of the observations.
    #[must_use]
    pub fn mean(self) -> Option<f64> {
        self.sum.filter(|_| self.count > 0.0).map(|s| s / self.count)
    }
}

#[derive(Debug, Clone)]
struct Track {
    last: Option<End>,
    gained: Gained,
    sums: bool,
}

/// What was read of one source.
#[derive(Debug, Clone)]
struct Source {
    /// A place for each scalar.
    thin: Vec<Thin>,
    /// Histograms by name; there are few.
    tracks: Vec<(String, Track)>,
}

/// The samples of a step.
#[derive(Debug, Clone, Default)]
pub struct Series {
    window: (f64, f64),
    /// By name, the place among the sources.
    places: BTreeMap<String, usize>,
    sources: Vec<Source>,
    /// Samples that were read.
    pub samples: u64,
    /// Read-outs that failed.
    pub gaps: u64,
}

impl Series {
    /// Nothing read yet; histograms are followed within the window of counted calls, seconds.
    #[must_use]
    pub fn new(window: (f64, f64)) -> Self {
        Self { window, ..Self::default() }
    }

    /// Takes the samples that follow.
    pub fn add(&mut self, samples: &Samples) {
        let names = samples.names();
        let gap = names.iter().position(|name| name == "gap");
        // Names are looked up once, not with every sample.
        let mut places: Vec<Option<usize>> = vec![None; names.len()];
        for sample in samples.iter() {
            if Some(sample.kind) == gap {
                self.gaps += 1;
                continue;
            }
            self.samples += 1;
            let (Some(place), Some(name)) = (places.get_mut(sample.source), names.get(sample.source)) else {
                continue;
            };
            let place = *place.get_or_insert_with(|| self.place(name));
            let Some(source) = self.sources.get_mut(place) else { continue };
            for (scalar, value) in sample.scalars {
                source.thin.get_mut(*scalar).into_iter().for_each(|thin| thin.add(sample.at_s, *value));
            }
            if (self.window.0..=self.window.1).contains(&sample.at_s) {
                for (name, end) in sample.ends {
                    names.get(*name).into_iter().for_each(|name| source.follow(name, *end));
                }
            }
        }
    }

    /// The place of a source, which may be new.
    fn place(&mut self, name: &str) -> usize {
        *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.sources.push(Source { thin: vec![Thin::default(); SCALARS], tracks: Vec::new() });
            self.sources.len() - 1
        })
    }

    /// Sources in the order of their names.
    fn named(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.places.iter().filter_map(|(name, place)| Some((name.as_str(), self.sources.get(*place)?)))
    }

    /// Sources that carry this scalar.
    pub fn sources(&self, scalar: &str) -> impl Iterator<Item = &str> {
        let place = place_of(scalar);
        let carries =
            move |of: &Source| place.and_then(|p| of.thin.get(p)).is_some_and(|thin| !thin.bins.is_empty());
        self.named().filter(move |(_, source)| carries(source)).map(|(name, _)| name)
    }

    /// One scalar of one source over time.
    #[must_use]
    pub fn of(&self, source: &str, scalar: &str) -> Vec<Bin> {
        let source = self.places.get(source).and_then(|place| self.sources.get(*place));
        let thin = source.zip(place_of(scalar)).and_then(|(source, place)| source.thin.get(place));
        thin.map(Thin::bins).unwrap_or_default()
    }

    /// One scalar summed over all its sources, bin by bin of the first.
    #[must_use]
    pub fn summed(&self, scalar: &str) -> Vec<Bin> {
        let mut all: BTreeMap<i64, Bin> = BTreeMap::new();
        for source in self.sources(scalar) {
            for bin in self.of(source, scalar) {
                #[expect(clippy::cast_possible_truncation, reason = "half seconds of a run fit easily")]
                let key = (bin.at_s * 2.0).round() as i64;
                all.entry(key)
                    .and_modify(|b| {
                        b.min += bin.min;
                        b.mean += bin.mean;
                        b.max += bin.max;
                    })
                    .or_insert(bin);
            }
        }
        all.into_values().collect()
    }

    /// Largest value of a scalar over all sources within the window of counted calls.
    #[must_use]
    pub fn max_in_window(&self, scalar: &str) -> Option<f64> {
        let inside = |b: &Bin| b.at_s >= self.window.0 && b.at_s <= self.window.1;
        let each = self.sources(scalar).flat_map(|s| self.of(s, scalar)).filter(inside);
        each.map(|b| b.max).reduce(f64::max)
    }

    /// Mean of a scalar over the window, summed over its sources.
    #[must_use]
    pub fn mean_in_window(&self, scalar: &str) -> Option<f64> {
        let inside = |b: &Bin| b.at_s >= self.window.0 && b.at_s <= self.window.1;
        let means = self.sources(scalar).filter_map(|s| {
            let bins: Vec<f64> = self.of(s, scalar).into_iter().filter(inside).map(|b| b.mean).collect();
            tapedeck_stats::Moments::of(&bins).map(|m| m.mean)
        });
        means.reduce(|a, b| a + b)
    }

    /// What a histogram gained over all sources during the window; sums only where every source has them.
    #[must_use]
    pub fn gained(&self, histogram: &str) -> Option<Gained> {
        let tracks: Vec<&Track> = self.named().filter_map(|(_, source)| source.track(histogram)).collect();
        if tracks.is_empty() {
            return None;
        }
        let count = tracks.iter().map(|t| t.gained.count).sum();
        let sums = tracks.iter().all(|t| t.sums);
        let sum = sums.then(|| tracks.iter().filter_map(|t| t.gained.sum).sum());
        Some(Gained { count, sum })
    }
}

impl Source {
    fn track(&self, histogram: &str) -> Option<&Track> {
        self.tracks.iter().find(|(name, _)| name == histogram).map(|(_, track)| track)
    }

    /// Takes how far a histogram has come now.
    fn follow(&mut self, histogram: &str, end: End) {
        let at = self.tracks.iter().position(|(name, _)| name == histogram).unwrap_or_else(|| {
            let new = Track { last: None, gained: Gained::default(), sums: true };
            self.tracks.push((histogram.to_owned(), new));
            self.tracks.len() - 1
        });
        let Some((_, track)) = self.tracks.get_mut(at) else { return };
        track.sums &= end.sum.is_some();
        if let Some(before) = track.last {
            // A counter that went down was reset: what it shows now was gained since.
            let reset = end.count < before.count;
            track.gained.count += if reset { end.count } else { end.count - before.count };
            if let Some(sum) = end.sum {
                let gain = if reset { sum } else { sum - before.sum.unwrap_or(0.0) };
                track.gained.sum = Some(track.gained.sum.unwrap_or(0.0) + gain);
            }
        }
        track.last = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Samples {
        let mut samples = Samples::default();
        samples.add(&serde_json::from_str(text).unwrap());
        samples
    }

    #[test]
    fn thinning_keeps_extremes_and_times() {
        let mut thin = Thin::default();
        for i in 0..5000 {
            thin.add(f64::from(i), if i == 4321 { 100.0 } else { 1.0 });
        }
        let bins = thin.bins();
        assert!(bins.len() <= BINS);
        let peak = bins.iter().find(|b| b.max > 50.0).unwrap();
        assert!((peak.at_s - 4321.0).abs() <= 8.0 && peak.min <= 1.0, "{peak:?}");
        assert!(bins.windows(2).all(|w| w[0].at_s < w[1].at_s));
    }

    #[test]
    fn every_kind_of_line_is_read_and_gaps_are_no_zeros() {
        let mut series = Series::new((0.0, 100.0));
        series.add(&line(r#"{"step":"N003","at_s":1,"source":"inst1","kind":"gap","why":"refused"}"#));
        series.add(&line(
            r#"{"step":"N003","at_s":2,"source":"GPU-1","kind":"gpu","utilisation":0.5,"memory_used_bytes":1000,"throttle":["heat"]}"#,
        ));
        assert_eq!((series.samples, series.gaps), (1, 1));
        assert_eq!(series.of("inst1", "kv_pool"), []);
        assert_eq!(series.max_in_window("gpu_utilisation"), Some(0.5));
    }

    #[test]
    fn histograms_gain_across_a_reset_and_only_inside_the_window() {
        let mut series = Series::new((1.0, 10.0));
        for (at, count, sum) in
            [(0, 50.0, 5.0), (1, 100.0, 10.0), (2, 110.0, 12.0), (3, 4.0, 1.0), (11, 99.0, 99.0)]
        {
            let text = format!(
                r#"{{"step":"s","at_s":{at},"source":"a","kind":"engine","histograms":{{"queue":{{"bounds":[1],"counts":[1,{count}],"sum":{sum}}}}}}}"#
            );
            series.add(&line(&text));
        }
        let gained = series.gained("queue").unwrap();
        assert_eq!((gained.count, gained.sum), (14.0, Some(3.0)));
        assert_eq!(series.gained("inference"), None);
    }
}
