//! The config's sections for single cases: what they play where the ladder's own sections do not say it.

use serde::{Deserialize, Serialize};
use tapedeck_slo::RepeatRules;

/// `[single]`: TC-01, one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SingleConfig {
    /// Calls of different length that are played.
    pub calls: u32,
    /// How often each is played; the first pass is the cold one.
    pub passes: u32,
}

impl Default for SingleConfig {
    fn default() -> Self {
        Self { calls: 3, passes: 3 }
    }
}

/// `[footprint]`: TC-02, what streams cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FootprintConfig {
    /// Streams in all at each level, ascending; the level without streams comes before them.
    pub levels: Vec<u32>,
    /// How long each level is held at least, seconds; whole loops of the tape.
    pub steady_s: f64,
}

impl Default for FootprintConfig {
    fn default() -> Self {
        Self { levels: vec![1, 8, 24, 48], steady_s: 300.0 }
    }
}

/// `[long_calls]`: TC-03b, N* on the tape with long calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LongCallsConfig {
    /// Loads to try before anything is bisected, shares of N*, ascending.
    pub shares: Vec<f64>,
}

impl Default for LongCallsConfig {
    fn default() -> Self {
        Self { shares: vec![0.5, 1.0] }
    }
}

/// `[quality]`: TC-04, words under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QualityConfig {
    /// Loads at which words are counted, shares of N*, ascending.
    pub shares: Vec<f64>,
    /// Loops of the labelled tape that the single stream plays for the baseline.
    pub baseline_loops: u32,
    /// Loops that every stream plays at each load.
    pub loops: u32,
    /// Draws of the bootstrap by call.
    pub draws: u32,
}

impl Default for QualityConfig {
    fn default() -> Self {
        Self { shares: vec![0.5, 0.8, 1.0], baseline_loops: 1, loops: 1, draws: 2000 }
    }
}

/// `[repeat]`: TC-08, the same tier again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatConfig {
    /// The tier to repeat, streams; where it did not pass, the passing tier nearest below.
    pub middle: u32,
    /// What counts as drift.
    pub rules: RepeatRules,
}

impl Default for RepeatConfig {
    fn default() -> Self {
        Self { middle: 24, rules: RepeatRules::default() }
    }
}

/// Whether these are shares above 0 and up to 1, ascending.
pub(crate) fn are_shares(shares: &[f64]) -> bool {
    !shares.is_empty() && shares.iter().all(|s| *s > 0.0 && *s <= 1.0) && shares.is_sorted_by(|a, b| a < b)
}
