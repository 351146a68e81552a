//! What holds up the end of a load, or keeps it from being known.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};

use crate::sample::Metric;

/// Why a fleet is not drained, or why nobody can say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DrainReason {
    /// The kind of engine has no metrics.
    NoMetrics {
        /// The instance.
        instance: String,
    },
    /// The config gives no address of its metrics.
    NoMetricsUrl {
        /// The instance.
        instance: String,
    },
    /// The page lacks a gauge.
    NotTold {
        /// The instance.
        instance: String,
        /// The gauge.
        metric: Metric,
    },
    /// Something is left to do.
    Busy {
        /// The instance.
        instance: String,
        /// The gauge that says so.
        metric: Metric,
        /// Its value.
        count: f64,
    },
    /// The page could not be read.
    Unreadable {
        /// The instance.
        instance: String,
        /// Why.
        error: String,
    },
    /// Clean at last, but not often enough in a row.
    FewCleanScrapes {
        /// Clean scrapes in a row.
        clean: u32,
        /// Time there was, seconds.
        within_s: f64,
    },
    /// A GPU holds more memory than without streams.
    GpuMemory {
        /// GPU uuid.
        gpu: String,
        /// How much more, bytes.
        bytes: u64,
    },
}

impl Localize for DrainReason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NoMetrics { instance } => localized!(
                "{instance}: an engine of kind none has no metrics to drain by",
                "{instance}：none 类引擎没有指标，无从判断排空"
            ),
            Self::NoMetricsUrl { instance } => {
                localized!("{instance}: no metrics URL", "{instance}：没有指标地址")
            }
            Self::NotTold { instance, metric } => {
                let metric = metric.name();
                localized!("{instance}: the page does not tell {metric}", "{instance}：指标页没有 {metric}")
            }
            Self::Busy { instance, metric, count } => {
                let metric = metric.name();
                localized!("{instance}: {metric} {count}", "{instance}：{metric} {count}")
            }
            Self::Unreadable { instance, error } => {
                localized!("{instance}: {error}", "{instance}：{error}")
            }
            Self::FewCleanScrapes { clean, within_s } => {
                let within = Duration::from_secs_f64(within_s.clamp(0.0, 1e9));
                localized!(
                    "only {clean} clean scrape(s) within {within:?}",
                    "{within:?} 内只有 {clean} 次干净采样"
                )
            }
            Self::GpuMemory { gpu, bytes } => localized!(
                "{gpu} holds {} MiB more than without streams",
                "{gpu} 比没有通话时多占 {} MiB",
                bytes >> 20
            ),
        }
    }
}
