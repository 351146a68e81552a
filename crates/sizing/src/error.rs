//! What can be wrong with a question.

use tapedeck_engine_model::reference_capacity::ReferenceError;
use tapedeck_erlang::ErlangError;
use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized};

/// Why a question has no answer: what, what it was, and what to give instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum SizingError {
    /// A quantity that must be a positive, finite number is not.
    NotPositive {
        /// Which quantity, with its unit.
        what: StaticText,
        /// What was given.
        given: f64,
    },
    /// A quantity that must be a finite number and not negative is not.
    Negative {
        /// Which quantity, with its unit.
        what: StaticText,
        /// What was given.
        given: f64,
    },
    /// A share is not above 0 and up to 1.
    NotAShare {
        /// Which share.
        what: StaticText,
        /// What was given.
        given: f64,
    },
    /// A quantity is beyond what makes sense.
    TooLarge {
        /// Which quantity, with its unit.
        what: StaticText,
        /// What was given.
        given: f64,
        /// The largest value that is computed.
        most: f64,
    },
    /// Two things that were given exclude each other.
    Inconsistent(LocalizedText),
    /// The hard ceiling is below N*.
    CeilingBelowNStar {
        /// The ceiling, streams.
        ceiling: u32,
        /// N*.
        n_star: u32,
    },
    /// Words get worse at every load.
    WordsAlwaysWorse,
    /// The share of N* is below one line.
    NoWholeLine {
        /// The safety factor.
        safety: f64,
        /// N*.
        n_star: u32,
    },
    /// Nothing to compute with.
    Nothing {
        /// What is missing.
        what: StaticText,
        /// What to give.
        hint: StaticText,
    },
    /// A text is not JSON, or not an object.
    Json(String),
    /// A model's config.json lacks what the memory of a token depends on.
    MissingKeys {
        /// Every key that is missing.
        keys: Vec<String>,
        /// Where they were looked for.
        place: String,
    },
    /// A key of config.json has a value that cannot be used.
    BadKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: StaticText,
    },
    /// A word that is none of a closed list.
    Unknown {
        /// What it should be.
        what: StaticText,
        /// What was given.
        given: String,
        /// What there is.
        known: StaticText,
    },
    /// A traffic question without an answer.
    Erlang(#[from] ErlangError),
    /// The engine model cannot be played.
    Engine(#[from] ReferenceError),
}

impl Localize for SizingError {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NotPositive { what, given } => localized!(
                "{} is {given}: it must be a finite number above zero",
                "{}为 {given}：须为大于零的有限数"; *what
            ),
            Self::Negative { what, given } => localized!(
                "{} is {given}: it must be a finite number and not below zero",
                "{}为 {given}：须为不小于零的有限数"; *what
            ),
            Self::NotAShare { what, given } => localized!(
                "{} is {given}: it is a share and must lie above 0 and not above 1, such as 0.92",
                "{}为 {given}：这是一个比例，须大于 0 且不大于 1，例如 0.92"; *what
            ),
            Self::TooLarge { what, given, most } => localized!(
                "{} is {given}: more than {most} is not computed",
                "{}为 {given}：超过 {most} 不予计算"; *what
            ),
            Self::Inconsistent(why) => why.clone(),
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
            Self::Nothing { what, hint } => localized!("{}: {}", "{}：{}"; *what, *hint),
            Self::Json(why) => {
                localized!("config.json cannot be read: {why}", "config.json 无法读取：{why}")
            }
            Self::MissingKeys { keys, place } => localized!(
                "config.json lacks {} (looked in {place}); give the figures by hand: --layers --kv-heads --head-dim --dtype",
                "config.json 缺少 {}（查找位置：{place}）；请手工给出：--layers --kv-heads --head-dim --dtype",
                keys.join(", ")
            ),
            Self::BadKey { key, value, rule } => localized!(
                "config.json: `{key}` is {value}: {}",
                "config.json：`{key}` 为 {value}：{}"; *rule
            ),
            Self::Unknown { what, given, known } => localized!(
                "`{given}` is no {}: give one of {}",
                "`{given}` 不是{}：可选 {}"; *what, *known
            ),
            Self::Erlang(error) => LocalizedText { en: error.to_string(), zh: of_erlang(error) },
            Self::Engine(why) => {
                localized!("the engine model cannot be played: {why}", "引擎模型无法运行：{why}")
            }
        }
    }
}

/// What keeps a question of traffic from its answer, in Chinese; its quantities keep their names.
fn of_erlang(error: &ErlangError) -> String {
    match error {
        ErlangError::NotPositive { what, given } => format!("{what} 为 {given}：须为大于零的有限数"),
        ErlangError::NotAShare { what, given } => {
            format!("{what} 为 {given}：这是一个比例，须在 0 与 1 之间，例如 0.01 即 1 %")
        }
        ErlangError::TooLarge { what, given, most } => {
            format!("{what} 为 {given:e}：超过 {most:e} 不予计算")
        }
        ErlangError::NoLines => "线路数为 0：至少要有一条".into(),
        ErlangError::Unstable { traffic, lines } => {
            format!("不稳定：{lines} 条线路承载不了 {traffic} Erlang，队列会无限增长；线路数须多于 Erlang 数")
        }
        ErlangError::NeverBlocked { sources, lines } => {
            format!("{sources} 个话源不可能占满 {lines} 条线路，没有流量能达到目标；线路数须少于话源数")
        }
        // Out of reach; no other is known here.
        _ => "在计算范围内（至多 1e12）没有线路数或流量能满足目标".into(),
    }
}

/// A finite number above zero, at most `most`.
pub(crate) fn positive(what: impl Into<StaticText>, given: f64, most: f64) -> Result<f64, SizingError> {
    let what = what.into();
    if !given.is_finite() || given <= 0.0 {
        return Err(SizingError::NotPositive { what, given });
    }
    if given > most {
        return Err(SizingError::TooLarge { what, given, most });
    }
    Ok(given)
}

/// A finite number, not below zero, at most `most`.
pub(crate) fn not_negative(what: impl Into<StaticText>, given: f64, most: f64) -> Result<f64, SizingError> {
    if given == 0.0 {
        return Ok(0.0);
    }
    let what = what.into();
    if !given.is_finite() || given < 0.0 {
        return Err(SizingError::Negative { what, given });
    }
    positive(what, given, most)
}

/// A share above 0 and up to 1.
pub(crate) fn share(what: impl Into<StaticText>, given: f64) -> Result<f64, SizingError> {
    if given.is_finite() && given > 0.0 && given <= 1.0 {
        Ok(given)
    } else {
        Err(SizingError::NotAShare { what: what.into(), given })
    }
}

/// A whole number of at least 1 that a float holds exactly.
pub(crate) fn count(what: impl Into<StaticText>, given: u32) -> Result<f64, SizingError> {
    positive(what, f64::from(given), f64::from(u32::MAX))
}
