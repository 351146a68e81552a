//! Raw traces of a step.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tapedeck_record::Trace;
use tapedeck_rundir::DERIVED;

/// Traces that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read{}: {why}; {hint}", path.display(), line.map_or_else(String::new, |l| format!(" at line {l}")))]
pub struct TraceError {
    path: PathBuf,
    line: Option<usize>,
    why: String,
    hint: &'static str,
}

/// Every trace of a step, in the order of ends.
///
/// # Errors
/// A file that is missing or damaged: a part of the traces would give other figures, so there are none.
pub fn traces(run: &Path, step: &str) -> Result<Vec<Trace>, TraceError> {
    let path = run.join("trace").join(format!("{step}.jsonl.gz"));
    let hint = match run.join(DERIVED).exists() {
        true => "this run was merged or rescored and keeps no traces: take the run that it was made from",
        false => "traces are written by every case: was the file moved?",
    };
    let fail = |line, why: String| TraceError { path: path.clone(), line, why, hint };
    let file = File::open(&path).map_err(|e| fail(None, e.to_string()))?;
    let reader = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(BufReader::new(file)));
    let mut all = Vec::new();
    for (n, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(|e| fail(Some(n + 1), e.to_string()))?;
        if !line.is_empty() {
            all.push(serde_json::from_slice(&line).map_err(|e| fail(Some(n + 1), e.to_string()))?);
        }
    }
    Ok(all)
}
