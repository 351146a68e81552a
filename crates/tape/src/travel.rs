//! A tape that travels alone: its recordings, and their lines of the tables beside the pool.

use std::collections::BTreeSet;
use std::path::Path;

use crate::atomic::write_atomic;
use crate::error::TapeError;
use crate::load::unchanged;
use crate::manifest::Manifest;
use crate::pool::root_of;

/// Tables that are taken along, where the pool has them. Their first column must be `file`.
const TABLES: [&str; 3] = ["transcripts.tsv", "segments.tsv", "tags.csv"];

/// Copies the recordings of `manifest` from `pool` to the folder `to`, which then serves as the tape's pool, with
/// those lines of `transcripts.tsv`, `segments.tsv` and `tags.csv` that are about them.
///
/// # Errors
/// [`TapeError`] when a recording changed since the freeze, or something cannot be read or written.
pub fn copy_pool(manifest: &Manifest, pool: &Path, to: &Path) -> Result<(), TapeError> {
    let root = root_of(pool)?;
    for call in &manifest.calls {
        write_atomic(&to.join(&call.path), &unchanged(&root, call)?)?;
    }
    let paths: BTreeSet<&str> = manifest.calls.iter().map(|c| c.path.as_str()).collect();
    for name in TABLES {
        let from = root.join(name);
        let text = match std::fs::read_to_string(&from) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(TapeError::io(&from, &e)),
        };
        let about = |line: &&str| line.split(['\t', ',']).next().is_some_and(|file| paths.contains(file));
        let mut kept: String =
            text.lines().take(1).chain(text.lines().skip(1).filter(about)).collect::<Vec<_>>().join("\n");
        kept.push('\n');
        write_atomic(&to.join(name), kept.as_bytes())?;
    }
    Ok(())
}
