//! Every sentence a reader sees, in both languages, in one place.

/// The language of a report.
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

/// One sentence in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// English.
    pub en: String,
    /// Simplified Chinese.
    pub zh: String,
}

impl Said {
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

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::same(text)
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::same(text)
    }
}

impl From<u32> for Said {
    fn from(n: u32) -> Self {
        Self::same(n.to_string())
    }
}

impl From<usize> for Said {
    fn from(n: usize) -> Self {
        Self::same(n.to_string())
    }
}

impl From<u64> for Said {
    fn from(n: u64) -> Self {
        Self::same(n.to_string())
    }
}

impl From<Word> for Said {
    fn from(word: Word) -> Self {
        word.said()
    }
}

/// Puts values into the places `{0}`, `{1}`... of a template.
pub(crate) fn fill(template: &str, values: &[&str]) -> String {
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

/// A sentence with values in its places, in both languages: `say!(Word::X, value, ...)`.
macro_rules! say {
    ($word:expr) => { $word.said() };
    ($word:expr, $($value:expr),+ $(,)?) => {
        $word.with(&[$($crate::words::Said::from($value)),+])
    };
}
pub(crate) use say;

/// A number for people: at most three decimals, none that say nothing.
pub(crate) fn number(value: f64) -> String {
    let mut text = fixed(value);
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

/// A number with all its decimals, for columns.
pub(crate) fn fixed(value: f64) -> String {
    let decimals = decimals(value);
    let text = format!("{value:.decimals$}");
    // What rounds to nothing has no sign.
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|b| b == b'0' || b == b'.') => digits.to_owned(),
        _ => text,
    }
}

/// How many decimals of a number are shown.
pub(crate) fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}

macro_rules! words {
    ($($name:ident: $en:literal, $zh:literal;)*) => {
        /// Every sentence by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Word { $($name),* }

        impl Word {
            /// Every sentence there is.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The template in one language.
            pub(crate) const fn template(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $((Self::$name, Lang::En) => $en, (Self::$name, Lang::Zh) => $zh,)*
                }
            }

            /// The sentence in both languages.
            pub(crate) fn said(self) -> Said {
                Said { en: self.template(Lang::En).into(), zh: self.template(Lang::Zh).into() }
            }

            /// The sentence with values in its places.
            pub(crate) fn with(self, values: &[Said]) -> Said {
                let each = |lang: Lang| {
                    let values: Vec<&str> = values.iter().map(|v| v.text(lang)).collect();
                    fill(self.template(lang), &values)
                };
                Said { en: each(Lang::En), zh: each(Lang::Zh) }
            }
        }
    };
}

include!("words_table.rs");

#[cfg(test)]
mod tests {
    use super::*;

    fn places(template: &str) -> Vec<String> {
        let mut all: Vec<String> =
            (0..10).map(|i| format!("{{{i}}}")).filter(|p| template.contains(p)).collect();
        all.sort();
        all
    }

    #[test]
    fn both_languages_say_the_same_things() {
        for word in Word::ALL {
            let (en, zh) = (word.template(Lang::En), word.template(Lang::Zh));
            assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{word:?} is empty");
            assert_eq!(places(en), places(zh), "{word:?} has other places in Chinese");
            // What is the same in both must be a name or a symbol; a forgotten translation is longer.
            assert!(en != zh || en.len() < 12, "{word:?} is not translated: {en}");
            assert!(en.is_ascii() || en.chars().all(|c| !('\u{4e00}'..='\u{9fff}').contains(&c)), "{word:?}");
        }
    }

    #[test]
    fn places_are_filled_once_and_strange_braces_stay() {
        assert_eq!(fill("{1} of {0}, {x} {9} {", &["{1}", "b"]), "b of {1}, {x} {9} {");
        assert_eq!(number(0.156), "0.156");
        assert_eq!(number(-0.0001), "0");
        assert_eq!(number(1234.56), "1235");
        assert_eq!(number(30.0), "30");
    }
}
