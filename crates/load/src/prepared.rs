//! The calls of a tape, ready to be sent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tapedeck_protocol::{Dialect, Frame};
use tapedeck_record::{CallMeta, Interval, SpeechMap};
use thiserror::Error;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// Bytes of 16 kHz mono s16le audio in a second.
const BYTES_PER_SECOND: u64 = 32_000;
/// One sample, bytes.
const SAMPLE_BYTES: usize = 2;

/// The calls of a tape in play order, framed once and shared by all streams.
#[derive(Debug, Clone)]
pub struct PreparedCalls {
    calls: Vec<PreparedCall>,
    chunk: Duration,
    chunk_bytes: usize,
    tail_silence: Duration,
}

/// One call, ready to be sent.
#[derive(Debug, Clone)]
pub struct PreparedCall {
    meta: CallMeta,
    audio: Duration,
    /// One message per chunk; cloning one copies no audio.
    frames: Vec<Message>,
    /// The samples of the first chunk, of which a session may want a copy of its own.
    first_chunk: Bytes,
}

/// Why a tape cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// No call at all.
    #[error("the tape holds no call; freeze one with at least one call in it")]
    Empty,
    /// A call without audio.
    #[error("call {id} holds no audio; take it off the tape")]
    NoAudio {
        /// The call.
        id: String,
    },
    /// A chunk that is no whole number of samples.
    #[error(
        "a chunk of {0:?} is no whole number of 16 kHz samples; use a multiple of 1 ms, 100 ms for instance"
    )]
    Chunk(Duration),
    /// A dialect that does not keep its promise.
    #[error("the dialect {dialect} made {got} frames of call {id}, which has {want} chunks")]
    Frames {
        /// The dialect.
        dialect: &'static str,
        /// The call.
        id: String,
        /// Frames it made.
        got: usize,
        /// Frames it should have made.
        want: usize,
    },
}

impl PreparedCalls {
    /// Frames calls for a dialect: `chunk` of audio a message, `tail_silence` appended to each call. The
    /// audio is 16 kHz mono s16le; half a sample at its end is dropped.
    ///
    /// # Errors
    /// When there is nothing to play, or the chunk length does not fit.
    pub fn new(
        dialect: &dyn Dialect,
        chunk: Duration,
        tail_silence: Duration,
        calls: impl IntoIterator<Item = (CallMeta, Bytes)>,
    ) -> Result<Self, PrepareError> {
        let chunk_bytes = whole_samples(chunk).filter(|&b| b > 0).ok_or(PrepareError::Chunk(chunk))?;
        let tail_bytes = whole_samples(tail_silence).ok_or(PrepareError::Chunk(tail_silence))?;
        let calls = calls
            .into_iter()
            .map(|(meta, pcm)| PreparedCall::new(dialect, chunk_bytes, tail_bytes, meta, pcm))
            .collect::<Result<Vec<_>, _>>()?;
        if calls.is_empty() {
            return Err(PrepareError::Empty);
        }
        Ok(Self { calls, chunk, chunk_bytes, tail_silence })
    }

    /// The calls, in play order.
    #[must_use]
    pub fn calls(&self) -> &[PreparedCall] {
        &self.calls
    }

    /// The beginning of a call: as many whole chunks of it as `audio` holds, at least one; the whole call where
    /// `audio` is not shorter. No audio is copied. Nothing where the prepared calls has no such call.
    #[must_use]
    pub fn cut(&self, call: usize, audio: Duration) -> Option<PreparedCall> {
        let whole = self.calls.get(call)?;
        if audio >= whole.audio {
            return Some(whole.clone());
        }
        let chunks = usize::try_from(audio.as_nanos() / self.chunk.as_nanos().max(1)).ok()?.max(1);
        let audio = self.chunk.saturating_mul(u32::try_from(chunks).ok()?).min(whole.audio);
        Some(PreparedCall {
            meta: shortened(&whole.meta, audio),
            audio,
            frames: whole.frames.get(..chunks)?.to_vec(),
            first_chunk: whole.first_chunk.clone(),
        })
    }

    /// Audio in one message.
    #[must_use]
    pub const fn chunk(&self) -> Duration {
        self.chunk
    }

    /// The same in bytes of 16 kHz s16le.
    #[must_use]
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Silence appended to each call.
    #[must_use]
    pub const fn tail_silence(&self) -> Duration {
        self.tail_silence
    }

    /// Audio of all calls, tail silence included.
    #[must_use]
    pub fn audio(&self) -> Duration {
        self.calls.iter().map(|c| c.audio).sum()
    }

    /// Largest message of all, bytes.
    pub(crate) fn largest_frame(&self) -> usize {
        self.calls.iter().flat_map(|c| &c.frames).map(Message::len).max().unwrap_or(0)
    }
}

