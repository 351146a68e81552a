//! `whisper-live`: the server of the WhisperLive project.
//!
//! A JSON greeting, then audio as bytes. The server re-sends its last segments with every answer; it hangs up
//! as soon as it hears that the audio has ended, so the last words are seldom made final.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Ready, Session, SessionStart, Signal,
    frame::slices,
    json::{self, flag, number},
    registry::{Settings, stranger},
    transcript::{count, join, taken_back},
};

/// Segments that are kept of one call; a server that sends more is not to be followed.
const MAX_SEGMENTS: usize = 100_000;

/// The settings of `whisper-live`, most of which the greeting passes on as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WhisperLive {
    /// Language spoken; empty lets the server find out. Default `en`.
    pub language: Option<String>,
    /// `transcribe` or `translate`. Default `transcribe`.
    pub task: String,
    /// The recogniser to load. Default `small`.
    pub model: String,
    /// Whether the server leaves out what it takes for silence. Default true.
    pub use_vad: bool,
    /// How many of its last segments the server sends each time. Default 10.
    pub send_last_n_segments: u32,
    /// How sure of silence the server must be to drop a segment, 0..1. Default 0.45.
    pub no_speech_thresh: f64,
    /// Whether the server drops audio that it has heard without words. Default false.
    pub clip_audio: bool,
    /// How often the server must hear the same before it makes it final. Default 10.
    pub same_output_threshold: u32,
}

impl Default for WhisperLive {
    fn default() -> Self {
        Self {
            language: Some("en".to_owned()),
            task: "transcribe".to_owned(),
            model: "small".to_owned(),
            use_vad: true,
            send_last_n_segments: 10,
            no_speech_thresh: 0.45,
            clip_audio: false,
            same_output_threshold: 10,
        }
    }
}

impl Settings for WhisperLive {
    const NAME: &'static str = "whisper-live";

    fn check(&self) -> Result<(), String> {
        if self.send_last_n_segments == 0 {
            return Err("send_last_n_segments: must be 1 or more, or the server sends no text".to_owned());
        }
        if !(0.0..=1.0).contains(&self.no_speech_thresh) {
            return Err("no_speech_thresh: must be from 0 to 1".to_owned());
        }
        Ok(())
    }

    fn signs(message: &Value) -> bool {
        let segment = |s: &Value| s.get("start").is_some() && s.get("text").is_some();
        message.get("segments").and_then(Value::as_array).is_some_and(|all| all.iter().any(segment))
            || json::text(message, "message") == Some("SERVER_READY")
            || (message.get("uid").is_some()
                && matches!(json::text(message, "status"), Some("WAIT" | "ERROR")))
    }
}

impl Dialect for WhisperLive {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        Evidence::None
    }

    fn ready(&self) -> Ready {
        Ready::OnMessage
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        slices(pcm, chunk_bytes)
    }

    fn session(&self, start: &SessionStart) -> Box<dyn Session> {
        let hello = json!({
            "uid": format!("tapedeck-{}-{}", start.stream, start.seq),
            "language": self.language,
            "task": self.task,
            "model": self.model,
            "use_vad": self.use_vad,
            "audio_format": "int16",
            "send_last_n_segments": self.send_last_n_segments,
            "no_speech_thresh": self.no_speech_thresh,
            "clip_audio": self.clip_audio,
            "same_output_threshold": self.same_output_threshold,
        });
        Box::new(WhisperSession { hello: hello.to_string(), segments: BTreeMap::new(), violations: 0 })
    }
}

/// A stretch of the call as last sent.
#[derive(Debug)]
struct Segment {
    end_ms: i64,
    text: String,
    completed: bool,
}

/// One call's conversation.
#[derive(Debug)]
struct WhisperSession {
    hello: String,
    /// By start, milliseconds: the last version wins.
    segments: BTreeMap<i64, Segment>,
    violations: u32,
}

fn ms(value: Option<&Value>) -> Option<i64> {
    let seconds = value.and_then(number)?;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which keeps the order")]
    let ms = (seconds * 1000.0).round() as i64;
    Some(ms)
}

