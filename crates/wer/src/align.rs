//! The alignment with the fewest errors, and how ties are decided.
//!
//! Many alignments can share the fewest errors and still divide them differently: `a b` heard as `b c` is
//! two substitutions, or a deletion and an insertion. So that counts never depend on chance, one alignment
//! is chosen by rule: equal tokens at the beginning and at the end are matched first; what is left is walked
//! from its end backwards, and each step takes a *deletion* where one belongs to a cheapest alignment, else
//! a *match or substitution* where the insertion would not lead along a cheaper column, else an *insertion*.
//! This is the choice of rapidfuzz, which jiwer counts with, so the figures agree with jiwer's one by one.
//!
//! The table of distances is never filled cell by cell. Its differences along the reference are +1, 0 or -1
//! and fit two bits, so 64 rows advance in a dozen machine instructions (Myers 1999, in the form of Hyyrö
//! 2003). Long texts keep only some columns and compute the others again on the way back, so memory grows
//! with `n * sqrt(m)`, not with `n * m`.

use std::collections::HashMap;

/// One step of an alignment; indices count from 0 in the slices that were aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reference and hypothesis have the same token.
    Match {
        /// Index in the reference.
        reference: usize,
        /// Index in the hypothesis.
        hypothesis: usize,
    },
    /// One token was replaced by another.
    Sub {
        /// Index in the reference.
        reference: usize,
        /// Index in the hypothesis.
        hypothesis: usize,
    },
    /// A token of the reference is missing.
    Del {
        /// Index in the reference.
        reference: usize,
    },
    /// A token was added.
    Ins {
        /// Index in the hypothesis.
        hypothesis: usize,
    },
}

/// Columns of the table that are kept whole before the rest is computed twice: 32 MiB of bits.
const KEPT_WORDS: usize = 1 << 21;

/// Aligns two texts given as token numbers and tells each step of the way, last step first. Matches at the
/// beginning and the end, which cost nothing to find, are told as well.
pub fn align(reference: &[u32], hypothesis: &[u32], mut tell: impl FnMut(Step)) {
    align_keeping(reference, hypothesis, KEPT_WORDS, &mut tell);
}

fn align_keeping(reference: &[u32], hypothesis: &[u32], kept_words: usize, tell: &mut impl FnMut(Step)) {
    let head = reference.iter().zip(hypothesis).take_while(|(r, h)| r == h).count();
    let (inner_r, inner_h) = (&reference[head..], &hypothesis[head..]);
    let tail = inner_r.iter().rev().zip(inner_h.iter().rev()).take_while(|(r, h)| r == h).count();
    let (inner_r, inner_h) = (&inner_r[..inner_r.len() - tail], &inner_h[..inner_h.len() - tail]);

    for k in 1..=tail {
        tell(Step::Match { reference: reference.len() - k, hypothesis: hypothesis.len() - k });
    }
    walk_back(inner_r, inner_h, kept_words, &mut |step| {
        tell(match step {
            Step::Match { reference, hypothesis } => {
                Step::Match { reference: reference + head, hypothesis: hypothesis + head }
            }
            Step::Sub { reference, hypothesis } => {
                Step::Sub { reference: reference + head, hypothesis: hypothesis + head }
            }
            Step::Del { reference } => Step::Del { reference: reference + head },
            Step::Ins { hypothesis } => Step::Ins { hypothesis: hypothesis + head },
        });
    });
    for k in (0..head).rev() {
        tell(Step::Match { reference: k, hypothesis: k });
    }
}

fn walk_back(reference: &[u32], hypothesis: &[u32], kept_words: usize, tell: &mut impl FnMut(Step)) {
    let (mut i, mut j) = (reference.len(), hypothesis.len());
    if i > 0 && j > 0 {
        let mut table = Table::new(reference, hypothesis, kept_words);
        while i > 0 && j > 0 {
            table.reach(j);
            if table.rises(i, j) {
                i -= 1;
                tell(Step::Del { reference: i });
            } else if table.falls(i, j - 1) {
                j -= 1;
                tell(Step::Ins { hypothesis: j });
            } else {
                i -= 1;
                j -= 1;
                tell(if reference[i] == hypothesis[j] {
                    Step::Match { reference: i, hypothesis: j }
                } else {
                    Step::Sub { reference: i, hypothesis: j }
                });
            }
        }
    }
    for k in (0..i).rev() {
        tell(Step::Del { reference: k });
    }
    for k in (0..j).rev() {
        tell(Step::Ins { hypothesis: k });
    }
}

