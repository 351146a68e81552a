//! What topologies answer (TC-07).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::{ExitCode, Schema};
use tapedeck_slo::{Capacity, CapacityState, TierReport};

use crate::n_star::NStar;

/// What the comparison answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopologyAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// N* of the first topology, and where it comes from.
    pub n_star: NStar,
    /// Every topology, in the order of the config.
    pub candidates: Vec<Candidate>,
    /// The one to take; empty where nothing could be decided.
    pub recommended: Option<String>,
    /// Why, in one plain sentence.
    pub why: String,
    /// How good the fit is that the predictions rest on, or why nothing was predicted.
    #[serde(default)]
    pub foretold: Vec<String>,
    /// Whether that is another one than the first.
    pub better: bool,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl TopologyAnswer {
    /// The exit code: 0 the first topology stands, 1 another is better, 4 not decidable.
    #[must_use]
    pub const fn exit_code(&self) -> ExitCode {
        match (self.interrupted, &self.recommended, self.better) {
            (true, ..) => ExitCode::Interrupted,
            (_, None, _) => ExitCode::Undecidable,
            (_, _, true) => ExitCode::No,
            (_, _, false) => ExitCode::Ok,
        }
    }
}

/// How one topology did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// How many instances it has.
    pub instances: u32,
    /// N* as far as three tiers tell.
    pub capacity: Capacity,
    /// Real-time factor p95 at the common load.
    pub rtf_p95: Option<f64>,
    /// p95 of each call's longest lag at the common load, seconds.
    pub lag_p95_s: Option<f64>,
    /// What is left of the fullest KV pool at the common load (1 - p95), 0..1.
    pub kv_room: Option<f64>,
    /// Errored streams at the common load.
    pub err_streams: u32,
    /// Its tiers.
    pub tiers: Vec<TierReport>,
    /// What had been predicted of it; empty where nothing was.
    #[serde(default)]
    pub predicted: Vec<Predicted>,
}

/// N* of a topology as it was predicted: a range that is meant to hold it 95 times in 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// On which supposition, e.g. `if instances do not slow each other`; empty where there is none.
    pub given: String,
    /// N* of the best fit.
    pub n_star: u32,
    /// Lowest.
    pub low: u32,
    /// Highest.
    pub high: u32,
    /// Whether what was measured lies in that range as far as the tiers tell; empty where they prove nothing.
    pub agrees: Option<bool>,
}

impl Predicted {
    /// Holds it against a measurement: N* lies from the highest tier that passed up to, but not at, the first that failed.
    pub fn hold_against(&mut self, measured: &Capacity) {
        self.agrees = match measured.state {
            CapacityState::Undecided => None,
            _ => {
                let passed = measured.n_star.unwrap_or(0);
                Some(self.high >= passed && measured.first_fail.is_none_or(|fail| self.low < fail))
            }
        };
    }

    /// The prediction in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let given = if self.given.is_empty() { String::new() } else { format!(" {}", self.given) };
        let verdict = match self.agrees {
            Some(true) => "; the measurement agrees",
            Some(false) => "; the measurement DIFFERS",
            None => "",
        };
        let Self { n_star, low, high, .. } = self;
        format!("N* = {n_star} ({low} to {high}){given}, predicted, not measured{verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(n_star: Option<u32>, first_fail: Option<u32>, state: CapacityState) -> Capacity {
        Capacity {
            n_star,
            state,
            published: None,
            safety_factor: 0.7,
            first_fail,
            limited_by: Vec::new(),
            point_verdict_tiers: Vec::new(),
            non_monotonic: Vec::new(),
            undecided: Vec::new(),
            quality_cap: None,
            simulated: true,
        }
    }

    #[test]
    fn a_range_agrees_where_it_reaches_between_pass_and_failure() {
        use CapacityState::{Censored, Exact, None as Nothing, Undecided};
        for (low, high, n_star, fail, state, agrees) in [
            (30, 34, Some(36), Some(45), Exact, Some(false)),
            (30, 36, Some(36), Some(45), Exact, Some(true)),
            (38, 40, Some(36), Some(45), Exact, Some(true)),
            (45, 50, Some(36), Some(45), Exact, Some(false)),
            (60, 70, Some(54), None, Censored, Some(true)),
            (12, 20, None, Some(36), Nothing, Some(true)),
            (36, 40, None, Some(36), Nothing, Some(false)),
            (30, 40, None, None, Undecided, None),
        ] {
            let mut one = Predicted { given: String::new(), n_star: low, low, high, agrees: None };
            one.hold_against(&measured(n_star, fail, state));
            assert_eq!(one.agrees, agrees, "{low} to {high} against {n_star:?}, {fail:?}");
            assert!(one.sentence().contains("predicted, not measured"));
        }
    }
}
