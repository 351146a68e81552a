//! What every command answers to its caller.

/// The exit code of every Tapedeck command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// The question was answered well: an N* was found (and reaches `--require`), a case's limit was met.
    Ok = 0,
    /// Answered, and the answer is no.
    No = 1,
    /// The command line, the config or an input file is wrong.
    Usage = 2,
    /// The environment failed: unreachable, an instance down, preflight, disk full.
    Environment = 3,
    /// Not decidable: an invalid, unknown, suspect or unstable tier decides.
    Undecidable = 4,
    /// Ctrl-C or SIGTERM; what was measured is written and marked partial.
    Interrupted = 130,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// An error that knows what a command answers to its caller.
pub trait HasExitCode: std::error::Error {
    /// What the command answers.
    fn exit_code(&self) -> ExitCode;
}
