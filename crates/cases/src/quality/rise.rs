//! Rises of an error rate between two loads, paired call by call, and what they come to.

use std::collections::BTreeMap;

use tapedeck_answers::{ErrorRate, Rise};
use tapedeck_record::{CallRecord, OutcomeClass, WordCounts};
use tapedeck_wer::{BootstrapSettings, Counts, paired_difference};

use crate::single_stream::pooled_rate;

/// Error counts of the labelled calls of a step, by their index on the tape.
///
/// ```
/// use tapedeck_answers::Rise;
/// use tapedeck_cases::quality::Heard;
/// use tapedeck_record::WordCounts;
/// use tapedeck_wer::BootstrapSettings;
///
/// let errors = |sub| WordCounts { ref_tokens: 100, sub, ..WordCounts::default() };
/// let (mut alone, mut loaded) = (Heard::default(), Heard::default());
/// for call in 0..8 {
///     alone.count(call, errors(call % 3));
///     loaded.count(call, errors(call % 3 + 2));
/// }
/// let rise: Rise = Heard::rise(&alone, &loaded, BootstrapSettings::default()).unwrap();
/// assert!((rise.points - 2.0).abs() < 1e-9);
/// ```
#[derive(Debug, Default)]
pub struct Heard {
    calls: BTreeMap<u32, (Counts, u64)>,
    /// Repetitions that failed, by call.
    lost: BTreeMap<u32, u64>,
}

impl Heard {
    /// What `counts` says of each of these calls.
    pub(super) fn of(calls: &[CallRecord], counts: fn(&CallRecord) -> Option<WordCounts>) -> Self {
        let mut all = Self::default();
        for call in calls {
            match (call.class, counts(call)) {
                (OutcomeClass::Ok | OutcomeClass::Quality, Some(counts)) => all.count(call.call, counts),
                (OutcomeClass::Error, _) => *all.lost.entry(call.call).or_default() += 1,
                _ => {}
            }
        }
        all
    }

    /// Adds one repetition of a call that was heard.
    pub fn count(&mut self, call: u32, counts: WordCounts) {
        let (sum, n) = self.calls.entry(call).or_default();
        *sum += Counts::from(counts);
        *n += 1;
    }

    /// The pooled rate of all repetitions that were heard.
    pub(super) fn rate(&self) -> Option<ErrorRate> {
        let pooled: Counts = self.calls.values().map(|(counts, _)| *counts).sum();
        let calls = self.calls.values().map(|(_, n)| n).sum();
        pooled_rate(pooled, calls)
    }

    /// Repetitions that failed, of all calls.
    pub(super) fn lost_calls(&self) -> u64 {
        self.lost.values().sum()
    }

    /// The rise of the pooled rate between two loads, paired by call: over calls heard at both, each with the same
    /// weight on both sides. Nothing where no call was heard at both.
    #[must_use]
    pub fn rise(alone: &Self, loaded: &Self, how: BootstrapSettings) -> Option<Rise> {
        Self::paired(alone, loaded, false, how)
    }

    /// The same where every repetition that failed under load counts as all of its tokens deleted.
    pub(super) fn rise_with_lost(alone: &Self, loaded: &Self, how: BootstrapSettings) -> Option<Rise> {
        Self::paired(alone, loaded, true, how)
    }

    fn paired(alone: &Self, loaded: &Self, lost: bool, how: BootstrapSettings) -> Option<Rise> {
        let mut sides = (Vec::new(), Vec::new());
        for (call, &(before, n_before)) in &alone.calls {
            let missing = if lost { loaded.lost.get(call).copied().unwrap_or(0) } else { 0 };
            let (heard, n_heard) = loaded.calls.get(call).copied().unwrap_or_default();
            let n_after = n_heard + missing;
            if n_after == 0 {
                continue;
            }
            // A repetition of a call has as many tokens on either side: both become n_before x n_after repetitions.
            let deleted = Counts {
                ref_tokens: before.ref_tokens * missing,
                del: before.ref_tokens * missing,
                ..Counts::default()
            };
            sides.0.push(times(before, n_after));
            sides.1.push(times(heard, n_before) + deleted);
        }
        let found = paired_difference(&sides.0, &sides.1, how).ok()?;
        Some(Rise {
            points: found.value * 100.0,
            low: found.low * 100.0,
            high: found.high * 100.0,
            calls: sides.0.len() as u64,
        })
    }
}

