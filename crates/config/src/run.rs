//! `[run]`: where results go.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[run]`: where results go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Folder under which each run makes its own.
    pub out: PathBuf,
    /// Seed of everything random: bootstraps, and the built-in engine.
    pub seed: u64,
    /// Keep recognised texts in the run directory (`texts-<step>.jsonl`). Calls are personal data: off.
    pub keep_texts: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { out: PathBuf::from("results"), seed: 1, keep_texts: false }
    }
}
