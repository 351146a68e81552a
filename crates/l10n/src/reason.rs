//! Reasons: values that say why something is so, kept with their figures and shown in both languages.

use serde::{Deserialize, Serialize};

use crate::LocalizedText;

/// A value that has a text in both languages.
pub trait Localize {
    /// The text in both languages.
    fn text(&self) -> LocalizedText;
}

impl LocalizedText {
    /// The texts of several values in a row: `a; b` and `a；b`.
    pub fn list<'a, T: Localize + 'a>(values: impl IntoIterator<Item = &'a T>) -> Self {
        let texts: Vec<Self> = values.into_iter().map(Localize::text).collect();
        Self::join(&texts, "; ", "；")
    }
}

/// A reason as it is written: its fields, and its English text for those who read the file by eye.
#[doc(hidden)]
#[derive(Debug, Serialize)]
pub struct WithText<F> {
    /// The kind and the figures.
    #[serde(flatten)]
    pub fields: F,
    /// The English text; ignored on reading.
    pub text: String,
}

/// A reason as it is found in a file.
#[doc(hidden)]
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Stored<F> {
    /// A plain sentence, as earlier versions wrote it.
    Sentence(String),
    /// A kind that this version knows.
    Known(F),
    /// A kind that it does not know; its text remains.
    Foreign {
        /// The English text.
        text: String,
    },
}

/// Gives an enum of reasons its form in files and its `Display`.
///
/// The enum implements [`Localize`], derives `Serialize` and `Deserialize` with `#[serde(tag = "kind", remote =
/// "Self")]`, and has a variant `#[serde(skip)] Recorded(String)`. A reason is written as `{"kind": ..., its figures,
/// "text": "the English text"}`; `text` is ignored on reading. A plain string, as earlier versions wrote it, and a kind
/// that is not known are read as `Recorded` and stay as they are in both languages. `Display` is the English text.
///
/// ```
/// use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
///
/// #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// #[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
/// enum Why {
///     Late { ms: u32 },
///     #[serde(skip)]
///     Recorded(String),
/// }
///
/// impl Localize for Why {
///     fn text(&self) -> LocalizedText {
///         match self {
///             Self::Late { ms } => localized!("{ms} ms late", "迟到 {ms} ms"),
///             Self::Recorded(sentence) => LocalizedText::same(sentence),
///         }
///     }
/// }
/// reason!(Why);
///
/// let json = serde_json::to_string(&Why::Late { ms: 7 }).unwrap();
/// assert_eq!(json, r#"{"kind":"late","ms":7,"text":"7 ms late"}"#);
/// assert_eq!(serde_json::from_str::<Why>(&json).unwrap(), Why::Late { ms: 7 });
/// let old: Why = serde_json::from_str(r#""9 ms late""#).unwrap();
/// assert_eq!(old, Why::Recorded("9 ms late".into()));
/// assert_eq!(serde_json::to_string(&old).unwrap(), r#""9 ms late""#);
/// let newer: Why = serde_json::from_str(r#"{"kind":"early","text":"too early"}"#).unwrap();
/// assert_eq!(newer.to_string(), "too early");
/// ```
#[macro_export]
macro_rules! reason {
    ($reason:ident) => {
        const _: () = {
            use $crate::reason::{Stored, WithText};
            use $crate::serde::{Deserialize, Deserializer, Serialize, Serializer};

            // The derive with `remote = "Self"` made functions of the type itself; they come before those of the traits.
            struct Ref<'a>(&'a $reason);

            impl Serialize for Ref<'_> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    $reason::serialize(self.0, serializer)
                }
            }

            impl Serialize for $reason {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let text = $crate::Localize::text(self).en;
                    match self {
                        Self::Recorded(_) => serializer.serialize_str(&text),
                        _ => WithText { fields: Ref(self), text }.serialize(serializer),
                    }
                }
            }

            struct Owned($reason);

            impl<'de> Deserialize<'de> for Owned {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    $reason::deserialize(deserializer).map(Self)
                }
            }

            impl<'de> Deserialize<'de> for $reason {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    Ok(match <Stored<Owned> as Deserialize>::deserialize(deserializer)? {
                        Stored::Known(Owned(known)) => known,
                        Stored::Sentence(text) | Stored::Foreign { text } => Self::Recorded(text),
                    })
                }
            }

            impl ::core::fmt::Display for $reason {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.write_str(&$crate::Localize::text(self).en)
                }
            }
        };
    };
}
