//! Histograms for per-chunk series: HdrHistogram with three digits, and its own interval-log format, so that other
//! people's tools open our logs.

use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

/// A histogram with three significant digits that grows as needed; values are whole microseconds by convention.
#[derive(Debug, Clone, PartialEq)]
pub struct Series(Histogram<u64>);

/// An interval log that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HdrError {
    /// The file system refused.
    #[error("the interval log cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// A tag with a comma, a blank or a line end would break the format.
    #[error("the tag {0:?} cannot stand in an interval log: use a word without commas, blanks and line ends")]
    Tag(String),
    /// A histogram could not be made or encoded.
    #[error("a histogram cannot be encoded: {0}")]
    Encode(String),
    /// The log is damaged.
    #[error("the interval log is damaged at {place}: {why}; write it again from the raw traces")]
    Damaged {
        /// Byte offset or number of the interval.
        place: String,
        /// What is wrong.
        why: String,
    },
}

impl Series {
    /// An empty histogram.
    ///
    /// # Errors
    /// Only if the histogram library refuses three digits, which it does not.
    pub fn new() -> Result<Self, HdrError> {
        Histogram::new(3).map(Self).map_err(|e| HdrError::Encode(e.to_string()))
    }

    /// Counts one value; what exceeds the histogram's range counts at its top.
    pub fn record(&mut self, value: u64) {
        if self.0.record(value).is_err() {
            self.0.saturating_record(value);
        }
    }

    /// Counts one value `n` times; what exceeds the histogram's range counts at its top.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if self.0.record_n(value, n).is_err() {
            self.0.saturating_record_n(value, n);
        }
    }

    /// Adds another histogram.
    ///
    /// # Errors
    /// [`HdrError::Encode`] where the other one's range cannot be reached.
    pub fn add(&mut self, other: &Self) -> Result<(), HdrError> {
        self.0.add(&other.0).map_err(|e| HdrError::Encode(e.to_string()))
    }

    /// Values counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `q` quantile to three digits; empty where nothing was counted.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.value_at_quantile(q))
    }

    /// Largest value to three digits; empty where nothing was counted.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.max())
    }

    /// The library's own histogram.
    #[must_use]
    pub const fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// One interval of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedInterval {
    /// Which series, e.g. `wake_late_us`.
    pub tag: String,
    /// Begin, counted from the log's base time.
    pub start: Duration,
    /// Length.
    pub length: Duration,
    /// What was counted.
    pub series: Series,
}

/// Writes intervals as a HdrHistogram interval log: `base` is the wall-clock instant their starts count from.
///
/// # Errors
/// [`HdrError::Io`] from the writer, [`HdrError::Tag`] for a tag that the format cannot hold.
pub fn write_interval_log(
    out: &mut impl Write,
    base: SystemTime,
    intervals: &[LoggedInterval],
) -> Result<(), HdrError> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .with_start_time(base)
        .with_base_time(base)
        .begin_log_with(out, &mut serializer)?;
    for interval in intervals {
        let tag = Tag::new(&interval.tag).ok_or_else(|| HdrError::Tag(interval.tag.clone()))?;
        log.write_histogram(&interval.series.0, interval.start, interval.length, Some(tag))
            .map_err(|e| HdrError::Encode(e.to_string()))?;
    }
    Ok(())
}

/// Reads an interval log back.
///
/// # Errors
/// [`HdrError::Damaged`] with the place.
pub fn read_interval_log(log: &[u8]) -> Result<Vec<LoggedInterval>, HdrError> {
    let mut intervals = Vec::new();
    let mut deserializer = Deserializer::new();
    for entry in IntervalLogIterator::new(log) {
        let entry = entry
            .map_err(|e| HdrError::Damaged { place: "an unreadable line".into(), why: format!("{e:?}") })?;
        let LogEntry::Interval(interval) = entry else { continue };
        let damaged = |why: String| HdrError::Damaged { place: format!("interval {}", intervals.len()), why };
        let encoded =
            decode_base64(interval.encoded_histogram()).ok_or_else(|| damaged("not base64".into()))?;
        let histogram: Histogram<u64> =
            deserializer.deserialize(&mut encoded.as_slice()).map_err(|e| damaged(e.to_string()))?;
        intervals.push(LoggedInterval {
            tag: interval.tag().map(|t| t.as_str().to_owned()).unwrap_or_default(),
            start: interval.start_timestamp(),
            length: interval.duration(),
            series: Series(histogram),
        });
    }
    Ok(intervals)
}

/// Standard base64 with padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[u64]) -> Series {
        let mut s = Series::new().unwrap();
        values.iter().for_each(|&v| s.record(v));
        s
    }

    #[test]
    fn three_digits_and_nothing_for_nothing() {
        let s = series(&[1_000_000, 2_000_000, 3_000_000]);
        let p50 = s.quantile(0.5).unwrap();
        assert!(p50.abs_diff(2_000_000) <= 2_000, "{p50}");
        assert_eq!((series(&[]).quantile(0.5), series(&[]).max()), (None, None));
        let mut both = series(&[1]);
        both.add(&s).unwrap();
        assert_eq!(both.len(), 4);
    }

    #[test]
    fn a_log_survives_a_round_trip() {
        let base = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let intervals: Vec<LoggedInterval> = (0..3)
            .map(|i| LoggedInterval {
                tag: "wake_late_us".into(),
                start: Duration::from_secs(i * 10),
                length: Duration::from_secs(10),
                series: series(&[i, 100, 2_000_000]),
            })
            .collect();
        let mut log = Vec::new();
        write_interval_log(&mut log, base, &intervals).unwrap();
        let text = String::from_utf8(log.clone()).unwrap();
        assert!(text.contains("#[BaseTime: 1700000000.000 (seconds since epoch)]"), "{text}");
        assert_eq!(read_interval_log(&log).unwrap(), intervals);
    }

    #[test]
    fn bad_tags_and_damaged_logs_are_refused() {
        let bad = LoggedInterval {
            tag: "two words, a comma".into(),
            start: Duration::ZERO,
            length: Duration::ZERO,
            series: series(&[1]),
        };
        let refused = write_interval_log(&mut Vec::new(), SystemTime::UNIX_EPOCH, &[bad]).unwrap_err();
        assert!(matches!(refused, HdrError::Tag(_)));
        for damaged in [&b"Tag=x,0.0,1.0,2.0,@@@@\n"[..], b"Tag=x,0.0,1.0,2.0,aGVsbG8=\n", b"nonsense\n"] {
            assert!(read_interval_log(damaged).is_err());
        }
    }
}
