//! What is known of a tier once it is judged: the checkpoint of a finished tier.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText};
use tapedeck_record::{CallFigure, Outcome};

use crate::limits::TtftBasis;
use crate::live::Abort;
use crate::reason::{CutShort, Reason};

/// A figure with its sample size and its interval; an empty bound means that the sample cannot give one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Observations behind it.
    pub n: u64,
    /// Lower bound of the two-sided interval.
    pub low: Option<f64>,
    /// Upper bound of the two-sided interval.
    pub high: Option<f64>,
}

/// A percentile when failed calls count as infinitely late; serialised as a number or `"never"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "PercentileOrInfiniteWire", from = "PercentileOrInfiniteWire")]
pub enum PercentileOrInfinite {
    /// Reached after this many seconds (or at this ratio).
    At(f64),
    /// So many calls failed that the percentile lies among them.
    Never,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PercentileOrInfiniteWire {
    At(f64),
    Never(NeverWord),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NeverWord {
    Never,
}

impl From<PercentileOrInfinite> for PercentileOrInfiniteWire {
    fn from(reached: PercentileOrInfinite) -> Self {
        match reached {
            PercentileOrInfinite::At(value) => Self::At(value),
            PercentileOrInfinite::Never => Self::Never(NeverWord::Never),
        }
    }
}

impl From<PercentileOrInfiniteWire> for PercentileOrInfinite {
    fn from(wire: PercentileOrInfiniteWire) -> Self {
        match wire {
            PercentileOrInfiniteWire::At(value) => Self::At(value),
            PercentileOrInfiniteWire::Never(_) => Self::Never,
        }
    }
}

/// One per-call figure over the counted calls of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// Median.
    pub p50: Estimate,
    /// 95th percentile, with the wider of its two intervals.
    pub p95: Estimate,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median with failed calls as +infinity.
    pub p50_with_failures: PercentileOrInfinite,
    /// 95th percentile with failed calls as +infinity.
    pub p95_with_failures: PercentileOrInfinite,
}

/// How one limit fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// The interval's upper bound is within the limit.
    Pass,
    /// The interval's lower bound is beyond the limit.
    Fail,
    /// The estimate is within the limit, but its interval is not.
    PointPass,
    /// The estimate is beyond the limit, but its interval is not.
    PointFail,
    /// The limit means nothing for this dialect or engine.
    NotApplicable,
    /// The figure should exist and does not.
    Unknown,
}

impl LimitVerdict {
    /// Whether the limit is broken, by the estimate at least.
    #[must_use]
    pub const fn failed(self) -> bool {
        matches!(self, Self::Fail | Self::PointFail)
    }

    /// Whether only the estimate decided.
    #[must_use]
    pub const fn is_point(self) -> bool {
        matches!(self, Self::PointPass | Self::PointFail)
    }

    /// The word used in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::PointPass => "point-pass",
            Self::PointFail => "point-fail",
            Self::NotApplicable => "not applicable",
            Self::Unknown => "unknown",
        }
    }
}

/// A thing that can stop a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A preempted request.
    Preemption,
    /// A full KV pool.
    KvPool,
    /// Errored streams.
    Errors,
    /// First-text latency.
    Ttft,
    /// Real-time factor.
    Rtf,
    /// Final latency.
    Final,
    /// Memory of a GPU: only held against a tier when it grew or ran short so far that the tier was aborted.
    Vram,
}

impl Limit {
    /// Every limit, in the order in which a tier is judged.
    pub const ALL: [Self; 7] =
        [Self::Preemption, Self::KvPool, Self::Errors, Self::Ttft, Self::Rtf, Self::Final, Self::Vram];

    /// The word used in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preemption => "preemption",
            Self::KvPool => "kv_pool",
            Self::Errors => "errors",
            Self::Ttft => "ttft",
            Self::Rtf => "rtf",
            Self::Final => "final",
            Self::Vram => "vram",
        }
    }
}

/// The verdict on a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every limit that applies is met.
    Pass,
    /// A limit is broken.
    Fail,
    /// Our own client was too late or too busy for the tier to prove anything.
    Invalid,
    /// Something that decides could not be read.
    Unknown,
    /// Caches may have answered instead of the engine.
    Suspect,
    /// The tier was still getting worse when it ended.
    Unstable,
}

impl Verdict {
    /// The word used in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
            Self::Suspect => "suspect",
            Self::Unstable => "unstable",
        }
    }

    /// Whether the tier proves nothing, neither way.
    #[must_use]
    pub const fn undecided(self) -> bool {
        !matches!(self, Self::Pass | Self::Fail)
    }
}

