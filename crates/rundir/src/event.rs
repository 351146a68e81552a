//! What is known of an event besides its name.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{ControlRefusal, DrainReason};
use tapedeck_slo::{CutShort, HardLimit};

/// More about an event. In files it is an object of its `kind`, its figures and its English `text`, see [`reason!`]; a name
/// or a message of somebody else is a plain string.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum EventDetail {
    /// Why a step ended early, or an instance is down.
    CutShort {
        /// Why.
        why: CutShort,
    },
    /// How a drain ended.
    Drain {
        /// How long it took, seconds.
        seconds: f64,
        /// What held it up, or could not be checked.
        why: Vec<DrainReason>,
    },
    /// A hard limit was seen to be broken.
    HardLimit {
        /// Which.
        limit: HardLimit,
    },
    /// How warm a GPU is.
    Temperature {
        /// GPU uuid.
        gpu: String,
        /// Degrees Celsius.
        celsius: f64,
    },
    /// Instances that were restarted.
    Restarted {
        /// Which.
        instances: Vec<String>,
        /// How long it took, seconds.
        seconds: f64,
    },
    /// An instance is well again.
    WellAgain {
        /// So long after it was told to come back, seconds.
        after_s: f64,
    },
    /// Instances that should be restarted and cannot be.
    NoRestart {
        /// Why.
        why: ControlRefusal,
    },
    /// A name, a message of somebody else, or a sentence of an earlier version.
    #[serde(skip)]
    Recorded(String),
}

reason!(EventDetail);

impl From<&str> for EventDetail {
    fn from(name: &str) -> Self {
        Self::Recorded(name.to_owned())
    }
}

impl From<CutShort> for EventDetail {
    fn from(why: CutShort) -> Self {
        Self::CutShort { why }
    }
}

impl Localize for EventDetail {
    fn text(&self) -> LocalizedText {
        match self {
            Self::CutShort { why } => why.text(),
            Self::Drain { seconds, why } if why.is_empty() => LocalizedText::same(format!("{seconds:.1} s")),
            Self::Drain { seconds, why } => {
                localized!("{seconds:.1} s {}", "{seconds:.1} s，{}"; LocalizedText::list(why))
            }
            Self::HardLimit { limit } => limit.text(),
            Self::Temperature { gpu, celsius } => localized!("{gpu}: {celsius} C", "{gpu}：{celsius} °C"),
            Self::Restarted { instances, seconds } => {
                let instances = instances.join(", ");
                localized!("{instances} in {seconds:.1} s", "{instances}，用时 {seconds:.1} s")
            }
            Self::WellAgain { after_s } => localized!("after {after_s:.1} s", "{after_s:.1} s 之后"),
            Self::NoRestart { why } => localized!(
                "{}; the next step may meet what the last one left behind",
                "{}；下一步可能受上一步残留影响"; why.text()
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
