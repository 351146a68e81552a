//! The matcher of a session: recognises a known call while its audio arrives, and gives its words.

use std::collections::VecDeque;

use crate::energy::Energy;
use crate::fixtures::{BYTES_PER_MS, Fixtures, TOLERATED_SAMPLES};
use crate::words::{FILLER_MS, Word, filler, hear};

/// A known call that the audio so far agrees with.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    entry: usize,
    wrong: u32,
}

/// What the audio so far turned out to be.
#[derive(Debug)]
enum Guess {
    /// Nothing heard yet.
    Fresh,
    /// Agrees with these calls; `entry` is the one whose words are said, `next` the first of them that has not
    /// been.
    Known { candidates: Vec<Candidate>, entry: usize, next: usize },
    /// Agrees with none: ends of simulated words that are still to be said.
    Unknown { energy: Energy, total_ms: u32, ends_ms: VecDeque<u32> },
}

/// The matcher of one session: takes audio, gives words. Holds no audio of its own.
#[derive(Debug)]
pub(crate) struct Matcher {
    guess: Guess,
    heard_bytes: usize,
    /// Speech reported so far, milliseconds; never goes back, whatever the guess turns into.
    speech_ms: u32,
    /// Words that end before this millisecond have been said.
    said_until_ms: u32,
    /// Words considered so far; numbers the draws of their errors.
    drawn: usize,
    /// A hash of all samples, where caches want one.
    digest: Option<u64>,
}

/// What the words are heard through: the chance of an error, and what its draws depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hearing {
    /// Chance that a word is wrong, 0..1.
    pub(crate) word_error: f64,
    /// Seed and session.
    pub(crate) of: [u64; 2],
}

impl Matcher {
    /// A matcher that has heard nothing. `digest`: whether to hash the audio, which costs as much as comparing it.
    pub(crate) fn new(digest: bool) -> Self {
        Self {
            guess: Guess::Fresh,
            heard_bytes: 0,
            speech_ms: 0,
            said_until_ms: 0,
            drawn: 0,
            digest: digest.then_some(0),
        }
    }

    /// Audio heard so far, milliseconds, rounded down.
    pub(crate) fn heard_ms(&self) -> u32 {
        u32::try_from(self.heard_bytes / BYTES_PER_MS).unwrap_or(u32::MAX)
    }

    /// Audio heard so far, bytes.
    pub(crate) const fn heard_bytes(&self) -> usize {
        self.heard_bytes
    }

