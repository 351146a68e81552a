//! What long calls answer (TC-03b).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::Schema;
use tapedeck_slo::{Capacity, TierReport};

use crate::decision::Decision;
use crate::n_star::NStar;
use crate::pools::Occupation;

/// What the tape with long calls answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LongCallsAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Yes: N* holds with long calls too.
    pub decision: Decision,
    /// N* on short calls.
    pub n_star: NStar,
    /// Streams on Tape-B: the highest that passed below the first that failed.
    pub capacity: Capacity,
    /// Streams on Tape-B / N*, at most 1; empty where the first is not known.
    pub correction: Option<f64>,
    /// What the pool was expected to hold, before anything was played.
    pub predicted: Vec<Occupation>,
    /// What was played, in that order.
    pub tiers: Vec<TierReport>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

impl LongCallsAnswer {
    /// The answer in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let NStar { streams, source } = &self.n_star;
        match self.decision {
            Decision::Yes => format!("N* = {streams} ({source}) holds with long calls"),
            Decision::No => format!(
                "N* = {streams} ({source}) does not hold with long calls: {} with them{}",
                self.capacity.display(),
                self.correction.map(|c| format!(", correction {c:.2}")).unwrap_or_default()
            ),
            Decision::Undecidable => {
                format!(
                    "not decidable with long calls: {} of N* = {streams} ({source})",
                    self.capacity.display()
                )
            }
        }
    }
}
