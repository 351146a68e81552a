//! What open-loop arrivals answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{ExitCode, Schema};
use tapedeck_slo::{Reason, Verdict};

/// What the rates answer together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrivalsAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Every rate that was played.
    pub rates: Vec<ArrivalRate>,
    /// The lowest rate at which the number in the system kept growing, calls an hour.
    pub unstable_from_per_h: Option<f64>,
    /// The share of blocked callers that was asked for, if one was.
    pub max_blocking: Option<f64>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl ArrivalsAnswer {
    /// The exit code. 0: every rate was measured (and none was blocked more than asked for). 1: the lowest rate is
    /// already unstable, calls failed, or too many were blocked. 4: our own lateness spoiled a rate.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let blocked = |rate: &ArrivalRate| rate.figures.blocking.as_ref().map_or(0.0, |b| b.measured.value);
        let unstable = |rate: &ArrivalRate| rate.figures.growth.is_some_and(|g| g.unstable);
        if self.interrupted {
            ExitCode::Interrupted
        } else if self.rates.is_empty() || self.rates.iter().any(|r| r.verdict == Verdict::Invalid) {
            ExitCode::Undecidable
        } else if self.rates.first().is_some_and(unstable)
            || self.rates.iter().any(|r| r.failed > 0)
            || self.max_blocking.is_some_and(|most| self.rates.iter().any(|r| blocked(r) > most))
        {
            ExitCode::No
        } else {
            ExitCode::Ok
        }
    }
}

/// What one rate answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrivalRate {
    /// Name of the step in every file.
    pub step: String,
    /// Blocking, waiting, Little's law, growth.
    pub figures: ArrivalFigures,
    /// Counted calls that were taken and then failed.
    pub failed: u64,
    /// What the limits make of the calls that were taken.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Calls an hour that ended.
    pub throughput_per_h: Option<f64>,
    /// Calls an hour that met every limit.
    pub goodput_per_h: Option<f64>,
    /// First-text latency p95 on the config's basis, seconds.
    pub ttft_p95_s: Option<f64>,
    /// Final latency p95, seconds.
    pub final_p95_s: Option<f64>,
}

/// A measured figure with its two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The estimate.
    pub value: f64,
    /// Lower bound; empty where there were too few batches.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Callers behind it.
    pub n: u64,
}

impl Measured {
    /// Whether the interval holds a value; empty where there is no interval.
    #[must_use]
    pub fn holds(&self, value: f64) -> Option<bool> {
        Some(self.low? <= value && value <= self.high?)
    }
}

/// A measured figure beside the theory's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// As it was measured.
    pub measured: Measured,
    /// As Erlang has it; empty where the formula has no answer.
    pub theory: Option<f64>,
    /// Whether the theory lies within the measurement's interval; empty where the theory is a guide only.
    pub agrees: Option<bool>,
}

/// Little's law: calls in the system = calls that enter a second x seconds that each stays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// Mean number of callers in the system (served or waiting) over the window, by the clock.
    pub in_system: f64,
    /// The other side of the equation, from the callers that arrived in the window.
    pub rate_times_stay: f64,
    /// The second over the first: near 1 where the window is long against a call and the system steady.
    pub ratio: f64,
}

/// Whether the number in the system kept growing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Growth over the window, callers.
    pub rise: f64,
    /// One-sided p-value of a block permutation test.
    pub p: f64,
    /// Blocks it compares.
    pub blocks: u32,
    /// Whether it counts: p at most 1 % and a rise of at least a caller and a tenth of the mean.
    pub unstable: bool,
}

/// What keeps the theory from applying as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum Caveat {
    /// Arrivals depend on each other.
    Dependent {
        /// Law of arrival.
        law: String,
    },
    /// Call lengths are not exponential.
    NotExponential,
    /// Erlang C has no answer.
    NoTheory {
        /// Why.
        why: LocalizedText,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(Caveat);

impl Localize for Caveat {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Dependent { law } => localized!(
                "arrivals are {law}, not independent of each other as Erlang assumes: the theory is a guide only",
                "来电为 {law}，并非 Erlang 所设的彼此独立：理论值仅供参考"
            ),
            Self::NotExponential => localized!(
                "call lengths are not exponential as Erlang C assumes: its share of waiting callers is near, its mean wait needs the factor (1 + CV^2) / 2",
                "通话时长并非 Erlang C 所设的指数分布：等待比例接近，平均等待需乘 (1 + CV^2) / 2"
            ),
            Self::NoTheory { why } => why.clone(),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Everything about one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrivalFigures {
    /// Law of arrival.
    pub law: String,
    /// Rate that was planned, calls an hour.
    pub per_hour: f64,
    /// Lines; empty where the server's own number is not known.
    pub lines: Option<u32>,
    /// What becomes of a caller who finds them all busy: `lost`, `waits`, or `server` (refused by it).
    pub when_busy: String,
    /// Callers that count.
    pub callers: u64,
    /// Callers that were taken.
    pub carried: u64,
    /// Callers that were blocked, by us or by the server.
    pub blocked: u64,
    /// Callers that were cut before their disposition was known.
    pub cut: u64,
    /// Mean time for which a call keeps a line busy, seconds.
    pub mean_hold_s: f64,
    /// Its coefficient of variation: 1 where call lengths are exponential.
    pub cv_hold: Option<f64>,
    /// Offered traffic: planned rate x mean holding time, Erlang.
    pub offered_erl: f64,
    /// Mean number of busy lines.
    pub carried_erl: f64,
    /// Share of callers blocked, beside Erlang B; empty where callers wait.
    pub blocking: Option<Compared>,
    /// Share of callers that waited, beside Erlang C; empty where callers do not wait.
    pub waiting: Option<Compared>,
    /// Mean wait of all callers, seconds, beside Erlang C.
    pub mean_wait_s: Option<Compared>,
    /// 95th percentile of the wait of all callers, seconds.
    pub wait_p95_s: Option<f64>,
    /// The mean wait of Erlang C times `(1 + CV^2) / 2`: a guide for lengths that are not exponential, seconds.
    pub mean_wait_guide_s: Option<f64>,
    /// What keeps the theory from applying as it stands.
    pub caveats: Vec<Caveat>,
    /// Little's law; empty where nobody was carried.
    pub little: Option<Little>,
    /// Growth of the number in the system; empty where the window is too short to tell.
    pub growth: Option<Growth>,
    /// How late we placed callers, 99th percentile, milliseconds: our own doing. Empty in a rehearsal.
    pub late_p99_ms: Option<f64>,
}
