//! Text that is revised while it grows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::Texts;

/// What the text of one message stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextModel {
    /// The whole call so far: each message replaces all text before it.
    #[default]
    Cumulative,
    /// Only what is new: each message continues the text before it.
    Append,
    /// One segment of the call: each message replaces what was said of the same segment. Segments are told
    /// apart by their start; where a server gives none, a final closes the segment and the next message
    /// opens another.
    Segment,
}

/// What a message did to the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Characters the message carried, blanks around them left out.
    pub chars: u32,
    /// Characters shown before that it took back.
    pub revised: u32,
    /// Whether it changed text that had been final.
    pub broke_final: bool,
}

#[derive(Debug, Clone, Default)]
struct Segment {
    /// The last version.
    text: String,
    /// How many bytes of it are final: none, all, or (for text that only grows) a prefix.
    final_bytes: usize,
}

/// Collects the messages of one call: segments keyed by start, the last version wins.
///
/// ```
/// use tapedeck_protocol::{TextModel, Transcript};
///
/// let mut t = Transcript::new(TextModel::Segment);
/// t.apply(Some(0), "four hundred", false);
/// let change = t.apply(Some(0), "four forty", true);
/// assert_eq!(change.revised, 7); // "hundred"
/// t.apply(Some(2_000), "thanks", false);
/// assert_eq!(t.texts().finals, "four forty");
/// assert_eq!(t.texts().finals_and_tail, "four forty thanks");
/// assert!(t.tail_open());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    model: TextModel,
    segments: BTreeMap<i64, Segment>,
    /// Key of the segment that a message without a start belongs to.
    current: i64,
    /// Cumulative only: the whole text as it was when last made final.
    last_final: Option<String>,
}

impl Transcript {
    /// An empty text.
    #[must_use]
    pub fn new(model: TextModel) -> Self {
        Self { model, ..Self::default() }
    }

    /// Takes in one message: where its segment starts (any unit, as long as it is the same one), its text,
    /// and whether the server calls it final.
    pub fn apply(&mut self, start: Option<i64>, text: &str, is_final: bool) -> Change {
        match self.model {
            TextModel::Cumulative => self.cumulative(text.trim(), is_final),
            TextModel::Append => self.append(text, is_final),
            TextModel::Segment => self.segment(start, text.trim(), is_final),
        }
    }

    fn cumulative(&mut self, text: &str, is_final: bool) -> Change {
        let chars = count(text);
        let whole = self.segments.entry(0).or_default();
        // An empty message says nothing; only an empty final can take everything back.
        if text.is_empty() && !is_final {
            return Change::default();
        }
        let revised = taken_back(&whole.text, text);
        let broke_final = self.last_final.as_deref().is_some_and(|old| !text.starts_with(old));
        if whole.text != text {
            whole.text.clear();
            whole.text.push_str(text);
        }
        if is_final {
            self.last_final = Some(text.to_owned());
        }
        Change { chars, revised, broke_final }
    }

    fn append(&mut self, text: &str, is_final: bool) -> Change {
        let all = self.segments.entry(0).or_default();
        // Blanks inside the running text are the server's; only those before the first word are dropped.
        let new = if all.text.is_empty() { text.trim_start() } else { text };
        all.text.push_str(new);
        if is_final {
            all.final_bytes = all.text.len();
        }
        Change { chars: count(text.trim()), revised: 0, broke_final: false }
    }

    fn segment(&mut self, start: Option<i64>, text: &str, is_final: bool) -> Change {
        let key = start.unwrap_or(self.current);
        if text.is_empty() && !is_final {
            return Change::default();
        }
        let segment = self.segments.entry(key).or_default();
        let was_final = segment.final_bytes > 0;
        let revised = taken_back(&segment.text, text);
        let broke_final = was_final && segment.text != text;
        if segment.text != text {
            segment.text.clear();
            segment.text.push_str(text);
        }
        // The last version wins, its finality included: a final that is opened again is no longer final.
        segment.final_bytes = if is_final { segment.text.len() } else { 0 };
        if is_final && start.is_none() {
            self.current = self.current.saturating_add(1);
        }
        Change { chars: count(text), revised, broke_final }
    }

    /// The words so far, segments joined by a blank.
    #[must_use]
    pub fn texts(&self) -> Texts {
        let mut texts = Texts::default();
        for segment in self.segments.values() {
            join(&mut texts.finals_and_tail, segment.text.trim());
            let finals = match (self.model, &self.last_final) {
                (TextModel::Cumulative, Some(text)) => text.as_str(),
                (TextModel::Cumulative, None) => "",
                _ => segment.text.get(..segment.final_bytes).unwrap_or_default(),
            };
            join(&mut texts.finals, finals.trim());
        }
        texts
    }

