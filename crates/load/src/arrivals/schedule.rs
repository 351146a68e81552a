//! Which call arrives when, and how long it lasts: all of it fixed before the first one is placed.

use std::time::Duration;

use tapedeck_stats::rng::Draws;
use thiserror::Error;

use super::process::{ArrivalProcess, ArrivalProcessError, LENGTHS, exponential};
use crate::prepared::{PreparedCall, PreparedCalls};

/// Which calls arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lengths {
    /// Whole calls of the prepared calls, each arrival drawing one of them: the lengths that the prepared calls has.
    PreparedCalls,
    /// The beginning of a call of the prepared calls, exponentially long: what Erlang C assumes. Lengths are whole chunks,
    /// at least one; the call that is cut is the prepared calls' longest, and what would be longer is as long as that.
    Exponential {
        /// Mean length of the audio.
        mean: Duration,
    },
}

/// One caller who will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the run's start.
    pub at: Duration,
    /// Which call of the prepared calls.
    pub call: usize,
    /// How much of it is played.
    pub audio: Duration,
    /// Whether it counts: fixed here, whatever becomes of it.
    pub counted: bool,
}

/// Everybody who will come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalSchedule {
    /// In order of arrival. Some come before the counted ones and some after, so that every counted caller meets
    /// the same traffic.
    pub arrivals: Vec<Arrival>,
    /// Callers from here on count.
    pub from: Duration,
    /// Callers from here on do not.
    pub to: Duration,
}

/// A schedule that cannot be made.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ArrivalScheduleError {
    /// The process.
    #[error(transparent)]
    ArrivalProcess(#[from] ArrivalProcessError),
    /// Nobody to count.
    #[error("0 callers cannot be counted: ask for at least 1")]
    NoCalls,
    /// A mean length that is too short to be cut into chunks.
    #[error("calls of {mean:?} on average cannot be cut into chunks of {chunk:?}: give at least 5 chunks")]
    TooShort {
        /// What was asked for.
        mean: Duration,
        /// The prepared calls' chunk.
        chunk: Duration,
    },
    /// The prepared calls' longest call is too short to be cut into calls of that mean.
    #[error(
        "calls of {mean:?} on average need a call of at least {needed:?} to be cut from; the longest is {longest:?}"
    )]
    RecordingTooShort {
        /// What was asked for.
        mean: Duration,
        /// What it takes.
        needed: Duration,
        /// What there is.
        longest: Duration,
    },
}

/// The longest call must hold this many mean lengths: one call in ten thousand is then cut short, which makes the
/// mean 0.01 % shorter.
const LONGEST_IN_MEANS: u32 = 9;

/// Draws a schedule: `warm_up` without counting, then `calls` callers that count, then as many more as arrive
/// while the last of the counted ones may still be there (three times the longest call, which leaves room for a
/// queue; a recording simply ends).
///
/// # Errors
/// A process that cannot be followed, nobody to count, or lengths that the prepared calls cannot give.
pub fn schedule(
    process: &ArrivalProcess,
    lengths: Lengths,
    prepared: &PreparedCalls,
    calls: u32,
    warm_up: Duration,
    seed: u64,
) -> Result<ArrivalSchedule, ArrivalScheduleError> {
    process.check()?;
    if calls == 0 {
        return Err(ArrivalScheduleError::NoCalls);
    }
    let audios: Vec<Duration> = prepared.calls().iter().map(PreparedCall::audio).collect();
    let (longest_at, longest) =
        audios.iter().copied().enumerate().max_by_key(|(_, audio)| *audio).unwrap_or_default();
    if let Lengths::Exponential { mean } = lengths {
        if mean < prepared.chunk().saturating_mul(5) {
            return Err(ArrivalScheduleError::TooShort { mean, chunk: prepared.chunk() });
        }
        let needed = mean.saturating_mul(LONGEST_IN_MEANS);
        if longest < needed {
            return Err(ArrivalScheduleError::RecordingTooShort { mean, needed, longest });
        }
    }
    let mut draws = Draws::new(seed, LENGTHS);
    let kinds = u32::try_from(audios.len()).unwrap_or(u32::MAX);
    let mut draw = || match lengths {
        Lengths::PreparedCalls => {
            let call = usize::try_from(draws.below(kinds)).unwrap_or(0);
            (call, audios.get(call).copied().unwrap_or_default())
        }
        Lengths::Exponential { mean } => {
            let asked = mean.mul_f64(exponential(&mut draws)).min(longest);
            (longest_at, whole_chunks(asked, prepared.chunk()).min(longest))
        }
    };
    let mut arrivals = Vec::new();
    let mut counted = 0;
    let mut to = None;
    for at in process.moments(seed) {
        let counts = at >= warm_up && counted < calls;
        if counts {
            counted += 1;
        } else if counted >= calls {
            // The window ends where the next caller comes.
            let end = *to.get_or_insert(at);
            if at > end + longest.saturating_mul(3) {
                break;
            }
        }
        let (call, audio) = draw();
        arrivals.push(Arrival { at, call, audio, counted: counts });
    }
    let last = arrivals.iter().rev().find(|a| a.counted).map_or(warm_up, |a| a.at);
    let from = warm_up.min(last);
    Ok(ArrivalSchedule { arrivals, from, to: to.unwrap_or(last).max(last) })
}

