//! Everything that can be set, and every bound.

use std::time::Duration;

use tapedeck_transport::{Endpoint, Secret};

use crate::OptionsError;

/// Bytes of a millisecond of 16 kHz mono s16le.
pub(crate) const BYTES_PER_MS: usize = 32;

/// One vLLM server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// What callers are told as `instance`.
    pub name: String,
    /// Where it listens; the path is ignored.
    pub endpoint: Endpoint,
}

impl Upstream {
    /// A server called `name` at `endpoint`.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self { name: name.into(), endpoint }
    }
}

/// How speech becomes text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// vLLM's own WebSocket, `/v1/realtime` (0.17 and later).
    Realtime(Realtime),
    /// Windows over `/v1/chat/completions`, the scheme of the official package.
    Rolling(Rolling),
}

impl Backend {
    /// `realtime` or `rolling`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Realtime(_) => "realtime",
            Self::Rolling(_) => "rolling",
        }
    }
}

/// What the server does behind `/v1/realtime`; nothing here changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realtime {
    /// Audio that the server gathers before it decodes; 5 s for Qwen3-ASR.
    pub segment: Duration,
    /// Tokens by which a session grows at most with every segment; 139 for Qwen3-ASR (65 of audio, 10 of
    /// template, 64 of text). A session that outgrew `max_model_len` would kill the engine, so the gateway
    /// ends it before.
    pub segment_tokens: u32,
}

impl Default for Realtime {
    fn default() -> Self {
        Self { segment: Duration::from_secs(5), segment_tokens: 139 }
    }
}

/// The rolling scheme: all audio so far goes with every window, and the text so far less its unfixed tail
/// goes before the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rolling {
    /// Audio that gathers before the next request; 2 s. A session that fell behind sends all the whole
    /// windows that have gathered in one request.
    pub window: Duration,
    /// Requests at the start of a call whose text is not built upon; 2.
    pub unfixed_chunks: u32,
    /// Tokens at the end of the text so far that the engine may still change; 5.
    pub unfixed_tokens: u32,
    /// Most tokens that a window may add; 64.
    pub max_tokens: u32,
}

impl Default for Rolling {
    fn default() -> Self {
        Self { window: Duration::from_secs(2), unfixed_chunks: 2, unfixed_tokens: 5, max_tokens: 64 }
    }
}

/// How a gateway works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The servers behind it; at least one.
    pub upstreams: Vec<Upstream>,
    /// Name of the model; by default the first that an upstream lists.
    pub model: Option<String>,
    /// How speech becomes text; `realtime` by default.
    pub backend: Backend,
    /// Token for the upstreams.
    pub bearer: Option<Secret>,
    /// Sessions at a time; 256. One more is refused with 503.
    pub max_sessions: u32,
    /// Longest call, seconds of audio; 20 min. Bounds the memory of a rolling session, which keeps its audio
    /// in base64: 2.6 MB a minute.
    pub max_audio: Duration,
    /// Audio that may wait for the engine before the gateway reads no more of a caller; 30 s.
    pub backlog: Duration,
    /// How long a caller may say nothing before the end; 60 s.
    pub idle: Duration,
    /// How long an upstream may take: to accept, for one window, and from a call's end to its final; 60 s.
    pub timeout_after: Duration,
    /// Largest message taken from a caller, bytes; 1 MiB.
    pub max_message_bytes: usize,
}

impl Options {
    /// The defaults in front of these servers.
    #[must_use]
    pub fn new(upstreams: Vec<Upstream>) -> Self {
        Self {
            upstreams,
            model: None,
            backend: Backend::Realtime(Realtime::default()),
            bearer: None,
            max_sessions: 256,
            max_audio: Duration::from_secs(20 * 60),
            backlog: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            timeout_after: Duration::from_secs(60),
            max_message_bytes: 1 << 20,
        }
    }

    /// Looks for settings that cannot work.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if self.upstreams.is_empty() {
            return Err(OptionsError::NoUpstream);
        }
        let mut names: Vec<_> = self.upstreams.iter().map(|u| u.name.as_str()).collect();
        names.sort_unstable();
        if let Some((name, _)) = names.iter().zip(names.iter().skip(1)).find(|(a, b)| a == b) {
            return Err(OptionsError::SameName((*name).to_owned()));
        }
        let step = match &self.backend {
            Backend::Realtime(realtime) => realtime.segment,
            Backend::Rolling(rolling) => rolling.window,
        };
        if step < Duration::from_millis(100) {
            return Err(OptionsError::ShortWindow(step));
        }
        if self.backlog < step {
            return Err(OptionsError::ShortBacklog { backlog: self.backlog, step });
        }
        Ok(())
    }
}

/// Bytes of so much audio, whole samples.
pub(crate) fn audio_bytes(audio: Duration) -> usize {
    usize::try_from(audio.as_millis()).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_MS)
}

/// Milliseconds of so many bytes of audio, rounded down.
pub(crate) fn audio_ms(bytes: usize) -> u32 {
    u32::try_from(bytes / BYTES_PER_MS).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(names: &[&str]) -> Options {
        let at: Endpoint = "http://127.0.0.1:9001".parse().unwrap();
        Options::new(names.iter().map(|name| Upstream::new(*name, at.clone())).collect())
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        assert!(options(&["a", "b"]).check().is_ok());
        let said = options(&["inst1", "b", "inst1"]).check().unwrap_err().to_string();
        assert!(said.contains("\"inst1\""), "{said}");
        assert!(matches!(options(&[]).check(), Err(OptionsError::NoUpstream)));
        let backend = Backend::Rolling(Rolling { window: Duration::from_millis(20), ..Rolling::default() });
        let short = Options { backend, ..options(&["a"]) };
        assert!(matches!(short.check(), Err(OptionsError::ShortWindow(_))));
        let deaf = Options { backlog: Duration::from_secs(1), ..options(&["a"]) };
        assert!(matches!(deaf.check(), Err(OptionsError::ShortBacklog { .. })));
    }
}
