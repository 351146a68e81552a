//! A call to score, written down by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use tapedeck_record::{CallMeta, FinalKind, Message, MessageKind, Outcome, OutcomeDetail, SpeechMap, Trace};

pub(crate) const MS: u64 = 1_000_000;
/// The run's clock at which the session was ready: not 0, so that a forgotten subtraction shows.
pub(crate) const C1_MS: u64 = 7_000;

/// A call of `audio_ms` with speech in the given intervals.
pub(crate) fn meta(audio_ms: u32, speech: &[(u32, u32)]) -> CallMeta {
    CallMeta {
        index: 4,
        id: "made/up.wav".into(),
        duration_ms: audio_ms,
        bucket_s: 30,
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(speech.iter().map(|&i| i.into()).collect()),
    }
}

/// A message `at_ms` after the session was ready.
pub(crate) fn message(at_ms: u64, kind: MessageKind, chars: u32) -> Message {
    Message {
        at_ns: (C1_MS + at_ms) * MS,
        kind,
        bytes: 50,
        chars,
        revised: 0,
        position_ms: None,
        window: None,
    }
}

/// A partial that covers the audio up to `position_ms`.
pub(crate) fn covering(at_ms: u64, position_ms: u32) -> Message {
    Message { position_ms: Some(position_ms), ..message(at_ms, MessageKind::Partial, 10) }
}

/// A partial of window `window`.
pub(crate) fn of_window(at_ms: u64, window: u32) -> Message {
    Message { window: Some(window), ..message(at_ms, MessageKind::Partial, 10) }
}

/// A played call: connected in 40 ms, chunks of 100 ms, the final at `final_ms` after ready.
pub(crate) fn trace(audio_ms: u64, messages: Vec<Message>, final_ms: Option<u64>) -> Trace {
    let done_ms = final_ms.unwrap_or(audio_ms + 30_000);
    Trace {
        stream: 2,
        seq: 5,
        call: 4,
        tape: None,
        counted: true,
        c0_ns: (C1_MS - 40) * MS,
        c1_ns: Some(C1_MS * MS),
        chunk_ns: 100 * MS,
        audio_ns: audio_ms * MS,
        tail_silence_ns: 0,
        wake_late_us: vec![],
        blocked_us: vec![],
        end_ns: Some((C1_MS + audio_ms) * MS),
        messages,
        final_ns: final_ms.map(|ms| (C1_MS + ms) * MS),
        final_kind: final_ms.map(|_| FinalKind::Marker),
        kept_from_ns: None,
        done_ns: (C1_MS + done_ms) * MS,
        rtt_us: vec![],
        instance: None,
        violations: 0,
        outcome: OutcomeDetail::plain(if final_ms.is_some() { Outcome::Ok } else { Outcome::FinalTimeout }),
    }
}
