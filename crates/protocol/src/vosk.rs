//! `vosk`: the WebSocket server of Vosk, from its published protocol.
//!
//! One answer for every message of audio, silence included, and a last one after the end message, which the
//! server follows with its close.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Session, SessionStart, Signal, TextModel, Transcript,
    frame::slices,
    json,
    registry::{Settings, stranger},
};

/// The end message. The server compares the text, blanks and all.
const EOF: &str = r#"{"eof" : 1}"#;

/// The settings of `vosk`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vosk {
    /// Whether to ask for a time for each word, as some clients do: more work and longer answers. Default
    /// false.
    pub words: bool,
    /// Words that the recogniser is to keep to. Default none: all it knows.
    pub phrase_list: Vec<String>,
}

impl Settings for Vosk {
    const NAME: &'static str = "vosk";

    fn signs(message: &Value) -> bool {
        let untyped = message.get("type").is_none() && message.get("is_final").is_none();
        untyped
            && (json::text(message, "partial").is_some()
                || (json::text(message, "text").is_some()
                    && message.get("result").is_some_and(Value::is_array)))
    }
}

impl Dialect for Vosk {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        Evidence::Ack
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        slices(pcm, chunk_bytes)
    }

    fn session(&self, _start: &SessionStart) -> Box<dyn Session> {
        let mut config = json!({ "sample_rate": 16_000, "words": self.words });
        if let (false, Some(config)) = (self.phrase_list.is_empty(), config.as_object_mut()) {
            config.insert("phrase_list".to_owned(), json!(self.phrase_list));
        }
        Box::new(VoskSession {
            hello: json!({ "config": config }).to_string(),
            transcript: Transcript::new(TextModel::Segment),
        })
    }
}

/// One call's conversation.
#[derive(Debug)]
struct VoskSession {
    hello: String,
    transcript: Transcript,
}

impl Session for VoskSession {
    fn opening(&mut self) -> Vec<Frame> {
        vec![Frame::Text(std::mem::take(&mut self.hello).into())]
    }

    fn ending(&mut self) -> Vec<Frame> {
        vec![Frame::Text(EOF.into())]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        if let alarm @ Signal::Protocol(_) = stranger(Vosk::NAME, &message) {
            return Reading::signal(alarm);
        }
        let (text, is_final) = match (json::text(&message, "partial"), json::text(&message, "text")) {
            (_, Some(text)) => (text, true),
            (Some(text), None) => (text, false),
            // Several alternatives, best first, where the server was started so.
            (None, None) => match message.pointer("/alternatives/0/text").and_then(Value::as_str) {
                Some(text) => (text, true),
                None => return json::unknown(&message),
            },
        };
        let change = self.transcript.apply(None, text, is_final);
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

    fn texts(&self) -> Texts {
        self.transcript.texts()
    }

    fn tail_open(&self) -> bool {
        self.transcript.tail_open()
    }

    fn violations(&self) -> u32 {
        0 // an answer keeps no rule that it could break
    }
}
