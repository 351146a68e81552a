//! Statistics that know nothing of what the numbers mean: intervals, bootstrap, robust slopes, Holm.
//!
//! Percentiles are exact order statistics, and every interval says what it assumes: [`quantile_interval`] that
//! observations are independent, [`bootstrap_quantile`] only that groups are, [`theil_sen_with_memory`] that noise
//! forgets within a block.
//!
//! ```
//! use tapedeck_stats::{Resampling, bootstrap_quantile, percentile, quantile_interval, sort};
//!
//! // (stream, seconds): 9 streams with 10 calls each.
//! let calls: Vec<(u32, f64)> = (0..90).map(|i| (i % 9, f64::from(i) / 100.0)).collect();
//! let mut values: Vec<f64> = calls.iter().map(|c| c.1).collect();
//! assert_eq!(percentile(&mut values, 0.95), Some(0.85));
//! sort(&mut values);
//! let by_call = quantile_interval(&values, 0.95, 0.95);
//! let how = Resampling { resamples: 1000, confidence: 0.95, seed: 1, stream: 0 };
//! let by_stream = bootstrap_quantile(&calls, 0.95, &how);
//! assert!(by_call.widest(by_stream).high.unwrap() >= 0.85);
//! ```
//!
//! Read on in [`order`] (what a percentile is), [`binomial`] (how many observations a verdict needs), [`bootstrap`],
//! [`trend`] (does a series get worse), [`slope`] (how fast) and, with the feature `hdr`, `hdr` (per-chunk series).
//!
//! Limits: samples up to some 100,000 values; [`theil_sen`] works on all pairs, so a few thousand points. All chance
//! comes from [`rng::Draws`], so the same seed gives the same bounds everywhere. `fixtures/stats/references.py` makes the
//! figures of SciPy, statsmodels and R that the tests hold against.

pub mod binomial;
pub mod bootstrap;
pub mod counter;
pub mod drift;
#[cfg(feature = "hdr")]
pub mod hdr;
pub mod holm;
pub mod moments;
pub mod normal;
pub mod order;
pub mod rng;
pub mod slope;
pub mod trend;

pub use binomial::{
    interval_ranks, observations_for_upper_bound, observations_needed, quantile_interval, sign_test,
    wilson_interval,
};
pub use bootstrap::{Resampling, bootstrap_quantile, bootstrap_ratio, resampled};
pub use counter::{CounterDelta, counter_delta};
pub use drift::drift_ppm;
pub use holm::holm;
pub use moments::Moments;
pub use order::{ConfidenceInterval, percentile, percentile_sorted, rank, sort};
pub use slope::{Slope, theil_sen, theil_sen_with_memory};
pub use trend::{Trend, rising_trend};

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
