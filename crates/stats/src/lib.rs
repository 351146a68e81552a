//! Statistics that know nothing of what the numbers mean: intervals, bootstrap, robust slopes, Holm.

pub mod order;

pub use order::{Bounds, percentile, percentile_sorted, rank, sort};
