//! Walking along a schedule, with two accounts of lateness.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::Schedule;

/// Per chunk sent, in order: whose fault a delay was, in whole microseconds.
///
/// `planned + wake_late + blocked` is the instant at which the socket took the chunk, to the microsecond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How late our own sender woke, counted from the later of the planned time and the end of the previous
    /// send: while the server holds an earlier chunk, being late is not our doing.
    pub wake_late_us: Vec<u32>,
    /// The rest of the delay: back-pressure on this chunk and, where it lasted beyond this chunk's planned
    /// time, on those before it.
    pub blocked_us: Vec<u32>,
}

/// Hands out the chunks of a [`Schedule`] one after another and accounts for their lateness.
///
/// The cycle is: sleep until [`due`](Self::due); [`woke`](Self::woke); send; [`sent`](Self::sent).
/// [`wait`](Self::wait) does the first two for a sender that has nothing else to wait for.
#[derive(Debug)]
pub struct Pacer {
    schedule: Schedule,
    next: u64,
    len: u64,
    due: Instant,
    /// End of the previous send.
    free_at: Instant,
    /// `w_i` of the chunk in the sender's hands.
    woke_at: Option<Instant>,
    lateness: Lateness,
}

impl Pacer {
    /// A pacer before its first chunk. The accounts are allocated here, once per call.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let len = schedule.len();
        let room = usize::try_from(len).unwrap_or(0).min(1 << 20);
        Self {
            schedule,
            next: 0,
            len,
            due: schedule.planned(0),
            free_at: schedule.start(),
            woke_at: None,
            lateness: Lateness {
                wake_late_us: Vec::with_capacity(room),
                blocked_us: Vec::with_capacity(room),
            },
        }
    }

    /// The schedule it walks along.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Number of the next chunk, from 0; also how many were sent.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Planned time of the next chunk; none when all were sent.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        if self.next < self.len { Some(self.due) } else { None }
    }

    /// `w_i`: the sender has woken for the next chunk and now begins to send it. A second call for the same
    /// chunk changes nothing.
    pub fn woke(&mut self, now: Instant) {
        self.woke_at.get_or_insert(now);
    }

    /// `s_i`: the socket took the next chunk. Books its lateness and moves on.
    pub fn sent(&mut self, now: Instant) {
        if self.next >= self.len {
            return;
        }
        let woke = self.woke_at.take().unwrap_or(now);
        let whole = micros(now.saturating_duration_since(self.due));
        let ours = micros(woke.saturating_duration_since(self.due.max(self.free_at))).min(whole);
        self.lateness.wake_late_us.push(ours);
        self.lateness.blocked_us.push(whole - ours);
        self.free_at = now;
        self.next += 1;
        self.due = self.schedule.planned(self.next);
    }

    /// Sleeps until the next chunk is due, notes that the sender woke, and names the chunk; none when all
    /// were sent.
    pub async fn wait(&mut self) -> Option<u64> {
        let due = self.due()?;
        sleep_until(due).await;
        self.woke(Instant::now());
        Some(self.next)
    }

    /// The accounts so far.
    #[must_use]
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// The accounts, when the call is over.
    #[must_use]
    pub fn into_lateness(self) -> Lateness {
        self.lateness
    }
}

/// Whole microseconds, saturating after 71 minutes.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn back_pressure_is_the_servers_and_never_ours() {
        let c1 = Instant::now();
        let mut pacer = Pacer::new(Schedule::new(c1, 100 * MS, 500 * MS));
        // Chunk 0 wakes 2 ms late and the socket holds it for 250 ms: chunks 1 and 2 come due meanwhile.
        pacer.woke(c1 + 102 * MS);
        pacer.sent(c1 + 352 * MS);
        // They are sent at once when it is free: late against the plan, but not by us.
        pacer.woke(c1 + 352 * MS);
        pacer.sent(c1 + 353 * MS);
        pacer.woke(c1 + 353 * MS);
        pacer.sent(c1 + 353 * MS);
        // Chunk 3 is in time again; chunk 4 wakes 7 ms late on a free socket.
        pacer.woke(c1 + 400 * MS);
        pacer.sent(c1 + 400 * MS);
        pacer.woke(c1 + 507 * MS);
        pacer.sent(c1 + 507 * MS);
        assert_eq!(pacer.due(), None);
        let late = pacer.into_lateness();
        assert_eq!(late.wake_late_us, [2_000, 0, 0, 0, 7_000]);
        assert_eq!(late.blocked_us, [250_000, 153_000, 53_000, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_during_back_pressure_counts_from_its_end() {
        let c1 = Instant::now();
        let mut pacer = Pacer::new(Schedule::new(c1, 100 * MS, 200 * MS));
        pacer.woke(c1 + 100 * MS);
        pacer.sent(c1 + 250 * MS);
        pacer.woke(c1 + 256 * MS);
        pacer.sent(c1 + 260 * MS);
        assert_eq!(pacer.lateness().wake_late_us, [0, 6_000]);
        assert_eq!(pacer.lateness().blocked_us, [150_000, 54_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_never_drifts() {
        let c1 = Instant::now();
        let schedule = Schedule::new(c1, 100 * MS, 60_000 * MS);
        let mut pacer = Pacer::new(schedule);
        let mut sent = 0;
        while let Some(chunk) = pacer.wait().await {
            assert_eq!(Instant::now(), schedule.planned(chunk));
            // Whatever the sender does in between must not move the next deadline.
            tokio::time::advance(37 * MS).await;
            pacer.sent(Instant::now());
            sent += 1;
        }
        assert_eq!(sent, 600);
        assert!(pacer.lateness().wake_late_us.iter().all(|&us| us == 0));
        assert!(pacer.lateness().blocked_us.iter().all(|&us| us == 37_000));
        pacer.sent(Instant::now());
        assert_eq!(pacer.next(), 600, "nothing is booked after the last chunk");
    }
}
