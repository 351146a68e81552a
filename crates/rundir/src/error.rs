//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

use tapedeck_record::{ExitCode, HasExitCode, Schema};
use thiserror::Error;

/// A failure of the run directory: what, where and how to mend it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The disk is full. Steps that were committed before are intact.
    #[error("no space left while writing {}: free some room and go on with --into and the folder of the run; committed steps are intact", path.display())]
    DiskFull {
        /// File being written.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried: "create", "write", "read".
        what: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The operating system's words.
        source: io::Error,
    },
    /// Another process holds the folder.
    #[error("{} is in use by another process: wait for it, or give --out another folder", path.display())]
    Busy {
        /// The run directory.
        path: PathBuf,
    },
    /// The folder for a derived run holds one that was measured.
    #[error("{} holds a run that was measured: give --out a folder that is not there yet", path.display())]
    Measured {
        /// The folder.
        path: PathBuf,
    },
    /// The folder to resume is not a run directory.
    #[error("{} is not a run directory ({why}): give the folder that holds run.toml and steps.jsonl", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is missing or unreadable.
        why: String,
    },
    /// A run that a newer version wrote.
    #[error(
        "{} has schema {schema}, this version reads up to schema {}: use the version that made the run, or a later one",
        path.display(),
        Schema::CURRENT
    )]
    Newer {
        /// The run directory.
        path: PathBuf,
        /// Its schema.
        schema: u32,
    },
    /// A committed line cannot be read.
    #[error("{}:{line}: {why}: the file was edited or comes from another version", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The reader's words.
        why: String,
    },
    /// The run to resume was made with other settings.
    #[error(
        "{} was made with other settings ({what}): resume with the same ones, or start a new run",
        path.display()
    )]
    OtherSettings {
        /// The run directory.
        path: PathBuf,
        /// What differs.
        what: String,
    },
}

impl RunDirError {
    /// Whether the operating system refused, or its disk is full: asking otherwise does not help.
    #[must_use]
    pub const fn of_system(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::DiskFull { .. })
    }

    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            Self::DiskFull { path }
        } else {
            Self::Io { what, path, source }
        }
    }
}

impl HasExitCode for RunDirError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::OtherSettings { .. } | Self::NotARun { .. } => ExitCode::Usage,
            _ => ExitCode::Environment,
        }
    }
}
