//! Exposition text and GPU read-outs into named samples.
//!
//! An engine's `/metrics` page is [`parse`]d into plain series, [`normalise`] puts them under our own names, and a
//! [`Sampler`] repeats that for a list of sources once a second and hands out [`Sample`]s: a page that could not be read
//! is a gap, never a zero.
//!
//! ```
//! use tapedeck_metrics::{EngineKind, parse, normalise};
//! use tapedeck_record::Metric;
//!
//! let page = parse("vllm:num_preemptions_total{engine=\"0\"} 3\nvllm:num_preemptions_total{engine=\"1\"} 4\n");
//! let understood = normalise(&page, EngineKind::Vllm);
//! assert_eq!(understood.scrape.values[&Metric::Preemptions], 7.0);
//! ```
//!
//! Read on in `parse` and `exposition` (the format, read and written), `understand` and `alias` (whose names mean what),
//! `buckets` (histograms),
//! `scrape` and `sampler` (when and how pages are read), `gpu` and `client` (read-outs that are no page).
//!
//! Limits: no push gateways, no protobuf exposition, no native histograms; a summary's quantiles are not used.
//!
//! [`Sample`]: tapedeck_record::Sample

mod alias;
mod buckets;
#[cfg(feature = "fetch")]
mod client;
mod exposition;
pub mod gpu;
mod normalise;
mod parse;
mod pool;
#[cfg(feature = "fetch")]
mod sampler;
#[cfg(feature = "fetch")]
mod scrape;

pub use alias::{carries, guess_kind, metrics_of};
pub use buckets::{BucketQuantile, Buckets};
#[cfg(feature = "fetch")]
pub use client::{ClientProbe, ClientUse, NoProbe, ProcSelf};
pub use exposition::{Exposition, NumberStyle, count};
pub use normalise::{Missing, Normalised, normalise};
pub use parse::{Kind, Page, Series, parse, why_not_metrics};
pub use pool::{PoolInfo, pool_from_log};
#[cfg(feature = "fetch")]
pub use sampler::{ClientSource, EngineSource, GpuWatch, Reading, Sampler, Source, SourceSummary, Summary};
#[cfg(feature = "fetch")]
pub use scrape::{Fetched, ScrapeError, Scraped, fetch_page, scrape};
pub use tapedeck_record::EngineKind;

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
