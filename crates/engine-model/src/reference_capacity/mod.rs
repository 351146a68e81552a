//! The truth: how many streams a deployment really carries, found on the model alone.
//!
//! A load test that measures a simulated deployment can be held against this figure. For that to mean anything the truth
//! must not share the load test's mistakes, so this module has its own callers, its own clockwork and its own
//! percentiles: it is a second, independent writing of the same rules.
//!
//! - Stream `k` starts at `k x ramp` with call `k mod C`, and plays call after call; the next starts at the instant of
//!   the final. Every call is a new connection; [`Balance`] says which instance takes it.
//! - A stream's window opens at its first call that starts at or after `streams x ramp + warm-up` and holds `loops x C`
//!   calls; all streams play on until the last of these has its final.
//! - *TTFT* = first text minus the planned end of the first inference window with at least 300 ms of speech. *RTF* =
//!   length of the union of owed intervals / duration, where a window with speech is owed from its planned end until
//!   the answer that covers it, and the last interval runs from the last planned chunk to the final. *Final* = final
//!   minus the last planned chunk.
//! - The 95th percentile of `n` values is the value at place `ceil(0.95 n)`.
//! - A tier passes when no session was refused or failed, nothing was preempted, the KV use on the worst instance
//!   (sampled every second from the end of the ramp on) stays below its limit, and all three latencies are within
//!   theirs. Preemptions, refusals and failures count from the first instant on.
//!
//! The search tries every tier; it does not assume that a heavier one is worse.

mod catalogue;
mod play;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use catalogue::{Deployment, catalogue, long_tape, short_tape, synthetic_tape};

use crate::params::{ParamError, Params};

/// A call of the tape, as far as the model needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeCall {
    /// Its length. ms.
    pub duration_ms: u32,
    /// Where somebody speaks: `(start, end)` in ms, sorted, not overlapping.
    pub speech: Vec<(u32, u32)>,
}

/// Which instance takes a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// The instances in turn, in the order in which connections arrive.
    RoundRobin,
    /// The one with the fewest open sessions; among equals the first.
    LeastConnections,
}

/// How a tier is played and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReferenceRules {
    /// From one stream's start to the next one's. ms, default 500.
    pub ramp_ms: u32,
    /// From the end of the ramp until windows open. ms, default 120,000.
    pub warm_up_ms: u32,
    /// Passes over the tape that count, for each stream. Default 1.
    pub loops: u32,
    /// The same for tiers of up to `few_streams`. Default 3.
    pub loops_few: u32,
    /// Largest tier that counts as few streams. Default 6.
    pub few_streams: u32,
    /// Audio in one message. ms, default 100.
    pub chunk_ms: u32,
    /// Who takes a connection. Default least connections: calls of 30 s and of 180 s that are dealt out in turn pile up
    /// on one instance by chance, and the capacity then depends on that chance more than on the engine.
    pub balance: Balance,
    /// Tiers tried: multiples of this. Default 0 = the number of instances.
    pub step: u32,
    /// Largest tier tried. Default 90.
    pub max_streams: u32,
    /// Limit of the TTFT's 95th percentile. ms, default 1000.
    pub ttft_ms: u32,
    /// Limit of the RTF's 95th percentile. Default 0.5.
    pub rtf: f64,
    /// Limit of the final's 95th percentile. ms, default 2000.
    pub final_ms: u32,
    /// The 95th percentile of the KV use must stay below this. Default 0.98.
    pub kv: f64,
}

impl Default for ReferenceRules {
    fn default() -> Self {
        Self {
            ramp_ms: 500,
            warm_up_ms: 120_000,
            loops: 1,
            loops_few: 3,
            few_streams: 6,
            chunk_ms: 100,
            balance: Balance::LeastConnections,
            step: 0,
            max_streams: 90,
            ttft_ms: 1_000,
            rtf: 0.5,
            final_ms: 2_000,
            kv: 0.98,
        }
    }
}

impl ReferenceRules {
    /// The same for a tape a tenth as long: ramp and warm-up shrink with it; windows, chunks and limits do not.
    #[must_use]
    pub fn tenth(&self) -> Self {
        Self { ramp_ms: self.ramp_ms / 10, warm_up_ms: self.warm_up_ms / 10, ..self.clone() }
    }
}

/// What stopped a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Something was preempted.
    Preemption,
    /// The pool was too full, though nothing was preempted.
    KvPool,
    /// A session was refused at the door.
    Refusal,
    /// A session outgrew the engine.
    TooLong,
    /// The engine died.
    Crash,
    /// Time to first text.
    Ttft,
    /// Real-time factor.
    Rtf,
    /// Latency of the final.
    Final,
    /// The counted calls did not end in four times their length.
    Stuck,
}

