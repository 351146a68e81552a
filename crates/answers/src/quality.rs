//! What words under load answer (TC-04).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
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
    /// The answer in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let clean = self.clean_up_to.unwrap_or(0);
        match self.decision {
            Decision::Yes => "words do not suffer from load".into(),
            Decision::No if clean == 0 => "words suffer at every load that was played".into(),
            Decision::No => format!("words suffer above {clean} streams"),
            _ if self.clean_up_to.is_some() => {
                let at =
                    if clean == 0 { "at the lowest load".into() } else { format!("above {clean} streams") };
                format!(
                    "{at} the estimate is beyond {} points and may be chance: more words are needed \
                     (quality.baseline_loops, or a longer labelled tape)",
                    self.limit_points
                )
            }
            _ => "words could not be compared".into(),
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