impl Localize for Verdict {
    fn text(&self) -> LocalizedText {
        let zh = match self {
            Self::Pass => "通过",
            Self::Fail => "未通过",
            Self::Invalid => "无效",
            Self::Unknown => "未知",
            Self::Suspect => "可疑",
            Self::Unstable => "不稳定",
        };
        LocalizedText { en: self.name().into(), zh: zh.into() }
    }
}

/// What one limit was held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitResult {
    /// Which limit.
    pub limit: Limit,
    /// How it fared.
    pub verdict: LimitVerdict,
    /// The figure, where there is one.
    pub value: Option<f64>,
    /// What it was held against; 0 where the limit is not a single figure.
    pub threshold: f64,
}

/// One stationarity test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationarityResult {
    /// Which series: `ttft`, `rtf`, `final`, or `open_sessions` for open arrivals.
    pub series: String,
    /// Calls behind it.
    pub n: u64,
    /// Blocks they fell into.
    pub blocks: u32,
    /// Fitted rise from the first block to the last, in the series' own unit.
    pub rise: f64,
    /// Rise below which there is no alarm.
    pub floor: f64,
    /// One-sided p-value of the block bootstrap.
    pub p: f64,
    /// The same after correction for all tests of the ladder known so far.
    pub p_adjusted: f64,
    /// Whether the series got worse.
    pub alarm: bool,
}

/// What the servers' pages said of one instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceReport {
    /// KV pool use p95 from ramp to end of drain.
    pub kv_pool_p95: Option<f64>,
    /// Largest KV pool use seen.
    pub kv_pool_max: Option<f64>,
    /// Requests preempted from ramp to end of drain.
    pub preempt_delta: Option<f64>,
    /// Prefix-cache hits / look-ups.
    pub prefix_hit_rate: Option<f64>,
    /// Multimodal-cache hits / look-ups.
    pub mm_hit_rate: Option<f64>,
    /// Median of the open sessions during the window.
    pub open_sessions_p50: Option<f64>,
    /// Pages that were read.
    pub scrapes: u64,
    /// Pages that were not.
    pub gaps: u64,
    /// Restarts seen in its counters.
    pub resets: u32,
}

/// What the GPUs did during the window; each uuid counts once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReport {
    /// GPUs that answered.
    pub gpus: u32,
    /// Mean utilisation, 0..1.
    pub utilisation_avg: Option<f64>,
    /// Highest utilisation of any GPU, 0..1.
    pub utilisation_max: Option<f64>,
    /// Memory used at its highest, summed over the GPUs, bytes.
    pub vram_used_bytes: Option<u64>,
    /// Highest temperature, degrees Celsius.
    pub temperature_max_c: Option<f64>,
    /// Mean power, summed over the GPUs, watts.
    pub power_avg_w: Option<f64>,
    /// Reasons for which a GPU held its clocks down.
    pub throttle: Vec<String>,
}

/// Word and character error rates over the counted calls that have a reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QualityReport {
    /// Character error rate, pooled, 0..1 (it may exceed 1).
    pub cer: Option<Estimate>,
    /// Word error rate of finals + tail, pooled.
    pub wer: Option<Estimate>,
    /// Word error rate of the finals alone, pooled.
    pub wer_finals: Option<Estimate>,
    /// Whether it is certain to be worse than the baseline by more than the limit; empty where there is no baseline, or
    /// where too few words were played to tell.
    pub alarm: Option<bool>,
}

/// What of the final the limit was held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalBasis {
    /// From the planned end of the audio (`final_s`).
    Audio,
    /// From the end of speech (`final_speech_s`): calls carried tail silence.
    Speech,
}