/// So many repetitions of the same counts.
fn times(counts: Counts, n: u64) -> Counts {
    Counts {
        ref_tokens: counts.ref_tokens * n,
        sub: counts.sub * n,
        del: counts.del * n,
        ins: counts.ins * n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single_stream::tests::call as made_up;

    /// Calls with so many errors of 100 tokens each.
    fn heard(errors: &[(u32, u32)]) -> Heard {
        let mut all = Heard::default();
        for &(call, sub) in errors {
            all.count(call, WordCounts { ref_tokens: 100, sub, ..WordCounts::default() });
        }
        all
    }

    const HOW: BootstrapSettings = BootstrapSettings { draws: 500, seed: 1, level: 0.95 };

    #[test]
    fn a_rise_is_that_of_the_same_calls() {
        // Call 2 was never heard under load, and call 3 never alone: neither takes part.
        let alone = heard(&[(0, 2), (1, 4), (2, 50)]);
        let loaded = heard(&[(0, 4), (1, 6), (3, 90)]);
        let found = Heard::rise(&alone, &loaded, HOW).unwrap();
        assert!((found.points - 2.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.calls, 2);
        assert!((found.low - 2.0).abs() < 1e-9 && (found.high - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_call_heard_more_often_weighs_no_more() {
        let alone = heard(&[(0, 0), (1, 10)]);
        // The easy call three times, the hard one once: nothing got worse.
        let loaded = heard(&[(0, 0), (0, 0), (0, 0), (1, 10)]);
        let found = Heard::rise(&alone, &loaded, HOW).unwrap();
        assert!(found.points.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_lost_call_is_all_deletions_where_that_is_asked() {
        let alone = heard(&[(0, 0), (1, 0)]);
        let mut loaded = heard(&[(0, 0), (1, 0)]);
        loaded.lost.insert(1, 1);
        assert!(Heard::rise(&alone, &loaded, HOW).unwrap().points.abs() < 1e-9);
        // One of three repetitions is gone: call 1 is heard once and lost once.
        let with = Heard::rise_with_lost(&alone, &loaded, HOW).unwrap();
        assert!((with.points - 100.0 / 3.0).abs() < 1e-9, "{with:?}");
        assert_eq!(loaded.lost_calls(), 1);
    }

    #[test]
    fn what_was_not_heard_has_no_rate_and_what_failed_is_lost() {
        let words = |sub| Some(WordCounts { ref_tokens: 100, sub, ..WordCounts::default() });
        let call = |class, words| CallRecord { call: 7, class, words, ..made_up() };
        let calls = [
            call(OutcomeClass::Ok, words(2)),
            call(OutcomeClass::Quality, words(4)),
            call(OutcomeClass::Error, words(90)),
            call(OutcomeClass::Excluded, words(90)),
            call(OutcomeClass::Ok, None),
        ];
        let heard = Heard::of(&calls, |c| c.words);
        let rate = heard.rate().unwrap();
        assert_eq!((rate.errors, rate.ref_tokens, rate.calls), (6, 200, 2));
        assert_eq!(heard.lost_calls(), 1);
        // Another figure of the same calls, that none of them has.
        assert!(Heard::of(&calls, |c| c.chars).rate().is_none());
    }

    #[test]
    fn no_call_heard_at_both_loads_is_no_rise() {
        let mut loaded = heard(&[(1, 4)]);
        assert!(Heard::rise(&heard(&[(0, 4)]), &loaded, HOW).is_none());
        // Lost under load, it is all deletions: 100 errors instead of 4.
        loaded.lost.insert(0, 1);
        let with = Heard::rise_with_lost(&heard(&[(0, 4)]), &loaded, HOW).unwrap();
        assert!((with.points - 96.0).abs() < 1e-9 && with.calls == 1, "{with:?}");
    }
}
