//! What a loaded tape holds: calls as ready audio, with their references where those are known.

use bytes::Bytes;
use tapedeck_record::CallMeta;

use crate::manifest::Manifest;

/// A tape in memory, ready to be cut into chunks and shared by every stream.
#[derive(Debug, Clone)]
pub struct Tape {
    /// The manifest it was loaded from.
    pub manifest: Manifest,
    /// MD5 of the manifest file, lower-case hex: names the tape in run records.
    pub md5: String,
    /// The calls in play order; `calls[i].meta.index == i`.
    pub calls: Vec<TapeCall>,
}

impl Tape {
    /// Audio of one pass over the tape, milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.calls.iter().map(|c| u64::from(c.meta.duration_ms)).sum()
    }

    /// Milliseconds of speech in one pass over the tape.
    #[must_use]
    pub fn speech_ms(&self) -> u64 {
        self.calls.iter().map(|c| u64::from(c.meta.speech.total_ms())).sum()
    }
}

/// One call of a loaded tape.
#[derive(Debug, Clone)]
pub struct TapeCall {
    /// What is known of the call beforehand.
    pub meta: CallMeta,
    /// The audio: 16 kHz mono s16 little-endian, whole samples. Cloning shares the memory.
    pub pcm: Bytes,
    /// What is said in it, where `transcripts.tsv` stands beside the pool and names the call.
    pub reference: Option<Reference>,
}

/// What is said in a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The words, in spoken order.
    pub text: String,
    /// When each utterance is said, where `segments.tsv` stands beside the pool; in order of start.
    pub segments: Vec<Segment>,
}

/// One utterance of a reference, with its times from the call's first sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// First millisecond of the utterance.
    pub start_ms: u32,
    /// First millisecond after it.
    pub end_ms: u32,
    /// Its words.
    pub text: String,
}
