//! What words under load answer (TC-04).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::Schema;
use tapedeck_slo::Verdict;

use crate::decision::Decision;
use crate::n_star::NStar;
use crate::rate::ErrorRate;

/// What words under load answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Yes: no point is worse than the baseline by more than the limit.
    pub decision: Decision,
    /// N*, and where it comes from.
    pub n_star: NStar,
    /// Name of the labelled tape.
    pub tape: String,
    /// Rise of an error rate that raises the alarm, percentage points.
    pub limit_points: f64,
    /// One stream on the labelled tape; empty where it did not come to its end.
    pub baseline: Option<Rates>,
    /// The points, by streams.
    pub points: Vec<QualityPoint>,
    /// The largest point below the first that alarms or is open; empty where all are clean, 0 where none is below it.
    pub clean_up_to: Option<u32>,
    /// floor(safety factor x N*), not above `clean_up_to`.
    pub published: u32,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

/// Words at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityPoint {
    /// Streams in all.
    pub streams: u32,
    /// Streams on the labelled tape.
    pub labelled_streams: u32,
    /// Verdict on the whole tier.
    pub verdict: Verdict,
    /// Error rates of the labelled calls that succeeded.
    pub rates: Rates,
    /// Rise of the word error rate over the baseline.
    pub wer_rise: Option<Rise>,
    /// Rise of the character error rate over the baseline.
    pub cer_rise: Option<Rise>,
    /// Rise of the word error rate where a call that failed counts as all of its words deleted.
    pub wer_rise_with_lost: Option<Rise>,
    /// Labelled calls that failed.
    pub lost_calls: u64,
    /// Labelled calls whose last segment was never made final.
    pub tails_lost: u64,
    /// Whether a rise is beyond the limit, and there is a rise at all for certain.
    pub alarm: bool,
    /// Whether the whole interval of such a rise is beyond the limit.
    pub sure: bool,
    /// Whether a rise is beyond the limit by an estimate whose interval reaches 0: too few words to tell.
    #[serde(default)]
    pub open: bool,
}

/// Error rates of the labelled calls that succeeded. Words: Han characters with English words; finals + tail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Word error rate.
    pub wer: Option<ErrorRate>,
    /// Word error rate of the finals alone.
    pub wer_finals: Option<ErrorRate>,
    /// Character error rate.
    pub cer: Option<ErrorRate>,
}

/// A difference of two pooled rates, call by call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rise {
    /// The difference, percentage points.
    pub points: f64,
    /// Lower bound of its interval: bootstrap by call, the same calls drawn on both sides.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Calls on both sides.
    pub calls: u64,
}

/// What a rise comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiseFinding {
    /// Not beyond the limit.
    Clean,
    /// Beyond the limit, but the interval reaches down to no rise at all: too few words to tell.
    Open,
    /// Beyond the limit, and a rise for certain.
    Alarm,
}

impl Rise {
    /// What it comes to with this limit, percentage points. The estimate decides whether the limit is passed, as with
    /// every other limit; that there is a rise at all has to be certain, or an engine's own noise would raise alarms.
    #[must_use]
    pub fn finding(&self, limit_points: f64) -> RiseFinding {
        match self.points > limit_points + 1e-9 {
            false => RiseFinding::Clean,
            true if self.low > 0.0 => RiseFinding::Alarm,
            true => RiseFinding::Open,
        }
    }
}

impl QualityAnswer {
    /// The answer without its figures.
    #[must_use]
    pub fn finding(&self) -> QualityFinding {
        match (self.decision, self.clean_up_to) {
            (Decision::Yes, _) => QualityFinding::Clean,
            (Decision::No, clean) => QualityFinding::Worse { above: clean.filter(|n| *n > 0) },
            (Decision::Undecidable, Some(clean)) => {
                let limit_points = self.limit_points;
                QualityFinding::Open { above: Some(clean).filter(|n| *n > 0), limit_points }
            }
            (Decision::Undecidable, None) => QualityFinding::NotCompared,
        }
    }
}

/// Whether load costs accuracy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum QualityFinding {
    /// It does not.
    Clean,
    /// It does.
    Worse {
        /// Above so many streams; at every load where empty.
        above: Option<u32>,
    },
    /// It may.
    Open {
        /// Above so many streams; at the lowest load where empty.
        above: Option<u32>,
        /// The limit that the estimate is beyond, percentage points.
        limit_points: f64,
    },
    /// Nothing could be compared.
    NotCompared,
}

impl Localize for QualityFinding {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Clean => localized!("words do not suffer from load", "错误率不受负载影响"),
            Self::Worse { above: None } => {
                localized!("words suffer at every load that was played", "所有播放过的负载下错误率都变差")
            }
            Self::Worse { above: Some(n) } => {
                localized!("words suffer above {n} streams", "超过 {n} 路错误率变差")
            }
            Self::Open { above, limit_points } => {
                let at = above.map_or_else(
                    || localized!("at the lowest load", "在最低负载下"),
                    |n| localized!("above {n} streams", "超过 {n} 路时"),
                );
                localized!(
                    "{} the estimate is beyond {limit_points} points and may be chance: more words are needed (quality.baseline_loops, or a longer labelled tape)",
                    "{}估计值超过 {limit_points} 个百分点，可能只是偶然：需要更多词（quality.baseline_loops，或更长的标注带）";
                    at
                )
            }
            Self::NotCompared => localized!("words could not be compared", "错误率无法比较"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_that_may_be_none_is_left_open() {
        let rise = |points, low| Rise { points, low, high: points + 1.0, calls: 8 };
        assert_eq!(rise(0.9, 0.5).finding(1.0), RiseFinding::Clean);
        assert_eq!(rise(1.0, 0.5).finding(1.0), RiseFinding::Clean);
        assert_eq!(rise(1.4, 0.2).finding(1.0), RiseFinding::Alarm);
        assert_eq!(rise(1.4, -0.2).finding(1.0), RiseFinding::Open);
    }
}
