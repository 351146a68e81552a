//! The one config file: every key with its type, default, range and documentation.
//!
//! All cases, the doctor and the report read the same [`Config`]. A key that is not known is refused with the nearest
//! known one, a number out of its range with the range, and both by their dotted key. `--set KEY=VALUE` overrides single
//! keys ([`Config::set`]). Secrets are not part of it: it only names the environment variables that hold them.
//!
//! ```
//! use tapedeck_config::Config;
//!
//! let mut config = Config::parse("[ladder]\ntiers = [3, 6, 12]\n", "ladder.toml".as_ref())?;
//! assert_eq!(config.load.warm_up_s, 120.0);
//! let typo = Config::parse("[ladder]\ntires = [3]\n", "ladder.toml".as_ref()).unwrap_err();
//! assert!(typo.to_string().contains("did you mean `ladder.tiers`?"));
//! config.set("slo.confidence", "7")?;
//! assert!(config.check().unwrap_err().to_string().contains("slo.confidence = 7"));
//! # Ok::<(), tapedeck_config::ConfigError>(())
//! ```
//!
//! The sections are in [`server`](Server), [`load`](LoadConfig) and their files; each numeric key has its range in
//! [`ranges`]. [`keys`] lists the keys as the types have them, and [`key!`] names one in a message.

mod cases;
mod check;
mod config;
mod document;
mod error;
pub mod keys;
mod load;
pub mod ranges;
mod recorded;
mod run;
mod server;
mod set;
mod share;
mod tapes;

pub use cases::{
    CampaignConfig, FaultConfig, FootprintConfig, LongCallsConfig, Policy, QualityConfig, RepeatConfig,
    SingleConfig, SoakConfig, TopologyConfig, TopologyRules,
};
pub use config::Config;
pub use document::{STARTER, annotated_config};
pub use error::{ConfigError, Place, nearest_of};
pub use load::{LadderConfig, LadderContent, LoadConfig, Pace, TimeoutConfig};
pub use recorded::{Recorded, Unread};
pub use run::RunConfig;
pub use server::{BALANCER, BalancerConfig, Commands, EnvironmentConfig, GpuConfig, InstanceConfig, Server};
pub use set::{NotASetting, Setting};
pub use tapes::{PoolConfig, TapeConfig};
