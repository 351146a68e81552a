//! What can be wrong with a pool, a manifest or a tape.

use std::path::{Path, PathBuf};

use tapedeck_audio::{AudioError, FileError};

/// Why a tape cannot be made, read or trusted. Each message names the file, the reason and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// The operating system refused.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's words.
        why: String,
    },
    /// The pool is not a folder.
    #[error("{}: not a folder; give the folder that holds the recordings", path.display())]
    NotAPool {
        /// What was given.
        path: PathBuf,
    },
    /// No manifest there.
    #[error("{}: there is no such manifest; make one with `tapectl freeze`", path.display())]
    NoManifest {
        /// What was given.
        path: PathBuf,
    },
    /// A manifest that is not JSON, or not of our shape.
    #[error("{}: not a tape manifest: {why}; make one with `tapectl freeze`", path.display())]
    Syntax {
        /// The manifest.
        path: PathBuf,
        /// Where and what.
        why: String,
    },
    /// A manifest of another version.
    #[error(
        "{}: manifest schema {found}, this version reads {expected}; freeze the tape again or use the matching version",
        path.display()
    )]
    Schema {
        /// The manifest.
        path: PathBuf,
        /// Version in the file.
        found: u64,
        /// Version that is read.
        expected: u32,
    },
    /// A manifest whose content makes no sense or reaches out of the pool.
    #[error("{}: {what}: {why}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Which call or field.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A recording is not what was frozen.
    #[error("{}: {change}; restore the file, or freeze the tape again", path.display())]
    Changed {
        /// The recording.
        path: PathBuf,
        /// What changed.
        change: String,
    },
    /// A recording cannot be used.
    #[error(transparent)]
    Audio(#[from] FileError),
    /// A table beside the pool is broken.
    #[error("{}:{line}: {why}", path.display())]
    Table {
        /// The table.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A tape specification that cannot be read.
    #[error("tape spec `{spec}`: {why}; write seconds:calls, e.g. 30:6,60:2,180:1")]
    Spec {
        /// What was given.
        spec: String,
        /// What is wrong with it.
        why: String,
    },
    /// The pool has too few calls of some length.
    #[error(
        "bucket {bucket_s} s: {wanted} calls wanted, {found} usable in the pool (distinct, within {tolerance_percent:.0} %); \
         add recordings, lower the quota or widen --tolerance"
    )]
    TooFew {
        /// Nominal duration, seconds.
        bucket_s: u32,
        /// Calls wanted.
        wanted: u32,
        /// Calls found.
        found: usize,
        /// Tolerance, percent.
        tolerance_percent: f64,
    },
    /// Stereo recordings, and nobody chose.
    #[error(
        "{files} of the recordings that could be picked are stereo (first: {first}); choose --channel left, right, mix or both: \
         nothing is mixed unasked"
    )]
    ChannelNotChosen {
        /// How many.
        files: usize,
        /// One of them.
        first: String,
    },
}

impl TapeError {
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), why: error.to_string() }
    }

    /// For a manifest that cannot be found or opened.
    pub(crate) fn manifest(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NoManifest { path: path.to_owned() },
            _ => Self::io(path, error),
        }
    }

    pub(crate) fn audio(path: &Path, source: AudioError) -> Self {
        Self::Audio(FileError { path: path.to_owned(), source })
    }

    /// Whether the environment failed (a disk, a permission) rather than an input being wrong.
    #[must_use]
    pub const fn is_environment(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Audio(FileError { source: AudioError::Io { .. }, .. }))
    }
}
