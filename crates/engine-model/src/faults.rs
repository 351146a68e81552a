//! Ways in which an engine can be ill. All are off by default, and all are dosed: a fault just large enough to matter is
//! what a measurement has to find.
//!
//! Not here, because the healthy engine has them too: refusal at a full house (`max_sessions`), preemption (a small
//! `kv_blocks`), words that suffer from load ([`crate::Degradation`]), and memory that leaks ([`crate::Vram`]).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, on the model's clock. ms.
    pub at_ms: u64,
    /// How long it lasts. ms; without it, for ever.
    #[serde(default)]
    pub for_ms: Option<u64>,
}

impl Outage {
    pub(crate) const fn start_ns(&self) -> u64 {
        self.at_ms.saturating_mul(1_000_000)
    }

    /// First instant after it; the end of time if it never ends.
    pub(crate) fn end_ns(&self) -> u64 {
        self.for_ms.map_or(u64::MAX, |for_ms| self.at_ms.saturating_add(for_ms).saturating_mul(1_000_000))
    }
}

/// Batch sizes that the engine is bad at, as where no compiled graph fits them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowBatch {
    /// Smallest batch concerned, in requests.
    pub from: u64,
    /// Largest batch concerned, in requests.
    pub to: u64,
    /// By how much its steps are longer. At least 1.
    pub factor: f64,
}

/// What is wrong with the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// The process dies: every session fails, and none is let in until it is back with empty memory and its counters
    /// at 0. Default never.
    pub crash: Option<Outage>,
    /// No step begins, and one under way takes so much longer; sockets stay open. Default never.
    pub hang: Option<Outage>,
    /// Share of sessions that are never answered, though they are computed. They stay until their client leaves.
    /// 0..1, default 0.
    pub mute_share: f64,
    /// Share of sessions whose last window is computed and never said. 0..1, default 0.
    pub tail_lost_share: f64,
    /// Every step grows longer by this share of its length for each hour since the start. Default 0.
    pub slowdown_per_hour: f64,
    /// The intake of a window takes longer by this for each minute of audio before it. ms, default 0.
    pub age_lag_ms_per_minute: u32,
    /// With `prefix_cache`: share of windows whose prompt is found in the cache though nobody sent it before.
    /// 0..1, default 0.
    pub prefix_hit_share: f64,
    /// Batch sizes that take longer than the cost law says. Default none.
    pub slow_batch: Option<SlowBatch>,
}

impl Faults {
    /// How much longer a step of `streams` requests takes at `now_ns`.
    #[expect(clippy::cast_precision_loss, reason = "days in ns are exact enough in f64")]
    pub(crate) fn stretch(&self, now_ns: u64, streams: u64) -> f64 {
        let hours = now_ns as f64 / 3.6e12;
        let batch = self.slow_batch.filter(|slow| (slow.from..=slow.to).contains(&streams));
        self.slowdown_per_hour.mul_add(hours, 1.0) * batch.map_or(1.0, |slow| slow.factor)
    }

    /// By how much later a window reaches the scheduler that ends after `audio_ms` of its call.
    pub(crate) fn age_lag_ns(&self, audio_ms: u32) -> u64 {
        u64::from(audio_ms) * u64::from(self.age_lag_ms_per_minute) * 1_000_000 / 60_000
    }
}

/// What chance has in store for a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Disposition {
    pub(crate) mute: bool,
    pub(crate) loses_tail: bool,
}

/// The chance behind the faults: apart from the jitter's, so that switching a fault on moves no step by itself.
#[derive(Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        Self(rng)
    }

    /// Both are drawn for every session, so that one share does not change whom the other hits.
    pub(crate) fn disposition(&mut self, faults: &Faults) -> Disposition {
        Disposition { mute: self.hits(faults.mute_share), loses_tail: self.hits(faults.tail_lost_share) }
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits are what f64 holds")]
    pub(crate) fn hits(&mut self, share: f64) -> bool {
        let uniform = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        uniform < share
    }
}
