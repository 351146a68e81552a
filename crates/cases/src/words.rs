//! Recognised texts against references: counts only, the texts themselves go no further.

use tapedeck_record::Texts;
use tapedeck_score::Words;
use tapedeck_tape::TapeCall;
use tapedeck_wer::measure;

/// Counts the errors of one call; everything is empty where the tape has no reference for it.
#[must_use]
pub fn count(call: &TapeCall, texts: &Texts) -> Words {
    let Some(reference) = &call.reference else { return Words::default() };
    let whole = measure(&reference.text, &texts.finals_and_tail);
    let finals = if texts.finals == texts.finals_and_tail {
        whole.words
    } else {
        measure(&reference.text, &texts.finals).words
    };
    Words {
        finals: Some(finals.into()),
        finals_and_tail: Some(whole.words.into()),
        chars: Some(whole.chars.into()),
    }
}
