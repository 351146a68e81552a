//! What is known of a pool's files from an earlier look, so that a scan goes on where it was cut.
//!
//! One JSON object per line, appended as files are read and written afresh at the end. A line that a crash cut
//! in two is not understood and therefore looked up again; an entry counts only while size and time of last
//! change of its file are the same.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use tapedeck_tape::{FileReport, TapeError, md5_hex, write_atomic};

/// The index of one pool.
#[derive(Debug)]
pub(super) struct Index {
    path: PathBuf,
    appending: Option<File>,
}

impl Index {
    /// Opens the index of `pool` at `path`, or in the user's cache folder; `None` when there is no place for one.
    pub(super) fn open(path: Option<&Path>, pool: &Path) -> Option<(Self, BTreeMap<String, FileReport>)> {
        let path = path.map(Path::to_owned).or_else(|| in_cache(pool))?;
        let known = std::fs::read_to_string(&path)
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str::<FileReport>(line).ok())
            .map(|report| (report.path.clone(), report))
            .collect();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).ok()?;
        }
        let appending = OpenOptions::new().create(true).append(true).open(&path).ok();
        Some((Self { path, appending }, known))
    }

    /// Notes one file. An index that cannot be written costs a second look, no more.
    pub(super) fn note(&mut self, report: &FileReport) {
        if let (Some(file), Ok(line)) = (&mut self.appending, serde_json::to_string(report)) {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Writes the index afresh, without what is gone.
    pub(super) fn finish(self, reports: &[FileReport]) -> Result<(), TapeError> {
        let mut text = String::new();
        for report in reports {
            if let Ok(line) = serde_json::to_string(&FileReport { tags: BTreeMap::new(), ..report.clone() }) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        write_atomic(&self.path, text.as_bytes())
    }
}

/// A name for the pool's index under the cache folder: the pool itself may be read-only, and is not ours.
fn in_cache(pool: &Path) -> Option<PathBuf> {
    let absolute = pool.canonicalize().ok()?;
    let folder = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let name = md5_hex(absolute.as_os_str().as_encoded_bytes());
    Some(folder.join("tapedeck").join(format!("scan-{name}.jsonl")))
}
