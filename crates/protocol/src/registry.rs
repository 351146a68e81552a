//! Which dialects there are.
//!
//! A new dialect costs one file with its settings, its [`Dialect`] and its session, and one line in the table
//! below.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::{Dialect, pcm_json::PcmJson};

/// Builds a dialect from its settings.
type Build = fn(Value) -> Result<Arc<dyn Dialect>, String>;

/// Every dialect: its name in config files and how it is built.
const DIALECTS: &[(&str, Build)] = &[("pcm-json", build::<PcmJson>)];

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
    /// Refuses what a type cannot.
    fn check(&self) -> Result<(), String>;
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
    let (name, build) = DIALECTS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        DialectError::Unknown { name: name.to_owned(), known: names().collect::<Vec<_>>().join(", ") }
    })?;
    let settings = if settings.is_null() { Value::Object(serde_json::Map::new()) } else { settings };
    build(settings).map_err(|why| DialectError::Settings { name: (*name).to_owned(), why })
}

/// The names of all dialects.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|(name, _)| *name)
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
