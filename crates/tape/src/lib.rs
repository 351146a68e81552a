//! The tape: pool scan, stratified sampling, manifest, verification, loading.
//!
//! A *pool* is a folder of call recordings; a *tape* is a frozen, ordered choice of them that every load test
//! replays. The choice is written down in a *manifest* that names each recording by content.
//!
//! ```no_run
//! use std::path::Path;
//! use tapedeck_tape::Tape;
//!
//! let tape = Tape::load(Path::new("tapes/tape-a.json"), Path::new("pool-a"))?;
//! for call in &tape.calls {
//!     println!("{} {} ms, {} bytes", call.meta.id, call.meta.duration_ms, call.pcm.len());
//! }
//! # Ok::<(), tapedeck_tape::TapeError>(())
//! ```
//!
//! Read on in [`Pool`] and [`scan`] (what is there), [`freeze`] (how calls are chosen), [`Manifest`] (what is
//! written down), [`verify`] and [`Tape::load`] (what is believed of it: nothing).
//!
//! A tape lives in memory, 32,000 bytes per second of audio; it holds at most two days.

mod atomic;
mod call;
mod digest;
mod error;
mod freeze;
mod load;
mod manifest;
mod parallel;
mod pick;
mod pool;
mod reference;
mod scan;
mod spec;
mod table;
mod travel;
mod verify;

pub use atomic::write_atomic;
pub use call::{Reference, Segment, Tape, TapeCall};
pub use digest::md5_hex;
pub use error::TapeError;
pub use freeze::{FreezeOptions, freeze};
pub use manifest::{Manifest, ManifestCall, Quota, SCHEMA_VERSION};
pub use parallel::for_each;
pub use pick::nominal_bucket;
pub use pool::{Pool, PoolFile};
pub use scan::{FileReport, ScanOptions, lengths_s, read_tags, scan};
pub use spec::Spec;
pub use table::Table;
pub use travel::copy_pool;
pub use verify::verify;

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
