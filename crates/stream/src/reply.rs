//! One answer, read as it comes: a state machine without a clock or a socket of its own.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use tapedeck_protocol::{SseEvents, is_event_stream};
use tapedeck_transport::{ConnectErrorKind, HttpError, ResponseStream};

use crate::chat::{Delta, Usage, read};

/// How a request ended: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The answer has text and ended of its own accord.
    Ok,
    /// It was cut at the limit of tokens (`finish_reason = "length"`).
    LengthCut,
    /// It ended without any text; thinking alone is no answer.
    Empty,
    /// The stream ended without saying why.
    NoFinish,
    /// The server answered with the whole text at once: no first text can be measured.
    NotStreamed,
    /// The server answered with a status that is no success.
    HttpStatus,
    /// The server complained within the stream.
    StreamError,
    /// What came is not what the API promises.
    Protocol,
    /// No connection.
    ConnectFailed,
    /// Not done within the limit.
    TimedOut,
    /// The connection broke off.
    Broken,
}

impl Outcome {
    /// Every outcome, in the order in which tables list them.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::LengthCut,
        Self::Empty,
        Self::NoFinish,
        Self::NotStreamed,
        Self::HttpStatus,
        Self::StreamError,
        Self::Protocol,
        Self::ConnectFailed,
        Self::TimedOut,
        Self::Broken,
    ];

    /// The word used in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::LengthCut => "length_cut",
            Self::Empty => "empty",
            Self::NoFinish => "no_finish",
            Self::NotStreamed => "not_streamed",
            Self::HttpStatus => "http_status",
            Self::StreamError => "stream_error",
            Self::Protocol => "protocol",
            Self::ConnectFailed => "connect_failed",
            Self::TimedOut => "timed_out",
            Self::Broken => "broken",
        }
    }

    /// Whether the answer came whole or was cut where it had to be: its times count.
    #[must_use]
    pub const fn answered(self) -> bool {
        matches!(self, Self::Ok | Self::LengthCut)
    }

    /// Whether it is an error: neither answered nor merely empty.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::LengthCut | Self::Empty | Self::NotStreamed)
    }
}

/// One request and its answer. Times are seconds from the planned start, which in a closed loop is the real one.
/// What never happened is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Ordinal of the request, from 0.
    pub n: u32,
    /// Which prompt of the file, from 0.
    pub prompt: u32,
    /// Whether it was sent before all others, alone, to a server that may have been cold.
    pub cold: bool,
    /// Whether it counts: neither cold nor part of the warm-up. Fixed before it was sent.
    pub counted: bool,
    /// Planned start, seconds from the run's start.
    pub planned_s: f64,
    /// By how much we started later than planned, milliseconds: our own doing.
    pub late_ms: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Somebody's words about what went wrong; never a piece of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Status and headers.
    pub head_s: Option<f64>,
    /// First event that carries anything, thinking included.
    pub first_event_s: Option<f64>,
    /// First non-empty `delta.content`.
    pub ttft_s: Option<f64>,
    /// End of the answer.
    pub total_s: f64,
    /// Gaps between chunks with content, seconds. A chunk may hold several tokens: this is no time per token.
    pub gaps_s: Vec<f64>,
    /// Chunks with content.
    pub chunks: u32,
    /// Characters of content.
    pub chars: u64,
    /// Whether there was thinking.
    pub reasoning: bool,
    /// Comments that kept the connection alive.
    pub comments: u64,
    /// Why the answer ended, in the server's word.
    pub finish_reason: Option<String>,
    /// Whether `[DONE]` came.
    pub done: bool,
    /// Token counts as the server reports them; characters are never counted in their place.
    pub usage: Option<Usage>,
}

/// Largest body that is gathered where the answer is no event stream.
const LARGEST_BODY: usize = 16 << 20;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    reply: Reply,
    events: SseEvents,
    streamed: bool,
    body: BytesMut,
    last_content_s: Option<f64>,
    /// Decided before the end.
    decided: Option<(Outcome, String)>,
}

impl Reader {
    pub(crate) fn new(n: u32, prompt: u32, cold: bool, planned_s: f64, late_ms: f64) -> Self {
        Self {
            reply: Reply {
                n,
                prompt,
                cold,
                counted: !cold,
                planned_s,
                late_ms,
                outcome: Outcome::Broken,
                status: None,
                words: None,
                head_s: None,
                first_event_s: None,
                ttft_s: None,
                total_s: 0.0,
                gaps_s: Vec::new(),
                chunks: 0,
                chars: 0,
                reasoning: false,
                comments: 0,
                finish_reason: None,
                done: false,
                usage: None,
            },
            events: SseEvents::default(),
            streamed: false,
            body: BytesMut::new(),
            last_content_s: None,
            decided: None,
        }
    }

    /// Status and headers, `at_s` seconds after the planned start.
    pub(crate) fn on_head(&mut self, response: &ResponseStream, at_s: f64) {
        self.reply.status = Some(response.status.as_u16());
        self.reply.head_s = Some(at_s);
        self.streamed = response.status.is_success() && is_event_stream(response.content_type.as_deref());
    }

