//! Every message of a report, in both languages, in one place.

pub use tapedeck_l10n::{Lang, LocalizedText};
pub(crate) use tapedeck_l10n::{fill, fixed, number};

impl From<MessageId> for LocalizedText {
    fn from(word: MessageId) -> Self {
        word.said()
    }
}

/// A sentence with values in its places, in both languages: `message!(MessageId::X, value, ...)`.
macro_rules! message {
    ($word:expr) => { $word.said() };
    ($word:expr, $($value:expr),+ $(,)?) => {
        $word.with(&[$($crate::messages::LocalizedText::from($value)),+])
    };
}
pub(crate) use message;

macro_rules! messages {
    ($($name:ident: $en:literal, $zh:literal;)*) => {
        /// Every sentence by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum MessageId { $($name),* }

        impl MessageId {
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
            pub(crate) fn said(self) -> LocalizedText {
                LocalizedText { en: self.template(Lang::En).into(), zh: self.template(Lang::Zh).into() }
            }

            /// The sentence with values in its places.
            pub(crate) fn with(self, values: &[LocalizedText]) -> LocalizedText {
                let each = |lang: Lang| {
                    let values: Vec<&str> = values.iter().map(|v| v.text(lang)).collect();
                    fill(self.template(lang), &values)
                };
                LocalizedText { en: each(Lang::En), zh: each(Lang::Zh) }
            }
        }
    };
}

include!("catalogue.rs");

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
        for word in MessageId::ALL {
            let (en, zh) = (word.template(Lang::En), word.template(Lang::Zh));
            assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{word:?} is empty");
            assert_eq!(places(en), places(zh), "{word:?} has other places in Chinese");
            // What is the same in both must be a name or a symbol; a forgotten translation is longer.
            assert!(en != zh || en.len() < 12, "{word:?} is not translated: {en}");
            assert!(en.is_ascii() || en.chars().all(|c| !('\u{4e00}'..='\u{9fff}').contains(&c)), "{word:?}");
        }
    }
}
