//! `sherpa-onnx`: the streaming WebSocket server that comes with sherpa-onnx.
//!
//! Samples go out as float32, the end is the word `Done`. Each decoded step is answered with the text of the
//! current segment; a segment's last version may never come under load, which shows as a lost tail.

use std::{borrow::Cow, fmt::Write, time::Duration};

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Session, SessionStart, Signal, TextModel, Transcript,
    frame::chunks,
    json::{self, flag},
    registry::{Settings, stranger},
};

/// The settings of `sherpa-onnx`. The server must be started with `--input-sample-rate=16000` where its model
/// hears another rate: nothing on the wire would tell a wrong one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SherpaOnnx {
    /// Audio that the model decodes at once, milliseconds. The server answers each step once, silence
    /// included, which then is the evidence for owed intervals. A model that looks ahead answers a step only
    /// when it has heard the next, and owes all the time by that reckoning: leave it out for those. Default
    /// none: no evidence.
    pub step_ms: Option<u32>,
}

impl Settings for SherpaOnnx {
    const NAME: &'static str = "sherpa-onnx";

    fn check(&self) -> Result<(), String> {
        if self.step_ms == Some(0) {
            return Err("step_ms: must not be 0; leave it out where the step is not known".to_owned());
        }
        Ok(())
    }

    fn signs(message: &Value) -> bool {
        json::text(message, "text").is_some()
            && flag(message, "is_final").is_some()
            && message.get("segment").is_some_and(Value::is_number)
            && message.get("tokens").is_some_and(Value::is_array)
    }
}

impl Dialect for SherpaOnnx {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        if self.step_ms.is_some() { Evidence::Ack } else { Evidence::None }
    }

    fn window(&self) -> Option<Duration> {
        self.step_ms.map(|ms| Duration::from_millis(ms.into()))
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        chunks(pcm, chunk_bytes).map(|chunk| Frame::Binary(floats(&chunk))).collect()
    }

    fn session(&self, _start: &SessionStart) -> Box<dyn Session> {
        Box::new(SherpaSession {
            transcript: Transcript::new(TextModel::Segment),
            over: false,
            violations: 0,
        })
    }
}

/// 16-bit samples as little-endian floats from -1 to 1.
fn floats(pcm: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(pcm.len() * 2);
    for sample in pcm.as_chunks::<2>().0 {
        let value = f32::from(i16::from_le_bytes(*sample)) / 32_768.0;
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.freeze()
}

/// One call's conversation.
#[derive(Debug)]
struct SherpaSession {
    transcript: Transcript,
    over: bool,
    violations: u32,
}

/// The server quotes its strings without JSON's rule that control characters are escaped. Escapes them.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|b| b < 0x20) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut inside, mut escape) = (false, false);
    for c in text.chars() {
        if inside && u32::from(c) < 0x20 {
            // Cannot fail: a string takes everything.
            let _ = write!(out, "{}u{:04x}", if escape { "" } else { "\\" }, u32::from(c));
            escape = false;
            continue;
        }
        match c {
            _ if escape => escape = false,
            '\\' if inside => escape = true,
            '"' => inside = !inside,
            _ => {}
        }
        out.push(c);
    }
    Cow::Owned(out)
}

impl SherpaSession {
    fn text(&mut self, message: &Value, text: &str) -> Reading {
        let is_final = flag(message, "is_final").unwrap_or(false);
        let segment = message.get("segment").and_then(Value::as_i64);
        let change = self.transcript.apply(segment, text, is_final);
        self.violations += u32::from(change.broke_final);
        Reading {
            kind: match is_final {
                _ if change.chars == 0 => MessageKind::Empty,
                true => MessageKind::Final,
                false => MessageKind::Partial,
            },
            chars: change.chars,
            revised: change.revised,
            ..Reading::EMPTY
        }
    }
}

impl Session for SherpaSession {
    fn ending(&mut self) -> Vec<Frame> {
        vec![Frame::Text("Done".into())]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        if self.over {
            self.violations += 1; // nothing may follow the end
        }
        let message = match message {
            Incoming::Text("Done!") | Incoming::Binary(b"Done!") => {
                self.over = true;
                return Reading { kind: MessageKind::End, ..Reading::signal(Signal::Final) };
            }
            Incoming::Text(text) => json::object(Incoming::Text(&escaped(text))),
            binary @ Incoming::Binary(_) => json::object(binary),
        };
        match message {
            Err(signal) => Reading::signal(signal),
            Ok(message)
                if !SherpaOnnx::signs(&message) && stranger(SherpaOnnx::NAME, &message) != Signal::None =>
            {
                Reading::signal(stranger(SherpaOnnx::NAME, &message))
            }
            Ok(message) => match message.get("text") {
                Some(Value::String(text)) => self.text(&message, text),
                Some(_) => {
                    Reading::signal(Signal::Protocol("the field text holds something else".to_owned()))
                }
                None => json::unknown(&message),
            },
        }
    }

    fn texts(&self) -> Texts {
        self.transcript.texts()
    }

    fn tail_open(&self) -> bool {
        self.transcript.tail_open()
    }

    fn violations(&self) -> u32 {
        self.violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_become_floats() {
        let pcm: Vec<u8> = [0_i16, 16_384, -32_768, 32_767].into_iter().flat_map(i16::to_le_bytes).collect();
        let bytes = floats(&pcm);
        let (values, _) = bytes.as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert_eq!(values, [0.0, 0.5, -1.0, 32_767.0 / 32_768.0]);
    }

    #[test]
    fn bare_control_characters_are_read() {
        let message =
            "{\n\t\"text\": \"a\tb \\\"c\\\\\", \"segment\": 0, \"is_final\": true, \"tokens\": [\"\u{1}\"]}";
        let mut session = SherpaOnnx::default().session(&SessionStart::default());
        assert_eq!(session.read(Incoming::Text(message)).kind, MessageKind::Final);
        assert_eq!(session.texts().finals, "a\tb \"c\\");
    }

    proptest! {
        #[test]
        fn escaping_changes_nothing_but_the_form(text in "[\\x00-\\x7f]{0,30}") {
            // As the server does it.
            let quoted = format!("{{\"text\": \"{}\"}}", text.replace('\\', "\\\\").replace('"', "\\\""));
            let value: Value = serde_json::from_str(&escaped(&quoted)).unwrap();
            prop_assert_eq!(value["text"].as_str().unwrap(), text);
        }
    }
}
