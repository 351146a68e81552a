//! Dialects: what a connection says, how it reads answers, which evidence it gives.
//!
//! A [`Dialect`] is one wire protocol, sans I/O: it turns a call's audio into [`Frame`]s once, and opens a
//! [`Session`] per call that says the greeting and the end and reads every answer into a [`Reading`]. Whoever
//! owns the socket does the rest and never needs to know which protocol it carries.
//!
//! ```
//! use tapedeck_protocol::{Incoming, SessionStart, Signal, registry};
//!
//! let dialect = registry::dialect("pcm-json", serde_json::json!({ "text_field": "result.text" }))?;
//! let mut session = dialect.session(&SessionStart::default());
//! session.read(Incoming::Text(r#"{"type":"partial","result":{"text":"hel"}}"#));
//! assert_eq!(session.ending().len(), 1); // {"type":"end"}
//! let last = session.read(Incoming::Text(r#"{"type":"final","result":{"text":"hello"}}"#));
//! assert_eq!(last.signal, Signal::Final);
//! assert_eq!(session.texts().finals, "hello");
//! # Ok::<(), tapedeck_protocol::DialectError>(())
//! ```
//!
//! `examples/dialect.rs` is a whole dialect in eighty lines.
//!
//! Read on in [`Dialect`] (the contract), [`Transcript`] (text that is revised), one module for each dialect
//! (from [`pcm_json`], a house's own gateway, to [`openai_transcriptions`], which is no stream at all) and
//! [`registry`] (how a new dialect gets in: one file, one line). Limits: nothing here reads a
//! clock or a socket, and no input makes a session panic.

mod dialect;
mod frame;
pub mod funasr_2pass;
mod json;
pub mod openai_transcriptions;
pub mod pcm_json;
pub mod registry;
pub mod sherpa_onnx;
mod sse;
mod transcript;
pub mod vllm_realtime;
pub mod vosk;
pub mod whisper_live;

pub use dialect::{Dialect, Incoming, Reading, Ready, Session, SessionStart, Signal, Upgrade, Wire};
pub use frame::{Frame, Utf8};
pub use registry::{DialectError, looks_like};
pub use sse::{SseError, SseEvents, is_event_stream};
pub use transcript::{Change, TextModel, Transcript};
