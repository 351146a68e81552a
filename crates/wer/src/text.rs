//! The text rules: from a transcript to its tokens.
//!
//! In this order: Unicode NFKC (full-width letters become plain, ligatures and ㎏ fall apart); tags `[..]`
//! and `<..>` are dropped and part what stands around them (an opening bracket that is never closed is plain
//! punctuation); lower case; U+2019 becomes `'`; characters without width (zero-width spaces and joiners,
//! soft hyphen, direction marks, variation selectors, the byte order mark) are dropped and join what stands
//! around them. Then each Han or kana character is a token of its own, other runs of letters, digits and
//! their combining marks are words, and everything else parts tokens: spaces, punctuation, symbols, controls.
//! An apostrophe stays inside a word (`it's`) and is dropped at its edge (`callers'`).
//!
//! Two rules for digits can be asked for by name ([`Digits`]); they are off by default because they change
//! figures.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

/// Which script a token is written in, as far as error counts are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// A Han or kana character.
    Han,
    /// A word of any other script, or a number.
    Other,
}

/// Optional rules that make digits comparable however they are written. Each digit becomes a token of its
/// own, in Arabic figures, on both sides: `138` is three tokens. Values are not computed: `twenty` and 二十
/// stay words. A digit keeps the language that it was written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Digits {
    /// `digits-zh`: 〇 零 一 二 三 四 五 六 七 八 九, and 幺 as it is said for 1 in telephone numbers.
    pub chinese: bool,
    /// `digits-en`: zero, one, ... nine ("oh" is left alone: it is more often an exclamation).
    pub english: bool,
}

impl Digits {
    const fn any(self) -> bool {
        self.chinese || self.english
    }
}

/// The rules in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rules {
    /// Optional rules for digits; none by default.
    pub digits: Digits,
}

impl Rules {
    /// Applies the rules up to lower case and width; [`Text::tokens`] cuts the result.
    #[must_use]
    pub fn apply(self, text: &str) -> Text {
        let plain = if text.is_ascii() {
            lower_without_tags(text)
        } else {
            lower_without_tags(&text.nfkc().collect::<String>())
        };
        Text { plain, digits: self.digits }
    }
}

/// A text after normalisation.
#[derive(Debug, Clone)]
pub struct Text {
    plain: String,
    digits: Digits,
}

/// A token of a [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its letters.
    pub text: &'a str,
    /// Its script.
    pub language: Language,
}

/// The tokens of a [`Text`].
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    /// Han and kana characters, and words of other scripts, in order.
    pub words: Vec<Token<'a>>,
}

impl Text {
    /// The normalised text, before it is cut.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.plain
    }

    /// Cuts the text into tokens.
    #[must_use]
    pub fn tokens(&self) -> Tokens<'_> {
        let mut words = Vec::with_capacity(self.plain.len() / 4 + 1);
        let mut open: Option<(usize, Language)> = None;
        let mut chars = self.plain.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let class = Class::of(c);
            let goes_on = match (class, open) {
                (Class::Mark, Some(_)) | (Class::Word, Some((_, Language::Other))) => true,
                (Class::Apostrophe, Some((_, Language::Other))) => {
                    chars.peek().is_some_and(|&(_, next)| Class::of(next) == Class::Word)
                }
                _ => false,
            };
            if goes_on {
                continue;
            }
            if let Some((from, language)) = open.take() {
                self.close(&self.plain[from..at], language, &mut words);
            }
            open = match class {
                Class::Han => Some((at, Language::Han)),
                Class::Word => Some((at, Language::Other)),
                Class::Mark | Class::Apostrophe | Class::Apart => None,
            };
        }
        if let Some((from, language)) = open {
            self.close(&self.plain[from..], language, &mut words);
        }
        Tokens { words }
    }

    /// Takes a finished token, under the digit rules if there are any.
    fn close<'a>(&self, text: &'a str, language: Language, words: &mut Vec<Token<'a>>) {
        if !self.digits.any() {
            words.push(Token { text, language });
            return;
        }
        if let Some(figure) = self.spoken_digit(text) {
            words.push(Token { text: figure, language });
            return;
        }
        let mut from = 0;
        for (at, c) in text.char_indices() {
            if let Some(figure) = digit_value(c).and_then(|value| FIGURES.get(value)) {
                if from < at {
                    words.push(Token { text: &text[from..at], language });
                }
                words.push(Token { text: figure, language });
                from = at + c.len_utf8();
            }
        }
        if from < text.len() {
            words.push(Token { text: &text[from..], language });
        }
    }

    fn spoken_digit(&self, text: &str) -> Option<&'static str> {
        let english = self.digits.english.then(|| ENGLISH.iter().position(|&word| word == text)).flatten();
        let value = english.or_else(|| {
            let mut chars = text.chars();
            let (c, rest) = (chars.next()?, chars.next());
            (self.digits.chinese && rest.is_none()).then(|| chinese_digit(c)).flatten()
        });
        value.and_then(|value| FIGURES.get(value)).copied()
    }
}