    /// The next piece of the body, `at_s` seconds after the planned start; breaks when nothing more is wanted.
    pub(crate) fn on_body(&mut self, piece: &[u8], at_s: f64) -> ControlFlow<()> {
        if self.streamed {
            let events = self.events.push(piece);
            return self.take(events.map_err(|e| e.to_string()), at_s);
        }
        let room = LARGEST_BODY.saturating_sub(self.body.len());
        self.body.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn take(
        &mut self,
        events: Result<impl IntoIterator<Item = Vec<u8>>, String>,
        at_s: f64,
    ) -> ControlFlow<()> {
        let events = match events {
            Ok(events) => events,
            Err(words) => return self.decide(Outcome::Protocol, words),
        };
        for event in events {
            let Ok(event) = String::from_utf8(event) else {
                return self.decide(Outcome::Protocol, "an event of the stream is not UTF-8".into());
            };
            if event.trim() == "[DONE]" {
                self.reply.done = true;
                // Whatever a server keeps the connection open for afterwards is no part of the answer.
                return ControlFlow::Break(());
            }
            match read(&event) {
                Ok(delta) => self.delta(delta, at_s)?,
                Err(words) => return self.decide(Outcome::Protocol, words),
            }
        }
        ControlFlow::Continue(())
    }

    fn delta(&mut self, delta: Delta, at_s: f64) -> ControlFlow<()> {
        if let Some(words) = delta.error {
            return self.decide(Outcome::StreamError, words);
        }
        let reply = &mut self.reply;
        reply.reasoning |= delta.reasoning;
        if delta.reasoning || !delta.content.is_empty() {
            reply.first_event_s.get_or_insert(at_s);
        }
        if !delta.content.is_empty() {
            reply.ttft_s.get_or_insert(at_s);
            reply.chunks += 1;
            reply.chars += delta.content.chars().count() as u64;
            if let Some(last_s) = self.last_content_s.replace(at_s) {
                reply.gaps_s.push(at_s - last_s);
            }
        }
        if delta.finish_reason.is_some() {
            reply.finish_reason = delta.finish_reason;
        }
        if delta.usage.is_some() {
            reply.usage = delta.usage;
        }
        ControlFlow::Continue(())
    }

    fn decide(&mut self, outcome: Outcome, words: String) -> ControlFlow<()> {
        self.decided.get_or_insert((outcome, words));
        ControlFlow::Break(())
    }

    /// The exchange is over.
    pub(crate) fn end(mut self, ended: Result<(), HttpError>, at_s: f64) -> Reply {
        self.reply.total_s = at_s;
        // What broke off in the middle of a line says nothing.
        if self.streamed && self.decided.is_none() && !self.reply.done && ended.is_ok() {
            let rest = self.events.finish().map_err(|e| e.to_string());
            let _ = self.take(rest, at_s);
        }
        self.reply.comments = self.events.comments();
        let (outcome, words) = match (self.decided.take(), ended) {
            (Some(decided), _) => decided,
            (None, Err(e)) => failed(&e),
            (None, Ok(())) => self.complete(),
        };
        self.reply.outcome = outcome;
        self.reply.words = Some(words.chars().take(200).collect::<String>()).filter(|w| !w.is_empty());
        self.reply
    }

    /// What a whole answer amounts to.
    fn complete(&mut self) -> (Outcome, String) {
        let Some(status) = self.reply.status else { return (Outcome::Broken, "no answer".into()) };
        if !(200..300).contains(&status) {
            return (Outcome::HttpStatus, status_words(&self.body.split().freeze()));
        }
        if !self.streamed {
            return self.whole();
        }
        let reply = &self.reply;
        match reply.finish_reason.as_deref() {
            None => (Outcome::NoFinish, "the stream ended without a finish reason".into()),
            Some(_) if reply.chars == 0 && reply.reasoning => {
                (Outcome::Empty, "thinking, but no answer".into())
            }
            Some(_) if reply.chars == 0 => (Outcome::Empty, String::new()),
            Some("length") => (Outcome::LengthCut, String::new()),
            Some(_) => (Outcome::Ok, String::new()),
        }
    }

    /// An answer that was not streamed.
    fn whole(&mut self) -> (Outcome, String) {
        let body = self.body.split().freeze();
        let delta = std::str::from_utf8(&body).map_err(|_| "not UTF-8".to_owned()).and_then(read);
        let delta = match delta {
            Ok(delta) => delta,
            Err(_) => return (Outcome::Protocol, format!("neither events nor JSON: {}", words_of(&body))),
        };
        if let Some(words) = delta.error {
            return (Outcome::StreamError, words);
        }
        self.reply.chars = delta.content.chars().count() as u64;
        self.reply.finish_reason = delta.finish_reason;
        self.reply.usage = delta.usage;
        (Outcome::NotStreamed, "the whole answer came at once, not as an event stream".into())
    }
}

/// The first bytes of a body as words for a message: cut, and whatever is no text replaced.
fn words_of(body: &Bytes) -> String {
    String::from_utf8_lossy(body.get(..body.len().min(300)).unwrap_or_default()).trim().to_owned()
}

/// What a server says with a status: the complaint in its JSON, else the beginning of its body.
fn status_words(body: &Bytes) -> String {
    let complaint = std::str::from_utf8(body).ok().and_then(|text| read(text).ok()).and_then(|d| d.error);
    complaint.unwrap_or_else(|| words_of(body))
}

fn failed(error: &HttpError) -> (Outcome, String) {
    let outcome = match error {
        HttpError::Connect(e) if e.kind() == ConnectErrorKind::TimedOut => Outcome::TimedOut,
        HttpError::Connect(_) => Outcome::ConnectFailed,
        HttpError::TimedOut { .. } => Outcome::TimedOut,
        HttpError::TooLarge { .. } | HttpError::Request { .. } => Outcome::Protocol,
        HttpError::Broken { .. } => Outcome::Broken,
    };
    (outcome, error.to_string())
}
