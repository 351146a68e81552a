//! What can be wrong with a question.

use tapedeck_engine_model::reference_capacity::ReferenceError;
use tapedeck_erlang::ErlangError;
use tapedeck_l10n::{Localize, LocalizedText, localized};

/// Why a question has no answer: what, what it was, and what to give instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizingError {
    /// A quantity that must be a positive, finite number is not.
    #[error("{what} is {given}: it must be a finite number above zero")]
    NotPositive {
        /// Which quantity, with its unit.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// A quantity that must be a finite number and not negative is not.
    #[error("{what} is {given}: it must be a finite number and not below zero")]
    Negative {
        /// Which quantity, with its unit.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// A share is not above 0 and up to 1.
    #[error("{what} is {given}: it is a share and must lie above 0 and not above 1, such as 0.92")]
    NotAShare {
        /// Which share.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// A quantity is beyond what makes sense.
    #[error("{what} is {given}: more than {most} is not computed")]
    TooLarge {
        /// Which quantity, with its unit.
        what: &'static str,
        /// What was given.
        given: f64,
        /// The largest value that is computed.
        most: f64,
    },
    /// Two things that were given exclude each other.
    #[error("{0}")]
    Inconsistent(String),
    /// The hard ceiling is below N*.
    #[error("{}", self.text().en)]
    CeilingBelowNStar {
        /// The ceiling, streams.
        ceiling: u32,
        /// N*.
        n_star: u32,
    },
    /// Words get worse at every load.
    #[error("{}", self.text().en)]
    WordsAlwaysWorse,
    /// The share of N* is below one line.
    #[error("{}", self.text().en)]
    NoWholeLine {
        /// The safety factor.
        safety: f64,
        /// N*.
        n_star: u32,
    },
    /// Nothing to compute with.
    #[error("{what}: {hint}")]
    Nothing {
        /// What is missing.
        what: &'static str,
        /// What to give.
        hint: &'static str,
    },
    /// A text is not JSON, or not an object.
    #[error("config.json cannot be read: {0}")]
    Json(String),
    /// A model's config.json lacks what the memory of a token depends on.
    #[error(
        "config.json lacks {} (looked in {place}); give the figures by hand: --layers --kv-heads --head-dim --dtype",
        .keys.join(", ")
    )]
    MissingKeys {
        /// Every key that is missing.
        keys: Vec<String>,
        /// Where they were looked for.
        place: String,
    },
    /// A key of config.json has a value that cannot be used.
    #[error("config.json: `{key}` is {value}: {rule}")]
    BadKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// A word that is none of a closed list.
    #[error("`{given}` is no {what}: give one of {known}")]
    Unknown {
        /// What it should be.
        what: &'static str,
        /// What was given.
        given: String,
        /// What there is.
        known: &'static str,
    },
    /// A traffic question without an answer.
    #[error(transparent)]
    Erlang(#[from] ErlangError),
    /// The engine model cannot be played.
    #[error("the engine model cannot be played: {0}")]
    Engine(#[from] ReferenceError),
}

/// Errors that a report shows have their Chinese; the others are told in English.
impl Localize for SizingError {
    fn text(&self) -> LocalizedText {
        match self {
            Self::CeilingBelowNStar { ceiling, n_star } => localized!(
                "the hard ceiling ({ceiling}) is below N* ({n_star}): no deployment keeps its limits above the load at which it breaks",
                "硬上限（{ceiling}）低于 N*（{n_star}）：没有系统能在崩溃的负载之上仍满足上限"
            ),
            Self::WordsAlwaysWorse => localized!(
                "words get worse at every load: no line can be promised; see what TC-04 says",
                "任何负载下识别都变差：一条线路也不能承诺；见 TC-04 的结果"
            ),
            Self::NoWholeLine { safety, n_star } => localized!(
                "{safety} x N* = {n_star} leaves no whole line; give a larger safety factor",
                "{safety} × N*（{n_star} 路）不足一条线路；请用更大的安全系数"
            ),
            other => LocalizedText::same(other.to_string()),
        }
    }
}

/// A finite number above zero, at most `most`.
pub(crate) fn positive(what: &'static str, given: f64, most: f64) -> Result<f64, SizingError> {
    if !given.is_finite() || given <= 0.0 {
        return Err(SizingError::NotPositive { what, given });
    }
    if given > most {
        return Err(SizingError::TooLarge { what, given, most });
    }
    Ok(given)
}

/// A finite number, not below zero, at most `most`.
pub(crate) fn not_negative(what: &'static str, given: f64, most: f64) -> Result<f64, SizingError> {
    if given == 0.0 {
        return Ok(0.0);
    }
    if !given.is_finite() || given < 0.0 {
        return Err(SizingError::Negative { what, given });
    }
    positive(what, given, most)
}

/// A share above 0 and up to 1.
pub(crate) fn share(what: &'static str, given: f64) -> Result<f64, SizingError> {
    if given.is_finite() && given > 0.0 && given <= 1.0 {
        Ok(given)
    } else {
        Err(SizingError::NotAShare { what, given })
    }
}

/// A whole number of at least 1 that a float holds exactly.
pub(crate) fn count(what: &'static str, given: u32) -> Result<f64, SizingError> {
    positive(what, f64::from(given), f64::from(u32::MAX))
}
