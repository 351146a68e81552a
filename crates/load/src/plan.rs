//! What is to be played.

use std::time::Duration;

/// What a run plays, apart from the tape and the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Virtual callers.
    pub streams: u32,
    /// Stagger between the starts of two streams; 0.5 s by default.
    pub ramp: Duration,
    /// Time after the ramp before calls begin to count; 2 min by default.
    pub warm_up: Duration,
    /// How often each stream's window holds the whole tape; 1 by default.
    pub loops: u32,
    /// After the last counted call the streams finish the calls they are in; what is still going on after
    /// this time is cut. 60 s by default.
    pub drain: Duration,
    /// An errored call keeps its stream busy for at least this long, counted from the call's start, so that a
    /// server that refuses is not hammered; 1 s by default. The stream then goes on with the next call.
    pub back_off: Duration,
    /// Whether every chunk of a call is sent as soon as the server takes it instead of when it is spoken: how fast a
    /// server is at most. Latencies mean nothing then; off by default.
    pub at_once: bool,
    /// Limits on waiting.
    pub timeouts: Timeouts,
    /// Period of the WebSocket pings whose round trips are measured; 5 s by default, none for no pings.
    pub ping_every: Option<Duration>,
    /// Largest message that is accepted from the server, bytes; 16 MiB by default.
    pub max_message_bytes: usize,
    /// Whether [`CallResult`](crate::CallResult) carries the words. Words are personal data: off by default.
    pub keep_texts: bool,
    /// Whether one sample of each session's first chunk is changed inaudibly, so that a server which caches
    /// by content does not meet the same audio twice; off by default. Only that one chunk is copied.
    pub unique_per_session: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            streams: 1,
            ramp: Duration::from_millis(500),
            warm_up: Duration::from_secs(120),
            loops: 1,
            drain: Duration::from_secs(60),
            back_off: Duration::from_secs(1),
            at_once: false,
            timeouts: Timeouts::default(),
            ping_every: Some(Duration::from_secs(5)),
            max_message_bytes: 16 << 20,
            keep_texts: false,
            unique_per_session: false,
        }
    }
}

impl Plan {
    /// How long after the run's start the windows open: each stream's at its own next call boundary.
    #[must_use]
    pub fn opens_after(&self) -> Duration {
        self.ramp.saturating_mul(self.streams).saturating_add(self.warm_up)
    }
}

/// Limits on waiting: whatever a server does, a call ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// From `c0` until the session may take audio: look-up, TCP, TLS, upgrade, ready handshake; 10 s.
    pub connect: Duration,
    /// No message of any kind, pings and pongs included; 60 s.
    pub idle: Duration,
    /// No text although speech was owed; 20 s, none to switch it off. It counts from the moment at which a
    /// second of speech has gone by since the last text, and only while the call is spoken, or for as long
    /// as there has been no text at all.
    pub no_response: Option<Duration>,
    /// From the planned end of the audio until the final; 30 s.
    pub final_: Duration,
    /// Silence after end-of-audio that decides the final; overrides the dialect's own.
    pub final_quiet: Option<Duration>,
    /// How long we wait for the server's side of the close after a call; 250 ms. It keeps the next call of
    /// the stream from meeting its own predecessor on a server that is full.
    pub close: Duration,
    /// A sender that woke later than this at any chunk proves nothing about the server: the call becomes
    /// `client_late`, unless it ended in an error; 1 s.
    pub client_late: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            no_response: Some(Duration::from_secs(20)),
            final_: Duration::from_secs(30),
            final_quiet: None,
            close: Duration::from_millis(250),
            client_late: Duration::from_secs(1),
        }
    }
}
