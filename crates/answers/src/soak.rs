//! What hours of load answer (TC-05).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{ControlRefusal, ExitCode, Schema};
use tapedeck_slo::{Leak, Period, Reason, TierReport, Verdict};

use crate::n_star::NStar;

/// What a soak answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// N*, and where it comes from.
    pub n_star: NStar,
    /// Streams that were played.
    pub streams: u32,
    /// What was played, and why.
    pub content: SoakContent,
    /// How the instances were restarted first, or why they were not.
    pub restarted: SoakRestart,
    /// What hours showed; empty where the soak was interrupted.
    pub soak: Option<Soak>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl SoakAnswer {
    /// The exit code: 0 no complaint, 1 something to complain of, 4 something could not be told.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match &self.soak {
            _ if self.interrupted => ExitCode::Interrupted,
            None => ExitCode::Undecidable,
            Some(soak) if !soak.complaints.is_empty() => ExitCode::No,
            Some(soak) if !soak.unknown.is_empty() => ExitCode::Undecidable,
            Some(_) => ExitCode::Ok,
        }
    }
}

/// What a soak showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// Each memory that could be read.
    pub memory: Vec<Memory>,
    /// Errors and latencies over time.
    pub periods: Vec<Period>,
    /// Whether first texts come later and later.
    pub drift: Drift,
    /// Whether everything lived.
    pub liveness: Liveness,
    /// The same load judged as a tier.
    pub tier: TierReport,
    /// What is wrong; nothing is a pass.
    pub complaints: Vec<SoakReason>,
    /// What could not be told, and why.
    pub unknown: Vec<SoakReason>,
}

/// One memory over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// `vram` of a GPU, `host rss` of an instance's process where its page tells, or `rss` of our own client.
    pub what: String,
    /// Which: a GPU's uuid, an instance, or `client`.
    pub of: String,
    /// What there is in all, bytes.
    pub total_bytes: u64,
    /// The verdict with its figures.
    pub leak: Leak,
}

/// Whether first-text p95 rises from period to period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Robust slope of the periods' p95, seconds per hour.
    pub per_h_s: Option<f64>,
    /// Lower bound of its interval.
    pub low_per_h_s: Option<f64>,
    /// Upper bound of its interval.
    pub high_per_h_s: Option<f64>,
    /// Rise over the whole soak, seconds.
    pub rise_s: Option<f64>,
    /// A smaller rise is no drift, however certain, seconds.
    pub floor_s: f64,
    /// The verdict; empty with too few periods.
    pub drifts: Option<bool>,
}

/// Whether every instance answered all along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Liveness {
    /// Longest time without a page that could be read, seconds, by instance; empty where there are no pages to read.
    pub longest_silence_s: BTreeMap<String, f64>,
    /// Restarts seen in the counters, by instance.
    pub restarts: BTreeMap<String, u32>,
    /// Counted calls that ended well / counted calls.
    pub clean_share: f64,
}

/// What a soak played, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum SoakContent {
    /// Tape-B, because long calls are what limits.
    LongCalls {
        /// N* with long calls.
        n_star_long: u32,
        /// N* without.
        n_star: u32,
    },
    /// The whole pool, drawn anew for each stream.
    Pool,
    /// Tape-A, because there is no pool.
    NoPool,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(SoakContent);

impl Localize for SoakContent {
    fn text(&self) -> LocalizedText {
        match self {
            Self::LongCalls { n_star_long, n_star } => localized!(
                "Tape-B, because N* with long calls is {n_star_long} and below {n_star}",
                "Tape-B，因为长通话 N* 为 {n_star_long}，低于 {n_star}"
            ),
            Self::Pool => {
                localized!("the whole pool, drawn anew for each stream", "整个语料池，每路各自抽取")
            }
            Self::NoPool => {
                localized!("Tape-A, because the config names no pool", "Tape-A，因为配置里没有语料池")
            }
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Whether the instances were restarted before a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum SoakRestart {
    /// The soak had been played before.
    TakenOver,
    /// The config does not want it.
    NotWanted,
    /// They were.
    Restarted {
        /// How long it took, seconds.
        seconds: f64,
    },
    /// They could not be.
    Refused {
        /// Why.
        why: ControlRefusal,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(SoakRestart);

impl Localize for SoakRestart {
    fn text(&self) -> LocalizedText {
        match self {
            Self::TakenOver => localized!("taken over from the run", "沿用本次运行已有的结果"),
            Self::NotWanted => localized!("not restarted: the config says so", "没有重启：配置如此"),
            Self::Restarted { seconds } => {
                localized!("restarted in {seconds:.1} s", "已重启，用时 {seconds:.1} s")
            }
            Self::Refused { why } => localized!("not restarted: {}", "没有重启：{}"; why.text()),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// What is wrong with a soak, or could not be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum SoakReason {
    /// No GPU told its memory.
    NoMemory,
    /// A memory leaks, or nobody can tell whether it does.
    Memory {
        /// `vram` or `host rss`.
        what: String,
        /// A GPU's uuid, or an instance.
        of: String,
        /// The verdict with its figures.
        leak: Leak,
    },
    /// First texts come later and later.
    Drift {
        /// Rise of p95 over the soak, seconds.
        rise_s: f64,
        /// A smaller rise is no drift, seconds.
        floor_s: f64,
    },
    /// Too few periods to tell that.
    TooFewPeriods,
    /// An instance could not be read for long.
    Silence {
        /// The instance.
        instance: String,
        /// Longest silence, seconds.
        seconds: f64,
    },
    /// An instance restarted.
    Restarted {
        /// The instance.
        instance: String,
        /// How often.
        times: u32,
    },
    /// The same load judged as a tier did not pass.
    Tier {
        /// Its verdict.
        verdict: Verdict,
        /// Why.
        reasons: Vec<Reason>,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(SoakReason);

impl Localize for SoakReason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NoMemory => localized!(
                "no GPU memory could be read, so nothing is known of leaks",
                "读不到显存，是否泄漏无从得知"
            ),
            Self::Memory { what, of, leak } => {
                localized!("{what} of {of}: {}", "{of} 的 {what}：{}"; leak.text())
            }
            Self::Drift { rise_s, floor_s } => localized!(
                "first-text p95 rose by {rise_s:.2} s over the soak, more than {floor_s:.2} s",
                "长稳期间首字 p95 上升 {rise_s:.2} s，超过 {floor_s:.2} s"
            ),
            Self::TooFewPeriods => localized!(
                "too few periods to tell whether first texts come later and later",
                "时段太少，无法判断首字是否越来越晚"
            ),
            Self::Silence { instance, seconds } => localized!(
                "{instance} could not be read for {seconds:.0} s",
                "{instance} 有 {seconds:.0} s 读不到"
            ),
            Self::Restarted { instance, times } => localized!(
                "{instance} restarted {times} time(s): its counters began anew",
                "{instance} 重启了 {times} 次：计数重新开始"
            ),
            Self::Tier { verdict, reasons } => localized!(
                "as a tier it is {}: {}",
                "作为一档的判定为“{}”：{}";
                verdict.text(), LocalizedText::list(reasons)
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
