//! Everything that is known of a tier when it is judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, Evidence, Sample};

use crate::live::Abort;
use crate::reason::CutShort;

/// What an engine's page should carry; what is declared here but cannot be read makes a tier `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The KV pool gauge.
    pub kv_pool: bool,
    /// The preemption counter.
    pub preemptions: bool,
    /// The prefix cache's counters.
    pub prefix_cache: bool,
    /// The multimodal cache's counters.
    pub mm_cache: bool,
}

impl Expected {
    /// An engine without such metrics: the hard limit and the cache rule do not apply.
    pub const NOTHING: Self =
        Self { kv_pool: false, preemptions: false, prefix_cache: false, mm_cache: false };
    /// An engine that tells all of it, as vLLM does.
    pub const ALL: Self = Self { kv_pool: true, preemptions: true, prefix_cache: true, mm_cache: true };
}

/// What an engine's page says of one of its caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheSetting {
    /// The page says that it is off: no look-ups mean no hits.
    Off,
    /// The page says that it is on.
    On,
    /// The page does not say.
    #[default]
    Unknown,
}

/// One instance under test, as far as the verdict needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceFacts {
    /// The name under which its samples come.
    pub name: String,
    /// What its kind of engine should tell.
    pub expected: Expected,
    /// Prefix cache, as its page says.
    pub prefix_cache: CacheSetting,
    /// Multimodal processor cache, as its page says.
    pub mm_cache: CacheSetting,
}

/// The instants that divide a tier, seconds from the run's origin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepBounds {
    /// The first stream began.
    pub ramp_from_s: f64,
    /// The first counted call began.
    pub window_from_s: f64,
    /// The last counted call had its final, or timed out.
    pub window_to_s: f64,
    /// The drain ended (or was aborted).
    pub drain_to_s: f64,
}

/// Errors of the single-stream baseline, by the call's index on the tape: a tier is held against them by these calls
/// alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QualityBaseline(pub BTreeMap<u32, CallErrors>);

/// Errors of one call against its reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallErrors {
    /// Of characters.
    pub chars: Option<PooledErrors>,
    /// Of words.
    pub words: Option<PooledErrors>,
}

/// Errors against references, over several transcripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PooledErrors {
    /// Tokens replaced, missing or too many.
    pub errors: u64,
    /// Tokens of the references.
    pub tokens: u64,
}

impl PooledErrors {
    /// Errors / tokens; it may exceed 1, and is 0 without tokens.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub fn rate(self) -> f64 {
        self.errors as f64 / self.tokens.max(1) as f64
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { errors: self.errors + other.errors, tokens: self.tokens + other.tokens }
    }
}

/// All that [`judge`](crate::judge) looks at.
#[derive(Debug, Clone)]
pub struct TierEvidence<'a> {
    /// Streams, N.
    pub streams: u32,
    /// Label of the tape.
    pub tape: &'a str,
    /// Every call of the tier; those with `counted` decide.
    pub calls: &'a [CallRecord],
    /// How many counted calls there should be: N x C x loops; empty where that was not fixed beforehand.
    pub calls_expected: Option<u64>,
    /// Every sample of the tier.
    pub samples: &'a [Sample],
    /// Instances under test, in the order of the config.
    pub instances: &'a [InstanceFacts],
    /// The instants that divide the tier.
    pub bounds: StepBounds,
    /// What the dialect lets us know.
    pub evidence: Evidence,
    /// Length of the server's inference windows, where it has them.
    pub window_ms: Option<u32>,
    /// Silence appended to every call, milliseconds; above 0 the final counts from the end of speech.
    pub tail_silence_ms: u32,
    /// Our own wake lateness over all chunks, p99, milliseconds; empty under a paused clock or when not measured.
    pub wake_late_p99_ms: Option<f64>,
    /// How much later we woke the longer a call lasted, median over the calls, parts per million; empty under a paused
    /// clock or when no call was long enough to tell.
    pub client_drift_ppm: Option<f64>,
    /// CPU the load generator used / cores of this machine, 0..1; empty under a paused clock or when not measured.
    pub client_cpu_share: Option<f64>,
    /// Seconds from the last close until every instance was empty; empty where that cannot be known.
    pub drain_s: Option<f64>,
    /// Whether the drain succeeded; empty where that cannot be known.
    pub drained: Option<bool>,
    /// Whether the figures come from a built-in engine, on whatever clock.
    pub simulated: bool,
    /// Whether the clock was paused: nothing can then be said of our own lateness, and it is not judged. A built-in
    /// engine over real sockets is simulated and not paused.
    pub paused: bool,
    /// Whether the tier belongs to the refinement and not to the ladder itself.
    pub refinement: bool,
    /// Whether calls arrived at random (open load model) instead of streams that are always busy.
    pub open_arrivals: bool,
    /// Tiers of the whole ladder: the stationarity tests share one error rate among them.
    pub tiers_planned: u32,
    /// The live rule by which the tier was aborted: that fails it, whatever its few calls say.
    pub abort: Option<Abort>,
    /// Whether the sums of the engines' latency histograms mean processing time: the dialect says so. Not so for
    /// vLLM's realtime endpoint, whose sums swell by the session's length.
    pub server_sums: bool,
    /// Why the tier ended before its last counted call, where it did.
    pub cut_short: Option<CutShort>,
    /// Single-stream error rates, where they were measured.
    pub baseline: Option<QualityBaseline>,
    /// Seed of the bootstraps; the same seed gives the same report.
    pub seed: u64,
}