impl WhisperSession {
    fn segment(&mut self, segment: &Value) -> Result<(u32, u32), Signal> {
        let (Some(start_ms), Some(text)) = (ms(segment.get("start")), json::text(segment, "text")) else {
            return Err(Signal::Protocol("a segment without start or text".to_owned()));
        };
        let text = text.trim();
        let completed = flag(segment, "completed").unwrap_or(false);
        let end_ms = ms(segment.get("end")).unwrap_or(start_ms);
        let mut revised = 0;
        // The open tail may begin elsewhere in its next version: the same stretch is not said twice.
        let stale: Vec<i64> = (self.segments.range(..end_ms))
            .rev()
            .take_while(|(_, old)| old.end_ms > start_ms)
            .filter(|&(&start, old)| start != start_ms && !old.completed)
            .map(|(&start, _)| start)
            .collect();
        for old in stale.into_iter().filter_map(|start| self.segments.remove(&start)) {
            revised += taken_back(&old.text, text);
        }
        if let Some(old) = self.segments.get(&start_ms) {
            revised += taken_back(&old.text, text);
            if old.completed && (!completed || old.text != text) {
                self.violations += 1; // completed means completed
            }
        } else if self.segments.len() >= MAX_SEGMENTS {
            return Err(Signal::Protocol(format!("more than {MAX_SEGMENTS} segments in one call")));
        }
        self.segments.insert(start_ms, Segment { end_ms, text: text.to_owned(), completed });
        Ok((count(text), revised))
    }

    fn segments(&mut self, segments: &[Value]) -> Reading {
        let (mut chars, mut revised, mut all_final) = (0_u32, 0_u32, true);
        for segment in segments {
            match self.segment(segment) {
                Ok((more, back)) => {
                    chars = chars.saturating_add(more);
                    revised = revised.saturating_add(back);
                    all_final &= flag(segment, "completed").unwrap_or(false);
                }
                Err(signal) => return Reading::signal(signal),
            }
        }
        let kind = match all_final {
            _ if chars == 0 => MessageKind::Empty,
            true => MessageKind::Final,
            false => MessageKind::Partial,
        };
        Reading { kind, chars, revised, ..Reading::EMPTY }
    }
}

/// The words of a message, whatever they are made of.
fn words(message: &Value) -> String {
    match message.get("message") {
        Some(Value::String(words)) => words.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// What the server says of itself, if the message is about that.
fn status(message: &Value) -> Option<Signal> {
    Some(match (json::text(message, "status"), json::text(message, "message")) {
        (Some("WAIT"), _) => Signal::Busy(format!("WAIT: {} minutes", words(message))),
        (Some("ERROR"), _) => Signal::ServerError(words(message)),
        (Some(_), _) => Signal::None, // a warning, for instance about the backend
        (None, Some("SERVER_READY")) => Signal::Ready,
        (None, Some("DISCONNECT")) => {
            Signal::ServerError("DISCONNECT: the server's max_connection_time is over".to_owned())
        }
        _ => return None,
    })
}

impl Session for WhisperSession {
    fn opening(&mut self) -> Vec<Frame> {
        vec![Frame::Text(std::mem::take(&mut self.hello).into())]
    }

    fn ending(&mut self) -> Vec<Frame> {
        vec![Frame::Binary(Bytes::from_static(b"END_OF_AUDIO"))]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        if let Some(signal) = status(&message) {
            return Reading::signal(signal);
        }
        match message.get("segments") {
            Some(Value::Array(segments)) => self.segments(segments),
            Some(_) => Reading::signal(Signal::Protocol("segments that are no list".to_owned())),
            None => match stranger(WhisperLive::NAME, &message) {
                Signal::None => json::unknown(&message),
                alarm => Reading::signal(alarm),
            },
        }
    }

    fn texts(&self) -> Texts {
        let mut texts = Texts::default();
        for segment in self.segments.values() {
            join(&mut texts.finals_and_tail, &segment.text);
            if segment.completed {
                join(&mut texts.finals, &segment.text);
            }
        }
        texts
    }

    fn tail_open(&self) -> bool {
        self.segments.values().any(|s| !s.completed && !s.text.is_empty())
    }

    fn violations(&self) -> u32 {
        self.violations
    }
}