/// Everything about a judged tier. Unknown figures are empty, never 0.
///
/// Reports of schema 1, which had a key for each summary, are read as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TierReport {
    /// Streams, N.
    pub streams: u32,
    /// Label of the tape.
    pub tape: String,
    /// Whether the figures come from the built-in engine.
    pub simulated: bool,
    /// Whether the tier belongs to the refinement.
    pub refinement: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether at least one limit was decided by its estimate alone.
    pub point_only: bool,
    /// Why, the deciding reason first.
    pub reasons: Vec<Reason>,
    /// What a reader should know besides.
    pub notes: Vec<Reason>,
    /// What kind of tier it is, where it is not a plain one: `repeat`, `offline`... First in the notes of its row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Every limit, in the order of judging.
    pub limits: Vec<LimitResult>,
    /// Stationarity tests.
    pub stationarity: Vec<StationarityResult>,
    /// Counted calls there should have been.
    pub calls_expected: Option<u64>,
    /// Counted calls there were.
    pub calls_counted: u64,
    /// Counted calls that ended `ok`.
    pub calls_clean: u64,
    /// Counted calls that take no part in verdicts.
    pub calls_excluded: u64,
    /// Counted calls by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Streams with at least one errored counted call.
    pub err_streams: u32,
    /// Errored counted calls.
    pub err_calls: u64,
    /// Calls outside the window that errored: they prove nothing, but a reader should know.
    pub err_calls_outside: u64,
    /// The live rule by which the tier was aborted.
    #[serde(default)]
    pub abort: Option<Abort>,
    /// Why the tier ended early, where it did.
    pub cut_short: Option<CutShort>,
    /// What first-text latency counts from.
    pub ttft_basis: TtftBasis,
    /// What the final counts from.
    pub final_basis: FinalBasis,
    /// Figures of single calls over the counted calls; one that no call has is not there.
    #[serde(default)]
    pub summaries: BTreeMap<CallFigure, Summary>,
    /// Processing time that the engines counted / audio played during the window; empty where their sums do not mean
    /// that. For comparison with published tables, never held against a limit.
    #[serde(default)]
    pub server_rtf: Option<f64>,
    /// Median growth of lag with a call's age over the long calls, milliseconds per minute.
    pub age_slope_ms_per_min: Option<f64>,
    /// Broken invariants of the dialect in counted calls.
    pub violations: u64,
    /// KV pool use p95 of the worst instance.
    pub kv_pool_p95: Option<f64>,
    /// Preempted requests over all instances; empty unless every instance that should tell does.
    pub preempt_delta: Option<f64>,
    /// Highest prefix-cache hit rate of any instance.
    pub prefix_hit_rate: Option<f64>,
    /// Highest multimodal-cache hit rate of any instance.
    pub mm_hit_rate: Option<f64>,
    /// What each instance's page said.
    pub instances: BTreeMap<String, InstanceReport>,
    /// What the GPUs did; empty where none was read.
    pub gpu: Option<GpuReport>,
    /// Error rates against references; empty where there are none.
    pub quality: Option<QualityReport>,
    /// Our wake lateness p99, milliseconds; empty in a rehearsal.
    pub wake_late_p99_ms: Option<f64>,
    /// How much later we woke the longer a call lasted, parts per million, median over the calls of 15 s and more; empty
    /// in a rehearsal.
    #[serde(default)]
    pub client_drift_ppm: Option<f64>,
    /// Our CPU share, 0..1; empty in a rehearsal.
    pub client_cpu_share: Option<f64>,
    /// Streams that carried their whole load: planned minus errored.
    pub delivered_streams: u32,
    /// Counted calls per hour that ended, whatever their latency.
    pub throughput_per_h: Option<f64>,
    /// Counted calls per hour that met every limit.
    pub goodput_per_h: Option<f64>,
    /// Little's law: arrivals per second x mean seconds in the system; about N in a closed loop.
    pub little_calls: Option<f64>,
    /// Seconds from the last close until every instance was empty.
    pub drain_s: Option<f64>,
    /// Whether the drain succeeded.
    pub drained: Option<bool>,
    /// First counted call began, seconds from the run's origin.
    pub window_from_s: f64,
    /// Last counted call ended, seconds from the run's origin.
    pub window_to_s: f64,
}

impl TierReport {
    /// How one limit fared; `unknown` for a limit the report does not carry.
    #[must_use]
    pub fn limit(&self, limit: Limit) -> LimitVerdict {
        self.limits.iter().find(|r| r.limit == limit).map_or(LimitVerdict::Unknown, |r| r.verdict)
    }

    /// The limits that are broken, in the order of judging.
    #[must_use]
    pub fn broken(&self) -> Vec<Limit> {
        self.limits.iter().filter(|r| r.verdict.failed()).map(|r| r.limit).collect()
    }

    /// Every reason of the verdict in a row, the deciding one first.
    #[must_use]
    pub fn reasons_text(&self) -> LocalizedText {
        LocalizedText::list(&self.reasons)
    }

    /// Whether a preemption or a full KV pool was seen: nothing higher may be tried.
    #[must_use]
    pub fn hard_limit(&self) -> bool {
        self.limit(Limit::Preemption).failed() || self.limit(Limit::KvPool).failed()
    }

    /// A figure of single calls over the counted calls.
    #[must_use]
    pub fn summary(&self, figure: CallFigure) -> Option<&Summary> {
        self.summaries.get(&figure)
    }

    /// First-text latency on the basis of the verdict, seconds.
    #[must_use]
    pub fn ttft(&self) -> Option<&Summary> {
        self.summary(self.ttft_basis.figure())
    }

    /// Final latency on the basis of the verdict, seconds.
    #[must_use]
    pub fn final_latency(&self) -> Option<&Summary> {
        self.summary(self.final_basis.figure())
    }

    /// Errored streams / streams.
    #[must_use]
    pub fn err_stream_share(&self) -> f64 {
        if self.streams == 0 { 0.0 } else { f64::from(self.err_streams) / f64::from(self.streams) }
    }
}
