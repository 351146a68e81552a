//! The per-chunk series of a step: how late we woke, how long the server held us.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime};

use tapedeck_record::Trace;
use tapedeck_stats::hdr::{HdrError, LoggedInterval, Series, write_interval_log};
use tapedeck_stats::{drift_ppm, percentile};

/// Length of one interval of the log, nanoseconds.
const INTERVAL_NS: u64 = 60_000_000_000;

/// How often each value occurred, by value in microseconds. Few values are distinct, so this stays small.
type Counts = BTreeMap<u32, u64>;

/// Both series, by minute of the run's clock.
#[derive(Debug, Default)]
pub(crate) struct ChunkSeries {
    minutes: BTreeMap<u64, [Counts; 2]>,
    /// How our clock drifted in each call that was long enough to tell, parts per million.
    drifts_ppm: Vec<f64>,
}

const TAGS: [&str; 2] = ["wake_late_us", "blocked_us"];

impl ChunkSeries {
    /// Adds every chunk that a call sent.
    pub(crate) fn add(&mut self, trace: &Trace) {
        let chunks = trace.wake_late_us.iter().zip(&trace.blocked_us);
        for (i, (&wake_late_us, &blocked_us)) in (0..).zip(chunks) {
            let Some(planned_ns) = trace.planned_ns(i) else { return };
            let minute = self.minutes.entry(planned_ns / INTERVAL_NS).or_default();
            *minute[0].entry(wake_late_us).or_default() += 1;
            *minute[1].entry(blocked_us).or_default() += 1;
        }
        let late = (0..).zip(&trace.wake_late_us).map_while(|(i, &late_us)| {
            let since = trace.planned_ns(i)?.checked_sub(trace.c1_ns?)?;
            Some((Duration::from_nanos(since).as_secs_f64(), f64::from(late_us)))
        });
        self.drifts_ppm.extend(drift_ppm(late));
    }

    /// Median over the calls of how much later we woke the longer a call lasted, parts per million.
    pub(crate) fn drift_ppm(&self) -> Option<f64> {
        percentile(&mut self.drifts_ppm.clone(), 0.5)
    }

    /// 99th percentile of our own lateness over every chunk of the step, microseconds.
    pub(crate) fn wake_late_p99_us(&self) -> Option<u32> {
        let mut all = Counts::new();
        for [wake_late, _] in self.minutes.values() {
            for (&us, &n) in wake_late {
                *all.entry(us).or_default() += n;
            }
        }
        let chunks: u64 = all.values().sum();
        // The smallest value that at least 99 % of the chunks do not exceed.
        let rank = (chunks * 99).div_ceil(100);
        let mut seen = 0;
        all.into_iter()
            .find(|&(_, n)| {
                seen += n;
                seen >= rank
            })
            .map(|(us, _)| us)
    }

    /// Writes both series as a HdrHistogram interval log with one interval a minute and series.
    pub(crate) fn write(&self, out: &mut impl Write, base: SystemTime) -> Result<(), HdrError> {
        let mut intervals = Vec::with_capacity(self.minutes.len() * 2);
        for (&minute, both) in &self.minutes {
            for (tag, counts) in TAGS.into_iter().zip(both) {
                let mut series = Series::new()?;
                for (&us, &n) in counts {
                    series.record_n(us.into(), n);
                }
                intervals.push(LoggedInterval {
                    tag: tag.into(),
                    start: Duration::from_nanos(minute * INTERVAL_NS),
                    length: Duration::from_nanos(INTERVAL_NS),
                    series,
                });
            }
        }
        write_interval_log(out, base, &intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapedeck_record::{Outcome, OutcomeDetail};
    use tapedeck_stats::hdr::read_interval_log;

    fn trace(c1_ns: u64, wake_late_us: Vec<u32>) -> Trace {
        let chunks = wake_late_us.len() as u64;
        Trace {
            stream: 0,
            seq: 0,
            call: 0,
            tape: None,
            counted: true,
            c0_ns: c1_ns,
            c1_ns: Some(c1_ns),
            chunk_ns: 100_000_000,
            audio_ns: chunks * 100_000_000,
            tail_silence_ns: 0,
            blocked_us: vec![5; wake_late_us.len()],
            wake_late_us,
            end_ns: None,
            messages: vec![],
            final_ns: None,
            final_kind: None,
            kept_from_ns: None,
            done_ns: 0,
            rtt_us: vec![],
            instance: None,
            violations: 0,
            outcome: OutcomeDetail::plain(Outcome::Ok),
        }
    }

    #[test]
    fn minutes_are_kept_apart_and_read_back() {
        let mut series = ChunkSeries::default();
        series.add(&trace(59_900_000_000, (0..10).collect()));
        let mut log = Vec::new();
        series.write(&mut log, SystemTime::UNIX_EPOCH).unwrap();
        let back = read_interval_log(&log).unwrap();
        let seen: Vec<_> = back.iter().map(|i| (i.tag.as_str(), i.start.as_secs(), i.series.len())).collect();
        // A chunk belongs to the minute in which it is due: all ten are due at 60.0 s or later.
        assert_eq!(seen, [("wake_late_us", 60, 10), ("blocked_us", 60, 10)]);
    }

    #[test]
    fn the_p99_is_an_order_statistic() {
        let mut series = ChunkSeries::default();
        assert_eq!(series.wake_late_p99_us(), None);
        series.add(&trace(0, (1..=200).collect()));
        assert_eq!(series.wake_late_p99_us(), Some(198));
    }

    #[test]
    fn the_drift_is_that_of_the_middle_call() {
        let mut series = ChunkSeries::default();
        series.add(&trace(0, vec![7; 90]));
        assert_eq!(series.drift_ppm(), None, "9 s tell nothing");
        for ppm in [0, 100, 2_000] {
            series.add(&trace(7, (0..200).map(|i| i * ppm / 10).collect()));
        }
        let ppm = series.drift_ppm().unwrap();
        assert!((ppm - 100.0).abs() < 1e-6, "{ppm}");
    }
}
