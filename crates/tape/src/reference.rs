//! What is said in the calls, from the tables beside a pool.
//!
//! `transcripts.tsv` has the columns `file` and `text`, `segments.tsv` has `file`, `start_s`, `end_s` and `text`.
//! Both may have `channel` (`left`, `right`): a row with one speaks for that channel alone, a row without one for
//! the whole recording. A call of which only one channel was taken has a reference only where a row names that
//! channel: half of a conversation must not be scored against all of its words.

use std::collections::BTreeMap;
use std::path::Path;

use crate::call::{Reference, Segment};
use crate::error::TapeError;
use crate::manifest::ManifestCall;
use crate::table::Table;

/// Name of the table of words.
const TRANSCRIPTS: &str = "transcripts.tsv";
/// Name of the table of utterances.
const SEGMENTS: &str = "segments.tsv";

/// File and channel (empty for the whole recording).
type Key = (String, String);

/// The references of a pool.
#[derive(Debug, Default)]
pub(crate) struct References {
    texts: BTreeMap<Key, String>,
    segments: BTreeMap<Key, Vec<Segment>>,
}

impl References {
    /// Reads both tables, where they are there.
    pub(crate) fn read(pool: &Path) -> Result<Self, TapeError> {
        let mut out = Self::default();
        let path = pool.join(TRANSCRIPTS);
        if let Some(table) = Table::read_if_there(&path)? {
            let (file, text) = (table.column("file", &path)?, table.column("text", &path)?);
            let channel = table.column("channel", &path).ok();
            for (line, cells) in table.rows() {
                let cell = |at: usize| cells.get(at).map_or("", |c| c.trim());
                let key = (cell(file).to_owned(), channel.map_or("", cell).to_owned());
                if out.texts.insert(key, cell(text).to_owned()).is_some() {
                    let why = format!("`{}` is named twice", cell(file));
                    return Err(TapeError::Table { path, line, why });
                }
            }
        }
        let path = pool.join(SEGMENTS);
        if let Some(table) = Table::read_if_there(&path)? {
            let (file, text) = (table.column("file", &path)?, table.column("text", &path)?);
            let (start, end) = (table.column("start_s", &path)?, table.column("end_s", &path)?);
            let channel = table.column("channel", &path).ok();
            for (line, cells) in table.rows() {
                let cell = |at: usize| cells.get(at).map_or("", |c| c.trim());
                let time = |at: usize| {
                    ms(cell(at)).ok_or_else(|| TapeError::Table {
                        path: path.clone(),
                        line,
                        why: format!("`{}` is no time in seconds", cell(at)),
                    })
                };
                let segment =
                    Segment { start_ms: time(start)?, end_ms: time(end)?, text: cell(text).to_owned() };
                if segment.end_ms < segment.start_ms {
                    let why = "the utterance ends before it starts".to_owned();
                    return Err(TapeError::Table { path, line, why });
                }
                let key = (cell(file).to_owned(), channel.map_or("", cell).to_owned());
                out.segments.entry(key).or_default().push(segment);
            }
        }
        for list in out.segments.values_mut() {
            list.sort_by_key(|s| (s.start_ms, s.end_ms));
        }
        Ok(out)
    }

    /// What is said in `call`, if it is known.
    pub(crate) fn of(&self, call: &ManifestCall) -> Option<Reference> {
        let half = call.channel.as_deref().filter(|c| *c != "mix");
        let key = (call.path.clone(), half.unwrap_or_default().to_owned());
        let segments = match self.segments.get(&key) {
            Some(list) => list.clone(),
            // The whole recording is what is said on either side of it.
            None if half.is_none() => self.both_sides(&call.path),
            None => Vec::new(),
        };
        let text = self.texts.get(&key).cloned().or_else(|| {
            let joined =
                segments.iter().map(|s| s.text.as_str()).filter(|t| !t.is_empty()).collect::<Vec<_>>();
            (!joined.is_empty()).then(|| joined.join(" "))
        })?;
        Some(Reference { text, segments })
    }

    fn both_sides(&self, path: &str) -> Vec<Segment> {
        let mut both: Vec<Segment> = ["left", "right"]
            .iter()
            .filter_map(|side| self.segments.get(&(path.to_owned(), (*side).to_owned())))
            .flatten()
            .cloned()
            .collect();
        both.sort_by_key(|s| (s.start_ms, s.end_ms));
        both
    }
}

/// Seconds as text to milliseconds, for times within a day.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within a day")]
fn ms(text: &str) -> Option<u32> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..=86_400.0).contains(&seconds).then(|| (seconds * 1000.0).round() as u32)
}
