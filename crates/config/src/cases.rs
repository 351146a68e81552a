//! The sections of single cases: what they play where the ladder's own sections do not say it.

use serde::{Deserialize, Serialize};
use tapedeck_answers::Part;
use tapedeck_slo::{LeakRules, RecoveryRules, RepeatRules};

use crate::server::{BALANCER, Commands, InstanceConfig};

/// `[single]`: TC-01, one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SingleConfig {
    /// Calls of different length that are played.
    pub calls: u32,
    /// How often each is played; the first pass is the cold one.
    pub passes: u32,
}

impl Default for SingleConfig {
    fn default() -> Self {
        Self { calls: 3, passes: 3 }
    }
}

/// `[footprint]`: TC-02, what streams cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FootprintConfig {
    /// Streams in all at each level, ascending; the level without streams comes before them.
    pub levels: Vec<u32>,
    /// How long each level is held at least, seconds; whole loops of the tape.
    pub steady_s: f64,
}

impl Default for FootprintConfig {
    fn default() -> Self {
        Self { levels: vec![1, 8, 24, 48], steady_s: 300.0 }
    }
}

/// `[long_calls]`: TC-03b, N* on the tape with long calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LongCallsConfig {
    /// Loads to try before anything is bisected, shares of N*, ascending.
    pub shares: Vec<f64>,
}

impl Default for LongCallsConfig {
    fn default() -> Self {
        Self { shares: vec![0.5, 1.0] }
    }
}

/// `[quality]`: TC-04, words under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QualityConfig {
    /// Loads at which words are counted, shares of N*, ascending.
    pub shares: Vec<f64>,
    /// Loops of the labelled tape that the single stream plays for the baseline.
    pub baseline_loops: u32,
    /// Loops that every stream plays at each load.
    pub loops: u32,
    /// Draws of the bootstrap by call.
    pub draws: u32,
}

impl Default for QualityConfig {
    fn default() -> Self {
        Self { shares: vec![0.5, 0.8, 1.0], baseline_loops: 1, loops: 1, draws: 2000 }
    }
}

/// `[repeat]`: TC-08, the same tier again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatConfig {
    /// The tier to repeat, streams; where it did not pass, the passing tier nearest below.
    pub middle: u32,
    /// What counts as drift.
    pub rules: RepeatRules,
}

impl Default for RepeatConfig {
    fn default() -> Self {
        Self { middle: 24, rules: RepeatRules::default() }
    }
}

/// `[soak]`: TC-05.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoakConfig {
    /// Streams / N*.
    pub share: f64,
    /// How long the counted calls last, hours.
    pub hours: f64,
    /// Length of a period over which errors and latencies are told, seconds.
    pub period_s: f64,
    /// Restart the instances first, where that is possible, so that every soak begins alike.
    pub restart: bool,
    /// What counts as a leak.
    pub leak: LeakRules,
}

impl Default for SoakConfig {
    fn default() -> Self {
        Self { share: 0.8, hours: 4.0, period_s: 900.0, restart: true, leak: LeakRules::default() }
    }
}

/// `[fault]`: TC-06.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultConfig {
    /// Instance that suffers, by name; left out, the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Loads at which it does, shares of N*, one after the other. The limit on recovery applies to those that the other
    /// instances can carry alone.
    pub shares: Vec<f64>,
    /// Steady load before the fault, after ramp and warm-up, seconds.
    pub steady_s: f64,
    /// From the fault to the command that ends it, seconds.
    pub down_s: f64,
    /// Watching after the instance is well again, seconds.
    pub after_s: f64,
    /// How long the instance may take to become well, seconds.
    pub well_s: f64,
    /// Play one stream straight to each instance, past the balancer, where the config has its direct address.
    pub pinned: bool,
    /// How recovery is judged.
    pub recovery: RecoveryRules,
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            instance: None,
            shares: vec![1.0, 2.0 / 3.0],
            steady_s: 120.0,
            down_s: 180.0,
            after_s: 180.0,
            well_s: 600.0,
            pinned: true,
            recovery: RecoveryRules::default(),
        }
    }
}

/// `[[topologies]]`: one way to cut the GPUs into instances. The first is the one that the other cases measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologyConfig {
    /// Name in every output, e.g. `3x0.30`.
    pub name: String,
    /// Address of its balancer; left out, `server.url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its instances, described and commanded as everywhere. Their names must differ from those of other topologies,
    /// unless they are the same instances.
    #[serde(default)]
    pub instances: Vec<InstanceConfig>,
    /// Commands of its balancer, where it has one of its own.
    #[serde(default)]
    pub balancer: Commands,
    /// What stands for it in a rehearsal: keys as in `[rehearsal]`, which fills what is left out.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub rehearsal: toml::Table,
}

impl TopologyConfig {
    /// The name by which its balancer is commanded.
    #[must_use]
    pub fn balancer_name(&self) -> String {
        format!("{BALANCER}-{}", self.name)
    }
}

/// `[topology]`: TC-07.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopologyRules {
    /// The tiers of the mini-ladder, shares of N*; at the first all topologies are compared.
    pub shares: Vec<f64>,
    /// A lag p95 that is smaller by this share is better...
    pub lag_share: f64,
    /// ...if it is also smaller by so much, seconds.
    pub lag_floor_s: f64,
    /// Room in the KV pool that is more by this much is better, 0..1.
    pub kv_room: f64,
}

impl Default for TopologyRules {
    fn default() -> Self {
        Self { shares: vec![0.8, 1.0, 1.2], lag_share: 0.15, lag_floor_s: 0.05, kv_room: 0.05 }
    }
}

/// What to do where a result puts earlier ones in doubt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Stop, and tell how to go on either way.
    #[default]
    Ask,
    /// Climb the ladder anew, in a run of its own beside this one, and go on with what it finds.
    Rerun,
    /// Note it and go on.
    Accept,
}

/// `[campaign]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CampaignConfig {
    /// Where TC-08 finds drift: draining between tiers was not enough, so a new ladder restarts before each tier.
    pub on_drift: Policy,
    /// Where TC-07 finds a better topology: a new ladder is climbed there.
    pub on_better: Policy,
    /// Parts that are left out.
    pub skip: Vec<Part>,
}
