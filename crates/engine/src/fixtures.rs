//! The calls that the engine knows by heart.
//!
//! The engine does not decode speech. It compares the audio it is sent with the calls it was given and
//! answers with their reference words, each once its own time in the call is covered. Audio that it does not
//! know is answered with filler words, as many as its speech would hold.

use bytes::Bytes;

use crate::words::{FILLER_MS, Word, filler, spread};

/// Bytes per millisecond: 16 kHz, 16 bits, one channel.
pub(crate) const BYTES_PER_MS: usize = 32;
/// Samples of a call that may differ from the known one: a client that makes every session unique (so that
/// caches keyed by content stay out of the way) changes one.
pub(crate) const TOLERATED_SAMPLES: u32 = 8;
/// Highest sample value that passes for silence appended after a known call.
const SILENCE: i16 = 16;

/// One call whose words are known.
#[derive(Debug, Clone, Default)]
pub struct KnownCall {
    /// The audio: s16le, 16 kHz, one channel.
    pub pcm: Bytes,
    /// Reference segments: start and end in milliseconds from the first sample, and what is said in them.
    /// Empty where there is no reference: such a call is answered with simulated words.
    pub segments: Vec<(u32, u32, String)>,
    /// Intervals of speech, milliseconds from the first sample; they time the simulated words of a call
    /// without a reference.
    pub speech: Vec<(u32, u32)>,
}

/// A known call, its words cut and timed.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) pcm: Bytes,
    pub(crate) words: Vec<Word>,
    speech: Vec<(u32, u32)>,
}

/// Everything an engine knows by heart. Shared by all engines of a process.
///
/// ```
/// use tapedeck_engine::{KnownCall, Fixtures};
///
/// let call = KnownCall {
///     pcm: vec![7_u8; 64_000].into(),
///     segments: vec![(0, 2_000, "hello there".into())],
///     speech: vec![(0, 2_000)],
/// };
/// assert_eq!(Fixtures::new(vec![call]).len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct Fixtures {
    pub(crate) entries: Vec<Entry>,
}

impl Fixtures {
    /// Cuts and times the words of every call.
    #[must_use]
    pub fn new(calls: Vec<KnownCall>) -> Self {
        Self { entries: calls.into_iter().map(Entry::new).collect() }
    }

    /// How many calls are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no call is known, so that every answer is made of simulated words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Entry {
    fn new(call: KnownCall) -> Self {
        let length_ms = u32::try_from(call.pcm.len() / BYTES_PER_MS).unwrap_or(u32::MAX);
        let mut words = Vec::new();
        if call.segments.is_empty() {
            let mut speech_ms = 0;
            for (start_ms, end_ms) in &call.speech {
                for at_ms in *start_ms..*end_ms {
                    speech_ms += 1;
                    if speech_ms % FILLER_MS == 0 {
                        let n = words.len();
                        let separator = if n == 0 { "" } else { " " };
                        words.push(Word {
                            end_ms: at_ms + 1,
                            text: format!("{separator}{}", filler(n)).into(),
                        });
                    }
                }
            }
        }
        let mut segments = call.segments;
        segments.sort_by_key(|(start_ms, end_ms, _)| (*start_ms, *end_ms));
        for (start_ms, end_ms, text) in &segments {
            spread(*start_ms, *end_ms, text, words.is_empty(), &mut words);
        }
        // Segments of two speakers may overlap; the order in which words are said is the order of their
        // ends. A reference that runs past the audio by rounding still belongs to it.
        let mut latest_ms = 0;
        for word in &mut words {
            latest_ms = word.end_ms.max(latest_ms).min(length_ms);
            word.end_ms = latest_ms;
        }
        Self { pcm: call.pcm, words, speech: call.speech }
    }

    /// Milliseconds of speech in the first `upto_ms` of the call.
    pub(crate) fn speech_ms(&self, upto_ms: u32) -> u32 {
        self.speech
            .iter()
            .map(|(start_ms, end_ms)| upto_ms.min(*end_ms).saturating_sub(*start_ms))
            .fold(0, u32::saturating_add)
    }

    /// How many samples of `chunk`, which begins `at` bytes into the call, differ from this one; counting
    /// stops above what is tolerated.
    pub(crate) fn differs(&self, at: usize, chunk: &[u8]) -> u32 {
        let known = self.pcm.get(at..).unwrap_or(&[]);
        let (inside, beyond) = chunk.split_at(chunk.len().min(known.len()));
        let known = known.get(..inside.len()).unwrap_or(&[]);
        if beyond.chunks_exact(2).any(|s| i16::from_le_bytes([s[0], s[1]]).unsigned_abs() > SILENCE as u16) {
            return TOLERATED_SAMPLES + 1;
        }
        if inside == known {
            return 0;
        }
        let mut wrong = 0;
        for (a, b) in inside.chunks(2).zip(known.chunks(2)) {
            if a != b {
                wrong += 1;
                if wrong > TOLERATED_SAMPLES {
                    break;
                }
            }
        }
        wrong
    }
}
