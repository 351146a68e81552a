//! What an alignment counted.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
#[cfg(feature = "record")]
use tapedeck_record::WordCounts;

/// Errors of one text, or of many texts added up, against the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Tokens of the reference.
    pub ref_tokens: u64,
    /// Tokens replaced by others.
    pub sub: u64,
    /// Tokens of the reference that are missing.
    pub del: u64,
    /// Tokens that the reference does not have.
    pub ins: u64,
}

impl Counts {
    /// All errors.
    #[must_use]
    pub const fn errors(self) -> u64 {
        self.sub + self.del + self.ins
    }

    /// The counts of this text met `n` times.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self { ref_tokens: self.ref_tokens * n, sub: self.sub * n, del: self.del * n, ins: self.ins * n }
    }

    /// Errors per token of the reference: 0.25 is 25 %. It is not capped, so more insertions than reference
    /// tokens give a rate above 1. An empty reference gives 0 when nothing was inserted, and otherwise no
    /// rate at all; its errors still count once pooled with other texts.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        match (self.ref_tokens, self.errors()) {
            (0, 0) => Some(0.0),
            (0, _) => None,
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            (tokens, errors) => Some(errors as f64 / tokens as f64),
        }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ref_tokens: self.ref_tokens + other.ref_tokens,
            sub: self.sub + other.sub,
            del: self.del + other.del,
            ins: self.ins + other.ins,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

impl<'a> Sum<&'a Self> for Counts {
    fn sum<I: Iterator<Item = &'a Self>>(counts: I) -> Self {
        counts.copied().sum()
    }
}

/// The record keeps 32 bits a figure, enough for any one call; a larger count is held at the maximum.
#[cfg(feature = "record")]
impl From<Counts> for WordCounts {
    fn from(counts: Counts) -> Self {
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            ref_tokens: narrow(counts.ref_tokens),
            sub: narrow(counts.sub),
            del: narrow(counts.del),
            ins: narrow(counts.ins),
        }
    }
}

#[cfg(feature = "record")]
impl From<WordCounts> for Counts {
    fn from(counts: WordCounts) -> Self {
        Self {
            ref_tokens: counts.ref_tokens.into(),
            sub: counts.sub.into(),
            del: counts.del.into(),
            ins: counts.ins.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_unknown_only_where_words_meet_an_empty_reference() {
        assert_eq!(Counts::default().rate(), Some(0.0));
        assert_eq!(Counts { ins: 2, ..Counts::default() }.rate(), None);
        assert_eq!(Counts { ref_tokens: 2, ins: 5, ..Counts::default() }.rate(), Some(2.5));
    }

    #[test]
    fn errors_of_an_empty_reference_stay_in_the_pool() {
        let silent = Counts { ins: 3, ..Counts::default() };
        let spoken = Counts { ref_tokens: 10, sub: 1, ..Counts::default() };
        assert_eq!([silent, spoken].iter().sum::<Counts>().rate(), Some(0.4));
    }

    #[test]
    #[cfg(feature = "record")]
    fn counts_survive_the_record() {
        let counts = Counts { ref_tokens: 7, sub: 1, del: 2, ins: 3 };
        assert_eq!(Counts::from(WordCounts::from(counts)), counts);
        assert_eq!(WordCounts::from(Counts { ref_tokens: 1 << 40, ..counts }).ref_tokens, u32::MAX);
    }
}
