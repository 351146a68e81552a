//! Why `tapectl` gave up.

use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_tape::TapeError;
use thiserror::Error as ThisError;

use super::args::Moved;

/// Why `tapectl` gave up; each knows its exit code.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A pool, a manifest or a recording.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The machine lacks something.
    #[error("{0}")]
    Environment(String),
    /// Standard output cannot be written to.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    pub(super) fn moved(command: &str, args: &Moved) -> Self {
        Self::Usage(format!(
            "`tape-commands {command} {}` does that now, for every command",
            args.rest.join(" ")
        ))
    }
}

impl HasExitCode for Error {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Tape(error) if error.is_environment() => ExitCode::Environment,
            Self::Tape(TapeError::TooFew { .. } | TapeError::Changed { .. }) => ExitCode::No,
            Self::Tape(_) | Self::Usage(_) => ExitCode::Usage,
            // Whoever reads our output has read enough.
            Self::Output(e) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::Ok,
            Self::Environment(_) | Self::Output(_) => ExitCode::Environment,
        }
    }
}
