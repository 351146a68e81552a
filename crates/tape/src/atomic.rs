//! Files that are either whole or not there.

use std::path::Path;

use crate::error::TapeError;

/// Writes a file so that nobody ever sees half of it, and makes its folder where there is none.
///
/// # Errors
/// [`TapeError::Io`] when the folder cannot be made or the disk is full; what was at `path` is then unharmed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), TapeError> {
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| TapeError::io(folder, &e))?;
    }
    tapedeck_fs::write_atomic(path, bytes).map_err(|e| TapeError::io(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_files_and_cleans_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        // A folder stands where the file should be: the error names it, and no part is left behind.
        assert!(write_atomic(&dir.path().join("a"), b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
