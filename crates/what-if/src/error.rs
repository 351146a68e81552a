//! Why a run cannot be used.

use std::path::Path;

use tapedeck_config::ConfigError;
use tapedeck_l10n::{Localize, LocalizedText};
use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_rundir::RunDirError;
use tapedeck_sizing::SizingError;
use thiserror::Error;

/// A run that nothing can be computed from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run directory cannot be read.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// Its config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It lacks something, or holds something that does not fit.
    #[error("{0}")]
    Unusable(LocalizedText),
    /// A question of sizing has no answer.
    #[error(transparent)]
    Sizing(#[from] SizingError),
}

impl HasExitCode for RunError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::RunDir(error) => error.exit_code(),
            Self::Config(error) => error.exit_code(),
            Self::Unusable(_) | Self::Sizing(_) => ExitCode::Usage,
        }
    }
}

impl Localize for RunError {
    fn text(&self) -> LocalizedText {
        match self {
            Self::RunDir(error) => LocalizedText::same(error.to_string()),
            Self::Config(error) => error.text(),
            Self::Sizing(error) => error.text(),
            Self::Unusable(text) => text.clone(),
        }
    }
}

pub(crate) fn unusable(text: impl Into<LocalizedText>) -> RunError {
    RunError::Unusable(text.into())
}

pub(crate) fn read(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path).map_err(|e| unusable(format!("cannot read {}: {e}", path.display())))
}
