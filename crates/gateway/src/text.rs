//! The engine's raw text and what callers see of it.
//!
//! Qwen3-ASR begins each of its texts with `language English<asr_text>`, or `language None<asr_text>` where
//! it heard no speech. Callers get the words alone; the marks tell where a segment begins.

/// Ends the mark before a text.
const MARK: &str = "<asr_text>";
/// Begins it.
const LANGUAGE: &str = "language";
/// Longest name of a language that is believed, bytes.
const NAME_BYTES: usize = 40;

/// A text that grows by pieces of raw text.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Words of the segments that are over.
    settled: String,
    /// Raw text since the last mark.
    open: String,
    marks: u32,
}

impl Transcript {
    /// The words of a whole raw text.
    pub(crate) fn strip(raw: &str) -> String {
        let mut transcript = Self::default();
        transcript.push(raw);
        join(&mut transcript.settled, &transcript.open);
        transcript.settled
    }

    /// Adds a piece, cut anywhere.
    pub(crate) fn push(&mut self, piece: &str) {
        self.open.push_str(piece);
        while let Some((before, after)) = self.open.split_once(MARK) {
            let words = before.rfind(LANGUAGE).filter(|at| names_a_language(before.get(*at..)));
            let (words, _) = before.split_at_checked(words.unwrap_or(before.len())).unwrap_or((before, ""));
            join(&mut self.settled, words);
            self.marks += 1;
            self.open = after.to_owned();
        }
    }

    /// The words so far, without a mark that has only begun.
    pub(crate) fn words(&self) -> String {
        let shown = self.open.get(..self.open.len() - self.begun_mark()).unwrap_or(&self.open);
        let mut words = self.settled.clone();
        join(&mut words, shown);
        words
    }

    /// Marks seen, that is, segments begun.
    pub(crate) const fn marks(&self) -> u32 {
        self.marks
    }

    /// Bytes at the end that may be the beginning of a mark.
    fn begun_mark(&self) -> usize {
        if let Some(at) = self.open.rfind(LANGUAGE) {
            let tail = self.open.get(at..).unwrap_or_default();
            let name = (1..MARK.len()).rev().filter_map(|n| MARK.get(..n)).find_map(|m| tail.strip_suffix(m));
            if names_a_language(Some(name.unwrap_or(tail))) {
                return tail.len();
            }
        }
        // A word may end like the beginning of `language`; only a text that has just begun is held back.
        let begins = self.settled.is_empty() && self.marks == 0 && LANGUAGE.starts_with(&self.open);
        if begins { self.open.len() } else { 0 }
    }
}

/// Whether this is `language`, alone or with one name.
fn names_a_language(text: Option<&str>) -> bool {
    let Some(name) = text.and_then(|text| text.strip_prefix(LANGUAGE)) else { return false };
    let name = name.strip_prefix(' ').unwrap_or(name);
    name.len() <= NAME_BYTES && name.chars().all(|c| c.is_alphabetic() || c == '-' || c == ',')
}

/// Puts the words of the next segment behind those before, with a space where the script has them.
fn join(words: &mut String, more: &str) {
    let more = if words.is_empty() { more.trim_start() } else { more };
    if let (Some(last), Some(first)) = (words.chars().next_back(), more.chars().next()) {
        let spaced = last.is_whitespace() || first.is_whitespace() || ",.!?;:".contains(first);
        let han = unspaced(last) && unspaced(first);
        if !spaced && !han {
            words.push(' ');
        }
    }
    words.push_str(more);
}

/// Whether a character belongs to a script that is written without spaces (Han, kana and their punctuation).
const fn unspaced(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Cuts a text about as a tokenizer would, for engines that do not tell their tokens: a word with the space
/// before it, a Han character, a sign. The pieces put together are the text.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        let of_word = c.is_alphanumeric() && !unspaced(c);
        let joins = match pieces.last() {
            Some(piece) => (of_word && in_word) || (piece == " " && c != ' '),
            None => false,
        };
        match pieces.last_mut().filter(|_| joins) {
            Some(piece) => piece.push(c),
            None => pieces.push(c.into()),
        }
        in_word = of_word;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_vanish_and_segments_are_joined_as_their_script_wants() {
        let strip = Transcript::strip;
        assert_eq!(strip("language English<asr_text>good morning"), "good morning");
        assert_eq!(
            strip("language English<asr_text>good morninglanguage English<asr_text>how are you"),
            "good morning how are you"
        );
        assert_eq!(strip("language Chinese<asr_text>您好language Chinese<asr_text>请问"), "您好请问");
        assert_eq!(strip("language None<asr_text>language English<asr_text>yes"), "yes");
        assert_eq!(strip("plain words"), "plain words");
        assert_eq!(strip("language"), "language");
        assert_eq!(strip("my language is Dutch<asr_text>x"), "my language is Dutch x");
        assert_eq!(strip(""), "");
    }

    #[test]
    fn however_a_text_is_cut_no_mark_is_ever_shown_and_nothing_is_taken_back() {
        let raw = "language English<asr_text>we call language English<asr_text>a language a tongue";
        let whole = Transcript::strip(raw);
        for step in 1..raw.len() {
            let mut transcript = Transcript::default();
            let mut before = String::new();
            for piece in raw.as_bytes().chunks(step) {
                transcript.push(std::str::from_utf8(piece).unwrap());
                let now = transcript.words();
                assert!(!now.contains("<asr") && !now.contains("English"), "{step}: {now:?}");
                // Only the first letters of a mark that is cut inside its first word can show for a moment.
                let kept = before.trim_end_matches("languag").trim_end_matches(|c| "languag ".contains(c));
                assert!(now.starts_with(kept), "{step}: {before:?} -> {now:?}");
                before = now;
            }
            assert_eq!(transcript.marks(), 2);
            assert_eq!(transcript.words(), whole);
        }
    }

    #[test]
    fn pieces_are_like_tokens_and_lose_nothing() {
        let text = "language English<asr_text>good morning, 您好!";
        assert_eq!(pieces(text).concat(), text);
        assert_eq!(pieces("good morning, 您好"), ["good", " morning", ",", " 您", "好"]);
        assert!(pieces("").is_empty());
    }
}