/// The nearest number of whole chunks, at least one.
fn whole_chunks(audio: Duration, chunk: Duration) -> Duration {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let chunk_ns = nanos(chunk).max(1);
    let chunks = nanos(audio).saturating_add(chunk_ns / 2) / chunk_ns;
    Duration::from_nanos(chunks.max(1).saturating_mul(chunk_ns))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tapedeck_record::{CallMeta, SpeechMap};

    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn prepared(seconds: &[u32]) -> PreparedCalls {
        let dialect = tapedeck_protocol::registry::dialect("pcm-json", serde_json::Value::Null).unwrap();
        let calls = seconds.iter().zip(0..).map(|(s, index)| {
            let meta = CallMeta {
                index,
                id: format!("c{index}"),
                duration_ms: s * 1000,
                bucket_s: *s,
                channel: None,
                tags: Default::default(),
                speech: SpeechMap::default(),
            };
            (meta, Bytes::from(vec![0; 32_000 * *s as usize]))
        });
        PreparedCalls::new(&*dialect, Duration::from_millis(100), Duration::ZERO, calls).unwrap()
    }

    #[test]
    fn whoever_counts_is_decided_beforehand_and_others_come_before_and_after() {
        let prepared = prepared(&[2, 4]);
        let process = ArrivalProcess::Uniform { per_hour: 3600.0 };
        let t = schedule(&process, Lengths::PreparedCalls, &prepared, 10, 5 * S, 1).unwrap();
        let counted: Vec<u64> = t.arrivals.iter().filter(|a| a.counted).map(|a| a.at.as_secs()).collect();
        assert_eq!(counted, (5..15).collect::<Vec<_>>());
        assert_eq!((t.from, t.to), (5 * S, 15 * S));
        assert_eq!(t.arrivals.last().unwrap().at, 27 * S);
        assert!(t.arrivals.iter().any(|a| a.call == 0) && t.arrivals.iter().any(|a| a.call == 1));
        assert_eq!(t, schedule(&process, Lengths::PreparedCalls, &prepared, 10, 5 * S, 1).unwrap());
    }

    #[test]
    fn a_recording_ends_when_it_ends() {
        let starts = vec![S, 3 * S, 9 * S];
        let t = schedule(
            &ArrivalProcess::Replay { starts },
            Lengths::PreparedCalls,
            &prepared(&[2]),
            50,
            Duration::ZERO,
            1,
        )
        .unwrap();
        assert_eq!(t.arrivals.iter().filter(|a| a.counted).count(), 3);
        assert_eq!(t.to, 8 * S);
    }

    #[test]
    fn exponential_lengths_are_exponential_and_whole_chunks() {
        let prepared = prepared(&[30]);
        let mean = Duration::from_millis(3_000);
        let process = ArrivalProcess::Poisson { per_hour: 36_000.0 };
        let t =
            schedule(&process, Lengths::Exponential { mean }, &prepared, 5_000, Duration::ZERO, 3).unwrap();
        let lengths: Vec<f64> = t.arrivals.iter().map(|a| a.audio.as_secs_f64()).collect();
        let m = tapedeck_stats::Moments::of(&lengths).unwrap();
        assert!((m.mean - 3.0).abs() < 0.12 && (m.cv().unwrap() - 1.0).abs() < 0.05, "{m:?}");
        assert!(t.arrivals.iter().all(|a| a.audio.as_millis().is_multiple_of(100) && !a.audio.is_zero()));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let prepared = prepared(&[30]);
        let process = ArrivalProcess::Poisson { per_hour: 60.0 };
        let ask = |lengths, calls| schedule(&process, lengths, &prepared, calls, S, 1).unwrap_err();
        assert_eq!(ask(Lengths::PreparedCalls, 0), ArrivalScheduleError::NoCalls);
        let short = ask(Lengths::Exponential { mean: Duration::from_millis(200) }, 1);
        assert!(matches!(short, ArrivalScheduleError::TooShort { .. }));
        let long = ask(Lengths::Exponential { mean: 10 * S }, 1);
        assert!(long.to_string().contains("90s"), "{long}");
    }
}
