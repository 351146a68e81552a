//! A streaming gateway in front of stock vLLM: binary PCM in over a WebSocket, JSON partials and a final out.
//!
//! vLLM serves Qwen3-ASR, but nothing that a telephone platform can stream calls to as they are spoken. This
//! room is that piece, kept as small as it can be: it takes calls as pcm-json (binary 16 kHz mono s16le,
//! `{"type":"end"}` at the end) and has two ways to get them recognised, see [`Backend`].
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use std::sync::Arc;
//! use tapedeck_gateway::{Gateway, Options, Upstream};
//! use tapedeck_transport::{NetConnector, NetOptions};
//!
//! let upstreams = vec![Upstream::new("inst1", "http://127.0.0.1:9001".parse()?)];
//! let connector = Arc::new(NetConnector::new(NetOptions::default())?);
//! let gateway = Gateway::new(Options::new(upstreams), connector, |log| eprintln!("{log:?}"))?;
//! let (client, server) = tokio::io::duplex(64 * 1024);
//! tokio::spawn(gateway.serve(server)); // `client` now speaks HTTP and WebSocket
//! # drop(client);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read on in [`Gateway::serve`] (one connection), [`Gateway::watch`] (health of the upstreams),
//! [`Gateway::drain`] (going down in peace) and [`Options`] (every bound there is).
//!
//! Limits: no TLS towards callers (a balancer in front does that), 16 kHz mono only, and the words are the
//! engine's: nothing is normalised but the language marks that Qwen3-ASR puts before its text.

mod audio;
mod caller;
mod chat;
mod core;
mod counters;
mod error;
mod gateway;
mod http;
mod log;
mod options;
mod page;
mod realtime;
mod rolling;
mod session;
mod text;
mod upstream;

pub use error::OptionsError;
pub use gateway::Gateway;
pub use log::{Move, Outcome, SessionLog};
pub use options::{Backend, Options, Realtime, Rolling, Upstream};
