//! Manifest and pool in, audio in memory out.

use std::path::Path;

use crate::call::Tape;
use crate::error::TapeError;

impl Tape {
    /// Loads every call of `manifest` from the recordings under `pool`, checking each against its MD5.
    ///
    /// # Errors
    /// [`TapeError`] names the file and what to do.
    pub fn load(manifest: &Path, pool: &Path) -> Result<Self, TapeError> {
        let _ = pool;
        Err(TapeError::Missing { path: manifest.to_owned() })
    }
}
