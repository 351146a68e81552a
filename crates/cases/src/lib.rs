//! The test cases, each a short script over a [`World`].
//!
//! A case says what happens in which order and leaves the how to the rooms below: `load` plays, `score` and
//! `slo` decide, `fleet` waits for the engines, `rundir` writes down. It reads one [`Config`] and talks to an
//! [`Observer`] while it runs.
//!
//! ```
//! use tapedeck_cases::Config;
//!
//! let config = Config::parse("[ladder]\ntiers = [3, 6, 12]\n", "ladder.toml".as_ref())?;
//! assert_eq!(config.load.warm_up_s, 120.0);
//! let typo = Config::parse("[ladder]\ntires = [3]\n", "ladder.toml".as_ref()).unwrap_err();
//! assert!(typo.to_string().contains("did you mean `tiers`?"));
//! # Ok::<(), tapedeck_cases::ConfigError>(())
//! ```
//!
//! Read on in [`tc03`] (the ladder), [`steps`] and [`point`] (what every load point does), [`content`] (who plays
//! what), [`earlier`] (what cases leave for each other), [`world`] (the seams) and [`config`]. No case knows whether it is rehearsed: the worlds differ in one constructor.

pub mod arrivals;
pub mod campaign;
pub mod config;
pub mod content;
pub mod control;
pub mod doctor;
pub mod earlier;
pub mod environment;
pub mod error;
pub mod foretell;
pub mod gpu;
pub mod link;
pub mod point;
pub mod pools;
pub mod progress;
mod pulse;
pub mod reel;
pub mod sections;
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

pub use config::Config;
pub use content::Content;
pub use error::{CaseError, ConfigError};
pub use progress::{Observer, Phase, Progress, Quiet};
pub use reel::{Reel, Role};
pub use steps::Steps;
pub use world::{Machine, Seams, World};
