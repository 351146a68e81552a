//! Raw traces in, per-call figures out, purely.
//!
//! A trace says when things happened; the figures say how late that was. Latencies count from *planned* instants, so
//! back-pressure cannot hide a delay, and what a trace does not show stays empty.
//!
//! ```
//! use tapedeck_record::{CallMeta, Evidence, Trace};
//! use tapedeck_score::{Rules, Words, score};
//!
//! fn rescore(trace: &Trace, meta: &CallMeta) -> Option<f64> {
//!     let rules = Rules::new(Evidence::Position, Some(2000)); // a server that infers every 2 s
//!     let record = score(trace, meta, &rules, &Words::default());
//!     record.ttft_window_s // seconds from the end of the first window with speech to the first text
//! }
//! ```
//!
//! Read on in [`score()`] (every figure) and [`outstanding_intervals`] (when the server owed an answer, the ground of the
//! real-time factor). The meaning of each field stands on [`CallRecord`](tapedeck_record::CallRecord).
//!
//! Limits: a dialect whose messages do not tell which audio they cover ([`Evidence::None`](tapedeck_record::Evidence))
//! has no real-time factor here, and no assumption takes its place.

mod outstanding;
mod score;

pub use outstanding::{Outstanding, outstanding_intervals, union_ns};
pub use score::{Rules, Words, score};

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
