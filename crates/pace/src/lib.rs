//! Planned send times without drift, and how late we were.
//!
//! A microphone finishes chunk `i` of a call at one definite moment; that moment, counted from the start of
//! the call, is when the chunk is due. A [`Schedule`] knows these moments as absolute deadlines, so an error
//! on one chunk never moves the next. A [`Pacer`] walks along a schedule and keeps two accounts apart: how
//! late *we* woke, and how long the *server's* back-pressure held the chunk.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use std::time::Duration;
//! use tapedeck_pace::{Pacer, Schedule};
//! use tokio::time::Instant;
//!
//! let start = Instant::now();
//! let schedule = Schedule::new(start, Duration::from_millis(100), Duration::from_millis(250));
//! let mut pacer = Pacer::new(schedule);
//! while let Some(chunk) = pacer.wait().await {
//!     assert_eq!(Instant::now(), schedule.planned(chunk));
//!     pacer.sent(Instant::now()); // once the socket took it
//! }
//! assert_eq!(pacer.lateness().wake_late_us, [0, 0, 0]);
//! assert_eq!(start.elapsed(), Duration::from_millis(250)); // the last chunk is a short one
//! # }
//! ```
//!
//! Read on in [`Schedule`] (when) and [`Pacer`] (how late). Limits: tokio's timer counts whole milliseconds
//! and rounds up, so about 1.1 ms of lateness is its floor on a real clock; whoever judges a client must know
//! that. Nothing here knows what a chunk contains.

mod pacer;
mod schedule;

pub use pacer::{Lateness, Pacer};
pub use schedule::Schedule;

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
