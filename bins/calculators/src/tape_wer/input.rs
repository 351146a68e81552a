//! Transcripts from TSV files and JSON lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

/// A reference with its hypothesis.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Pair {
    pub(super) id: String,
    #[serde(rename = "ref")]
    pub(super) reference: String,
    #[serde(rename = "hyp")]
    pub(super) hypothesis: String,
}

/// A row of a TSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) text: String,
}

/// What is wrong with the files: where, and how to mend it.
#[derive(Debug, Error)]
pub(super) enum InputError {
    #[error("no files: give REF.tsv and HYP.tsv, or --jsonl FILE")]
    NoFiles,
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: UTF-16: save the file as UTF-8", path.display())]
    Utf16 { path: PathBuf },
    #[error("{}:{line}: not UTF-8: save the file as UTF-8", path.display())]
    NotUtf8 { path: PathBuf, line: usize },
    #[error("{}:{line}: no tab: a line is an id, a tab, and the text (which may be empty)", path.display())]
    NoTab { path: PathBuf, line: usize },
    #[error("{}:{line}: no id before the tab", path.display())]
    NoId { path: PathBuf, line: usize },
    #[error("{}:{line}: id {id:?} is already on line {first}: each call may stand there once", path.display())]
    Twice { path: PathBuf, line: usize, id: String, first: usize },
    #[error("{}:{line}: {why}: a line is a JSON object with the strings id, ref and hyp", path.display())]
    Json { path: PathBuf, line: usize, why: String },
    #[error("{}: no calls in it", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}: {count} of its ids are not in {}: {ids}{hint}",
        there.display(),
        missing_from.display()
    )]
    Missing { there: PathBuf, missing_from: PathBuf, count: usize, ids: String, hint: &'static str },
}

/// The lines of a file with their numbers, without byte order mark, line ends and empty lines.
fn lines(path: &Path) -> Result<Vec<(usize, String)>, InputError> {
    let bytes =
        std::fs::read(path).map_err(|source| InputError::Unreadable { path: path.to_owned(), source })?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(InputError::Utf16 { path: path.to_owned() });
    }
    let text = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&bytes);
    let mut found = Vec::new();
    for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line)
            .map_err(|_| InputError::NotUtf8 { path: path.to_owned(), line: at + 1 })?;
        if !line.trim().is_empty() {
            found.push((at + 1, line.to_owned()));
        }
    }
    Ok(found)
}

/// Keeps the line on which each id stands.
struct Seen<'a> {
    path: &'a Path,
    lines: BTreeMap<String, usize>,
}

impl<'a> Seen<'a> {
    const fn new(path: &'a Path) -> Self {
        Self { path, lines: BTreeMap::new() }
    }

    fn note(&mut self, id: &str, line: usize) -> Result<(), InputError> {
        let path = self.path.to_owned();
        if id.is_empty() {
            return Err(InputError::NoId { path, line });
        }
        match self.lines.insert(id.to_owned(), line) {
            None => Ok(()),
            Some(first) => Err(InputError::Twice { path, line, id: id.to_owned(), first }),
        }
    }
}

/// Reads a TSV file of ids and texts.
pub(super) fn table(path: &Path) -> Result<Vec<Row>, InputError> {
    let mut seen = Seen::new(path);
    let mut rows = Vec::new();
    for (at, (line, content)) in lines(path)?.into_iter().enumerate() {
        let (id, text) =
            content.split_once('\t').ok_or_else(|| InputError::NoTab { path: path.to_owned(), line })?;
        let id = id.trim();
        if at == 0 && is_head(id, text) {
            continue;
        }
        seen.note(id, line)?;
        rows.push(Row { id: id.to_owned(), text: text.to_owned() });
    }
    if rows.is_empty() { Err(InputError::Empty { path: path.to_owned() }) } else { Ok(rows) }
}

fn is_head(id: &str, text: &str) -> bool {
    let is = |text: &str, word: &str| text.trim().eq_ignore_ascii_case(word);
    (is(id, "file") || is(id, "id")) && is(text, "text")
}

/// Joins two TSV files by id, in the order of the references.
pub(super) fn pairs_of_tables(
    reference: &Path,
    hypothesis: &Path,
    missing_as_deleted: bool,
) -> Result<Vec<Pair>, InputError> {
    let (references, hypotheses) = (table(reference)?, table(hypothesis)?);
    let known: BTreeMap<&str, ()> = references.iter().map(|row| (row.id.as_str(), ())).collect();
    let strangers: Vec<&str> =
        hypotheses.iter().map(|row| row.id.as_str()).filter(|id| !known.contains_key(id)).collect();
    if !strangers.is_empty() {
        return Err(missing(hypothesis, reference, &strangers, ""));
    }
    let pairs: Vec<Pair> = references
        .into_iter()
        .map(|row| Pair { id: row.id, reference: row.text, hypothesis: String::new() })
        .collect();
    let texts = hypotheses.into_iter().map(|row| (row.id, row.text)).collect();
    let texts = matched_in(&pairs, texts, reference, hypothesis, missing_as_deleted)?;
    Ok(pairs.into_iter().zip(texts).map(|(pair, hypothesis)| Pair { hypothesis, ..pair }).collect())
}

/// Reads pairs from JSON lines; further keys are left alone.
pub(super) fn pairs_of_json_lines(path: &Path) -> Result<Vec<Pair>, InputError> {
    let mut seen = Seen::new(path);
    let mut pairs = Vec::new();
    for (line, content) in lines(path)? {
        let pair: Pair = serde_json::from_str(&content).map_err(|error| {
            // The parser counts lines from the one line that it was given.
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            InputError::Json {
                path: path.to_owned(),
                line,
                why: format!("{why} at column {}", error.column()),
            }
        })?;
        seen.note(&pair.id, line)?;
        pairs.push(pair);
    }
    if pairs.is_empty() { Err(InputError::Empty { path: path.to_owned() }) } else { Ok(pairs) }
}

/// The text for each pair, by id; texts of calls that are not among the pairs are left alone.
pub(super) fn matched(
    pairs: &[Pair],
    texts: BTreeMap<String, String>,
    path: &Path,
    missing_as_deleted: bool,
) -> Result<Vec<String>, InputError> {
    matched_in(pairs, texts, Path::new("the references"), path, missing_as_deleted)
}

fn matched_in(
    pairs: &[Pair],
    mut texts: BTreeMap<String, String>,
    there: &Path,
    missing_from: &Path,
    missing_as_deleted: bool,
) -> Result<Vec<String>, InputError> {
    let absent: Vec<&str> =
        pairs.iter().map(|pair| pair.id.as_str()).filter(|id| !texts.contains_key(*id)).collect();
    if !absent.is_empty() && !missing_as_deleted {
        let hint = "; --missing-as-deleted counts them as deleted throughout";
        return Err(missing(there, missing_from, &absent, hint));
    }
    Ok(pairs.iter().map(|pair| texts.remove(&pair.id).unwrap_or_default()).collect())
}

fn missing(there: &Path, missing_from: &Path, ids: &[&str], hint: &'static str) -> InputError {
    let mut shown: String = ids.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    if ids.len() > 5 {
        shown.push_str(", ...");
    }
    InputError::Missing {
        there: there.to_owned(),
        missing_from: missing_from.to_owned(),
        count: ids.len(),
        ids: shown,
        hint,
    }
}
