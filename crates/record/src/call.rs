//! What is known of a call beforehand, and what was measured on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::{OutcomeClass, OutcomeDetail};
use crate::speech::SpeechMap;
use crate::trace::FinalKind;

/// What is known of a call on the tape before it is played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMeta {
    /// Index on the tape, in play order, from 0.
    pub index: u32,
    /// Name that is stable across tapes: the file's path within the pool (and channel, where one was chosen).
    pub id: String,
    /// Length of the recording, milliseconds, rounded down.
    pub duration_ms: u32,
    /// Nominal duration bucket, seconds.
    pub bucket_s: u32,
    /// Channel that was taken from a stereo recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Free labels of the recording, e.g. `noise = "car"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where somebody speaks.
    pub speech: SpeechMap,
}

/// Word (or character) errors of one call against its reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordCounts {
    /// Tokens of the reference.
    pub ref_tokens: u32,
    /// Tokens replaced by others.
    pub sub: u32,
    /// Tokens of the reference that are missing.
    pub del: u32,
    /// Tokens that the reference does not have.
    pub ins: u32,
}

impl WordCounts {
    /// All errors.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.sub + self.del + self.ins
    }
}

/// Every per-call figure; one line of `calls.jsonl`. An empty value is unknown or not applicable, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Stream number, from 0.
    pub stream: u32,
    /// Ordinal of the call within its stream, from 0.
    pub seq: u32,
    /// Index of the call on the tape.
    pub call: u32,
    /// Name of the tape, where the streams of a tier play different ones; otherwise it is the tier's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<String>,
    /// Nominal duration bucket, seconds.
    pub bucket_s: u32,
    /// Whether the call counts towards the tier's verdict.
    pub counted: bool,
    /// `c0` in seconds from the run's origin.
    pub start_s: f64,
    /// Instant at which the stream was free again, seconds from the run's origin.
    pub done_s: f64,
    /// Audio of the call, tail silence included, seconds.
    pub audio_s: f64,
    /// Instance that served the call, where the dialect tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// How the call ended, with the server's words.
    #[serde(flatten)]
    pub outcome: OutcomeDetail,
    /// What that does to the verdict.
    pub class: OutcomeClass,
    /// `c1 - c0`, seconds.
    pub connect_s: Option<f64>,
    /// First non-empty text minus `p_0`, seconds.
    pub ttft_wire_s: Option<f64>,
    /// First non-empty text minus the first speech onset, seconds.
    pub ttft_speech_s: Option<f64>,
    /// First non-empty text minus the planned end of the first inference window with >= 300 ms of speech.
    pub ttft_window_s: Option<f64>,
    /// First message of any kind minus `p_0`, seconds.
    pub first_response_s: Option<f64>,
    /// `f - p_last`, seconds.
    pub final_s: Option<f64>,
    /// `f -` planned end of the last speech, seconds.
    pub final_speech_s: Option<f64>,
    /// What decided `f`.
    pub final_kind: Option<FinalKind>,
    /// Length of the union of owed intervals / audio; empty where the dialect gives no evidence.
    pub rtf: Option<f64>,
    /// `(f - c1) / audio`: about 1.0 when the call ended as it was spoken.
    pub pace: Option<f64>,
    /// Longest owed interval, seconds.
    pub lag_max_s: Option<f64>,
    /// Slope of the owed lag over the call's age, milliseconds per minute.
    pub age_slope_ms_per_min: Option<f64>,
    /// Longest gap between texts while speech was flowing, seconds.
    pub stall_max_s: Option<f64>,
    /// Our sender's lateness, 99th percentile over the call's chunks, milliseconds.
    pub wake_late_p99_ms: Option<f64>,
    /// Our sender's worst lateness, milliseconds.
    pub wake_late_max_ms: Option<f64>,
    /// Longest time that the server's back-pressure held a chunk, milliseconds.
    pub blocked_max_ms: Option<f64>,
    /// Median WebSocket ping round trip, milliseconds.
    pub rtt_p50_ms: Option<f64>,
    /// Characters taken back / characters final.
    pub revisions: Option<f64>,
    /// Result messages received.
    pub messages: u32,
    /// Broken invariants of the dialect.
    pub violations: u32,
    /// Errors of the finals against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_finals: Option<WordCounts>,
    /// Errors of finals + tail against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordCounts>,
    /// Character errors of finals + tail against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<WordCounts>,
}
