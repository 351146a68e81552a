//! Words with the time at which each has been spoken, and what overload does to them.

/// Milliseconds of speech that one simulated word stands for: 2.5 words per second, an unhurried caller.
pub(crate) const FILLER_MS: u32 = 400;

/// What unknown audio is answered with. Plain words, so that nobody takes them for a transcript.
const FILLERS: [&str; 8] = ["simulated", "words", "stand", "here", "for", "speech", "never", "recognised"];

/// The `n`-th simulated word of a call, counted from 0.
pub(crate) const fn filler(n: usize) -> &'static str {
    FILLERS[n % FILLERS.len()]
}

/// A word, with the separator that stands before it, and the end of its time in the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// First millisecond after the word.
    pub(crate) end_ms: u32,
    /// Separator and word: concatenating them gives the text back.
    pub(crate) text: Box<str>,
}

/// Cuts a segment's text into words and spreads the segment's time over them by their length in characters,
/// which is the best guess where the reference does not time its words. A character of a script that writes
/// without spaces is a word of its own.
pub(crate) fn spread(start_ms: u32, end_ms: u32, text: &str, first: bool, words: &mut Vec<Word>) {
    let pieces = cut(text);
    let total: u64 = pieces.iter().map(|p| p.chars().count() as u64).sum();
    let length_ms = u64::from(end_ms.saturating_sub(start_ms));
    let mut said = 0_u64;
    for (n, piece) in pieces.iter().enumerate() {
        said += piece.chars().count() as u64;
        let into_ms = (length_ms * said).div_ceil(total.max(1));
        let glued = n > 0 && is_glued(pieces[n - 1], piece, text);
        let separator = if glued || (first && n == 0) { "" } else { " " };
        words.push(Word {
            end_ms: start_ms.saturating_add(u32::try_from(into_ms).unwrap_or(u32::MAX)),
            text: format!("{separator}{piece}").into(),
        });
    }
}

/// Whether two neighbouring pieces of `text` touch in it.
fn is_glued(before: &str, after: &str, text: &str) -> bool {
    // Both are slices of `text`, so their addresses tell how far apart they lie.
    let gap = (after.as_ptr() as usize).wrapping_sub(before.as_ptr() as usize + before.len());
    debug_assert!(gap <= text.len());
    gap == 0
}

/// The pieces that count as words: runs of letters between white space, and single unspaced characters.
fn cut(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    for token in text.split_whitespace() {
        let mut from = 0;
        for (at, c) in token.char_indices() {
            if is_unspaced(c) {
                if from < at {
                    pieces.push(&token[from..at]);
                }
                pieces.push(&token[at..at + c.len_utf8()]);
                from = at + c.len_utf8();
            }
        }
        if from < token.len() {
            pieces.push(&token[from..]);
        }
    }
    pieces
}

/// Characters of scripts written without spaces between words: Han, kana, Thai, Lao, Khmer, Burmese.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Appends a word to `text`, or what an overloaded engine hears in its place: a wrong word or nothing.
///
/// `degradation` is the probability of an error, 0..1. The draw depends on the three numbers of `of` only
/// (seed, session, word), so the same run makes the same errors.
pub(crate) fn hear(word: &str, degradation: f64, of: [u64; 3], text: &mut String) {
    if degradation > 0.0 {
        let draw = mix(of);
        if unit(draw) < degradation {
            if draw & 1 == 0 {
                text.push_str(if word.starts_with(' ') && !text.is_empty() { " " } else { "" });
                text.push_str(filler(usize::try_from((draw >> 1) & 7).unwrap_or(0)));
            }
            return;
        }
    }
    // A first word that was dropped must not leave its separator behind.
    text.push_str(if text.is_empty() { word.trim_start() } else { word });
}

/// The upper 53 bits as a number in 0..1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit a double's mantissa exactly")]
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// One well-mixed number out of three (the finaliser of `SplitMix64`, folded over them).
fn mix(numbers: [u64; 3]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |state, &n| {
        let mut z = (state ^ n).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(u32, String)> {
        let mut words = Vec::new();
        spread(1_000, 2_000, text, true, &mut words);
        words.into_iter().map(|w| (w.end_ms, w.text.into_string())).collect()
    }

    #[test]
    fn time_is_spread_by_length_and_ends_with_the_segment() {
        let got = words("one  threeandfour x");
        assert_eq!(got, [(1_188, "one".into()), (1_938, " threeandfour".into()), (2_000, " x".into())]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_by_character_and_joined_again() {
        let got = words("\u{4f60}\u{597d}ok \u{5417}");
        let joined: String = got.iter().map(|(_, w)| w.as_str()).collect();
        assert_eq!(got.len(), 4);
        assert_eq!(joined, "\u{4f60}\u{597d}ok \u{5417}");
    }

    #[test]
    fn errors_grow_with_degradation_and_repeat_with_the_seed() {
        let say = |degradation: f64, seed: u64| {
            let mut text = String::new();
            for n in 0..1_000 {
                hear(" word", degradation, [seed, 7, n], &mut text);
            }
            text
        };
        let right = |text: &str| text.split(' ').filter(|w| *w == "word").count();
        assert_eq!(right(&say(0.0, 1)), 1_000);
        let (some, many) = (right(&say(0.1, 1)), right(&say(0.5, 1)));
        assert!((870..930).contains(&some), "{some}");
        assert!((450..550).contains(&many), "{many}");
        assert_eq!(say(0.5, 1), say(0.5, 1));
        assert_ne!(say(0.5, 1), say(0.5, 2));
        assert!(!say(0.9, 3).starts_with(' '));
    }
}
