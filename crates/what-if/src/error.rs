//! Why a run cannot be used.

use std::fmt;
use std::path::Path;

use tapedeck_config::ConfigError;
use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_rundir::RunDirError;
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
    Unusable(String),
}

impl HasExitCode for RunError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::RunDir(error) => error.exit_code(),
            Self::Config(error) => error.exit_code(),
            Self::Unusable(_) => ExitCode::Usage,
        }
    }
}

pub(crate) fn unusable(error: impl fmt::Display) -> RunError {
    RunError::Unusable(error.to_string())
}

pub(crate) fn read(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path)
        .map_err(|e| RunError::Unusable(format!("cannot read {}: {e}", path.display())))
}
