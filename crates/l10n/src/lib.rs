//! Texts in two languages, and numbers as people read them.
//!
//! Whatever a reader sees exists in English and in simplified Chinese. A text is rendered once, where its figures are
//! known, into a [`LocalizedText`] that holds both.
//!
//! ```
//! use tapedeck_l10n::{Lang, localized, number};
//!
//! let streams = 45;
//! let text = localized!("{streams} streams, RTF {}" , "{streams} 路，RTF {}", number(0.4850));
//! assert_eq!(text.text(Lang::En), "45 streams, RTF 0.485");
//! assert_eq!(text.text(Lang::Zh), "45 路，RTF 0.485");
//! ```
//!
//! Why something is so is a value of its own, see [`reason!`].
//!
//! Limits: two languages, no plural rules; a text that both languages share is made with [`LocalizedText::same`].

pub mod reason;

pub use reason::Localize;
#[doc(hidden)]
pub use serde;

/// The language of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    /// Both, in the order of their fields.
    pub const ALL: [Self; 2] = [Self::En, Self::Zh];

    /// The tag for `<html lang>` and file names.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }
}

/// One text in both languages. In files it is a plain string where both are the same.
///
/// ```
/// # use tapedeck_l10n::{LocalizedText, localized};
/// let text = localized!("no such key", "没有这个键");
/// let json = serde_json::to_string(&text).unwrap();
/// assert_eq!(json, r#"{"en":"no such key","zh":"没有这个键"}"#);
/// assert_eq!(serde_json::from_str::<LocalizedText>(&json).unwrap(), text);
/// assert_eq!(serde_json::from_str::<LocalizedText>(r#""ENOENT""#).unwrap(), LocalizedText::same("ENOENT"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "StoredText", into = "StoredText")]
pub struct LocalizedText {
    /// English.
    pub en: String,
    /// Simplified Chinese.
    pub zh: String,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum StoredText {
    Same(String),
    Both { en: String, zh: String },
}

impl From<StoredText> for LocalizedText {
    fn from(stored: StoredText) -> Self {
        match stored {
            StoredText::Same(text) => Self::same(text),
            StoredText::Both { en, zh } => Self { en, zh },
        }
    }
}

impl From<LocalizedText> for StoredText {
    fn from(LocalizedText { en, zh }: LocalizedText) -> Self {
        if en == zh { Self::Same(en) } else { Self::Both { en, zh } }
    }
}

/// The English text: programs talk to their terminal in it.
impl std::fmt::Display for LocalizedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.en)
    }
}

impl LocalizedText {
    /// The same in both: names, numbers, words of a server.
    #[must_use]
    pub fn same(text: impl Into<String>) -> Self {
        let en = text.into();
        Self { zh: en.clone(), en }
    }

    /// In one language.
    #[must_use]
    pub fn text(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }

    /// Several as a list.
    #[must_use]
    pub fn join(parts: &[Self], en: &str, zh: &str) -> Self {
        let each = |lang: Lang, by: &str| parts.iter().map(|p| p.text(lang)).collect::<Vec<_>>().join(by);
        Self { en: each(Lang::En, en), zh: each(Lang::Zh, zh) }
    }
}

/// A text in both languages that is known when the program is built: a name, a definition, a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticText {
    /// English.
    pub en: &'static str,
    /// Simplified Chinese.
    pub zh: &'static str,
}

impl StaticText {
    /// English first, then Chinese.
    #[must_use]
    pub const fn new(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh }
    }

    /// In one language.
    #[must_use]
    pub const fn text(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

impl From<&'static str> for StaticText {
    fn from(text: &'static str) -> Self {
        Self::new(text, text)
    }
}

impl From<StaticText> for LocalizedText {
    fn from(text: StaticText) -> Self {
        Self { en: text.en.into(), zh: text.zh.into() }
    }
}

impl From<&str> for LocalizedText {
    fn from(text: &str) -> Self {
        Self::same(text)
    }
}

impl From<String> for LocalizedText {
    fn from(text: String) -> Self {
        Self::same(text)
    }
}

impl From<u32> for LocalizedText {
    fn from(n: u32) -> Self {
        Self::same(n.to_string())
    }
}

impl From<usize> for LocalizedText {
    fn from(n: usize) -> Self {
        Self::same(n.to_string())
    }
}

impl From<u64> for LocalizedText {
    fn from(n: u64) -> Self {
        Self::same(n.to_string())
    }
}

/// Puts values into the places `{0}`, `{1}`... of a template.
#[must_use]
pub fn fill(template: &str, values: &[&str]) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let place = from.find('}').and_then(|end| {
            let index: usize = from.get(1..end)?.parse().ok()?;
            Some((values.get(index)?, from.get(end + 1..)?))
        });
        match place {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = from.get(1..).unwrap_or("");
            }
        }
    }
    out.push_str(rest);
    out
}

/// A number for people: at most three decimals, none that say nothing.
#[must_use]
pub fn number(value: f64) -> String {
    let mut text = fixed(value);
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

/// A number with all its decimals, for columns.
#[must_use]
pub fn fixed(value: f64) -> String {
    let decimals = decimals(value);
    let text = format!("{value:.decimals$}");
    // What rounds to nothing has no sign.
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|b| b == b'0' || b == b'.') => digits.to_owned(),
        _ => text,
    }
}

/// How many decimals of a number are shown.
#[must_use]
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}

/// A text in both languages from two format strings and their common arguments: English first, then Chinese.
///
/// Both take the same positional arguments, and names in scope. Behind a semicolon stand arguments that have a text in
/// both languages themselves: each string takes its own.
///
/// ```
/// use tapedeck_l10n::{LocalizedText, localized};
///
/// let why = localized!("interrupted", "被中断");
/// assert_eq!(localized!("cut short: {}", "提前结束：{}"; why).zh, "提前结束：被中断");
/// ```
#[macro_export]
macro_rules! localized {
    ($en:literal, $zh:literal; $($text:expr),+ $(,)?) => {
        $crate::LocalizedText { en: format!($en, $($text.en),+), zh: format!($zh, $($text.zh),+) }
    };
    ($en:literal, $zh:literal $(, $($arg:tt)*)?) => {
        $crate::LocalizedText { en: format!($en $(, $($arg)*)?), zh: format!($zh $(, $($arg)*)?) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_once_and_strange_braces_stay() {
        assert_eq!(fill("{1} of {0}, {x} {9} {", &["{1}", "b"]), "b of {1}, {x} {9} {");
        assert_eq!(number(0.156), "0.156");
        assert_eq!(number(-0.0001), "0");
        assert_eq!(number(1234.56), "1235");
        assert_eq!(number(30.0), "30");
    }
}
