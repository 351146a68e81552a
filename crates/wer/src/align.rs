//! The alignment with the fewest errors, and how ties are decided.
//!
//! Many alignments can share the fewest errors and still divide them differently: `a b` heard as `b c` is
//! two substitutions, or a deletion and an insertion. So that counts never depend on chance, one alignment
//! is chosen by rule: equal tokens at the beginning and at the end are matched first; what is left is walked
//! from its end backwards, and each step takes a *deletion* where one belongs to a cheapest alignment, else a
//! *substitution* where one does, else an *insertion* where one does, else the *match*.
//! This is the choice of rapidfuzz, which jiwer counts with, so the figures agree with jiwer's one by one.
//!
//! The table of distances is never filled cell by cell. Its differences along the reference are +1, 0 or -1
//! and fit two bits, so 64 rows advance in a dozen machine instructions (Myers 1999, in the form of Hyyrö
//! 2003), and only rows near the diagonal are computed, as far as the errors reach (Ukkonen 1985). Long texts
//! keep only some columns and compute the others again on the way back, so memory grows with `n * sqrt(m)`,
//! not with `n * m`. All this changes no count; tests compare it with strsim's plain table and with jiwer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// Room in which all columns are kept, in machine words: 64 MiB. Longer texts are computed twice.
const KEPT_WORDS: usize = 1 << 23;

/// Aligns two texts given as token numbers and tells each step of the way, last step first. Matches at the
/// beginning and the end, which cost nothing to find, are told as well.
pub fn align(reference: &[u32], hypothesis: &[u32], mut tell: impl FnMut(Step)) {
    // Most transcripts are within this many errors; if not, the bound is doubled.
    let (r, h) = (reference.len(), hypothesis.len());
    let bound = 128 + r.abs_diff(h) + r.max(h) / 16;
    align_within(reference, hypothesis, KEPT_WORDS, bound, &mut tell);
}

/// As [`align`], for texts that are known to be within `bound` errors of each other; a wrong bound costs time
/// and changes nothing else.
pub(crate) fn align_near(reference: &[u32], hypothesis: &[u32], bound: usize, mut tell: impl FnMut(Step)) {
    align_within(reference, hypothesis, KEPT_WORDS, bound, &mut tell);
}

