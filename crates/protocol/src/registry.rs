//! Which dialects there are.
//!
//! A new dialect costs one file with its settings, its [`Dialect`] and its session, and one line in the table
//! below.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::{
    Dialect, Signal, funasr_2pass::Funasr2pass, openai_transcriptions::OpenAiTranscriptions,
    pcm_json::PcmJson, sherpa_onnx::SherpaOnnx, vllm_realtime::VllmRealtime, vosk::Vosk,
    whisper_live::WhisperLive,
};

/// What the registry knows of a dialect.
struct Entry {
    /// Its name in config files.
    name: &'static str,
    /// Makes it from its settings.
    build: fn(Value) -> Result<Arc<dyn Dialect>, String>,
    /// Whether a message can only be one of its server's.
    signs: fn(&Value) -> bool,
}

/// Every dialect, in the order in which messages are held against them.
const DIALECTS: &[Entry] = &[
    entry::<PcmJson>(),
    entry::<VllmRealtime>(),
    entry::<OpenAiTranscriptions>(),
    entry::<SherpaOnnx>(),
    entry::<WhisperLive>(),
    entry::<Funasr2pass>(),
    entry::<Vosk>(),
];

/// Why there is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DialectError {
    /// No dialect of that name.
    #[error("there is no dialect {name:?}; known are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// All names there are.
        known: String,
    },
    /// Its settings do not fit.
    #[error("the settings of dialect {name} do not fit: {why}")]
    Settings {
        /// The dialect.
        name: String,
        /// What is wrong; names the key.
        why: String,
    },
}

/// A dialect's settings, which can be checked and then are the dialect.
pub(crate) trait Settings: DeserializeOwned + Dialect + Sized + 'static {
    /// The name in config files.
    const NAME: &'static str;

    /// Refuses what a type cannot.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether this message of a server can only be of this dialect, so that whoever meets it in another one
    /// can be told. It may miss some, but must not take messages of others for its own.
    fn signs(message: &Value) -> bool;
}

const fn entry<S: Settings>() -> Entry {
    Entry { name: S::NAME, build: build::<S>, signs: S::signs }
}

fn build<S: Settings>(settings: Value) -> Result<Arc<dyn Dialect>, String> {
    let settings: S = serde_json::from_value(settings).map_err(|e| e.to_string())?;
    settings.check()?;
    Ok(Arc::new(settings))
}

/// The dialect of that name with these settings: a table of its own keys, `null` for all defaults.
///
/// # Errors
/// When the name is not known, a key is not known, or a value does not fit.
pub fn dialect(name: &str, settings: Value) -> Result<Arc<dyn Dialect>, DialectError> {
    let entry = DIALECTS.iter().find(|entry| entry.name == name).ok_or_else(|| DialectError::Unknown {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    })?;
    let settings = if settings.is_null() { Value::Object(serde_json::Map::new()) } else { settings };
    (entry.build)(settings).map_err(|why| DialectError::Settings { name: name.to_owned(), why })
}

/// The names of all dialects.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|entry| entry.name)
}

/// The dialect that a server's message gives away, if it does.
#[must_use]
pub fn looks_like(message: &Value) -> Option<&'static str> {
    DIALECTS.iter().find(|entry| (entry.signs)(message)).map(|entry| entry.name)
}

/// What a message means that a session of `own` can make nothing of: the end, if it is of another dialect.
pub(crate) fn stranger(own: &str, message: &Value) -> Signal {
    match looks_like(message) {
        Some(other) if other != own => {
            Signal::Protocol(format!("the server looks like {other}: set server.dialect = \"{other}\""))
        }
        _ => Signal::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_dialect_has_its_own_name_and_good_defaults() {
        for name in names() {
            assert_eq!(dialect(name, Value::Null).unwrap().name(), name);
        }
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        let error = dialect("pcm_json", Value::Null).unwrap_err().to_string();
        assert!(error.contains("pcm-json"), "{error}");
        let error = dialect("pcm-json", json!({ "text_feild": "x" })).unwrap_err().to_string();
        assert!(error.contains("text_feild") && error.contains("text_field"), "{error}");
    }
}