/// Where each token stands in the reference, as bits: `(word, bits of that word)`.
struct Positions {
    of: HashMap<u32, Vec<(usize, u64)>>,
}

impl Positions {
    fn new(reference: &[u32]) -> Self {
        let mut of: HashMap<u32, Vec<(usize, u64)>> = HashMap::with_capacity(reference.len());
        for (at, &token) in reference.iter().enumerate() {
            let (word, bit) = (at / 64, 1_u64 << (at % 64));
            let places = of.entry(token).or_default();
            match places.last_mut() {
                Some((last, bits)) if *last == word => *bits |= bit,
                _ => places.push((word, bit)),
            }
        }
        Self { of }
    }
}

/// The differences of the distance table along the reference, column by column: `up` where the distance
/// rises by one from one row to the next, `down` where it falls.
struct Table<'a> {
    hypothesis: &'a [u32],
    positions: Positions,
    /// Machine words in a column.
    words: usize,
    /// Columns in a block.
    block: usize,
    /// Columns `0, block, 2 * block, ...`, each `up` then `down`.
    marks: Vec<u64>,
    /// First column of the block at hand.
    from: usize,
    /// Its columns, each `up` then `down`.
    at_hand: Vec<u64>,
    /// Scratch: where the token at hand stands in the reference.
    equal: Vec<u64>,
}

impl<'a> Table<'a> {
    fn new(reference: &[u32], hypothesis: &'a [u32], kept_words: usize) -> Self {
        let words = reference.len().div_ceil(64);
        let columns = hypothesis.len();
        let all = 2 * words * (columns + 1);
        let block = if all <= kept_words { columns } else { columns.isqrt().max(1) };
        let mut table = Self {
            hypothesis,
            positions: Positions::new(reference),
            words,
            block,
            marks: Vec::with_capacity(2 * words * (columns / block + 1)),
            from: 0,
            at_hand: Vec::with_capacity(2 * words * (block + 1)),
            equal: vec![0; words],
        };
        let mut column = vec![u64::MAX; words];
        column.resize(2 * words, 0);
        table.marks.extend_from_slice(&column);
        if block == columns {
            table.fill(0);
        } else {
            for j in 1..=columns {
                table.advance(j, &mut column);
                if j % block == 0 {
                    table.marks.extend_from_slice(&column);
                }
            }
            table.fill(((columns - 1) / block) * block);
        }
        table
    }

    /// Turns column `j - 1` into column `j`.
    fn advance(&mut self, j: usize, column: &mut [u64]) {
        let places = self.positions.of.get(&self.hypothesis[j - 1]).map_or(&[][..], Vec::as_slice);
        for &(word, bits) in places {
            self.equal[word] = bits;
        }
        let (ups, downs) = column.split_at_mut(self.words);
        // The top row counts insertions, so its distance rises by one with every column.
        let (mut right_up, mut right_down) = (1_u64, 0_u64);
        for ((up, down), &equal) in ups.iter_mut().zip(downs).zip(&self.equal) {
            let x = equal | right_down;
            let diagonal = (((x & *up).wrapping_add(*up)) ^ *up) | x | *down;
            let rise = *down | !(diagonal | *up);
            let fall = diagonal & *up;
            let shifted_rise = (rise << 1) | right_up;
            let shifted_fall = (fall << 1) | right_down;
            (right_up, right_down) = (rise >> 63, fall >> 63);
            *up = shifted_fall | !(diagonal | shifted_rise);
            *down = shifted_rise & diagonal;
        }
        for &(word, _) in places {
            self.equal[word] = 0;
        }
    }

