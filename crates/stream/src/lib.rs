//! Text streams: OpenAI-style chat completions, measured piece by piece.
//!
//! Requests go out in a closed loop (so many at once) or at a rate of their own (whether or not the last one has
//! been answered); each answer is read as it comes over server-sent events. First text is the first non-empty
//! `delta.content`, thinking does not count; a chunk is not a token, so gaps are given between chunks and tokens as
//! the server reports them.
//!
//! ```
//! let piece = tapedeck_stream::chat::read(r#"{"choices":[{"delta":{"content":"hi"}}]}"#).unwrap();
//! assert_eq!(piece.content, "hi");
//! ```
//!
//! Read on in [`chat`] (what the events of a stream say), [`reply`] (what is measured of one
//! answer), [`run()`] (when requests go out), [`figures()`] (what they amount to) and [`record()`] (what is kept). Limits:
//! one choice per request, no tools, no retries, a connection per request; connecting is part of the first text.

pub mod chat;
pub mod config;
pub mod figures;
pub mod prompts;
pub mod record;
pub mod reply;
pub mod run;

pub use chat::{Generation, Prompt, Usage};
pub use config::{Config, ConfigError};
pub use figures::{Figures, Percentiles, figures};
pub use record::{Record, Setup, record};
pub use reply::{Outcome, Reply};
pub use run::{Pace, Plan, Target, run};