impl<'a> TierEvidence<'a> {
    /// A tier of `streams` with nothing known but its calls and when it ran; the other fields are public.
    #[must_use]
    pub const fn new(streams: u32, tape: &'a str, calls: &'a [CallRecord], bounds: StepBounds) -> Self {
        Self {
            streams,
            tape,
            calls,
            calls_expected: None,
            samples: &[],
            instances: &[],
            bounds,
            evidence: Evidence::Position,
            window_ms: None,
            tail_silence_ms: 0,
            wake_late_p99_ms: None,
            client_drift_ppm: None,
            client_cpu_share: None,
            drain_s: None,
            drained: None,
            simulated: false,
            paused: false,
            refinement: false,
            open_arrivals: false,
            tiers_planned: 1,
            abort: None,
            server_sums: false,
            cut_short: None,
            baseline: None,
            seed: 0,
        }
    }
}

/// What a step was judged from, beside its calls and its samples: kept in the journal, so that it can be judged again.
/// The fields are those of [`TierEvidence`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepEvidence {
    /// Streams, N.
    pub streams: u32,
    /// Label of the tape.
    pub tape: String,
    /// How many counted calls there should be; empty where that was not fixed beforehand.
    pub calls_expected: Option<u64>,
    /// Instances under test, in the order of the config.
    pub instances: Vec<InstanceFacts>,
    /// The instants that divide the step.
    pub bounds: StepBounds,
    /// What the dialect lets us know.
    pub evidence: Evidence,
    /// Length of the server's inference windows, milliseconds, where it has them.
    pub window_ms: Option<u32>,
    /// Silence appended to every call, milliseconds.
    pub tail_silence_ms: u32,
    /// Our own wake lateness over all chunks, p99, milliseconds.
    pub wake_late_p99_ms: Option<f64>,
    /// How much later we woke the longer a call lasted, parts per million.
    pub client_drift_ppm: Option<f64>,
    /// CPU the load generator used / cores of its machine, 0..1.
    pub client_cpu_share: Option<f64>,
    /// Seconds from the last close until every instance was empty.
    pub drain_s: Option<f64>,
    /// Whether the drain succeeded.
    pub drained: Option<bool>,
    /// Whether the figures come from a built-in engine.
    pub simulated: bool,
    /// Whether the clock was paused.
    pub paused: bool,
    /// Whether the step belongs to the refinement of a ladder.
    pub refinement: bool,
    /// Whether calls arrived at random.
    pub open_arrivals: bool,
    /// Tiers of the whole ladder.
    pub tiers_planned: u32,
    /// The live rule by which the step was aborted.
    pub abort: Option<Abort>,
    /// Whether the sums of the engines' latency histograms mean processing time.
    pub server_sums: bool,
    /// Why the step ended before its last counted call, where it did.
    pub cut_short: Option<CutShort>,
    /// Single-stream error rates, where they were measured.
    pub baseline: Option<QualityBaseline>,
    /// Seed of the bootstraps.
    pub seed: u64,
}

impl StepEvidence {
    /// What to judge the step from, with these calls and samples.
    #[must_use]
    pub fn tier<'a>(&'a self, calls: &'a [CallRecord], samples: &'a [Sample]) -> TierEvidence<'a> {
        TierEvidence {
            streams: self.streams,
            tape: &self.tape,
            calls,
            calls_expected: self.calls_expected,
            samples,
            instances: &self.instances,
            bounds: self.bounds,
            evidence: self.evidence,
            window_ms: self.window_ms,
            tail_silence_ms: self.tail_silence_ms,
            wake_late_p99_ms: self.wake_late_p99_ms,
            client_drift_ppm: self.client_drift_ppm,
            client_cpu_share: self.client_cpu_share,
            drain_s: self.drain_s,
            drained: self.drained,
            simulated: self.simulated,
            paused: self.paused,
            refinement: self.refinement,
            open_arrivals: self.open_arrivals,
            tiers_planned: self.tiers_planned,
            abort: self.abort.clone(),
            server_sums: self.server_sums,
            cut_short: self.cut_short.clone(),
            baseline: self.baseline.clone(),
            seed: self.seed,
        }
    }
}

impl TierEvidence<'_> {
    /// What to keep of it beside the calls and the samples, which have files of their own.
    #[must_use]
    pub fn kept(&self) -> StepEvidence {
        StepEvidence {
            streams: self.streams,
            tape: self.tape.to_owned(),
            calls_expected: self.calls_expected,
            instances: self.instances.to_vec(),
            bounds: self.bounds,
            evidence: self.evidence,
            window_ms: self.window_ms,
            tail_silence_ms: self.tail_silence_ms,
            wake_late_p99_ms: self.wake_late_p99_ms,
            client_drift_ppm: self.client_drift_ppm,
            client_cpu_share: self.client_cpu_share,
            drain_s: self.drain_s,
            drained: self.drained,
            simulated: self.simulated,
            paused: self.paused,
            refinement: self.refinement,
            open_arrivals: self.open_arrivals,
            tiers_planned: self.tiers_planned,
            abort: self.abort.clone(),
            server_sums: self.server_sums,
            cut_short: self.cut_short.clone(),
            baseline: self.baseline.clone(),
            seed: self.seed,
        }
    }
}
