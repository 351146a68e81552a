//! Files that are either whole or not there.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::TapeError;

/// Writes a file so that nobody ever sees half of it: first under another name beside it, then renamed.
///
/// # Errors
/// [`TapeError::Io`] when the folder cannot be made or the disk is full; what was at `path` is then unharmed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), TapeError> {
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| TapeError::io(folder, &e))?;
    }
    let beside = unfinished(path);
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|e| {
        // What is left of a failed attempt is only clutter.
        let _ = std::fs::remove_file(&beside);
        TapeError::io(path, &e)
    })
}

fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
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
