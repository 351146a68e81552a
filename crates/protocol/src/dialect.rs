//! The contract between a wire protocol and whoever owns the socket.

use std::{fmt, time::Duration};

use bytes::Bytes;
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::Frame;

/// One wire protocol. Shared by all streams; holds settings, never the state of a call.
pub trait Dialect: Send + Sync + fmt::Debug {
    /// The name in config files and reports, e.g. `pcm-json`.
    fn name(&self) -> &'static str;

    /// How its answers tell which audio they cover, and with it which figures can be known.
    fn evidence(&self) -> Evidence;

    /// What carries it.
    fn wire(&self) -> Wire {
        Wire::WebSocket
    }

    /// When a session may take audio. Only asked of a WebSocket.
    fn ready(&self) -> Ready {
        Ready::OnOpen
    }

    /// Length of the server's fixed inference window, where it has one.
    fn window(&self) -> Option<Duration> {
        None
    }

    /// How long a silence after end-of-audio decides that the last text was the final. Only for protocols
    /// that neither mark the end nor close.
    fn final_quiet(&self) -> Option<Duration> {
        None
    }

    /// Whether the server answers while the call is spoken. If it does not (store and forward), silence
    /// during the call proves nothing.
    fn answers_during_call(&self) -> bool {
        true
    }

    /// Whether the engine counts a call as requests that are work from their first instant to their last. Only then
    /// do the sums of its latency histograms mean processing time; a session that waits for audio inside one request
    /// swells them by its own length.
    fn requests_are_work(&self) -> bool {
        false
    }

    /// The longest call that the server is known to survive, where there is such a limit and we know it. A
    /// longer one must not be played: it may end more than itself.
    fn longest_call(&self) -> Option<Duration> {
        None
    }

    /// What the WebSocket upgrade, or the HTTP request, carries beside the usual.
    fn upgrade(&self) -> Upgrade {
        Upgrade::default()
    }

    /// Turns a call's audio (16 kHz mono s16le) into exactly one frame per chunk of `chunk_bytes`, the last
    /// possibly shorter. Called once per tape call and shared by all streams; where the wire carries the
    /// samples as they are, the frames are slices of `pcm` and nothing is copied.
    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame>;

    /// A fresh session for one call.
    fn session(&self, start: &SessionStart) -> Box<dyn Session>;
}

/// The state of one call's conversation.
pub trait Session: Send {
    /// What to say as soon as the connection is open.
    fn opening(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    /// What to say after the last chunk. From here on the session knows that the audio has ended.
    fn ending(&mut self) -> Vec<Frame>;

    /// Takes in one message. Never panics, whatever it is given.
    fn read(&mut self, message: Incoming<'_>) -> Reading;

    /// Frames that the last messages oblige us to answer with, to be sent now, in order. Empty for most.
    fn replies(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    /// The words so far.
    fn texts(&self) -> Texts;

    /// Whether the server has shown text that it never made final.
    fn tail_open(&self) -> bool;

    /// How often the server broke one of the protocol's own rules.
    fn violations(&self) -> u32;

    /// The instance that serves the call, where the server tells.
    fn instance(&self) -> Option<&str> {
        None
    }
}

/// What carries a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// One WebSocket per call; every frame is a message of its own.
    #[default]
    WebSocket,
    /// One HTTP POST per call, store and forward: the body is the opening, all prepared frames and the ending,
    /// one after another, and is sent when the call would have ended. Each event of an SSE answer, or the whole
    /// of any other, is one message to [`Session::read`].
    Http,
}

/// When a session may take audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// As soon as the connection is open and the opening frames are sent.
    OnOpen,
    /// When a message has been read as [`Signal::Ready`].
    OnMessage,
}

/// What the upgrade request carries beside the usual headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// Further headers, name and value.
    pub headers: Vec<(String, String)>,
    /// The WebSocket subprotocol to ask for.
    pub subprotocol: Option<String>,
}

/// What a session may need to know of its call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionStart {
    /// Stream number, from 0.
    pub stream: u32,
    /// Ordinal of the call within its stream, from 0.
    pub seq: u32,
    /// Length of the call's audio, tail silence included.
    pub audio: Duration,
}

/// One data message from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
}

impl Incoming<'_> {
    /// Payload bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether it carries nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What one message said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What it was.
    pub kind: MessageKind,
    /// Characters of text it carried, blanks around it left out.
    pub chars: u32,
    /// Characters of text shown before that it took back.
    pub revised: u32,
    /// Audio position that the server says it has covered, milliseconds from the call's first sample.
    pub position_ms: Option<u32>,
    /// Inference window it belongs to, counted from 0, where the protocol can tell.
    pub window: Option<u32>,
    /// What it means for the call.
    pub signal: Signal,
}

impl Reading {
    /// A message without text and without consequence.
    pub const EMPTY: Self = Self {
        kind: MessageKind::Empty,
        chars: 0,
        revised: 0,
        position_ms: None,
        window: None,
        signal: Signal::None,
    };

    /// A message without text that means something.
    #[must_use]
    pub const fn signal(signal: Signal) -> Self {
        Self { signal, ..Self::EMPTY }
    }
}

/// What a message means for the call as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Signal {
    /// Nothing: the call goes on.
    #[default]
    None,
    /// The session may take audio.
    Ready,
    /// The end marker: the call is over.
    Final,
    /// The server says that it is full, in its words.
    Busy(String),
    /// The server reports an error of its own, in its words.
    ServerError(String),
    /// The message breaks the protocol; the text says how.
    Protocol(String),
}