    /// Hash of all audio so far; 0 where none was asked for.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.unwrap_or(0)
    }

    /// Speech heard so far, milliseconds: from the speech map of a known call, from energy otherwise.
    pub(crate) fn speech_ms(&mut self, fixtures: &Fixtures) -> u32 {
        let heard_ms = self.heard_ms();
        let now_ms = match &self.guess {
            Guess::Fresh => 0,
            Guess::Known { entry, .. } => fixtures.entries.get(*entry).map_or(0, |e| e.speech_ms(heard_ms)),
            Guess::Unknown { total_ms, .. } => *total_ms,
        };
        self.speech_ms = self.speech_ms.max(now_ms.min(heard_ms));
        self.speech_ms
    }

    /// Takes the next chunk (whole samples).
    pub(crate) fn hear(&mut self, fixtures: &Fixtures, chunk: &[u8]) {
        let at = self.heard_bytes;
        self.heard_bytes += chunk.len();
        if let Some(digest) = &mut self.digest {
            *digest = fold(*digest, chunk);
        }
        match &mut self.guess {
            Guess::Known { candidates, entry, next } => {
                candidates.retain_mut(|c| {
                    let wrong =
                        fixtures.entries.get(c.entry).map_or(TOLERATED_SAMPLES + 1, |e| e.differs(at, chunk));
                    c.wrong += wrong;
                    c.wrong <= TOLERATED_SAMPLES
                });
                match candidates.iter().min_by_key(|c| c.wrong) {
                    None => {
                        let known = fixtures.entries.get(*entry).map_or(&[][..], |e| &e.pcm);
                        self.give_up(known.get(..at).unwrap_or(known), at, chunk);
                    }
                    Some(best) if best.entry != *entry => {
                        let said_until_ms = self.said_until_ms;
                        *entry = best.entry;
                        *next = fixtures
                            .entries
                            .get(best.entry)
                            .map_or(0, |e| e.words.partition_point(|w| w.end_ms < said_until_ms));
                    }
                    Some(_) => {}
                }
            }
            Guess::Fresh => {
                let candidates: Vec<_> = fixtures
                    .entries
                    .iter()
                    .enumerate()
                    .map(|(entry, e)| Candidate { entry, wrong: e.differs(at, chunk) })
                    .filter(|c| c.wrong <= TOLERATED_SAMPLES)
                    .collect();
                match candidates.iter().min_by_key(|c| c.wrong) {
                    None => self.give_up(&[], at, chunk),
                    Some(best) => self.guess = Guess::Known { entry: best.entry, next: 0, candidates },
                }
            }
            Guess::Unknown { energy, total_ms, ends_ms } => {
                energy.hear(chunk, |end_ms| count_speech(total_ms, ends_ms, end_ms));
            }
        }
    }

    /// No known call fits any more. What was heard so far is, within the tolerance, the beginning of the call
    /// that fitted last (and silence from there to `at`), so its speech can still be counted.
    fn give_up(&mut self, before: &[u8], at: usize, chunk: &[u8]) {
        let (mut energy, mut total_ms, mut ends_ms) = (Energy::default(), 0, VecDeque::new());
        let mut silence = at.saturating_sub(before.len());
        energy.hear(before, |end_ms| count_speech(&mut total_ms, &mut ends_ms, end_ms));
        while silence > 0 {
            let step = silence.min(3_200);
            energy.hear(&[0; 3_200][..step], |end_ms| count_speech(&mut total_ms, &mut ends_ms, end_ms));
            silence -= step;
        }
        energy.hear(chunk, |end_ms| count_speech(&mut total_ms, &mut ends_ms, end_ms));
        while ends_ms.front().is_some_and(|end_ms| *end_ms < self.said_until_ms) {
            ends_ms.pop_front();
        }
        self.guess = Guess::Unknown { energy, total_ms, ends_ms };
    }

    /// Appends to `text` the words that end inside the first `upto_ms` of the call and have not been said.
    pub(crate) fn say(&mut self, fixtures: &Fixtures, upto_ms: u32, hearing: Hearing, text: &mut String) {
        match &mut self.guess {
            Guess::Fresh => {}
            Guess::Known { entry, next, .. } => {
                let words = fixtures.entries.get(*entry).map_or(&[][..], |e| &e.words);
                while let Some(word) = words.get(*next).filter(|w| w.end_ms <= upto_ms) {
                    hear(
                        &word.text,
                        hearing.word_error,
                        [hearing.of[0], hearing.of[1], self.drawn as u64],
                        text,
                    );
                    self.drawn += 1;
                    *next += 1;
                }
            }
            Guess::Unknown { ends_ms, .. } => {
                while ends_ms.front().is_some_and(|end_ms| *end_ms <= upto_ms) {
                    ends_ms.pop_front();
                    append(filler(self.drawn), text);
                    self.drawn += 1;
                }
            }
        }
        self.said_until_ms = self.said_until_ms.max(upto_ms.saturating_add(1));
    }

    /// Appends one word: the next one, where it has begun to be spoken in the first `upto_ms`. Some text is
    /// there afterwards in any case: a wrong word rather than none, and where there is no word at all, a
    /// simulated one for the text that the engine says it has found.
    pub(crate) fn say_first(
        &mut self,
        fixtures: &Fixtures,
        upto_ms: u32,
        hearing: Hearing,
        text: &mut String,
    ) {
        match &mut self.guess {
            Guess::Known { entry, next, .. } => {
                let words = fixtures.entries.get(*entry).map_or(&[][..], |e| &e.words);
                let before_ms = next.checked_sub(1).and_then(|n| words.get(n)).map_or(0, |w| w.end_ms);
                let begun = |w: &&Word| w.end_ms <= upto_ms || before_ms < upto_ms || text.is_empty();
                if let Some(word) = words.get(*next).filter(begun) {
                    hear(
                        &word.text,
                        hearing.word_error,
                        [hearing.of[0], hearing.of[1], self.drawn as u64],
                        text,
                    );
                    if text.is_empty() {
                        text.push_str(word.text.trim_start());
                    }
                    self.drawn += 1;
                    *next += 1;
                }
            }
            Guess::Unknown { ends_ms, .. } => {
                if ends_ms.pop_front().is_some() {
                    append(filler(self.drawn), text);
                    self.drawn += 1;
                }
            }
            Guess::Fresh => {}
        }
        if text.is_empty() {
            append(filler(0), text);
        }
    }
}

fn append(word: &str, text: &mut String) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

/// Folds more audio into a running hash. The bytes count, not how they were cut into chunks of whole words.
fn fold(state: u64, chunk: &[u8]) -> u64 {
    chunk.chunks(8).fold(state, |state, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        (state.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517C_C1B7_2722_0A95)
    })
}

