//! Whole files, or none.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::error::RunDirError;

/// Replaces `path` by `content` so that a reader (or a crash) sees the old file or the new one, never half.
///
/// # Errors
/// What the operating system refused; the old file is then untouched.
pub fn write(path: &Path, content: &[u8]) -> Result<(), RunDirError> {
    tapedeck_fs::write_atomic(path, content).map_err(|e| RunDirError::io("write", path, e))
}

/// As [`write()`], for content that is produced piece by piece.
///
/// # Errors
/// What the operating system refused, or what `fill` did; the old file is then untouched.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), RunDirError> {
    tapedeck_fs::write_atomic_with(path, fill).map_err(|e| RunDirError::io("write", path, e))
}

/// Where a file that takes long to write grows until it is whole.
pub(crate) fn temporary_path(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_and_the_old_file_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("ladder.csv");
        write(&path, b"old").unwrap();
        let failed = write_with(&path, |_| Err(std::io::Error::from(std::io::ErrorKind::StorageFull)));
        assert!(matches!(failed, Err(RunDirError::DiskFull { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
}
