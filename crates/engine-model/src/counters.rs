//! What the instance tells about itself: the figures behind a vLLM metrics page.

/// Upper bounds of the buckets for the time to the first token, in ns (vLLM's own, in seconds: 0.001 .. 2560).
pub const TTFT_BOUNDS_NS: [u64; 22] = [
    1_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    40_000_000,
    60_000_000,
    80_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
    20_000_000_000,
    40_000_000_000,
    80_000_000_000,
    160_000_000_000,
    640_000_000_000,
    2_560_000_000_000,
];

/// A histogram over [`TTFT_BOUNDS_NS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Observations in each bucket (not cumulated); those beyond the last bound are only in `count`.
    pub counts: [u64; TTFT_BOUNDS_NS.len()],
    /// Sum of all observations. ns.
    pub sum_ns: u64,
    /// Number of observations.
    pub count: u64,
}

impl Histogram {
    pub(crate) fn observe(&mut self, value_ns: u64) {
        let bucket = TTFT_BOUNDS_NS.partition_point(|&bound| bound < value_ns);
        if let Some(n) = self.counts.get_mut(bucket) {
            *n += 1;
        }
        self.sum_ns += value_ns;
        self.count += 1;
    }

    /// `(upper bound in ns, observations at or below it)` for each bound, as an exposition page prints them.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        TTFT_BOUNDS_NS.iter().zip(&self.counts).scan(0, |sum, (&bound, &n)| {
            *sum += n;
            Some((bound, *sum))
        })
    }
}

/// Requests finished, by reason: windows when rolling, sessions when resident.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finished {
    /// Came to their natural end.
    pub stop: u64,
    /// Cut at `max_window_tokens` (rolling) or grown too long (resident).
    pub length: u64,
    /// Given up by the client while they were being computed. A resident session that vanishes is counted nowhere,
    /// as in vLLM.
    pub abort: u64,
}

/// Gauges at this instant and counters since the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Share of the KV blocks in use, 0..1 (gauge).
    pub kv_usage: f64,
    /// KV blocks in use (gauge).
    pub kv_blocks_used: u32,
    /// Requests being computed (gauge).
    pub running: u32,
    /// Requests that wait for room (gauge).
    pub waiting_capacity: u32,
    /// Resident sessions that wait for audio and hold their blocks meanwhile (gauge); always 0 when rolling.
    pub waiting_deferred: u32,
    /// Open sessions (gauge).
    pub open_sessions: u32,
    /// Memory used on the card as of the last full second (gauge). Bytes.
    pub vram_bytes: u64,
    /// Preempted requests (counter).
    pub preemptions: u64,
    /// Prompt tokens looked up in the prefix cache (counter); stays 0 when it is off.
    pub prefix_queries: u64,
    /// Prompt tokens found there (counter).
    pub prefix_hits: u64,
    /// Audio items looked up in the multimodal cache (counter); stays 0 when it is off.
    pub mm_queries: u64,
    /// Audio items found there (counter).
    pub mm_hits: u64,
    /// Prompt tokens of all windows answered, cached ones included (counter).
    pub prompt_tokens: u64,
    /// Tokens generated (counter).
    pub generation_tokens: u64,
    /// Requests finished (counters).
    pub finished: Finished,
    /// Sessions opened (counter).
    pub opened: u64,
    /// Sessions refused at the door (counter).
    pub refused: u64,
    /// Steps computed (counter).
    pub steps: u64,
    /// Time spent computing steps (counter). ns: over a stretch of time, the share in which the engine was busy.
    pub busy_ns: u64,
    /// From a window's last audio to its first token, one observation a window.
    pub ttft: Histogram,
}
