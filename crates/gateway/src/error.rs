//! What can be wrong with the options, and what goes wrong upstream.

use std::time::Duration;

use tapedeck_transport::ConnectError;
use thiserror::Error;

/// Options that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Nobody to ask.
    #[error("a gateway needs at least one upstream; give it the address of a vLLM server")]
    NoUpstream,
    /// Two upstreams of one name.
    #[error("two upstreams are called {0:?}; callers are told the name as their instance, so choose others")]
    SameName(String),
    /// A window so short that nothing can be heard in it.
    #[error("a window of {0:?} is too short to hear anything in; the least is 100 ms, the usual 2 s")]
    ShortWindow(Duration),
    /// A backlog that could never fill a window.
    #[error("a backlog of {backlog:?} never fills a window of {step:?}; make it a few windows long")]
    ShortBacklog {
        /// What was set.
        backlog: Duration,
        /// The window or segment.
        step: Duration,
    },
}

/// Why an upstream could not do its part, in words for the caller. None of them quotes recognised text.
#[derive(Debug, Error)]
pub(crate) enum UpstreamError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the engine did not answer within {0:?}")]
    Silent(Duration),
    #[error(
        "the engine has no /v1/realtime (HTTP {0}); it needs vLLM 0.17 or later and, for Qwen3-ASR, \
             --hf-overrides '{{\"architectures\": [\"Qwen3ASRRealtimeGeneration\"]}}'"
    )]
    NoRealtime(u16),
    #[error("the engine refused with HTTP {status}: {words}")]
    Refused { status: u16, words: String },
    #[error("the engine said: {0}")]
    Reported(String),
    #[error("the engine broke the connection: {0}")]
    Broken(String),
    #[error("the engine's answer makes no sense: {0}")]
    Nonsense(&'static str),
    #[error("the engine lists no model; name one")]
    NoModel,
}
