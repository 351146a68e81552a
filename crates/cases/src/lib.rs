//! The test cases, each a short script over a [`World`].
//!
//! A case says what happens in which order and leaves the how to the rooms below: `load` plays, `score` and
//! `slo` decide, `fleet` waits for the engines, `rundir` writes down. It reads one
//! [`Config`](tapedeck_config::Config) and talks to an [`Observer`] while it runs.
//!
//! Read on in [`ladder`] (the ladder), [`steps`] and [`point`] (what every load point does), [`workload`] (who plays
//! what), [`prior_results`] (what cases leave for each other), and [`world`] (the seams). No case knows whether it is rehearsed: the worlds differ in one constructor.

pub mod arrivals;
pub mod campaign;
pub mod control;
pub mod doctor;
pub mod environment;
pub mod error;
pub mod fault;
pub mod footprint;
pub mod gpu;
pub mod ladder;
pub mod link;
mod live_stats;
pub mod loaded_tape;
pub mod long_calls;
pub mod point;
pub mod pools;
pub mod prediction;
pub mod prior_results;
pub mod progress;
pub mod quality;
pub mod repeatability;
mod runner;
pub mod shell;
pub mod single_stream;
pub mod soak;
pub mod steps;
pub mod topology;
pub mod words;
pub mod workload;
pub mod world;

pub use error::CaseError;
pub use loaded_tape::{LoadedTape, Role};
pub use progress::{Observer, Phase, Progress, Quiet};
pub use steps::Steps;
pub use workload::Workload;
pub use world::{Machine, Seams, StepBegins, World};
