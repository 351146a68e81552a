//! The built-in engine's faces: pcm-json WebSocket, `/metrics`, `/health` and a per-connection balancer.
//!
//! `tapedeck-engine-model` knows when an engine would answer; this crate lets it answer, on any byte stream
//! and on tokio's clock, so that the same engine serves an in-memory pipe under a paused clock and a TCP
//! socket in real time. What it says is simulated, and every response says so.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! use tapedeck_engine::{Balancer, Engine, Fixtures, Options, Params};
//!
//! let fixtures = std::sync::Arc::new(Fixtures::default());
//! let engines = (1..=3)
//!     .map(|n| Engine::spawn(Params::default(), fixtures.clone(), Options::new(format!("inst{n}"), n)))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let (client, server) = tokio::io::duplex(64 * 1024);
//! tokio::spawn(Balancer::new(engines).serve(server)); // `client` now speaks HTTP and WebSocket
//! # drop(client);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read on in [`Engine::spawn`] (start an instance), [`EngineHandle::serve`] (give it a connection),
//! [`Fixtures`] (what it knows by heart) and [`FaultInjection`] (how to make it misbehave).
//!
//! Limits: it recognises nothing, it remembers; one dialect only (binary s16le 16 kHz in, cumulative JSON text
//! out); no TLS of its own.

mod balancer;
mod energy;
mod engine;
mod fault_injection;
mod fixtures;
mod http;
mod matcher;
mod options;
mod page;
mod proxy;
mod session;
mod words;

pub use balancer::Balancer;
pub use engine::{Engine, EngineHandle, State};
pub use fault_injection::{FaultInjection, FaultInjectionError, InjectedFault};
pub use fixtures::{Fixtures, KnownCall};
pub use options::{Bearer, Options, Refusal};
pub use proxy::Proxy;
pub use tapedeck_engine_model::{Counters, ParamError, Params};
