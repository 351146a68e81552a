//! Raw traces in, per-call figures out, purely.

mod owed;
mod score;

pub use owed::{Owed, owed_intervals, union_ns};
pub use score::{Rules, Words, score};
