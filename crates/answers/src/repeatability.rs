//! What the same tier, played again, answers (TC-08).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::Schema;
use tapedeck_slo::{Repeatability, TierReport};

use crate::decision::Decision;

/// What the repetition answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RepeatabilityAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Yes: nothing drifted, so draining between tiers is enough.
    pub decision: Decision,
    /// The tier that was repeated, streams.
    pub streams: u32,
    /// Name of the step that it is held against.
    pub first_step: String,
    /// Each figure, first and second time.
    pub repeatability: Repeatability,
    /// The tier as it was played first.
    pub before: TierReport,
    /// The repetition; empty where it did not come to its end.
    pub after: Option<TierReport>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}
