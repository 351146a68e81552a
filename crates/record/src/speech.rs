//! Where in a call somebody speaks.

use serde::{Deserialize, Serialize};

/// A half-open stretch `[start_ms, end_ms)` of a call, in milliseconds from its first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Interval {
    /// First millisecond inside.
    pub start_ms: u32,
    /// First millisecond after.
    pub end_ms: u32,
}

impl From<(u32, u32)> for Interval {
    fn from((start_ms, end_ms): (u32, u32)) -> Self {
        Self { start_ms, end_ms }
    }
}

impl From<Interval> for (u32, u32) {
    fn from(interval: Interval) -> Self {
        (interval.start_ms, interval.end_ms)
    }
}

/// The intervals of speech in a call: sorted, disjoint, none empty. Serialised as `[[start_ms, end_ms], ...]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Interval>", into = "Vec<Interval>")]
pub struct SpeechMap(Vec<Interval>);

impl From<Vec<Interval>> for SpeechMap {
    fn from(intervals: Vec<Interval>) -> Self {
        Self::new(intervals)
    }
}

impl From<SpeechMap> for Vec<Interval> {
    fn from(map: SpeechMap) -> Self {
        map.0
    }
}

impl SpeechMap {
    /// Sorts, drops empty intervals and joins those that touch or overlap.
    #[must_use]
    pub fn new(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|i| i.start_ms < i.end_ms);
        intervals.sort_unstable();
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match joined.last_mut() {
                Some(last) if next.start_ms <= last.end_ms => last.end_ms = last.end_ms.max(next.end_ms),
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    /// The intervals, in order.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// Whether nobody speaks at all.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.0.is_empty()
    }

    /// First millisecond of speech.
    #[must_use]
    pub fn onset_ms(&self) -> Option<u32> {
        self.0.first().map(|i| i.start_ms)
    }

    /// First millisecond after the last speech.
    #[must_use]
    pub fn end_ms(&self) -> Option<u32> {
        self.0.last().map(|i| i.end_ms)
    }

    /// Milliseconds of speech in all.
    #[must_use]
    pub fn total_ms(&self) -> u32 {
        self.0.iter().map(|i| i.end_ms - i.start_ms).sum()
    }

    /// Milliseconds of speech inside `[from_ms, to_ms)`.
    #[must_use]
    pub fn within_ms(&self, from_ms: u32, to_ms: u32) -> u32 {
        let first = self.0.partition_point(|i| i.end_ms <= from_ms);
        self.0[first..]
            .iter()
            .take_while(|i| i.start_ms < to_ms)
            .map(|i| i.end_ms.min(to_ms).saturating_sub(i.start_ms.max(from_ms)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(u32, u32)]) -> SpeechMap {
        SpeechMap::new(pairs.iter().map(|&p| p.into()).collect())
    }

    #[test]
    fn joins_sorts_and_drops_empty() {
        let m = map(&[(500, 700), (0, 100), (100, 200), (300, 300), (650, 800)]);
        assert_eq!(serde_json::to_string(&m).unwrap(), "[[0,200],[500,800]]");
        assert_eq!(m.total_ms(), 500);
        assert_eq!((m.onset_ms(), m.end_ms()), (Some(0), Some(800)));
    }

    #[test]
    fn within_counts_only_the_overlap() {
        let m = map(&[(0, 200), (500, 800)]);
        assert_eq!(m.within_ms(100, 600), 200);
        assert_eq!(m.within_ms(200, 500), 0);
        assert_eq!(m.within_ms(0, 10_000), 500);
        assert_eq!(m.within_ms(550, 560), 10);
    }
}
