//! What is predicted before it is measured, so that the two can be held against each other.
//!
//! The prediction itself (a model fitted to the ladder of the run) is brought along by whoever starts a case, as the other
//! seams of the [`World`](crate::World) are.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapedeck_slo::{Capacity, CapacityState};

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
    pub(crate) fn hold_against(&mut self, measured: &Capacity) {
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

/// What was predicted of several topologies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foretold {
    /// By the topology's name; several where a supposition is open.
    pub of: BTreeMap<String, Vec<Predicted>>,
    /// How good the fit is that they rest on.
    pub words: Vec<String>,
}

/// Somebody who predicts topologies from what a run directory holds.
pub trait Foretell: Send + Sync + fmt::Debug {
    /// Predicts N* of topologies, given by name and number of instances, the measured one first.
    ///
    /// # Errors
    /// Why nothing can be predicted, in words.
    fn foretell(&self, run: &Path, topologies: &[(String, u32)]) -> Result<Foretold, String>;
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
