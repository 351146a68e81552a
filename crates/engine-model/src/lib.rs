//! A model of a speech engine that batches continuously, as vLLM does: the stand-in that a load test is rehearsed
//! against.
//!
//! It is a discrete-event simulation without a clock, a thread or a socket. Sessions hand in audio, the caller says what
//! time it is, words come out. What limits it is what limits a real engine: a step costs time for each request, each
//! prompt token and each token of context in it; KV blocks are finite, and a request that finds none throws another
//! one out. Nowhere does it count streams, so the load at which it breaks is a result and not a setting. The same
//! parameters, seed and inputs give the same outputs, bit for bit.
//!
//! ```
//! use tapedeck_engine_model::{Heard, Model, OutputKind, Params};
//!
//! let mut engine = Model::new(Params::demo(), 7)?;
//! let mut said = Vec::new();
//! engine.open(0, 1)?;
//! // Two and a half seconds of speech arrive; at 2 s a window is complete, the rest waits for the end.
//! engine.audio(2_000_000_000, 1, Heard { total_ms: 2_000, speech_ms: 1_800, digest: 0 });
//! engine.audio(2_500_000_000, 1, Heard { total_ms: 2_500, speech_ms: 2_300, digest: 0 });
//! engine.end(2_500_000_000, 1);
//! while let Some(next_ns) = engine.next_event_ns() {
//!     engine.advance(next_ns, &mut said);
//! }
//! assert!(matches!(said.last().unwrap().kind, OutputKind::Final { covered_ms: 2_500, text_tokens: 11 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read on at [`Params`] for what can be set, [`Model`] for how it is driven, [`OutputKind`] for what it says and in which
//! order, [`Counters`] for what it tells about itself, and [`reference_capacity`] for how many streams a deployment carries.
//!
//! # Limits
//! - Cached prefixes save computing, not memory: requests that share a prefix each hold blocks of their own.
//! - A session that waits for audio is never thrown out while it waits, as in vLLM; it may lose its blocks once its next
//!   window is queued.
//! - The audio encoder has no cost of its own; it is part of what a prompt token costs.
//! - Sessions share nothing but the engine: no instance knows of another, balancing is somebody else's work.

mod cache;
mod counters;
mod faults;
#[cfg(test)]
mod invariants;
mod kv;
mod model;
mod output;
mod params;
pub mod reference_capacity;
mod session;
mod step;
mod vram;

pub use counters::{Counters, Finished, Histogram, TTFT_BOUNDS_NS};
pub use faults::{Faults, Outage, SlowBatch};
pub use model::Model;
pub use output::{Failure, Heard, Output, OutputKind, Refused, SessionId};
pub use params::{Degradation, ParamError, Params, SessionModel, StepCost};
pub use vram::{Vram, VramSeries};
