//! What can be wrong with a tape.

use std::path::PathBuf;

/// Why a tape cannot be made, read or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// A file is not there.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
}
