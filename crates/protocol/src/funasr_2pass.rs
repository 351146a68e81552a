//! `funasr-2pass`: the two-pass servers of FunASR, C++ and Python, from their published protocol.
//!
//! A quick recogniser sends new pieces as they are heard; when somebody pauses, a better one sends the whole
//! sentence, which replaces the pieces since the last.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Session, SessionStart, Signal, Upgrade,
    frame::slices,
    json::{self, flag},
    registry::{Settings, stranger},
    transcript::{count, join, taken_back},
};

/// Which server it is: they end a call differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// `funasr-wss-server-2pass`: `is_final` marks the last message of the call.
    #[default]
    Cpp,
    /// `funasr_wss_server.py`: `is_final` marks every sentence; newer ones answer `is_end`.
    Python,
}

/// The settings of `funasr-2pass`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Funasr2pass {
    /// Which server it is. Default `cpp`.
    pub runtime: Runtime,
    /// Past, present and future that the quick recogniser looks at, steps of 60 ms. Default `[5, 10, 5]`.
    pub chunk_size: [u32; 3],
    /// Messages in which the present is sent, for a server that counts them. Default 10.
    pub chunk_interval: u32,
    /// Words to listen for, in the server's own form. Default none.
    pub hotwords: String,
    /// Whether numbers are written as digits. Default true.
    pub itn: bool,
    /// The WebSocket subprotocol to ask for; `binary` where the server insists. Default none.
    pub subprotocol: Option<String>,
    /// Silence after the end message that decides the final, seconds; for Python servers that do not answer
    /// `is_end`. Default none.
    pub final_quiet_s: Option<f64>,
}

impl Default for Funasr2pass {
    fn default() -> Self {
        Self {
            runtime: Runtime::default(),
            chunk_size: [5, 10, 5],
            chunk_interval: 10,
            hotwords: String::new(),
            itn: true,
            subprotocol: None,
            final_quiet_s: None,
        }
    }
}

impl Settings for Funasr2pass {
    const NAME: &'static str = "funasr-2pass";

    fn check(&self) -> Result<(), String> {
        if self.chunk_interval == 0 || self.chunk_size[1] == 0 {
            return Err("chunk_interval, chunk_size: the present must be 1 step or more".to_owned());
        }
        if self.final_quiet_s.is_some_and(|s| !(s.is_finite() && s > 0.0 && s < 86_400.0)) {
            return Err("final_quiet_s: must be a positive number of seconds".to_owned());
        }
        Ok(())
    }

    fn signs(message: &Value) -> bool {
        matches!(json::text(message, "mode"), Some("2pass-online" | "2pass-offline"))
            || (message.get("wav_name").is_some() && json::text(message, "text").is_some())
    }
}

impl Dialect for Funasr2pass {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        Evidence::None
    }

    fn final_quiet(&self) -> Option<Duration> {
        self.final_quiet_s.and_then(|s| Duration::try_from_secs_f64(s).ok())
    }

    fn upgrade(&self) -> Upgrade {
        Upgrade { subprotocol: self.subprotocol.clone(), ..Upgrade::default() }
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        slices(pcm, chunk_bytes)
    }

    fn session(&self, start: &SessionStart) -> Box<dyn Session> {
        let hello = json!({
            "mode": "2pass",
            "chunk_size": self.chunk_size,
            "chunk_interval": self.chunk_interval,
            "wav_name": format!("tapedeck-{}-{}", start.stream, start.seq),
            "wav_format": "pcm",
            "audio_fs": 16_000,
            "is_speaking": true,
            "hotwords": self.hotwords,
            "itn": self.itn,
        });
        Box::new(FunasrSession {
            hello: hello.to_string(),
            runtime: self.runtime,
            sentences: String::new(),
            open: String::new(),
            ended: false,
            over: false,
            violations: 0,
        })
    }
}

/// One call's conversation.
#[derive(Debug)]
struct FunasrSession {
    hello: String,
    runtime: Runtime,
    /// Sentences that the second pass has written.
    sentences: String,
    /// Pieces of the first pass since then.
    open: String,
    ended: bool,
    over: bool,
    violations: u32,
}

impl FunasrSession {
    /// Whether this is the last message of the call.
    fn is_end(&self, message: &Value) -> bool {
        self.ended
            && match self.runtime {
                Runtime::Cpp => flag(message, "is_final") == Some(true),
                Runtime::Python => flag(message, "is_end") == Some(true),
            }
    }

    fn text(&mut self, message: &Value, text: &str) -> Reading {
        let text = text.trim_start();
        match json::text(message, "mode") {
            Some("2pass-online" | "online") => {
                self.open.push_str(text);
                let chars = count(text.trim());
                let kind = if chars == 0 { MessageKind::Empty } else { MessageKind::Partial };
                Reading { kind, chars, ..Reading::EMPTY }
            }
            // The C++ server leaves the mode out of its last message, which may be empty.
            None if text.is_empty() => Reading::EMPTY,
            Some("2pass-offline" | "offline") | None => {
                let text = text.trim_end();
                let revised = taken_back(self.open.trim(), text);
                self.open.clear();
                join(&mut self.sentences, text);
                let chars = count(text);
                let kind = if chars == 0 { MessageKind::Empty } else { MessageKind::Final };
                Reading { kind, chars, revised, ..Reading::EMPTY }
            }
            Some(_) => {
                self.violations += 1; // there are two passes
                Reading::EMPTY
            }
        }
    }
}

impl Session for FunasrSession {
    fn opening(&mut self) -> Vec<Frame> {
        vec![Frame::Text(std::mem::take(&mut self.hello).into())]
    }

    fn ending(&mut self) -> Vec<Frame> {
        self.ended = true;
        let end = match self.runtime {
            Runtime::Cpp => json!({ "is_speaking": false }),
            Runtime::Python => json!({ "is_speaking": false, "is_end": true }),
        };
        vec![Frame::Text(end.to_string().into())]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        if self.over {
            self.violations += 1; // nothing may follow the end
        }
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        if let alarm @ Signal::Protocol(_) = stranger(Funasr2pass::NAME, &message) {
            return Reading::signal(alarm);
        }
        let reading = match message.get("text") {
            Some(Value::String(text)) => self.text(&message, text),
            Some(_) => {
                return Reading::signal(Signal::Protocol("the field text holds something else".to_owned()));
            }
            None => match json::unknown(&message) {
                complaint if complaint.signal != Signal::None => return complaint,
                nothing => nothing,
            },
        };
        if self.is_end(&message) {
            self.over = true;
            return Reading { kind: MessageKind::End, signal: Signal::Final, ..reading };
        }
        reading
    }

    fn texts(&self) -> Texts {
        let mut all = self.sentences.clone();
        join(&mut all, self.open.trim());
        Texts { finals: self.sentences.clone(), finals_and_tail: all }
    }

    fn tail_open(&self) -> bool {
        !self.open.trim().is_empty()
    }

    fn violations(&self) -> u32 {
        self.violations
    }
}