/// The kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Memory.
    Kv,
    /// Time.
    Latency,
    /// The door.
    Refusal,
    /// The engine is ill.
    Fault,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preemption => "preemption",
            Self::KvPool => "KV pool",
            Self::Refusal => "refusal",
            Self::TooLong => "too long a call",
            Self::Crash => "crash",
            Self::Ttft => "TTFT",
            Self::Rtf => "RTF",
            Self::Final => "final",
            Self::Stuck => "stuck",
        })
    }
}

impl Limit {
    /// The kind of this limit.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::Preemption | Self::KvPool | Self::TooLong => Family::Kv,
            Self::Refusal => Family::Refusal,
            Self::Crash => Family::Fault,
            Self::Ttft | Self::Rtf | Self::Final | Self::Stuck => Family::Latency,
        }
    }
}

/// One tier, played.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// Streams played at once.
    pub streams: u32,
    /// What stopped it; none = it passes.
    pub stopped_by: Option<Limit>,
    /// Counted calls that got their final.
    pub calls: usize,
    /// Median of the TTFT. s; none when the tier was given up before its end, like the next five.
    pub ttft_p50_s: Option<f64>,
    /// Median of the RTF.
    pub rtf_p50: Option<f64>,
    /// Median of the final. s.
    pub final_p50_s: Option<f64>,
    /// 95th percentile of the TTFT. s.
    pub ttft_p95_s: Option<f64>,
    /// 95th percentile of the RTF.
    pub rtf_p95: Option<f64>,
    /// 95th percentile of the final. s.
    pub final_p95_s: Option<f64>,
    /// 95th percentile of the KV use on the worst instance, as far as the tier was played.
    pub kv_p95: Option<f64>,
    /// Preemptions on all instances.
    pub preemptions: u64,
    /// Share of the time in which the busiest instance computed.
    pub busy: f64,
}

/// What a deployment carries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferenceCapacity {
    /// The largest passing tier below the first failing one; 0 = the first tier fails.
    pub capacity: u32,
    /// What stopped the first failing tier; none = nothing failed up to `max_streams`.
    pub limited_by: Option<Limit>,
    /// Whether no tier above the first failing one passes.
    pub monotonic: bool,
    /// Every tier tried, in order.
    pub tiers: Vec<Evidence>,
}

/// Why there is no truth to find.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The engine's parameters are out of range.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// Nothing to play, or nobody to play it to.
    #[error("{0}")]
    Empty(&'static str),
}

/// Plays every tier up to `rules.max_streams` and says which is the largest that the deployment carries. The same
/// arguments always give the same answer. Tiers above the first failing one are given up as soon as their failure is
/// certain; the others are played to their end.
///
/// # Errors
/// Parameters out of range, no instance, no tape, or a tape without audio.
pub fn find_reference_capacity(
    params: &Params,
    instances: u32,
    tape: &[TapeCall],
    rules: &ReferenceRules,
    seed: u64,
) -> Result<ReferenceCapacity, ReferenceError> {
    let step = if rules.step == 0 { instances } else { rules.step };
    if step == 0 {
        return Err(ReferenceError::Empty("a truth needs at least one instance"));
    }
    let mut tiers: Vec<Evidence> = Vec::new();
    let mut capacity = 0;
    let mut limited_by = None;
    let mut monotonic = true;
    for streams in (step..=rules.max_streams).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let tier = play::play(params, instances, tape, rules, streams, seed, limited_by.is_some())?;
        match (tier.stopped_by, limited_by) {
            (None, None) => capacity = streams,
            (None, Some(_)) => monotonic = false,
            (Some(limit), None) => limited_by = Some(limit),
            (Some(_), Some(_)) => {}
        }
        tiers.push(tier);
    }
    Ok(ReferenceCapacity { capacity, limited_by, monotonic, tiers })
}

/// Plays one tier to its end.
///
/// # Errors
/// As [`find_reference_capacity`].
pub fn play_tier(
    params: &Params,
    instances: u32,
    tape: &[TapeCall],
    rules: &ReferenceRules,
    streams: u32,
    seed: u64,
) -> Result<Evidence, ReferenceError> {
    play::play(params, instances, tape, rules, streams, seed, false)
}

/// Whether one tier passes, given up as soon as its failure is certain. The limit is the first whose failure was certain,
/// which need not be the one that [`play_tier`] names.
///
/// # Errors
/// As [`find_reference_capacity`].
pub fn stopped_by(
    params: &Params,
    instances: u32,
    tape: &[TapeCall],
    rules: &ReferenceRules,
    streams: u32,
    seed: u64,
) -> Result<Option<Limit>, ReferenceError> {
    Ok(play::play(params, instances, tape, rules, streams, seed, true)?.stopped_by)
}
