//! Virtual callers: N streams at 1x real time, yielding traces.
//!
//! A [`PreparedCalls`] holds the calls of a tape, framed once and shared by everybody. [`run`] lets `streams` virtual
//! callers play it against a [`Target`]: each one places call after call over connections of its own, sends
//! every chunk when a microphone would have finished it, reads whatever comes back, and leaves a
//! [`Trace`](tapedeck_record::Trace) of each call. Which calls count is fixed before any outcome is known.
//!
//! ```no_run
//! # async fn demo(calls: Vec<(tapedeck_record::CallMeta, bytes::Bytes)>) -> Result<(), Box<dyn std::error::Error>> {
//! use std::{sync::Arc, time::Duration};
//! use tapedeck_load::{Control, Plan, PreparedCalls, Target, run};
//! use tapedeck_transport::{NetConnector, NetOptions};
//!
//! let dialect = tapedeck_protocol::registry::dialect("pcm-json", serde_json::Value::Null)?;
//! let prepared = Arc::new(PreparedCalls::new(&*dialect, Duration::from_millis(100), Duration::ZERO, calls)?);
//! let connector = Arc::new(NetConnector::new(NetOptions::default())?);
//! let target = Target { connector, endpoint: "ws://gpu-host:9000/asr".parse()?, dialect, bearer: None };
//! let plan = Plan { streams: 24, ..Plan::default() };
//! let (played, mut calls) = tokio::sync::mpsc::unbounded_channel();
//! let origin = tokio::time::Instant::now();
//! let run = tokio::spawn(run(plan, prepared, target, origin, Control::new(), played));
//! while let Some(call) = calls.recv().await {
//!     println!("{:?}", call.trace.outcome);
//! }
//! println!("{:?}", run.await?);
//! # Ok(()) }
//! ```
//!
//! `examples/drive.rs` plays and scores a load whole, without any server.
//!
//! Read on in [`Plan`] (what is played), [`Assignment`] (who plays which tape), [`run`] (which calls count, how it ends),
//! [`arrivals`] (calls that come when they come), [`Control`] (how to end it sooner) and [`Timeouts`] (why nothing
//! hangs). Limits: one connection per
//! call, [`run`] is a closed loop (a stream's next call waits for its last), and nothing here knows of limits or
//! verdicts.

pub mod arrivals;
mod assignment;
mod call;
mod control;
mod kept;
mod open;
mod plan;
mod prepared;
mod run;
mod session_driver;
mod stream;
mod target;
mod watchdog;

pub use assignment::{Assignment, Item};
pub use control::Control;
pub use plan::{Plan, Timeouts};
pub use prepared::{PrepareError, PreparedCall, PreparedCalls, shortened};
pub use run::{Summary, run};
pub use target::{CallResult, Target};
