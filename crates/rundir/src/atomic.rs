//! Whole files, or none: write beside, sync, rename.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::RunDirError;

/// Replaces `path` by `content` so that a reader (or a crash) sees the old file or the new one, never half.
///
/// # Errors
/// What the operating system refused; the old file is then untouched.
pub fn write(path: &Path, content: &[u8]) -> Result<(), RunDirError> {
    write_with(path, |out| out.write_all(content))
}

/// As [`write()`], for content that is produced piece by piece.
///
/// # Errors
/// What the operating system refused, or what `fill` did; the old file is then untouched.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), RunDirError> {
    let beside = beside(path);
    let made = (|| {
        let mut out = BufWriter::new(File::create(&beside)?);
        fill(&mut out)?;
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&beside, path)
    })();
    made.map_err(|e| {
        // The half-written neighbour is of no use to anybody; failing to remove it changes nothing.
        let _ = fs::remove_file(&beside);
        RunDirError::io("write", path, e)
    })
}

/// The neighbour that a file is written to before it is renamed.
pub(crate) fn beside(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_neighbour() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("ladder.csv");
        write(&path, b"old").unwrap();
        let failed = write_with(&path, |out| {
            out.write_all(b"half")?;
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        });
        assert!(matches!(failed, Err(RunDirError::DiskFull { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(!beside(&path).exists());
    }
}
