//! Why a config cannot be used: which key, where it stands, and what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_path_to_error::Segment;
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::{ExitCode, HasExitCode};
use thiserror::Error;

use crate::keys::{self, Key};
use crate::ranges::{self, Range};

/// A place in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl Place {
    pub(crate) fn of(path: &Path, text: &str, span: Option<std::ops::Range<usize>>) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        Self { path: path.to_path_buf(), line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// The config cannot be used.
#[derive(Debug, Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// It is not TOML.
    Syntax {
        /// Where.
        place: Place,
        /// The parser's words.
        message: String,
    },
    /// A key that is not known.
    Unknown {
        /// Where; empty where it came from a flag.
        place: Option<Place>,
        /// The key, dotted.
        key: String,
        /// The nearest one that is known.
        near: Option<String>,
    },
    /// A value of the wrong type.
    Type {
        /// Where; empty where it came from a flag.
        place: Option<Place>,
        /// The key, dotted.
        key: String,
        /// The parser's words.
        why: String,
    },
    /// A number out of its range.
    Range {
        /// The key, dotted.
        key: &'static str,
        /// The number that was given.
        given: f64,
        /// What would be right.
        range: Range,
    },
    /// A value that cannot work.
    Value {
        /// The key, dotted.
        key: String,
        /// What is wrong and what to write instead.
        why: LocalizedText,
    },
}

impl Localize for ConfigError {
    fn text(&self) -> LocalizedText {
        let prefix = |place: &Option<Place>| place.as_ref().map(|p| format!("{p}: ")).unwrap_or_default();
        match self {
            Self::Read { path, source } => {
                let path = path.display();
                localized!(
                    "cannot read {path}: {source}; give a config's path, `tape-doctor --init FILE` writes one",
                    "无法读取 {path}：{source}；请给出配置文件路径，`tape-doctor --init FILE` 可生成一份"
                )
            }
            Self::Syntax { place, message } => LocalizedText::same(format!("{place}: {message}")),
            Self::Unknown { place, key, near } => {
                let near = near.as_ref().map_or_else(LocalizedText::default, |near| {
                    localized!(": did you mean `{near}`?", "：是否想写 `{near}`？")
                });
                let place = prefix(place);
                localized!("{place}there is no config key `{key}`{}", "{place}没有配置项 `{key}`{}"; near)
            }
            Self::Type { place, key, why } => {
                // Of any other than a number, serde's words say it all.
                let give = ranges::of(key).map_or_else(
                    LocalizedText::default,
                    |number| localized!("; give {}", "；请给出{}"; number.range.text()),
                );
                let place = prefix(place);
                localized!("{place}config key {key}: {why}{}", "{place}配置项 {key}：{why}{}"; give)
            }
            Self::Range { key, given, range } => localized!(
                "config key {key} = {given} is out of range: give {}",
                "配置项 {key} = {given} 超出范围：请给出{}"; range.text()
            ),
            Self::Value { key, why } => localized!("config key {key}: {}", "配置项 {key}：{}"; why),
        }
    }
}

impl ConfigError {
    /// A value that cannot work, by its key: name it with [`crate::key!`].
    #[must_use]
    pub fn value(key: impl Into<String>, why: impl Into<LocalizedText>) -> Self {
        Self::Value { key: key.into(), why: why.into() }
    }

    pub(crate) fn syntax(place: Place, error: &toml::de::Error) -> Self {
        Self::Syntax { place, message: error.message().trim().replace('\n', " ") }
    }

    /// What serde refused at `path`: a key that is not known, or a value that does not fit.
    pub(crate) fn refused(
        place: Option<Place>,
        path: &serde_path_to_error::Path,
        error: &toml::de::Error,
    ) -> Self {
        let names = path.iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            Segment::Enum { .. } | Segment::Seq { .. } | Segment::Unknown => None,
        });
        let key = names.collect::<Vec<_>>().join(".");
        if !key.is_empty() && keys::holds(&key).is_none() {
            let near = nearest(&key);
            return Self::Unknown { place, key, near };
        }
        Self::Type { place, key, why: error.message().trim().replace('\n', " ") }
    }

    pub(crate) fn unknown(key: &str) -> Self {
        Self::Unknown { place: None, key: key.into(), near: nearest(key) }
    }
}

/// The key or section nearest to one that is not known: its last part counts first, then the whole and how it begins.
fn nearest(key: &str) -> Option<String> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let own = last(key);
    // A key whose end was left out is as near as one letter.
    let far = |own: &str, known: &str| match known.strip_prefix(own) {
        Some(rest) if own.len() > 2 => rest.len().min(1),
        _ => strsim::damerau_levenshtein(own, known),
    };
    let all = keys::all();
    let sections = all.iter().flat_map(Key::sections);
    all.iter()
        .map(|known| known.name.as_str())
        .chain(sections)
        .map(|known| (far(&own, &last(known)), strsim::jaro_winkler(key, known), known))
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))
        .filter(|(distance, _, known)| *distance <= last(known).len().max(own.len()) / 2)
        .map(|(.., known)| known.to_owned())
}

/// The name that is nearest to an unknown one, if any is near.
pub fn nearest_of<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().max(unknown.len()) / 2)
        .map(|(_, known)| known.to_string())
}

impl HasExitCode for ConfigError {
    fn exit_code(&self) -> ExitCode {
        ExitCode::Usage
    }
}