impl PreparedCall {
    fn new(
        dialect: &dyn Dialect,
        chunk_bytes: usize,
        tail_bytes: usize,
        meta: CallMeta,
        pcm: Bytes,
    ) -> Result<Self, PrepareError> {
        let whole = pcm.len() / SAMPLE_BYTES * SAMPLE_BYTES;
        if whole == 0 {
            return Err(PrepareError::NoAudio { id: meta.id });
        }
        let mut pcm = pcm.slice(..whole);
        if tail_bytes > 0 {
            let mut longer = BytesMut::with_capacity(whole + tail_bytes);
            longer.extend_from_slice(&pcm);
            longer.resize(whole + tail_bytes, 0);
            pcm = longer.freeze();
        }
        let frames: Vec<Message> = dialect.prepare(&pcm, chunk_bytes).into_iter().map(message).collect();
        let want = pcm.len().div_ceil(chunk_bytes);
        if frames.len() != want {
            return Err(PrepareError::Frames {
                dialect: dialect.name(),
                id: meta.id,
                got: frames.len(),
                want,
            });
        }
        let audio = duration_of(pcm.len());
        let first_chunk = pcm.slice(..chunk_bytes.min(pcm.len()));
        Ok(Self { meta, audio, frames, first_chunk })
    }

    /// What is known of it beforehand.
    #[must_use]
    pub const fn meta(&self) -> &CallMeta {
        &self.meta
    }

    /// Length of its audio, tail silence included.
    #[must_use]
    pub const fn audio(&self) -> Duration {
        self.audio
    }

    /// One message per chunk.
    pub(crate) fn frames(&self) -> &[Message] {
        &self.frames
    }

    /// The first message with one sample changed inaudibly, different for each of the first 25,000 sessions
    /// or so: at most 16 steps of 65,536, at a place that moves.
    pub(crate) fn unique_first(&self, dialect: &dyn Dialect, session: u64) -> Option<Message> {
        let samples = u64::try_from(self.first_chunk.len() / SAMPLE_BYTES).ok().filter(|&n| n > 0)?;
        let at = usize::try_from(session % samples).ok()? * SAMPLE_BYTES;
        let step = i16::try_from(session / samples % 16).ok()? + 1;
        let mut own = BytesMut::from(&self.first_chunk[..]);
        let sample = own.get_mut(at..at + SAMPLE_BYTES)?;
        let value = i16::from_le_bytes([*sample.first()?, *sample.last()?]);
        // Towards zero, so that a sample at full scale stays in range.
        let changed = if value > 0 { value - step } else { value + step };
        sample.copy_from_slice(&changed.to_le_bytes());
        let chunk_bytes = own.len();
        dialect.prepare(&own.freeze(), chunk_bytes).into_iter().next().map(message)
    }
}

/// What is known of the beginning of a call: of one that was cut after `audio`.
#[must_use]
pub fn shortened(meta: &CallMeta, audio: Duration) -> CallMeta {
    let end_ms = u32::try_from(audio.as_millis()).unwrap_or(u32::MAX);
    if end_ms >= meta.duration_ms {
        return meta.clone();
    }
    let said = meta.speech.intervals().iter().filter(|i| i.start_ms < end_ms);
    let said = said.map(|i| Interval { end_ms: i.end_ms.min(end_ms), ..*i }).collect();
    CallMeta { duration_ms: end_ms, speech: SpeechMap::new(said), ..meta.clone() }
}

/// A dialect's frame as the WebSocket library wants it; the payload is shared, not copied.
pub(crate) fn message(frame: Frame) -> Message {
    match frame {
        // The text is valid already; if the library disagreed, binary would still carry it.
        Frame::Text(text) => {
            let bytes = text.into_bytes();
            match Utf8Bytes::try_from(bytes.clone()) {
                Ok(text) => Message::Text(text),
                Err(_) => Message::Binary(bytes),
            }
        }
        Frame::Binary(bytes) => Message::Binary(bytes),
    }
}

/// Bytes of that much audio, if it is a whole number of samples.
fn whole_samples(span: Duration) -> Option<usize> {
    let scaled = span.as_nanos().checked_mul(u128::from(BYTES_PER_SECOND))?;
    let bytes = usize::try_from(scaled / 1_000_000_000).ok()?;
    (scaled.is_multiple_of(1_000_000_000) && bytes.is_multiple_of(SAMPLE_BYTES)).then_some(bytes)
}

/// Length of that many bytes of audio; exact, since a sample lasts 62,500 ns.
fn duration_of(bytes: usize) -> Duration {
    Duration::from_nanos(u64::try_from(bytes / SAMPLE_BYTES).unwrap_or(u64::MAX).saturating_mul(62_500))
}
