//! What is played: `[tape]`, `[tape_b]`, `[labelled]`, `[pool]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[tape]`, `[tape_b]`, `[labelled]`: what is played. An empty manifest means that there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TapeConfig {
    /// Manifest made by `tapectl freeze`.
    pub manifest: PathBuf,
    /// Folder that the manifest's paths are relative to.
    pub pool: PathBuf,
}

/// `[pool]`: a folder of recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// The folder; every usable recording below it belongs to the pool, silent ones included. Empty: there is none.
    pub folder: PathBuf,
    /// Channel of stereo recordings: `left`, `right` or `mix`; needed where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Audio that each stream draws for itself with `--content pool`, seconds.
    pub draw_s: f64,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { folder: PathBuf::new(), channel: None, draw_s: 480.0 }
    }
}
