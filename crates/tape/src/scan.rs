//! A look at every recording of a pool: what it is, how long, and whether it can be used.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZero;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapedeck_audio::{AudioError, probe_reader};

use crate::digest::md5_of;
use crate::error::TapeError;
use crate::parallel;
use crate::pool::{Pool, PoolFile};
use crate::table::Table;

/// What was found out about one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileReport {
    /// Path relative to the pool.
    pub path: String,
    /// Whether it can be used.
    pub ok: bool,
    /// How its samples are stored, e.g. `mulaw`.
    pub encoding: Option<String>,
    /// Frames per second, Hz.
    pub sample_rate_hz: Option<u32>,
    /// 1 or 2.
    pub channels: Option<u16>,
    /// Frames that are really there.
    pub frames: Option<u64>,
    /// Length, seconds.
    pub duration_s: Option<f64>,
    /// What is odd about it but does not matter.
    pub warnings: Vec<String>,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Size, bytes.
    pub bytes: u64,
    /// Last change, nanoseconds since 1970.
    pub modified_ns: u64,
    /// MD5 of its bytes; empty when nobody asked for it, or it cannot be read.
    pub md5: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

impl FileReport {
    /// A file that cannot be used.
    #[must_use]
    pub fn refused(path: &str, why: &str) -> Self {
        Self {
            path: path.to_owned(),
            ok: false,
            encoding: None,
            sample_rate_hz: None,
            channels: None,
            frames: None,
            duration_s: None,
            warnings: Vec::new(),
            error: Some(why.to_owned()),
            bytes: 0,
            modified_ns: 0,
            md5: None,
            tags: BTreeMap::new(),
        }
    }

    /// Length, milliseconds, rounded down.
    #[must_use]
    pub fn duration_ms(&self) -> Option<u64> {
        let rate = u64::from(self.sample_rate_hz?).max(1);
        Some(self.frames?.saturating_mul(1000) / rate)
    }
}

/// How to scan.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanOptions {
    /// Threads; one per core when empty.
    pub threads: Option<NonZero<usize>>,
    /// Read every byte for its MD5, not only the headers.
    pub hash: bool,
}

/// Looks at every file of `pool`. Files that `known` already tells about, by path, size and time of last change,
/// are not opened again; `done` sees each new report as it comes.
pub fn scan(
    pool: &Pool,
    options: ScanOptions,
    known: &BTreeMap<String, FileReport>,
    mut done: impl FnMut(&FileReport) + Send,
) -> Vec<FileReport> {
    let unchanged = |file: &PoolFile| {
        known.get(&file.path).filter(|k| {
            k.bytes == file.bytes
                && k.modified_ns == file.modified_ns
                && (!options.hash || !k.ok || k.md5.is_some())
        })
    };
    let fresh: Vec<&PoolFile> = pool.files.iter().filter(|f| unchanged(f).is_none()).collect();
    let looked = parallel::map(
        &fresh,
        parallel::threads(options.threads),
        || (),
        |(), file| look(file, options.hash),
        |_, report| done(report),
    );
    let mut reports: Vec<FileReport> = pool.files.iter().filter_map(|f| unchanged(f).cloned()).collect();
    reports.extend(looked);
    reports.extend(pool.refused.iter().map(|(path, why)| FileReport::refused(path, why)));
    reports.sort_by(|a, b| a.path.cmp(&b.path));
    reports
}

/// The lengths of all recordings below a folder that can be read, seconds. Only headers are read.
///
/// # Errors
/// As [`Pool::list`].
pub fn lengths_s(folder: &Path) -> Result<Vec<f64>, TapeError> {
    let reports = scan(&Pool::list(folder)?, ScanOptions::default(), &BTreeMap::new(), |_| {});
    Ok(reports.iter().filter(|r| r.ok).filter_map(|r| r.duration_s).filter(|s| *s > 0.0).collect())
}

/// Opens one file, reads its header, and its bytes if they are to be hashed.
fn look(file: &PoolFile, hash: bool) -> FileReport {
    let mut report = FileReport { error: None, ..FileReport::refused(&file.path, "") };
    report.bytes = file.bytes;
    report.modified_ns = file.modified_ns;
    let opened = File::open(&file.at).map_err(AudioError::from).and_then(|mut open| {
        let info = probe_reader(&mut open, file.bytes)?;
        if hash {
            std::io::Seek::rewind(&mut open)?;
            report.md5 = Some(md5_of(&mut open)?.0);
        }
        Ok(info)
    });
    match opened {
        Ok(info) => {
            report.ok = true;
            report.encoding = Some(info.encoding.name().to_owned());
            report.sample_rate_hz = Some(info.sample_rate_hz);
            report.channels = Some(info.channels);
            report.frames = Some(info.frames);
            report.duration_s = Some(info.duration_s());
            report.warnings = info.warnings.iter().map(ToString::to_string).collect();
        }
        Err(why) => report.error = Some(why.to_string()),
    }
    report
}

/// Labels of recordings, from a CSV or TSV whose first column is `file` and whose others are tags.
///
/// # Errors
/// [`TapeError::Table`] when the table has no column `file`, names a file twice, or cannot be parsed.
pub fn read_tags(path: &Path) -> Result<BTreeMap<String, BTreeMap<String, String>>, TapeError> {
    let table = Table::read_if_there(path)?
        .ok_or_else(|| TapeError::Io { path: path.to_owned(), why: "no such file".to_owned() })?;
    let file = table.column("file", path)?;
    let mut out = BTreeMap::new();
    for (line, cells) in table.rows() {
        let name = cells.get(file).cloned().unwrap_or_default();
        let tags: BTreeMap<String, String> = table
            .columns()
            .iter()
            .zip(cells)
            .filter(|(column, cell)| column.as_str() != "file" && !cell.is_empty())
            .map(|(column, cell)| (column.clone(), cell.clone()))
            .collect();
        if out.insert(name.clone(), tags).is_some() {
            return Err(TapeError::Table {
                path: path.to_owned(),
                line,
                why: format!("`{name}` is named twice"),
            });
        }
    }
    Ok(out)
}