/// Counts one more 10 ms frame of speech that ends at `end_ms`.
fn count_speech(total_ms: &mut u32, ends_ms: &mut VecDeque<u32>, end_ms: u32) {
    *total_ms += 10;
    if total_ms.is_multiple_of(FILLER_MS) {
        ends_ms.push_back(end_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::KnownCall;

    /// Audio that is loud everywhere and different for every `seed`.
    fn audio(ms: usize, seed: u32) -> Vec<u8> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        (0..ms * BYTES_PER_MS / 2)
            .flat_map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let [_, _, low, high] = state.to_le_bytes();
                [low, high]
            })
            .collect()
    }

    fn known(seed: u32, text: &str) -> KnownCall {
        let half = text.len() / 2;
        KnownCall {
            pcm: audio(4_000, seed).into(),
            segments: vec![(0, 2_000, text[..half].into()), (2_000, 4_010, text[half..].into())],
            speech: vec![(0, 4_000)],
        }
    }

    /// What is said after each of `steps` milliseconds, hearing everything up to there in 100 ms chunks.
    fn listen(fixtures: &Fixtures, pcm: &[u8], steps: &[u32], word_error: f64) -> Vec<String> {
        let (mut matcher, mut text) = (Matcher::new(false), String::new());
        let mut chunks = pcm.chunks(3_200);
        let mut said = Vec::new();
        for &step in steps {
            while matcher.heard_ms() < step {
                let Some(chunk) = chunks.next() else { break };
                matcher.hear(fixtures, chunk);
            }
            matcher.say(fixtures, step, Hearing { word_error, of: [1, 2] }, &mut text);
            said.push(text.clone());
        }
        said
    }

    #[test]
    fn words_come_back_when_their_time_is_covered() {
        let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd "), known(2, "ee ff gg hh ")]);
        let said = listen(&fixtures, &audio(4_000, 2), &[900, 1_000, 2_000, 4_000], 0.0);
        assert_eq!(said, ["", "ee", "ee ff", "ee ff gg hh"]);
    }

    #[test]
    fn one_changed_sample_and_appended_silence_do_not_matter() {
        let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd "), known(2, "ee ff gg hh ")]);
        let mut pcm = audio(4_000, 2);
        pcm[6_401] ^= 1;
        pcm.extend([0; 64_000]);
        assert_eq!(listen(&fixtures, &pcm, &[6_000], 0.0), ["ee ff gg hh"]);
    }

    #[test]
    fn a_shared_beginning_is_settled_when_the_calls_part() {
        let mut twin = audio(2_000, 1);
        twin.extend(audio(2_000, 9));
        let twin = KnownCall { pcm: twin.clone().into(), ..known(1, "aa bb ee ff ") };
        let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd "), twin.clone()]);
        assert_eq!(listen(&fixtures, &twin.pcm, &[2_000, 4_000], 0.0), ["aa bb", "aa bb ee ff"]);
    }

    #[test]
    fn unknown_speech_is_answered_at_two_and_a_half_words_a_second() {
        let mut pcm = vec![0; 64_000];
        pcm.extend(audio(4_000, 5));
        let said = listen(&Fixtures::default(), &pcm, &[2_000, 4_000, 6_000], 0.0);
        let count = |n: usize| said[n].split_whitespace().count();
        assert_eq!((count(0), count(1), count(2)), (0, 5, 10));
    }

    #[test]
    fn a_call_that_leaves_the_known_one_goes_on_with_simulated_words() {
        let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd ")]);
        let mut pcm = audio(2_000, 1);
        pcm.extend(audio(4_000, 3));
        let said = listen(&fixtures, &pcm, &[2_000, 6_000], 0.0);
        assert_eq!(said[0], "aa bb");
        assert_eq!(said[1].split_whitespace().count(), 2 + 10, "{}", said[1]);
    }

    #[test]
    fn overload_changes_words() {
        let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd ")]);
        let said = listen(&fixtures, &audio(4_000, 1), &[4_000], 1.0);
        assert!(!said[0].contains("aa") && !said[0].contains("dd"), "{}", said[0]);
    }

    #[test]
    fn a_call_without_reference_speaks_in_its_speech() {
        let call = KnownCall {
            pcm: audio(4_000, 1).into(),
            segments: vec![],
            speech: vec![(1_000, 1_800), (3_000, 3_400)],
        };
        let said = listen(&Fixtures::new(vec![call]), &audio(4_000, 1), &[1_000, 2_000, 4_000], 0.0);
        assert_eq!(said, ["", "simulated words", "simulated words stand"]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 64,
            failure_persistence: None,
            ..Default::default()
        })]

        /// However a call is cut, and whichever few samples of it differ, its words are recognised.
        #[test]
        fn cutting_and_a_few_other_samples_change_nothing(
            cuts in proptest::collection::vec(1_usize..9_000, 1..40),
            flips in proptest::collection::vec(0_usize..64_000, 0..8),
        ) {
            let fixtures = Fixtures::new(vec![known(1, "aa bb cc dd "), known(2, "ee ff gg hh ")]);
            let mut pcm = audio(4_000, 2);
            flips.iter().for_each(|sample| pcm[sample * 2] ^= 3);
            let (mut matcher, mut text) = (Matcher::new(false), String::new());
            let mut rest = &pcm[..];
            for samples in cuts.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(samples * 2));
                matcher.hear(&fixtures, now);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let hearing = Hearing { word_error: 0.0, of: [1, 2] };
            matcher.say(&fixtures, matcher.heard_ms(), hearing, &mut text);
            assert_eq!(text, "ee ff gg hh");
            assert_eq!(matcher.speech_ms(&fixtures), 4_000);
        }
    }
}
