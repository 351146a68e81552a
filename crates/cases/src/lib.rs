//! The test cases, each a short script over a [`World`].
//!
//! A case says what happens in which order and leaves the how to the rooms below: `load` plays, `score` and
//! `slo` decide, `fleet` waits for the engines, `rundir` writes down. It reads one
//! [`Config`](tapedeck_config::Config) and talks to an [`Observer`] while it runs.
//!
//! Read on in [`tc03`] (the ladder), [`steps`] and [`point`] (what every load point does), [`content`] (who plays
//! what), [`earlier`] (what cases leave for each other), and [`world`] (the seams). No case knows whether it is rehearsed: the worlds differ in one constructor.

pub mod arrivals;
pub mod campaign;
pub mod content;
pub mod control;
pub mod doctor;
pub mod earlier;
pub mod environment;
pub mod error;
pub mod foretell;
pub mod gpu;
pub mod link;
mod live_stats;
pub mod point;
pub mod pools;
pub mod progress;
pub mod reel;
mod runner;
pub mod shell;
pub mod steps;
pub mod tc01;
pub mod tc02;
pub mod tc03;
pub mod tc03b;
pub mod tc04;
pub mod tc05;
pub mod tc06;
pub mod tc07;
pub mod tc08;
pub mod words;
pub mod world;

pub use content::Content;
pub use error::CaseError;
pub use progress::{Observer, Phase, Progress, Quiet};
pub use reel::{Reel, Role};
pub use steps::Steps;
pub use world::{Machine, Seams, World};
