//! The raw evidence of one call: time stamps, sizes, positions and the outcome; no text, no audio.
//!
//! All instants are nanoseconds on the run's one monotonic clock, counted from the run's origin.

use serde::{Deserialize, Serialize};

use crate::outcome::OutcomeDetail;

/// What kind of result message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Text that may still change.
    Partial,
    /// Text that the dialect calls final for its segment.
    Final,
    /// The dialect's end marker: nothing follows it.
    End,
    /// A message without text: acknowledgement, hello, empty partial.
    Empty,
}

/// One result message `r_k`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Arrival, nanoseconds from the run's origin.
    pub at_ns: u64,
    /// What it was.
    pub kind: MessageKind,
    /// Size on the wire, payload bytes.
    pub bytes: u32,
    /// Characters of text it carried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chars: u32,
    /// Characters of text shown before that this message took back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revised: u32,
    /// Audio position that the server says it has covered, milliseconds from the call's first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_ms: Option<u32>,
    /// Inference window this message belongs to, counted from 0, where the dialect can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// How a dialect lets us tell when a stretch of audio has been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Messages carry the audio position that they cover.
    Position,
    /// The dialect can tell which messages belong to inference window j.
    PerWindow,
    /// One reply per step, silence included.
    Ack,
    /// Only the final is known to answer anything.
    None,
}

/// What decided the instant `f` of the final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalKind {
    /// The dialect's own end marker.
    Marker,
    /// The last text after end-of-audio, decided by the server's close.
    Close,
    /// The last text after end-of-audio, decided by `final_quiet_s` of silence.
    Quiet,
}

/// The raw trace of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Stream number, from 0.
    pub stream: u32,
    /// Ordinal of this call within its stream, from 0.
    pub seq: u32,
    /// Index of the call on the tape.
    pub call: u32,
    /// Name of the tape, where the streams of a tier play different ones; otherwise it is the tier's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<String>,
    /// Whether the call counts; fixed when it starts, before anything is known of its outcome.
    pub counted: bool,
    /// `c0`: connect begins.
    pub c0_ns: u64,
    /// `c1`: session ready to take audio; empty when it never was.
    pub c1_ns: Option<u64>,
    /// Nominal chunk length, nanoseconds of audio; 0 for a call that was sent whole at once, all of it due at `c1`.
    pub chunk_ns: u64,
    /// Audio of the call, tail silence included, nanoseconds.
    pub audio_ns: u64,
    /// Silence appended after the recording, nanoseconds of audio.
    #[serde(default)]
    pub tail_silence_ns: u64,
    /// Per chunk sent: how late our own sender woke, microseconds. Counted from the later of the planned
    /// time and the end of the previous send, so the server's back-pressure is not ours.
    pub wake_late_us: Vec<u32>,
    /// Per chunk sent: how long the server's back-pressure held it, microseconds, counted so that
    /// planned time + `wake_late` + `blocked` is the instant at which the socket took the chunk.
    pub blocked_us: Vec<u32>,
    /// `e`: end-of-audio sent.
    pub end_ns: Option<u64>,
    /// Every result message, in order of arrival.
    pub messages: Vec<Message>,
    /// `f`: the final.
    pub final_ns: Option<u64>,
    /// What decided `f`.
    pub final_kind: Option<FinalKind>,
    /// Arrival of the first text since which the call's text begins as it does in the end, whatever its case; empty where
    /// there is no text, and in traces that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from_ns: Option<u64>,
    /// The stream was free again: final, time-out, close or cut.
    pub done_ns: u64,
    /// WebSocket ping round trips during the call, microseconds.
    #[serde(default)]
    pub rtt_us: Vec<u32>,
    /// Instance that served the call, where the dialect tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// How often the server broke one of the dialect's invariants (a message after the final, a position
    /// that went back, a final that is not its segments).
    #[serde(default)]
    pub violations: u32,
    /// How the call ended.
    pub outcome: OutcomeDetail,
}

impl Trace {
    /// Chunks of the call: the last one may be shorter than the others.
    #[must_use]
    pub const fn chunks(&self) -> u64 {
        if self.chunk_ns == 0 { 1 } else { self.audio_ns.div_ceil(self.chunk_ns) }
    }

    /// `p_i`: the moment a microphone would have finished chunk `i`; empty when the session never began.
    #[must_use]
    pub fn planned_ns(&self, chunk: u64) -> Option<u64> {
        self.c1_ns.map(|c1| c1 + ((chunk + 1) * self.chunk_ns).min(self.audio_ns))
    }

    /// `p_last`: planned end of the whole call.
    #[must_use]
    pub fn planned_last_ns(&self) -> Option<u64> {
        self.c1_ns.map(|c1| if self.chunk_ns == 0 { c1 } else { c1 + self.audio_ns })
    }
}

/// The words of one call, kept apart from its trace because calls are personal data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// Only what the server made final.
    pub finals: String,
    /// The finals and the last partial of a segment never made final.
    pub finals_and_tail: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_short_last_chunk_is_planned_when_its_audio_ends() {
        let trace = Trace {
            stream: 0,
            seq: 0,
            call: 0,
            tape: None,
            counted: true,
            c0_ns: 0,
            c1_ns: Some(1_000),
            chunk_ns: 100,
            audio_ns: 250,
            tail_silence_ns: 0,
            wake_late_us: vec![],
            blocked_us: vec![],
            end_ns: None,
            messages: vec![],
            final_ns: None,
            final_kind: None,
            kept_from_ns: None,
            done_ns: 2_000,
            rtt_us: vec![],
            instance: None,
            violations: 0,
            outcome: OutcomeDetail::plain(Outcome::FinalTimeout),
        };
        assert_eq!(trace.chunks(), 3);
        assert_eq!(trace.planned_ns(0), Some(1_100));
        assert_eq!(trace.planned_ns(2), Some(1_250));
        assert_eq!(trace.planned_last_ns(), Some(1_250));
        let at_once = Trace { chunk_ns: 0, ..trace.clone() };
        assert_eq!((at_once.planned_ns(2), at_once.planned_last_ns()), (Some(1_000), Some(1_000)));
        let json = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
    }
}