    /// Computes the block of columns that begins at a mark.
    fn fill(&mut self, from: usize) {
        let width = 2 * self.words;
        let mark = from / self.block * width;
        let mut column = self.marks[mark..mark + width].to_vec();
        let to = (from + self.block).min(self.hypothesis.len());
        let mut at_hand = std::mem::take(&mut self.at_hand);
        at_hand.clear();
        at_hand.extend_from_slice(&column);
        for j in from + 1..=to {
            self.advance(j, &mut column);
            at_hand.extend_from_slice(&column);
        }
        self.at_hand = at_hand;
        self.from = from;
    }

    /// Makes columns `j` and `j - 1` readable; `j` is at least 1 and never grows.
    fn reach(&mut self, j: usize) {
        if j <= self.from {
            self.fill((j - 1) / self.block * self.block);
        }
    }

    fn bit(&self, i: usize, j: usize, offset: usize) -> bool {
        let word = (j - self.from) * 2 * self.words + offset + (i - 1) / 64;
        self.at_hand[word] >> ((i - 1) % 64) & 1 == 1
    }

    /// Whether the distance at row `i` is one more than at row `i - 1`.
    fn rises(&self, i: usize, j: usize) -> bool {
        self.bit(i, j, 0)
    }

    /// Whether the distance at row `i` is one less than at row `i - 1`.
    fn falls(&self, i: usize, j: usize) -> bool {
        self.bit(i, j, self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(reference: &[u32], hypothesis: &[u32], kept_words: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        align_keeping(reference, hypothesis, kept_words, &mut |step| steps.push(step));
        steps.reverse();
        steps
    }

    #[test]
    fn steps_are_told_with_their_places() {
        let found = steps(&[1, 2, 3, 4, 6], &[1, 9, 4, 6, 5], KEPT_WORDS);
        assert_eq!(
            found,
            [
                Step::Match { reference: 0, hypothesis: 0 },
                Step::Sub { reference: 1, hypothesis: 1 },
                Step::Del { reference: 2 },
                Step::Match { reference: 3, hypothesis: 2 },
                Step::Match { reference: 4, hypothesis: 3 },
                Step::Ins { hypothesis: 4 },
            ]
        );
    }

    #[test]
    fn two_ways_of_two_errors_are_two_substitutions() {
        let kinds = steps(&[1, 2], &[2, 3], KEPT_WORDS);
        assert!(kinds.iter().all(|s| matches!(s, Step::Sub { .. })), "{kinds:?}");
    }

    proptest::proptest! {
        #[test]
        fn every_alignment_is_whole_cheapest_and_the_same_in_blocks(
            reference in proptest::collection::vec(0_u32..6, 0..200),
            hypothesis in proptest::collection::vec(0_u32..6, 0..200),
        ) {
            let whole = steps(&reference, &hypothesis, KEPT_WORDS);
            proptest::prop_assert_eq!(&whole, &steps(&reference, &hypothesis, 0));
            let (mut i, mut j, mut errors) = (0, 0, 0);
            for step in whole {
                match step {
                    Step::Match { reference: r, hypothesis: h } => {
                        proptest::prop_assert_eq!((r, h), (i, j));
                        proptest::prop_assert_eq!(reference[r], hypothesis[h]);
                        (i, j) = (i + 1, j + 1);
                    }
                    Step::Sub { reference: r, hypothesis: h } => {
                        proptest::prop_assert_eq!((r, h), (i, j));
                        proptest::prop_assert_ne!(reference[r], hypothesis[h]);
                        (i, j, errors) = (i + 1, j + 1, errors + 1);
                    }
                    Step::Del { reference: r } => {
                        proptest::prop_assert_eq!(r, i);
                        (i, errors) = (i + 1, errors + 1);
                    }
                    Step::Ins { hypothesis: h } => {
                        proptest::prop_assert_eq!(h, j);
                        (j, errors) = (j + 1, errors + 1);
                    }
                }
            }
            proptest::prop_assert_eq!((i, j), (reference.len(), hypothesis.len()));
            proptest::prop_assert_eq!(errors, strsim::generic_levenshtein(&reference, &hypothesis));
        }
    }
}
