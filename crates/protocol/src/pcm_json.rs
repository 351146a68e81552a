//! `pcm-json`: binary s16le chunks in, JSON text out; a house's own gateway.
//!
//! The client sends 16 kHz mono s16le audio as binary messages and, after the last one, the text message
//! `{"type":"end"}`. The server answers with JSON messages of type `partial` or `final` that carry text and,
//! where it can, the audio position they cover and the name of the instance. Since every house has its own
//! gateway, every name is a setting ([`PcmJson`]).

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Ready, Session, SessionStart, Signal, TextModel, Transcript,
    frame::slices,
    json::{self, Path, number, whole_ms},
    registry::{Settings, stranger},
};

/// Unit in which a server gives times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Milliseconds.
    #[default]
    Ms,
    /// Seconds.
    S,
    /// Samples at 16 kHz.
    Samples,
}

impl TimeUnit {
    const fn to_ms(self, value: f64) -> f64 {
        match self {
            Self::Ms => value,
            Self::S => value * 1000.0,
            Self::Samples => value / 16.0,
        }
    }
}

/// What ends a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndRule {
    /// The first final after our end message.
    #[default]
    FirstFinal,
    /// A message of one of the types in `done`; finals alone end nothing.
    Done,
    /// The server's close.
    Close,
}

/// What a message with text but without a type is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Untyped {
    /// A partial.
    Partial,
    /// A final.
    #[default]
    Final,
}

/// The settings of `pcm-json`. Fields of the server's messages are named by paths: `text`, `result.text`,
/// `alternatives.0.text`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PcmJson {
    /// Where a message tells its type. Default `type`.
    pub type_field: Path,
    /// Types of messages whose text may still change. Default `["partial"]`.
    pub partial: Vec<String>,
    /// Types of messages whose text is final for its segment. Default `["final"]`.
    #[serde(rename = "final")]
    pub final_: Vec<String>,
    /// Types that mark the end of the call, whatever `end_rule` says. Default none.
    pub done: Vec<String>,
    /// Types by which the server reports an error of its own. Default `["error"]`.
    pub error: Vec<String>,
    /// Types by which the server says that it is full. Default `["busy"]`.
    pub busy: Vec<String>,
    /// Types that say that the session may take audio; if any are given, they are waited for. Default none.
    pub ready: Vec<String>,
    /// What a message without a type is taken for. Default `final`.
    pub untyped: Untyped,
    /// Where the text is. Default `text`.
    pub text_field: Path,
    /// Where the covered audio position is; empty where the server gives none. Default `audio_ms`.
    pub position_field: Option<Path>,
    /// Unit of the position. Default `ms`.
    pub position_unit: TimeUnit,
    /// Where the instance's name is. Default `instance`.
    pub instance_field: Option<Path>,
    /// Where a segment's start (or number) is; only for `text_model = "segment"`. Default none: a final
    /// closes the segment.
    pub segment_field: Option<Path>,
    /// Where an error or busy message has its words. Default `message`.
    pub message_field: Path,
    /// What the text of a message stands for. Default `cumulative`.
    pub text_model: TextModel,
    /// What ends a call. Default `first_final`.
    pub end_rule: EndRule,
    /// How the answers tell which audio they cover. Default `position` where `position_field` is set, else
    /// `none`; `ack` for a server that answers every step, silence included.
    pub evidence: Option<Evidence>,
    /// Silence after the end message that decides the final, seconds; for servers that neither mark it nor
    /// close. Default none.
    pub final_quiet_s: Option<f64>,
    /// Text message to send first; empty for none. Default none.
    pub start_message: Option<String>,
    /// Text message to send after the last chunk. Default `{"type":"end"}`.
    pub end_message: String,
}

impl Default for PcmJson {
    fn default() -> Self {
        let words = |list: &[&str]| list.iter().map(|&w| w.to_owned()).collect();
        Self {
            type_field: "type".into(),
            partial: words(&["partial"]),
            final_: words(&["final"]),
            done: Vec::new(),
            error: words(&["error"]),
            busy: words(&["busy"]),
            ready: Vec::new(),
            untyped: Untyped::default(),
            text_field: "text".into(),
            position_field: Some("audio_ms".into()),
            position_unit: TimeUnit::default(),
            instance_field: Some("instance".into()),
            segment_field: None,
            message_field: "message".into(),
            text_model: TextModel::default(),
            end_rule: EndRule::default(),
            evidence: None,
            final_quiet_s: None,
            start_message: None,
            end_message: r#"{"type":"end"}"#.to_owned(),
        }
    }
}