fn align_within(
    reference: &[u32],
    hypothesis: &[u32],
    kept_words: usize,
    bound: usize,
    tell: &mut impl FnMut(Step),
) {
    let head = reference.iter().zip(hypothesis).take_while(|(r, h)| r == h).count();
    let (inner_r, inner_h) = (&reference[head..], &hypothesis[head..]);
    let tail = inner_r.iter().rev().zip(inner_h.iter().rev()).take_while(|(r, h)| r == h).count();
    let (inner_r, inner_h) = (&inner_r[..inner_r.len() - tail], &inner_h[..inner_h.len() - tail]);

    for k in 1..=tail {
        tell(Step::Match { reference: reference.len() - k, hypothesis: hypothesis.len() - k });
    }
    walk_back(inner_r, inner_h, kept_words, bound, &mut |step| {
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

fn walk_back(
    reference: &[u32],
    hypothesis: &[u32],
    kept_words: usize,
    bound: usize,
    tell: &mut impl FnMut(Step),
) {
    let (mut i, mut j) = (reference.len(), hypothesis.len());
    if i > 0 && j > 0 {
        let mut table = Table::new(reference, hypothesis, kept_words, bound);
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
    of: HashMap<u32, Vec<(usize, u64)>, BuildHasherDefault<Scatter>>,
}

/// Scatters token numbers over a hash table. They are our own numbers, so no text can make them collide on
/// purpose, and the standard hasher's protection against that would cost more than the alignment.
#[derive(Default)]
struct Scatter(u64);

impl Hasher for Scatter {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

impl Positions {
    fn new(reference: &[u32]) -> Self {
        let mut of: HashMap<_, Vec<(usize, u64)>, _> = HashMap::default();
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
/// rises by one from one row to the next, `down` where it falls. Only a band of rows around the diagonal is
/// computed: outside it lie alignments with more errors than are needed.
struct Table<'a> {
    hypothesis: &'a [u32],
    positions: Positions,
    band: Band,
    /// Columns in a block.
    block: usize,
    /// Columns `0, block, 2 * block, ...`, each the `up` words of its band, then the `down` words.
    marks: Vec<u64>,
    /// First column of the block at hand.
    from: usize,
    /// Its columns, in the same form.
    at_hand: Vec<u64>,
    /// Scratch: where the token at hand stands in the reference.
    equal: Vec<u64>,
}

/// Which machine words of a column are computed, given a bound on the errors.
#[derive(Debug, Clone, Copy)]
struct Band {
    rows: usize,
    /// Machine words in a whole column.
    words: usize,
    /// Most insertions and deletions that an alignment within the bound can have.
    ins: usize,
    del: usize,
    /// Machine words that are kept of each column.
    width: usize,
}

impl Band {
    fn new(rows: usize, columns: usize, bound: usize) -> Self {
        // Deletions less insertions are `rows - columns`, and together they are within the bound.
        let ins = (bound + columns).saturating_sub(rows) / 2;
        let del = (bound + rows).saturating_sub(columns) / 2;
        let words = rows.div_ceil(64);
        Self { rows, words, ins, del, width: ((ins + del) / 64 + 2).min(words) }
    }

    const fn first(&self, j: usize) -> usize {
        let top = j.saturating_sub(self.ins + 1) / 64;
        let last_first = self.words - self.width;
        if top < last_first { top } else { last_first }
    }

    const fn last(&self, j: usize) -> usize {
        let bottom = j + self.del;
        let row = if bottom > self.rows { self.rows } else { bottom };
        row.saturating_sub(1) / 64
    }

    /// Rows above and inside the last word of column `j`.
    const fn bottom(&self, j: usize) -> usize {
        let rows = (self.last(j) + 1) * 64;
        if rows > self.rows { self.rows } else { rows }
    }
}

/// One whole column, of which only the band is up to date: `up` and `down`.
struct Column {
    up: Vec<u64>,
    down: Vec<u64>,
    /// The distance in the last row of the band.
    distance: usize,
}

impl Column {
    /// Column 0: deletions only.
    fn start(band: &Band) -> Self {
        Self { up: vec![u64::MAX; band.words], down: vec![0; band.words], distance: band.bottom(0) }
    }
}

impl<'a> Table<'a> {
    fn new(reference: &[u32], hypothesis: &'a [u32], kept_words: usize, first_bound: usize) -> Self {
        let (rows, columns) = (reference.len(), hypothesis.len());
        let mut table = Self {
            hypothesis,
            positions: Positions::new(reference),
            band: Band::new(rows, columns, 0),
            block: 1,
            marks: Vec::new(),
            from: 0,
            at_hand: Vec::new(),
            equal: vec![0; rows.div_ceil(64)],
        };
        // Doubling the bound until it holds costs at most twice the last try.
        let mut bound = first_bound.max(rows.abs_diff(columns));
        loop {
            // No two texts are further apart than the longer one is long.
            bound = bound.min(rows.max(columns));
            if table.attempt(columns, bound, kept_words) <= bound {
                return table;
            }
            bound = (2 * bound).max(64);
        }
    }

    /// Computes the columns for a bound and gives the distance found: right if it is within the bound, else
    /// too large.
    fn attempt(&mut self, columns: usize, bound: usize, kept_words: usize) -> usize {
        self.band = Band::new(self.band.rows, columns, bound);
        let all = 2 * self.band.width * (columns + 1);
        let whole = all <= kept_words;
        self.block = if whole { columns } else { columns.isqrt().max(1) };
        self.marks.clear();
        self.at_hand.clear();
        self.from = 0;
        let mut column = Column::start(&self.band);
        self.band.keep(0, &column, &mut self.marks);
        if whole {
            self.band.keep(0, &column, &mut self.at_hand);
        }
        for j in 1..=columns {
            self.advance(j, &mut column);
            if whole {
                self.band.keep(j, &column, &mut self.at_hand);
            } else if j % self.block == 0 {
                self.band.keep(j, &column, &mut self.marks);
            }
        }
        if !whole && column.distance <= bound {
            self.fill((columns - 1) / self.block * self.block);
        }
        column.distance
    }

    /// Turns column `j - 1` into column `j`.
    fn advance(&mut self, j: usize, column: &mut Column) {
        let (first, last) = (self.band.first(j), self.band.last(j));
        let places = self.positions.of.get(&self.hypothesis[j - 1]).map_or(&[][..], Vec::as_slice);
        let begin = places.partition_point(|&(word, _)| word < first);
        let places = &places[begin..];
        let places = &places[..places.partition_point(|&(word, _)| word <= last)];
        for &(word, bits) in places {
            self.equal[word] = bits;
        }
        // Rows that enter the band are reached by deletions at worst.
        column.distance += self.band.bottom(j) - self.band.bottom(j - 1);
        // The top row counts insertions, so its distance rises by one with every column; so it does, at
        // worst, above a band that has left the top.
        let (mut right_up, mut right_down) = (1_u64, 0_u64);
        let (mut rise, mut fall) = (0, 0);
        let band = first..=last;
        for ((up, down), &equal) in
            column.up[band.clone()].iter_mut().zip(&mut column.down[band.clone()]).zip(&self.equal[band])
        {
            let x = equal | right_down;
            let diagonal = (((x & *up).wrapping_add(*up)) ^ *up) | x | *down;
            rise = *down | !(diagonal | *up);
            fall = diagonal & *up;
            let shifted_rise = (rise << 1) | right_up;
            let shifted_fall = (fall << 1) | right_down;
            (right_up, right_down) = (rise >> 63, fall >> 63);
            *up = shifted_fall | !(diagonal | shifted_rise);
            *down = shifted_rise & diagonal;
        }
        let bottom = (self.band.bottom(j) - 1) % 64;
        column.distance += usize::from(rise >> bottom & 1 == 1);
        column.distance -= usize::from(fall >> bottom & 1 == 1);
        for &(word, _) in places {
            self.equal[word] = 0;
        }
    }

    /// Computes the block of columns that begins at a mark.
    fn fill(&mut self, from: usize) {
        let mark = from / self.block * 2 * self.band.width;
        let mut column = Column::start(&self.band);
        self.band.restore(from, &self.marks[mark..mark + 2 * self.band.width], &mut column);
        // Only differences are read on the way back; the distance is kept from falling below zero.
        column.distance = self.band.rows + self.hypothesis.len();
        let to = (from + self.block).min(self.hypothesis.len());
        let mut at_hand = std::mem::take(&mut self.at_hand);
        at_hand.clear();
        self.band.keep(from, &column, &mut at_hand);
        for j in from + 1..=to {
            self.advance(j, &mut column);
            self.band.keep(j, &column, &mut at_hand);
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

    /// Whether the distance at row `i` is one more than at row `i - 1`.
    fn rises(&self, i: usize, j: usize) -> bool {
        self.bit(i, j, 0)
    }

    /// Whether the distance at row `i` is one less than at row `i - 1`.
    fn falls(&self, i: usize, j: usize) -> bool {
        self.bit(i, j, self.band.width)
    }

    fn bit(&self, i: usize, j: usize, offset: usize) -> bool {
        let (row, first) = (i - 1, self.band.first(j));
        // The way back never leaves the band by more than the row or column beside it; there nothing is
        // known, and nothing is cheapest.
        let word = match (row / 64).checked_sub(first) {
            Some(word) if word < self.band.width => word,
            _ => return false,
        };
        let at = (j - self.from) * 2 * self.band.width + offset + word;
        self.at_hand[at] >> (row % 64) & 1 == 1
    }
}

impl Band {
    /// Appends the band of a column.
    fn keep(&self, j: usize, column: &Column, to: &mut Vec<u64>) {
        let band = self.first(j)..self.first(j) + self.width;
        to.extend_from_slice(&column.up[band.clone()]);
        to.extend_from_slice(&column.down[band]);
    }

    /// Puts a kept band back into a fresh column.
    fn restore(&self, j: usize, kept: &[u64], column: &mut Column) {
        let band = self.first(j)..self.first(j) + self.width;
        let (up, down) = kept.split_at(self.width);
        column.up[band.clone()].copy_from_slice(up);
        column.down[band].copy_from_slice(down);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(reference: &[u32], hypothesis: &[u32], kept_words: usize, bound: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        align_within(reference, hypothesis, kept_words, bound, &mut |step| steps.push(step));
        steps.reverse();
        steps
    }

    #[test]
    fn steps_are_told_with_their_places() {
        let found = steps(&[1, 2, 3, 4, 6], &[1, 9, 4, 6, 5], KEPT_WORDS, 9);
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
        let kinds = steps(&[1, 2], &[2, 3], KEPT_WORDS, 9);
        assert!(kinds.iter().all(|s| matches!(s, Step::Sub { .. })), "{kinds:?}");
    }

    /// Two texts that are related more or less, and so are few or many errors apart.
    fn pair() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        let text = || proptest::collection::vec(0_u32..6, 0..400);
        let related = (text(), proptest::collection::vec((0_usize..400, 0_u32..9), 0..60)).prop_map(
            |(text, changes)| {
                let mut other = text.clone();
                for (at, change) in changes {
                    let at = at % (other.len() + 1);
                    match change {
                        0..6 if at < other.len() => other[at] = change,
                        6 if at < other.len() => _ = other.remove(at),
                        7 => other.truncate(other.len().saturating_sub(at / 8)),
                        _ => other.insert(at, change % 6),
                    }
                }
                (text, other)
            },
        );
        prop_oneof![(text(), text()), related]
    }

    proptest::proptest! {
        #[test]
        fn every_alignment_is_whole_cheapest_and_the_same_in_blocks_and_bands((reference, hypothesis) in pair()) {
            let whole = steps(&reference, &hypothesis, KEPT_WORDS, 1_000);
            for (kept_words, bound) in [(0, 1_000), (KEPT_WORDS, 0), (0, 0), (KEPT_WORDS, 20)] {
                proptest::prop_assert_eq!(&whole, &steps(&reference, &hypothesis, kept_words, bound));
            }
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
