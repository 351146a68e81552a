//! What a campaign answers: every part with its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{ControlRefusal, ExitCode, Schema};
use tapedeck_slo::{Capacity, CapacityState, Repeatability};

use crate::decision::Decision;
use crate::fault::FaultReason;
use crate::quality::QualityFinding;
use crate::single_stream::SingleStreamReason;
use crate::soak::SoakReason;
use crate::topology::TopologyReason;

/// One case of the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The single stream.
    Tc01,
    /// What streams cost.
    Tc02,
    /// The ladder.
    Tc03,
    /// Long calls.
    Tc03b,
    /// The middle tier again.
    Tc08,
    /// Words under load.
    Tc04,
    /// The soak.
    Tc05,
    /// Faults.
    Tc06,
    /// Topologies.
    Tc07,
}

impl Part {
    /// All of them, in the order in which they are played.
    pub const ALL: [Self; 9] = [
        Self::Tc01,
        Self::Tc02,
        Self::Tc03,
        Self::Tc03b,
        Self::Tc08,
        Self::Tc04,
        Self::Tc05,
        Self::Tc06,
        Self::Tc07,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tc01 => "tc01",
            Self::Tc02 => "tc02",
            Self::Tc03 => "tc03",
            Self::Tc03b => "tc03b",
            Self::Tc08 => "tc08",
            Self::Tc04 => "tc04",
            Self::Tc05 => "tc05",
            Self::Tc06 => "tc06",
            Self::Tc07 => "tc07",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tc01 => "one stream",
            Self::Tc02 => "what a stream costs",
            Self::Tc03 => "the ladder: N*",
            Self::Tc03b => "long calls",
            Self::Tc08 => "the same tier again",
            Self::Tc04 => "words under load",
            Self::Tc05 => "soak",
            Self::Tc06 => "fault injection",
            Self::Tc07 => "topologies",
        }
    }

    /// Whether it needs N*.
    #[must_use]
    pub const fn needs_n_star(self) -> bool {
        matches!(self, Self::Tc03b | Self::Tc08 | Self::Tc04 | Self::Tc05 | Self::Tc06 | Self::Tc07)
    }
}

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartDone {
    /// Which.
    pub part: Part,
    /// Its answer; empty where it was left out.
    pub decision: Option<Decision>,
    /// The answer, or why it was left out.
    pub sentence: PartAnswer,
    /// How long it took, seconds on the run's clock.
    pub seconds: f64,
}

/// A ladder that was climbed anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// Why.
    pub why: RerunReason,
    /// N* that it found.
    pub n_star: Option<u32>,
    /// N* as it is displayed.
    pub capacity: NStarBound,
    /// Its run directory.
    pub run: PathBuf,
}

/// What a campaign answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Every part so far, in the order of play.
    pub parts: Vec<PartDone>,
    /// Ladders that were climbed anew.
    pub reruns: Vec<Rerun>,
    /// N* as it stands.
    pub n_star: Option<u32>,
    /// Why the campaign stopped before its end, and how to go on; empty where it did not.
    pub stopped: Option<CampaignStop>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

impl CampaignAnswer {
    /// The exit code: 1 where a part's answer was no, 4 where one was not decidable or the campaign waits for a decision.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let any = |decision| self.parts.iter().any(|p| p.decision == Some(decision));
        if self.interrupted {
            ExitCode::Interrupted
        } else if self.stopped.is_some() {
            ExitCode::Undecidable
        } else if any(Decision::No) {
            ExitCode::No
        } else if any(Decision::Undecidable) {
            ExitCode::Undecidable
        } else {
            ExitCode::Ok
        }
    }

    /// How a part ended, if it did.
    #[must_use]
    pub fn done(&self, part: Part) -> Option<&PartDone> {
        self.parts.iter().find(|p| p.part == part)
    }
}

