//! Word and character error rates of a transcript against its reference.
//!
//! Both texts pass the same [text rules](text), are cut into tokens, and are aligned with the fewest
//! substitutions, deletions and insertions. Mixed Chinese and English is at home here: a Han or kana
//! character is a token, and so is a word of any other script.
//!
//! ```
//! use tapedeck_wer::{measure, Counts};
//!
//! let m = measure("请打开 WiFi 设置，谢谢 Tom", "请打开wifi设置谢谢汤姆");
//! assert_eq!(m.words, Counts { ref_tokens: 9, sub: 1, del: 0, ins: 1 });
//! assert_eq!(m.han.errors(), 1);                    // 姆, which nobody said
//! assert_eq!(m.other.errors(), 1);                  // Tom, heard as 汤
//! assert_eq!(m.words.rate(), Some(2.0 / 9.0));
//! assert_eq!(measure("", "hello").words.rate(), None); // unknown, never a division by zero
//! ```
//!
//! Read on in [`text`] (the rules), [`align`] (the counts and how ties are decided), [`measures`] (the
//! metric variants by name) and [`bootstrap`] (how far to trust a pooled rate). Limits: scripts written without
//! spaces other than Han and kana (Thai, Khmer, Lao, Burmese) are one word from one space to the next, so
//! read their character error rate; the optional digit rules go digit by digit and do not know values
//! ("twenty", 二十).

pub mod align;
pub mod bootstrap;
pub mod counts;
pub mod measures;
pub mod text;

pub use bootstrap::{BootstrapError, BootstrapSettings, RateEstimate, paired_difference, pooled_rate};
pub use counts::Counts;
pub use measures::{Measures, MetricVariant, measure, measure_with};
pub use text::{Digits, Language, Rules};

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