/// What a message's type makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Partial,
    Final,
    Done,
    Error,
    Busy,
    Ready,
    Unknown,
}

impl PcmJson {
    fn class(&self, message: &Value) -> Class {
        let Some(value) = self.type_field.find(message) else {
            return if self.text_field.find(message).is_none() {
                Class::Unknown
            } else if self.untyped == Untyped::Final {
                Class::Final
            } else {
                Class::Partial
            };
        };
        // A flag such as `is_final: true` is compared by its JSON text.
        let owned;
        let name = match value {
            Value::String(s) => s.as_str(),
            other => {
                owned = other.to_string();
                owned.as_str()
            }
        };
        let among = |list: &[String]| list.iter().any(|w| w == name);
        if among(&self.partial) {
            Class::Partial
        } else if among(&self.final_) {
            Class::Final
        } else if among(&self.done) {
            Class::Done
        } else if among(&self.error) {
            Class::Error
        } else if among(&self.busy) {
            Class::Busy
        } else if among(&self.ready) {
            Class::Ready
        } else {
            Class::Unknown
        }
    }
}

impl Settings for PcmJson {
    const NAME: &'static str = "pcm-json";

    fn signs(message: &Value) -> bool {
        let kind = json::text(message, "type");
        matches!(kind, Some("partial" | "final")) && json::text(message, "text").is_some()
    }

    fn check(&self) -> Result<(), String> {
        let refuse = |key: &str, why: &str| Err(format!("{key}: {why}"));
        if self.end_message.is_empty() {
            return refuse(
                "end_message",
                "must not be empty, or the server never learns that the audio ended",
            );
        }
        if self.end_rule == EndRule::Done && self.done.is_empty() {
            return refuse("done", "must name the type of the end marker when end_rule is \"done\"");
        }
        if self.segment_field.is_some() && self.text_model != TextModel::Segment {
            return refuse("segment_field", "only has a meaning with text_model = \"segment\"");
        }
        if self.final_quiet_s.is_some_and(|s| !(s.is_finite() && s > 0.0 && s < 86_400.0)) {
            return refuse("final_quiet_s", "must be a positive number of seconds");
        }
        if self.evidence == Some(Evidence::Position) && self.position_field.is_none() {
            return refuse("evidence", "\"position\" needs position_field");
        }
        if self.evidence == Some(Evidence::PerWindow) {
            return refuse(
                "evidence",
                "this dialect cannot tell windows apart; use \"position\", \"ack\" or \"none\"",
            );
        }
        for (key, path) in [("type_field", &self.type_field), ("text_field", &self.text_field)] {
            if path.as_str().is_empty() {
                return refuse(key, "must name a field");
            }
        }
        Ok(())
    }
}

impl Dialect for PcmJson {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        self.evidence.unwrap_or(if self.position_field.is_some() {
            Evidence::Position
        } else {
            Evidence::None
        })
    }

    fn ready(&self) -> Ready {
        if self.ready.is_empty() { Ready::OnOpen } else { Ready::OnMessage }
    }

    fn final_quiet(&self) -> Option<Duration> {
        self.final_quiet_s.and_then(|s| Duration::try_from_secs_f64(s).ok())
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        slices(pcm, chunk_bytes)
    }

    fn session(&self, _start: &SessionStart) -> Box<dyn Session> {
        Box::new(PcmJsonSession {
            transcript: Transcript::new(self.text_model),
            settings: self.clone(),
            ended: false,
            over: false,
            position_ms: None,
            instance: None,
            violations: 0,
        })
    }
}

/// One call's conversation.
#[derive(Debug)]
struct PcmJsonSession {
    settings: PcmJson,
    transcript: Transcript,
    /// We have said that the audio ended.
    ended: bool,
    /// The server has said that the call is over.
    over: bool,
    position_ms: Option<u32>,
    instance: Option<String>,
    violations: u32,
}