impl<'a> Tokens<'a> {
    /// The single characters of all tokens, each with its combining marks, as numbers that are equal where
    /// the characters are. `known` holds those of characters with marks, and is shared by two texts.
    pub(crate) fn character_numbers(&self, known: &mut HashMap<&'a str, u32>) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(self.words.len() * 4);
        let mut take = |character: &'a str| {
            let mut chars = character.chars();
            let number = match (chars.next(), chars.next()) {
                (Some(c), None) => u32::from(c),
                // Numbers beyond the last code point are free.
                _ => {
                    let next = 0x11_0000 + u32::try_from(known.len()).unwrap_or_default();
                    *known.entry(character).or_insert(next)
                }
            };
            numbers.push(number);
        };
        for word in &self.words {
            let mut from = 0;
            for (at, c) in word.text.char_indices().skip(1) {
                if Class::of(c) != Class::Mark {
                    take(&word.text[from..at]);
                    from = at;
                }
            }
            take(&word.text[from..]);
        }
        numbers
    }

    /// Numbers for the tokens of two texts, equal where the tokens are equal.
    #[must_use]
    pub fn numbers(reference: &[Token<'a>], hypothesis: &[Token<'a>]) -> (Vec<u32>, Vec<u32>) {
        let mut known: HashMap<&str, u32> = HashMap::with_capacity(reference.len());
        let mut next = 0_u32;
        let mut number = |token: &Token<'a>| {
            *known.entry(token.text).or_insert_with(|| {
                next += 1;
                next
            })
        };
        (reference.iter().map(&mut number).collect(), hypothesis.iter().map(&mut number).collect())
    }
}

/// What a character does to tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A token of its own.
    Han,
    /// Part of a word.
    Word,
    /// Belongs to the character before it.
    Mark,
    /// Part of a word if it stands inside one.
    Apostrophe,
    /// Parts tokens.
    Apart,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Self::Word,
            '\'' => Self::Apostrophe,
            '\0'..='\x7f' => Self::Apart,
            '\u{4e00}'..='\u{9fff}' => Self::Han,
            _ => match c.general_category_group() {
                GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number if is_han_or_kana(c) => Self::Han,
                GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number => Self::Word,
                GeneralCategoryGroup::Mark => Self::Mark,
                _ => Self::Apart,
            },
        }
    }
}

/// Whether a letter or number is written among Han or kana; the prolonged sound mark ー and its like belong
/// to no script, but only kana use them.
fn is_han_or_kana(c: char) -> bool {
    match c.script() {
        Script::Han | Script::Hiragana | Script::Katakana => true,
        Script::Common => {
            let used_by = c.script_extension();
            used_by.contains_script(Script::Hiragana) || used_by.contains_script(Script::Katakana)
        }
        _ => false,
    }
}

const FIGURES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const ENGLISH: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

const fn chinese_digit(c: char) -> Option<usize> {
    Some(match c {
        '零' | '〇' => 0,
        '一' | '幺' => 1,
        '二' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

/// The value of a decimal digit, in the scripts that telephone numbers are commonly written in.
fn digit_value(c: char) -> Option<usize> {
    /// The zeros: ASCII, Arabic-Indic, its extended form, Devanagari, Bengali, Thai.
    const ZEROS: [u32; 6] = [0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50];
    let code = u32::from(c);
    let zero = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code))?;
    usize::try_from(code - zero).ok()
}

/// Drops tags and characters without width, and lowers the case of the rest.
fn lower_without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    // Once a closing bracket is not found it is not looked for again, so that a text of nothing but opening
    // brackets does not take time by the square of its length.
    let (mut square, mut angle) = (true, true);
    while let Some(at) = rest.find(['[', '<']) {
        lower(&rest[..at], &mut plain);
        plain.push(' ');
        let inside = &rest[at + 1..];
        let (may_close, closing) =
            if rest[at..].starts_with('[') { (&mut square, ']') } else { (&mut angle, '>') };
        let end = if *may_close { inside.find(closing) } else { None };
        *may_close = end.is_some();
        rest = end.map_or(inside, |end| &inside[end + 1..]);
    }
    lower(rest, &mut plain);
    plain
}

fn lower(text: &str, plain: &mut String) {
    if text.is_ascii() {
        plain.extend(text.bytes().map(|b| char::from(b.to_ascii_lowercase())));
        return;
    }
    // Whole stretches, because the final sigma of a Greek word depends on what follows it.
    for c in text.to_lowercase().chars() {
        match c {
            '\u{2019}' => plain.push('\''),
            c if has_no_width(c) => {}
            c => plain.push(c),
        }
    }
}

const fn has_no_width(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}