/// What one part of a campaign answered, or why it was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum PartAnswer {
    /// A single stream is well.
    SingleStream,
    /// A single stream is not, or nobody can tell.
    SingleStreamReasons {
        /// Why.
        reasons: Vec<SingleStreamReason>,
    },
    /// How many streams the pools hold.
    StreamsByMemory {
        /// Streams.
        streams: f64,
    },
    /// What a stream costs is not known.
    MemoryUnknown,
    /// N*.
    Ladder {
        /// N*, where there is one.
        n_star: Option<u32>,
        /// How firm it is.
        state: CapacityState,
    },
    /// N* with long calls.
    LongCalls {
        /// N*, where there is one.
        n_star: Option<u32>,
        /// How firm it is.
        state: CapacityState,
    },
    /// Whether the same load gave the same figures.
    Repeatability {
        /// The figures.
        repeatability: Repeatability,
    },
    /// Whether load costs accuracy.
    Quality {
        /// The answer.
        answer: QualityFinding,
    },
    /// Nothing is wrong after hours.
    Soak,
    /// Something is wrong after hours, or could not be told.
    SoakReasons {
        /// What.
        reasons: Vec<SoakReason>,
    },
    /// Nothing is wrong after a fault.
    Fault,
    /// Something is wrong after a fault, or could not be told.
    FaultReasons {
        /// What.
        reasons: Vec<FaultReason>,
    },
    /// Which topology to take.
    Topology {
        /// Why.
        why: TopologyReason,
    },
    /// Left out.
    LeftOut {
        /// Why.
        why: LeftOut,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(PartAnswer);

/// Why a part was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftOut {
    /// The user asked for it.
    Asked,
    /// There is no N* to go by.
    NoNStar,
    /// The config has no instance to inject a fault into.
    NoInstance,
    /// An instance may not be touched, or a command failed.
    Refused {
        /// Why.
        why: ControlRefusal,
    },
    /// Something that the config does not give: the message says what, and how to mend it.
    Error {
        /// The message.
        message: LocalizedText,
    },
}

impl Localize for LeftOut {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Asked => localized!("left out, as asked", "按要求略去"),
            Self::NoNStar => localized!("left out: the ladder found no N*", "略去：阶梯没有得到 N*"),
            Self::NoInstance => {
                localized!(
                    "the config has no instance to inject a fault into",
                    "配置里没有可以注入故障的实例"
                )
            }
            Self::Refused { why } => why.text(),
            Self::Error { message } => message.clone(),
        }
    }
}

impl Localize for PartAnswer {
    fn text(&self) -> LocalizedText {
        match self {
            Self::SingleStream => localized!("a single stream meets every limit", "单路满足全部上限"),
            Self::SingleStreamReasons { reasons } => LocalizedText::list(reasons),
            Self::StreamsByMemory { streams } => localized!(
                "by their cost in memory, {streams:.0} streams fit",
                "按显存开销可容纳 {streams:.0} 路"
            ),
            Self::MemoryUnknown => {
                localized!("what a stream costs could not be measured", "没能测出单路开销")
            }
            Self::Ladder { n_star, state } => state.stated("N*".into(), *n_star),
            Self::LongCalls { n_star, state } => {
                state.stated(localized!("N* with long calls", "长通话 N*"), *n_star)
            }
            Self::Repeatability { repeatability } => repeatability.text(),
            Self::Quality { answer } => answer.text(),
            Self::Soak => {
                localized!("hours of load showed nothing to complain of", "长时间加载没有发现问题")
            }
            Self::SoakReasons { reasons } => LocalizedText::list(reasons),
            Self::Fault => localized!(
                "the others kept up, and the instance came back",
                "其余实例跟得上，故障实例也恢复了"
            ),
            Self::FaultReasons { reasons } => LocalizedText::list(reasons),
            Self::Topology { why } => why.text(),
            Self::LeftOut { why } => why.text(),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Why a ladder is climbed anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum RerunReason {
    /// The same load gave other figures.
    Drift,
    /// Another topology is better.
    BetterTopology {
        /// Why.
        why: TopologyReason,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(RerunReason);

impl Localize for RerunReason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Drift => localized!(
                "the same load gave other figures the second time, so draining between tiers is not enough",
                "同样的负载第二次数字不同，档间只排空是不够的"
            ),
            Self::BetterTopology { why } => why.text(),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Why a campaign waits for a decision, and how to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum CampaignStop {
    /// A result puts earlier ones in doubt.
    Waits {
        /// Which.
        why: RerunReason,
        /// The flag that decides: `--on-drift` or `--on-better`.
        flag: String,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(CampaignStop);

impl Localize for CampaignStop {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Waits { why, flag } => localized!(
                "{}; {flag} rerun climbs the ladder anew, {flag} accept notes it and goes on",
                "{}；{flag} rerun 重新爬阶梯，{flag} accept 记下并继续"; why.text()
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// N* of a ladder that was climbed anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum NStarBound {
    /// As the ladder found it.
    Found {
        /// N*, where there is one.
        n_star: Option<u32>,
        /// How firm it is.
        state: CapacityState,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(NStarBound);

impl From<&Capacity> for NStarBound {
    fn from(capacity: &Capacity) -> Self {
        Self::Found { n_star: capacity.n_star, state: capacity.state }
    }
}

impl Localize for NStarBound {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Found { n_star, state } => state.n_star(*n_star),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
