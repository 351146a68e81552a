//! One line for every session.

use serde::Serialize;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It got its final.
    Done,
    /// The caller went away before; the engine was told to stop.
    CallerLeft,
    /// The caller said nothing for too long.
    CallerSilent,
    /// The caller sent something that is not pcm-json.
    CallerWrong,
    /// The call was longer than allowed, or than the engine bears.
    TooLong,
    /// The engine refused, failed or vanished.
    UpstreamFailed,
    /// The engine did not answer in time.
    UpstreamSilent,
}

impl Outcome {
    /// All of them, in the order of the metrics page.
    pub(crate) const ALL: [Self; 7] = [
        Self::Done,
        Self::CallerLeft,
        Self::CallerSilent,
        Self::CallerWrong,
        Self::TooLong,
        Self::UpstreamFailed,
        Self::UpstreamSilent,
    ];

    /// As it stands in the log and on the metrics page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::CallerLeft => "caller_left",
            Self::CallerSilent => "caller_silent",
            Self::CallerWrong => "caller_wrong",
            Self::TooLong => "too_long",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamSilent => "upstream_silent",
        }
    }
}

/// An upstream that a session had to leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// Its name.
    pub from: String,
    /// Windows that it had answered.
    pub windows: u32,
}

/// What is kept of a session: sizes and times, never a word of what was said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionLog {
    /// Number of the session, from 1.
    pub session: u64,
    /// Name of the upstream, the last one if there were several.
    pub upstream: String,
    /// Upstreams that it had before, and why not to the end: nobody was there any more for its next window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// `realtime` or `rolling`.
    pub backend: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, where it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// From the upgrade to the end, seconds.
    pub wall_s: f64,
    /// Audio taken, seconds.
    pub audio_s: f64,
    /// Windows or segments that were answered.
    pub windows: u32,
    /// Messages to the caller.
    pub messages: u32,
    /// Length of the last text, characters.
    pub chars: usize,
}
