//! Files that are either whole or not there: write beside, sync, rename.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("answer.json");
//! tapedeck_fs::write_atomic(&path, b"{}")?;
//! assert_eq!(std::fs::read(&path)?, b"{}");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Replaces `path` by `content` so that a reader (or a crash) sees the old file or the new one, never half.
///
/// # Errors
/// What the operating system refused; the old file is then untouched.
pub fn write_atomic(path: &Path, content: &[u8]) -> io::Result<()> {
    write_atomic_with(path, |out| out.write_all(content))
}

/// As [`write_atomic`], for content that is produced piece by piece.
///
/// # Errors
/// What the operating system refused, or what `fill` did; the old file is then untouched.
pub fn write_atomic_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = temporary_path(path);
    let made = (|| {
        let mut out = BufWriter::new(File::create(&temporary)?);
        fill(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if made.is_err() {
        // The half-written neighbour is of no use to anybody; failing to remove it changes nothing.
        let _ = fs::remove_file(&temporary);
    }
    made
}

/// Where the content stands until it is whole: beside the file, hidden, and no other process's.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_neighbour() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ladder.csv");
        write_atomic(&path, b"older").unwrap();
        write_atomic(&path, b"old").unwrap();
        let failed = write_atomic_with(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        // A folder stands where the file should be.
        assert!(write_atomic(dir.path(), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
