//! Why a command gave up.

use std::fmt;
use std::io::ErrorKind;

use tapedeck_record::{ExitCode, HasExitCode};
use thiserror::Error;

/// Why a command gave up, with the exit code that says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// What a library gave up for.
    #[error("{0}")]
    Library(Box<dyn HasExitCode + Send + Sync>),
    /// Flags that do not go together, or lack something.
    #[error("{0}")]
    Usage(String),
    /// The system refused something.
    #[error("the system refused to {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
}

impl<E: HasExitCode + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Library(Box::new(error))
    }
}

impl Failure {
    /// What the command answers.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Library(error) => error.exit_code(),
            Self::Usage(_) => ExitCode::Usage,
            // Whoever reads our output has read enough.
            Self::System { source, .. } if source.kind() == ErrorKind::BrokenPipe => ExitCode::Ok,
            Self::System { .. } => ExitCode::Environment,
        }
    }
}

/// A failure of the command line or of an input file, in the words of `error`.
pub fn usage(error: impl fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

/// Prints a failure on standard error and turns the result into the process's exit code.
#[must_use]
#[expect(clippy::print_stderr, reason = "the one place where a command says why it gave up")]
pub fn exit(result: Result<ExitCode, Failure>) -> std::process::ExitCode {
    let code = match result {
        Ok(code) => code,
        Err(failure) => {
            let code = failure.exit_code();
            if code != ExitCode::Ok {
                eprintln!("error: {failure}");
            }
            code
        }
    };
    code.into()
}
