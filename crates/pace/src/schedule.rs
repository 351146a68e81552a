//! When each chunk of a call is due.

use std::time::Duration;

use tokio::time::Instant;

/// The planned send times of one call: `p_i = c1 + min((i + 1) * chunk, audio)`.
///
/// A chunk is due when a microphone would have finished it, so none is due before its audio could exist; the
/// last chunk may be shorter than the others and is due when the call's audio ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    c1: Instant,
    chunk: Duration,
    audio: Duration,
    at_once: bool,
}

impl Schedule {
    /// A call of `audio` that starts at `c1` and is cut into pieces of `chunk`.
    ///
    /// A `chunk` of zero would mean infinitely many; it is taken as one chunk for the whole call.
    #[must_use]
    pub const fn new(c1: Instant, chunk: Duration, audio: Duration) -> Self {
        let chunk = if chunk.is_zero() { audio } else { chunk };
        Self { c1, chunk, audio, at_once: false }
    }

    /// The same with every chunk due at `c1`: no caller speaks like this, but a server can be asked how fast it is.
    #[must_use]
    pub const fn at_once(c1: Instant, chunk: Duration, audio: Duration) -> Self {
        Self { at_once: true, ..Self::new(c1, chunk, audio) }
    }

    /// `c1`: the session was ready to take audio.
    #[must_use]
    pub const fn start(&self) -> Instant {
        self.c1
    }

    /// Nominal length of a chunk.
    #[must_use]
    pub const fn chunk(&self) -> Duration {
        self.chunk
    }

    /// Length of the call's audio.
    #[must_use]
    pub const fn audio(&self) -> Duration {
        self.audio
    }

    /// How many chunks the call has.
    #[must_use]
    pub fn len(&self) -> u64 {
        if self.audio.is_zero() {
            return 0;
        }
        u64::try_from(self.audio.as_nanos().div_ceil(self.chunk.as_nanos())).unwrap_or(u64::MAX)
    }

    /// Whether there is nothing to send at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.audio.is_zero()
    }

    /// `p_i`: when chunk `i` is due, as an absolute deadline. Chunks after the last are due with the last.
    #[must_use]
    pub fn planned(&self, chunk: u64) -> Instant {
        if self.at_once {
            return self.c1;
        }
        let ns = self.chunk.as_nanos().saturating_mul(u128::from(chunk) + 1);
        let after = u64::try_from(ns).map_or(self.audio, Duration::from_nanos);
        self.c1 + after.min(self.audio)
    }

    /// `p_last`: when the call's audio ends, or would end if it were spoken.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.c1 + self.audio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_call_at_once_is_due_when_it_begins() {
        let c1 = Instant::now();
        let schedule = Schedule::at_once(c1, 100 * MS, 1_050 * MS);
        assert_eq!((schedule.len(), schedule.planned(0), schedule.planned(10)), (11, c1, c1));
        assert_eq!(schedule.end(), c1 + 1_050 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_do_not_drift_and_the_last_chunk_is_short() {
        let c1 = Instant::now();
        // A chunk length that no timer resolution divides: a relative sleep would accumulate its rounding.
        let chunk = Duration::from_nanos(33_333_333);
        let schedule = Schedule::new(c1, chunk, 10_000 * MS);
        assert_eq!(schedule.len(), 301);
        assert_eq!(schedule.planned(0) - c1, chunk);
        assert_eq!(schedule.planned(299) - c1, Duration::from_nanos(33_333_333 * 300));
        assert_eq!(schedule.planned(300), schedule.end());
        assert_eq!(schedule.planned(301), schedule.end());
        assert_eq!(schedule.planned(u64::MAX), schedule.end());
    }

    #[tokio::test(start_paused = true)]
    async fn odd_lengths_have_a_meaning() {
        let c1 = Instant::now();
        assert_eq!(Schedule::new(c1, 100 * MS, Duration::ZERO).len(), 0);
        assert!(Schedule::new(c1, 100 * MS, Duration::ZERO).is_empty());
        assert_eq!(Schedule::new(c1, 100 * MS, 100 * MS).len(), 1);
        assert_eq!(Schedule::new(c1, 100 * MS, 101 * MS).len(), 2);
        assert_eq!(Schedule::new(c1, Duration::ZERO, 100 * MS).len(), 1);
        assert_eq!(Schedule::new(c1, Duration::ZERO, Duration::ZERO).len(), 0);
    }
}
