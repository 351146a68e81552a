//! The figures of one text, under each metric variant by name.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::align::{Step, align, align_near};
use crate::counts::Counts;
use crate::text::{Language, Rules, Token, Tokens};

/// What is counted as one token. Published rates of Chinese with English in it follow either variant, and
/// they differ, so a rate is always printed with the name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricVariant {
    /// Han and kana characters, and whole words of every other script: word error rate (WER) for languages
    /// written with spaces, mixed error rate (MER) for Chinese with English words in it.
    Mixed,
    /// Single characters throughout, those of English words too; spaces are not counted: character error
    /// rate (CER).
    Characters,
}

impl MetricVariant {
    /// The name that reports print.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "WER (Han characters with words of other scripts)",
            Self::Characters => "CER (per character throughout)",
        }
    }
}

/// Everything that is counted on one text against its reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measures {
    /// Under [`MetricVariant::Mixed`].
    pub words: Counts,
    /// Under [`MetricVariant::Characters`].
    pub chars: Counts,
    /// The part of `words` that concerns Han and kana: their tokens in the reference, those substituted or
    /// deleted, and those inserted.
    pub han: Counts,
    /// The part of `words` that concerns every other script; `han` and `other` add up to `words`.
    pub other: Counts,
}

impl Measures {
    /// The counts under a metric variant.
    #[must_use]
    pub const fn under(&self, variant: MetricVariant) -> Counts {
        match variant {
            MetricVariant::Mixed => self.words,
            MetricVariant::Characters => self.chars,
        }
    }
}

impl std::ops::AddAssign for Measures {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.chars += other.chars;
        self.han += other.han;
        self.other += other.other;
    }
}

impl std::iter::Sum for Measures {
    fn sum<I: Iterator<Item = Self>>(measures: I) -> Self {
        measures.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// Measures a hypothesis against its reference under the default [`Rules`].
#[must_use]
pub fn measure(reference: &str, hypothesis: &str) -> Measures {
    measure_with(Rules::default(), reference, hypothesis)
}

/// Measures a hypothesis against its reference.
#[must_use]
pub fn measure_with(rules: Rules, reference: &str, hypothesis: &str) -> Measures {
    let (reference, hypothesis) = (rules.apply(reference), rules.apply(hypothesis));
    let (reference, hypothesis) = (reference.tokens(), hypothesis.tokens());
    let mut measures = Measures::default();
    let (ref_ids, hyp_ids) = Tokens::numbers(&reference.words, &hypothesis.words);
    for word in &reference.words {
        measures.of(word.language).ref_tokens += 1;
    }
    // What the words' alignment costs in characters bounds what the characters' own alignment costs.
    let mut bound = 0;
    let length = |token: &Token<'_>| token.text.chars().count();
    align(&ref_ids, &hyp_ids, |step| match step {
        Step::Match { .. } => {}
        Step::Sub { reference: at, hypothesis: to } => {
            bound += length(&reference.words[at]).max(length(&hypothesis.words[to]));
            measures.of(reference.words[at].language).sub += 1;
        }
        Step::Del { reference: at } => {
            bound += length(&reference.words[at]);
            measures.of(reference.words[at].language).del += 1;
        }
        Step::Ins { hypothesis: at } => {
            bound += length(&hypothesis.words[at]);
            measures.of(hypothesis.words[at].language).ins += 1;
        }
    });
    measures.words = measures.han + measures.other;

    let mut marked = HashMap::new();
    let ref_ids = reference.character_numbers(&mut marked);
    let hyp_ids = hypothesis.character_numbers(&mut marked);
    measures.chars.ref_tokens = ref_ids.len() as u64;
    align_near(&ref_ids, &hyp_ids, bound, |step| match step {
        Step::Match { .. } => {}
        Step::Sub { .. } => measures.chars.sub += 1,
        Step::Del { .. } => measures.chars.del += 1,
        Step::Ins { .. } => measures.chars.ins += 1,
    });
    measures
}

impl Measures {
    const fn of(&mut self, language: Language) -> &mut Counts {
        match language {
            Language::Han => &mut self.han,
            Language::Other => &mut self.other,
        }
    }
}