    /// Whether text was shown that the server never made final.
    #[must_use]
    pub fn tail_open(&self) -> bool {
        match self.model {
            TextModel::Cumulative => self
                .segments
                .values()
                .any(|s| !s.text.is_empty() && self.last_final.as_deref() != Some(s.text.as_str())),
            _ => self
                .segments
                .values()
                .any(|s| !s.text.get(s.final_bytes..).unwrap_or_default().trim().is_empty()),
        }
    }
}

/// Appends with a blank between.
pub(crate) fn join(all: &mut String, part: &str) {
    if part.is_empty() {
        return;
    }
    if !all.is_empty() {
        all.push(' ');
    }
    all.push_str(part);
}

/// Characters.
pub(crate) fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Characters of `old` that `new` does not begin with.
pub(crate) fn taken_back(old: &str, new: &str) -> u32 {
    if new.starts_with(old) {
        return 0; // the usual case, and the fast one
    }
    let common: usize =
        old.chars().zip(new.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    count(old.get(common..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(t: &Transcript) -> (String, String) {
        let Texts { finals, finals_and_tail } = t.texts();
        (finals, finals_and_tail)
    }

    #[test]
    fn cumulative_text_replaces_itself() {
        let mut t = Transcript::new(TextModel::Cumulative);
        assert_eq!(t.apply(None, "hel", false), Change { chars: 3, revised: 0, broke_final: false });
        assert_eq!(t.apply(None, "hello wor", false).revised, 0);
        assert_eq!(t.apply(None, "hello there", false).revised, 3);
        assert_eq!(t.apply(None, "  ", false), Change::default());
        assert_eq!(texts(&t), (String::new(), "hello there".into()));
        assert!(t.tail_open());
        t.apply(None, " hello there. ", true);
        assert_eq!(texts(&t), ("hello there.".into(), "hello there.".into()));
        assert!(!t.tail_open());
        assert!(!t.apply(None, "hello there. And", false).broke_final);
        assert!(t.tail_open());
        assert_eq!(texts(&t), ("hello there.".into(), "hello there. And".into()));
        assert!(t.apply(None, "Hello", true).broke_final);
    }

    #[test]
    fn appended_text_grows() {
        let mut t = Transcript::new(TextModel::Append);
        t.apply(None, " how", false);
        t.apply(None, " are", true);
        t.apply(None, " you", false);
        assert_eq!(texts(&t), ("how are".into(), "how are you".into()));
        assert!(t.tail_open());
        t.apply(None, "", true);
        assert_eq!(texts(&t), ("how are you".into(), "how are you".into()));
        assert!(!t.tail_open());
    }

    #[test]
    fn segments_are_keyed_by_start_and_the_last_version_wins() {
        let mut t = Transcript::new(TextModel::Segment);
        t.apply(Some(0), " four hundred", false);
        t.apply(Some(0), " four hundred forty four", true);
        t.apply(Some(2_000), " thanks", false);
        let again = t.apply(Some(0), " four hundred forty four", true);
        assert_eq!((again.revised, again.broke_final), (0, false));
        t.apply(Some(2_000), " thanks", true);
        assert_eq!(texts(&t).0, "four hundred forty four thanks");
        assert!(!t.tail_open());
        assert!(t.apply(Some(0), "for hundred", true).broke_final);
    }

    #[test]
    fn without_a_start_a_final_closes_the_segment() {
        let mut t = Transcript::new(TextModel::Segment);
        t.apply(None, "one", false);
        t.apply(None, "one two", true);
        t.apply(None, "three", false);
        assert_eq!(texts(&t), ("one two".into(), "one two three".into()));
        assert!(t.tail_open());
    }

    #[test]
    fn revisions_are_counted_in_characters() {
        let mut t = Transcript::new(TextModel::Cumulative);
        t.apply(None, "你好吗", false);
        assert_eq!(t.apply(None, "你好", false), Change { chars: 2, revised: 1, broke_final: false });
        assert_eq!(t.apply(None, "你们", false).revised, 1);
    }

    proptest! {
        #[test]
        fn any_sequence_keeps_its_promises(
            model in prop_oneof![Just(TextModel::Cumulative), Just(TextModel::Append), Just(TextModel::Segment)],
            messages in prop::collection::vec((prop::option::of(-3_i64..3), "\\PC{0,12}", any::<bool>()), 0..40),
        ) {
            let mut t = Transcript::new(model);
            let (mut shown, mut revised) = (0_u64, 0_u64);
            for (start, text, is_final) in messages {
                let change = t.apply(start, &text, is_final);
                shown += u64::from(change.chars);
                revised += u64::from(change.revised);
                // What is taken back was shown before.
                prop_assert!(revised <= shown);
            }
            let texts = t.texts();
            if !t.tail_open() && model != TextModel::Cumulative {
                prop_assert_eq!(texts.finals, texts.finals_and_tail);
            }
        }
    }
}
