//! What a case answers, in one word.

use serde::{Deserialize, Serialize};
use tapedeck_record::ExitCode;

/// Whether the question of a case was answered well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Yes: its limit is met.
    Yes,
    /// No: its limit is not met.
    No,
    /// Neither can be said.
    Undecidable,
}

impl Decision {
    /// The exit code of a case that came to this, or was interrupted before.
    #[must_use]
    pub const fn exit_code(self, interrupted: bool) -> ExitCode {
        match self {
            _ if interrupted => ExitCode::Interrupted,
            Self::Yes => ExitCode::Ok,
            Self::No => ExitCode::No,
            Self::Undecidable => ExitCode::Undecidable,
        }
    }
}