impl PcmJsonSession {
    fn words(&self, message: &Value, or: &str) -> String {
        match self.settings.message_field.find(message).or_else(|| self.settings.text_field.find(message)) {
            Some(Value::String(words)) => words.clone(),
            Some(other) => other.to_string(),
            None => or.to_owned(),
        }
    }

    fn position(&mut self, message: &Value) -> Option<u32> {
        let value = self.settings.position_field.as_ref()?.find(message)?;
        let Some(ms) = number(value).and_then(|n| whole_ms(self.settings.position_unit.to_ms(n))) else {
            self.violations += 1; // a position that is no position
            return None;
        };
        if self.position_ms.is_some_and(|before| ms < before) {
            self.violations += 1; // a position that went back
        }
        self.position_ms = self.position_ms.max(Some(ms));
        Some(ms)
    }

    fn text(&mut self, message: &Value, class: Class) -> Reading {
        let settings = &self.settings;
        let text = match settings.text_field.find(message) {
            Some(Value::String(text)) => text.as_str(),
            None => "",
            Some(_) => {
                let why =
                    format!("the field {} holds something else than text", settings.text_field.as_str());
                return Reading::signal(Signal::Protocol(why));
            }
        };
        // Only the order of starts matters, so any unit will do; thousandths keep fractions of seconds apart.
        let start = settings.segment_field.as_ref().and_then(|field| number(field.find(message)?)).map(|n| {
            #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which keeps the order")]
            let key = (n * 1000.0).round() as i64;
            key
        });
        let is_final = class != Class::Partial;
        // An end marker without text ends the call; it does not take the text back.
        let change = if class == Class::Done && text.is_empty() {
            crate::Change::default()
        } else {
            self.transcript.apply(start, text, is_final)
        };
        if change.broke_final {
            self.violations += 1;
        }
        let end = class == Class::Done
            || (class == Class::Final && self.ended && self.settings.end_rule == EndRule::FirstFinal);
        self.over |= end;
        Reading {
            kind: match class {
                _ if end => MessageKind::End,
                _ if change.chars == 0 => MessageKind::Empty,
                Class::Partial => MessageKind::Partial,
                _ => MessageKind::Final,
            },
            chars: change.chars,
            revised: change.revised,
            position_ms: None,
            window: None,
            signal: if end { Signal::Final } else { Signal::None },
        }
    }
}

impl Session for PcmJsonSession {
    fn opening(&mut self) -> Vec<Frame> {
        self.settings.start_message.iter().map(|text| Frame::Text(text.clone().into())).collect()
    }

    fn ending(&mut self) -> Vec<Frame> {
        self.ended = true;
        vec![Frame::Text(self.settings.end_message.clone().into())]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        if self.over {
            self.violations += 1; // nothing may follow the end
        }
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        if self.instance.is_none() {
            let name = self.settings.instance_field.as_ref().and_then(|f| f.find(&message)?.as_str());
            self.instance = name.map(|n| n.chars().take(200).collect());
        }
        let position_ms = self.position(&message);
        let class = self.settings.class(&message);
        // Without a type, text of another dialect would pass for ours; whoever named the field knows it is.
        let untold = || {
            self.settings.text_field.as_str() == "text" && self.settings.type_field.find(&message).is_none()
        };
        let unsure = class == Class::Unknown || untold();
        if unsure && let alarm @ Signal::Protocol(_) = stranger(PcmJson::NAME, &message) {
            return Reading::signal(alarm);
        }
        let reading = match class {
            Class::Partial | Class::Final | Class::Done => self.text(&message, class),
            Class::Error => {
                Reading::signal(Signal::ServerError(self.words(&message, "an error without words")))
            }
            Class::Busy => Reading::signal(Signal::Busy(self.words(&message, "busy"))),
            Class::Ready => Reading::signal(Signal::Ready),
            // Something that we were not told about, a heartbeat for instance: no text, no harm.
            Class::Unknown => Reading::EMPTY,
        };
        Reading { position_ms, ..reading }
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

    fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }
}
