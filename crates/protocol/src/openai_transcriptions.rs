//! `openai-transcriptions`: one upload per call to `/v1/audio/transcriptions`, as OpenAI defined it and vLLM
//! and many others serve it.
//!
//! This is store and forward, not streaming: the body is sent when the call would have ended, and the answer
//! belongs to the whole utterance. What it measures is how long somebody waits after the last word; a capacity
//! found with it is one of whole utterances and never to be compared with a streaming one.

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Session, SessionStart, Signal, TextModel, Transcript, Upgrade, Wire,
    frame::slices,
    json,
    registry::{Settings, stranger},
};

/// What parts the fields of a body. It would have to occur in audio by chance to do harm.
const BOUNDARY: &str = "tapedeck-7dA1kTq0Zs9vXw3LmR5c";
/// Nanoseconds of one sample at 16 kHz.
const SAMPLE_NS: u128 = 62_500;

/// The settings of `openai-transcriptions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenAiTranscriptions {
    /// The served model's name. Default `Qwen/Qwen3-ASR-1.7B`.
    pub model: String,
    /// Language spoken, ISO 639-1, e.g. `en`. Default none: the server finds out.
    pub language: Option<String>,
    /// Whether the server is asked to answer piece by piece (SSE). Default true.
    pub stream: bool,
    /// Text to prompt the model with. Default none.
    pub prompt: Option<String>,
    /// Sampling temperature. Default none: the server's own.
    pub temperature: Option<f64>,
    /// Most tokens the model may write; without it a model that loops fills its context. Default none.
    pub max_completion_tokens: Option<u32>,
}

impl Default for OpenAiTranscriptions {
    fn default() -> Self {
        Self {
            model: "Qwen/Qwen3-ASR-1.7B".to_owned(),
            language: None,
            stream: true,
            prompt: None,
            temperature: None,
            max_completion_tokens: None,
        }
    }
}

impl Settings for OpenAiTranscriptions {
    const NAME: &'static str = "openai-transcriptions";

    fn check(&self) -> Result<(), String> {
        if self.model.trim().is_empty() {
            return Err("model: must name the served model, as /v1/models lists it".to_owned());
        }
        for (key, value) in [
            ("model", Some(&self.model)),
            ("language", self.language.as_ref()),
            ("prompt", self.prompt.as_ref()),
        ] {
            if value.is_some_and(|v| v.contains(BOUNDARY)) {
                return Err(format!("{key}: must not hold the boundary {BOUNDARY}"));
            }
        }
        if self.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return Err("temperature: must be from 0 to 2".to_owned());
        }
        Ok(())
    }

    fn signs(message: &Value) -> bool {
        json::text(message, "object") == Some("transcription.chunk")
    }
}

impl Dialect for OpenAiTranscriptions {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        Evidence::None
    }

    fn wire(&self) -> Wire {
        Wire::Http
    }

    fn answers_during_call(&self) -> bool {
        false
    }

    fn requests_are_work(&self) -> bool {
        true
    }

    fn upgrade(&self) -> Upgrade {
        let content = format!("multipart/form-data; boundary={BOUNDARY}");
        Upgrade { headers: vec![("content-type".to_owned(), content)], subprotocol: None }
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        slices(pcm, chunk_bytes)
    }

    fn session(&self, start: &SessionStart) -> Box<dyn Session> {
        let samples = u32::try_from(start.audio.as_nanos() / SAMPLE_NS).unwrap_or(u32::MAX);
        Box::new(TranscriptionSession {
            head: head(self, samples),
            transcript: Transcript::new(TextModel::Append),
            over: false,
            violations: 0,
        })
    }
}

/// The body as far as the audio: every field, and the head of a WAV file of that many samples.
fn head(settings: &OpenAiTranscriptions, samples: u32) -> Bytes {
    let mut fields = vec![("model", settings.model.clone()), ("response_format", "json".to_owned())];
    fields.extend(settings.language.clone().map(|v| ("language", v)));
    fields.extend(settings.prompt.clone().map(|v| ("prompt", v)));
    fields.extend(settings.temperature.map(|v| ("temperature", v.to_string())));
    fields.extend(settings.max_completion_tokens.map(|v| ("max_completion_tokens", v.to_string())));
    fields.extend(settings.stream.then(|| ("stream", "true".to_owned())));
    let mut out = BytesMut::new();
    for (name, value) in fields {
        let part =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        out.extend_from_slice(part.as_bytes());
    }
    let file = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"call.wav\"\r\n\
         Content-Type: audio/wav\r\n\r\n"
    );
    out.extend_from_slice(file.as_bytes());
    let data_bytes = samples.saturating_mul(2);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&data_bytes.saturating_add(36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt ");
    out.extend_from_slice(&16_u32.to_le_bytes());
    for half in [1_u16, 1] {
        out.extend_from_slice(&half.to_le_bytes()); // PCM, mono
    }
    for word in [16_000_u32, 32_000] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for half in [2_u16, 16] {
        out.extend_from_slice(&half.to_le_bytes());
    }
    out.extend_from_slice(b"data");
    out.extend_from_slice(&data_bytes.to_le_bytes());
    out.freeze()
}

/// One call's conversation.
#[derive(Debug)]
struct TranscriptionSession {
    head: Bytes,
    transcript: Transcript,
    over: bool,
    violations: u32,
}

impl TranscriptionSession {
    fn text(&mut self, text: &str, end: bool) -> Reading {
        let change = self.transcript.apply(None, text, end);
        let kind = match end {
            true => MessageKind::End,
            false if change.chars == 0 => MessageKind::Empty,
            false => MessageKind::Partial,
        };
        self.over |= end;
        let signal = if end { Signal::Final } else { Signal::None };
        Reading { kind, chars: change.chars, signal, ..Reading::EMPTY }
    }
}

impl Session for TranscriptionSession {
    fn opening(&mut self) -> Vec<Frame> {
        vec![Frame::Binary(std::mem::take(&mut self.head))]
    }

    fn ending(&mut self) -> Vec<Frame> {
        vec![Frame::Binary(Bytes::from(format!("\r\n--{BOUNDARY}--\r\n")))]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        if self.over {
            self.violations += 1; // nothing may follow the end
        }
        if matches!(message, Incoming::Text("[DONE]") | Incoming::Binary(b"[DONE]")) {
            return self.text("", true);
        }
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        if let Some(error) = message.get("error") {
            let words =
                json::text(error, "message").or_else(|| error.as_str()).unwrap_or("an error without words");
            return Reading::signal(Signal::ServerError(words.to_owned()));
        }
        match (json::text(&message, "type"), json::text(&message, "text")) {
            // OpenAI's own events, and the plain answer.
            (Some("transcript.text.done"), text) => {
                if text.is_some_and(|t| t.trim() != self.transcript.texts().finals_and_tail) {
                    self.violations += 1; // the end is the sum of its pieces
                }
                self.text("", true)
            }
            (Some("transcript.text.delta"), _) => {
                self.text(json::text(&message, "delta").unwrap_or_default(), false)
            }
            (_, Some(text)) => self.text(text, true),
            _ => match message.pointer("/choices/0/delta/content").and_then(Value::as_str) {
                Some(delta) => self.text(delta, false),
                None if OpenAiTranscriptions::signs(&message) => Reading::EMPTY, // usage, or a finish reason
                None => Reading::signal(stranger(OpenAiTranscriptions::NAME, &message)),
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
