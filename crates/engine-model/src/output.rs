//! What goes into the model and what comes out of it.

/// A session's name, chosen by the caller; unique among the sessions that are open.
pub type SessionId = u64;

/// All of a session's audio so far. Every field counts from the call's first sample.
///
/// A face that takes audio chunk by chunk keeps three running figures and hands them over with each chunk. Windows are
/// cut at multiples of `window_ms`; when a chunk reaches across such a border, its speech is shared out evenly over
/// the chunk and the border takes the chunk's digest, so split a chunk there where exactness matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Audio received. ms.
    pub total_ms: u32,
    /// Speech in it. ms, at most `total_ms`: from a speech map where the call is known, from energy where it is not.
    pub speech_ms: u32,
    /// A running hash of the samples: equal audio so far, equal digest. The caches know audio by it. 0 = not known,
    /// which never hits.
    pub digest: u64,
}

/// Something the engine says, when, and to whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    /// The instant, on the model's own clock. ns.
    pub at_ns: u64,
    /// The session it belongs to.
    pub session: SessionId,
    /// What it is.
    pub kind: OutputKind,
}

/// The kinds of output. Within a session they come in this order: for each window that holds new text a
/// [`OutputKind::FirstText`], for each window at all a [`OutputKind::Window`], and at the end one
/// [`OutputKind::Final`] or [`OutputKind::Failed`], after which the session is gone.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum OutputKind {
    /// The first new text token of a window. A face sends non-empty text here: the truth takes the first of a call as
    /// its first text.
    FirstText {
        /// The window, counted from 0.
        window: u32,
        /// Audio covered before this window: the position does not move yet. ms.
        covered_ms: u32,
        /// Text tokens of the call so far, this one included.
        text_tokens: u32,
    },
    /// A window is done. It carries the position even where there was nothing to say.
    Window {
        /// The window, counted from 0 (with `coalesce` the last of those answered together).
        window: u32,
        /// Audio covered, this window included. ms.
        covered_ms: u32,
        /// Text tokens of the call so far.
        text_tokens: u32,
        /// Text tokens that this window added.
        new_tokens: u32,
        /// Chance that a word of this window is wrong, 0..1.
        word_error: f64,
    },
    /// All audio is answered; the session is over.
    Final {
        /// Audio covered: all of it. ms.
        covered_ms: u32,
        /// Text tokens of the whole call.
        text_tokens: u32,
    },
    /// The session is over because the engine cannot go on with it.
    Failed(Failure),
}

/// Why a session failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The session outgrew the longest context or the whole KV pool.
    #[error("the session needs {tokens} tokens of context, the engine holds {limit}")]
    TooLong {
        /// Tokens needed.
        tokens: u32,
        /// Tokens there are.
        limit: u32,
    },
    /// The engine's process died.
    #[error("the engine died")]
    Crashed,
}

/// Why a session was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// As many sessions are open as are allowed.
    #[error("too many sessions: {open} are open and {limit} are allowed")]
    Full {
        /// Open sessions.
        open: u32,
        /// `max_sessions`.
        limit: u32,
    },
    /// The engine's process is not there.
    #[error("the engine is down")]
    Down,
    /// The name is taken.
    #[error("session {0} is open already")]
    Duplicate(SessionId),
}
