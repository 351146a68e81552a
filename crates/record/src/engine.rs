//! The kinds of engines.

use serde::{Deserialize, Serialize};

/// What kind of engine serves a page, which decides what can be known from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// vLLM 0.8 and later, and whatever speaks with its names.
    #[default]
    Vllm,
    /// sglang with `--enable-metrics`.
    Sglang,
    /// An engine whose page, if it has one, says nothing that we know.
    None,
}

impl EngineKind {
    /// The word used in configs and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::None => "none",
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
