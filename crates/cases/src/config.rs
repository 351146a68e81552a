//! The one config file: every key, its unit and its default.
//!
//! All cases read the same TOML. A key that is not known is refused with the nearest known one; flags of the
//! command line override single keys afterwards. Secrets are not part of it: it only names the environment
//! variables that hold them.

mod check;
mod share;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tapedeck_fleet::{Commands, Instance};
use tapedeck_metrics::EngineKind;
use tapedeck_protocol::Dialect;
use tapedeck_protocol::registry::{DialectError, dialect};
use tapedeck_sizing::SizingPlan;
use tapedeck_slo::Limits;
use tapedeck_transport::Secret;

use crate::campaign::CampaignConfig;
use crate::control::BalancerConfig;
use crate::environment::EnvironmentConfig;
use crate::error::{ConfigError, nearest_of};
use crate::gpu::GpuConfig;
use crate::sections::{FootprintConfig, LongCallsConfig, QualityConfig, RepeatConfig, SingleConfig};
use crate::tc05::SoakConfig;
use crate::tc06::FaultConfig;
use crate::tc07::{TopologyConfig, TopologyRules};
use crate::world::endpoint;

/// Everything that a run needs to know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What the streams speak to.
    pub server: Server,
    /// The engines behind it.
    pub instances: Vec<InstanceConfig>,
    /// What stands in front of them.
    pub balancer: BalancerConfig,
    /// The GPUs under them.
    pub gpu: GpuConfig,
    /// What no server tells and the record of the environment should hold.
    pub environment: EnvironmentConfig,
    /// Other ways to cut the GPUs into engines; for TC-07.
    pub topologies: Vec<TopologyConfig>,
    /// What is played: Tape-A.
    pub tape: TapeConfig,
    /// Tape-B, with long calls; for TC-03b and TC-05.
    pub tape_b: TapeConfig,
    /// The tape whose words are known; for TC-04.
    pub labelled: TapeConfig,
    /// A folder of recordings; for TC-05 and `--content pool`.
    pub pool: PoolConfig,
    /// How it is played.
    pub load: LoadConfig,
    /// The tiers of the ladder.
    pub ladder: LadderConfig,
    /// The single stream of TC-01.
    pub single: SingleConfig,
    /// The levels of TC-02.
    pub footprint: FootprintConfig,
    /// The loads of TC-03b.
    pub long_calls: LongCallsConfig,
    /// The loads of TC-04.
    pub quality: QualityConfig,
    /// The tier that TC-08 repeats.
    pub repeat: RepeatConfig,
    /// What theory is told of model, card and sessions.
    pub sizing: SizingPlan,
    /// The limits that decide.
    pub slo: Limits,
    /// TC-05.
    pub soak: SoakConfig,
    /// TC-06.
    pub fault: FaultConfig,
    /// TC-07.
    pub topology: TopologyRules,
    /// All cases together.
    pub campaign: CampaignConfig,
    /// Where results go.
    pub run: RunConfig,
    /// Parameters of the built-in engine, read by `--rehearse` alone.
    pub rehearsal: toml::Table,
}

/// `[server]`: what the streams speak to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// WebSocket address of the load balancer or gateway, e.g. `ws://asr-lb:9000/asr`.
    pub url: String,
    /// Wire protocol; `docs/dialects.md` lists them.
    pub dialect: String,
    /// Settings of that dialect, a table of its own.
    pub options: toml::Table,
    /// Fixed inference window of the server, milliseconds: 2000 for the official Qwen3-ASR streaming, 5000 for
    /// vLLM realtime; leave it out where the server has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
    /// Environment variable that holds the bearer token; left out, none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// PEM file with further certificate authorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate. For laboratories; the report says so.
    pub accept_any_certificate: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            url: String::new(),
            dialect: "pcm-json".into(),
            options: toml::Table::new(),
            window_ms: None,
            token_env: None,
            ca_file: None,
            accept_any_certificate: false,
        }
    }
}

/// `[[instances]]`: one engine behind the balancer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceConfig {
    /// Name in every output, e.g. `inst1`.
    pub name: String,
    /// Address that answers 200 while the engine lives, e.g. `http://gpu-host:9001/health`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Prometheus page, e.g. `http://gpu-host:9001/metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// The instance's own WebSocket address, past the balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    /// Whose metric names to expect: `vllm`, `sglang` or `none`.
    #[serde(default)]
    pub kind: EngineKind,
    /// Whether it may be started, stopped and injured at all; false means hands off, whatever commands there are.
    #[serde(default = "managed")]
    pub managed: bool,
    /// What can be done to it: shell commands on the client's machine, e.g. `ssh gpu-host systemctl restart asr1`.
    #[serde(default)]
    pub commands: Commands,
}

const fn managed() -> bool {
    true
}

impl InstanceConfig {
    pub(crate) fn to_instance(&self, bearer: Option<&Secret>) -> Result<Instance, ConfigError> {
        let parse = |key: &str, url: &Option<String>| {
            let key = format!("instances.{}.{key}", self.name);
            url.as_deref().map(|url| endpoint(&key, url)).transpose()
        };
        Ok(Instance {
            name: self.name.clone(),
            health: parse("health", &self.health)?,
            metrics: parse("metrics", &self.metrics)?,
            direct: parse("direct", &self.direct)?,
            kind: self.kind,
            bearer: bearer.cloned(),
        })
    }
}

/// `[tape]`, `[tape_b]`, `[labelled]`: what is played. An empty manifest means that there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TapeConfig {
    /// Manifest made by `tapectl freeze`.
    pub manifest: PathBuf,
    /// Folder that the manifest's paths are relative to.
    pub pool: PathBuf,
}

/// `[pool]`: a folder of recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// The folder; every usable recording below it belongs to the pool, silent ones included. Empty: there is none.
    pub folder: PathBuf,
    /// Channel of stereo recordings: `left`, `right` or `mix`; needed where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Audio that each stream draws for itself with `--content pool`, seconds.
    pub draw_s: f64,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { folder: PathBuf::new(), channel: None, draw_s: 480.0 }
    }
}

/// `[load]`: how it is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadConfig {
    /// Delay between the starts of two streams, seconds.
    pub ramp_s: f64,
    /// Warm-up after the last stream has started, seconds.
    pub warm_up_s: f64,
    /// Loops of the tape that each stream's window holds.
    pub loops: u32,
    /// Loops for small tiers, whose single loop holds too few calls for a p95.
    pub loops_small: u32,
    /// Largest tier that counts as small, streams.
    pub small_up_to: u32,
    /// Audio per message, milliseconds.
    pub chunk_ms: u32,
    /// Silence sent after each recording before end-of-audio, milliseconds.
    pub tail_silence_ms: u32,
    /// Change one inaudible sample per session, so that no cache keyed by content can hit.
    pub unique_per_session: bool,
    /// How long streams may finish their calls at the end of a tier before they are cut, seconds.
    pub finish_s: f64,
    /// How long the engines may take to become idle afterwards, seconds.
    pub drain_s: f64,
    /// Rest between two tiers, seconds.
    pub cool_down_s: f64,
    /// Distance between two WebSocket pings of a stream, seconds; 0 sends none.
    pub ping_s: f64,
    /// Distance between two read-outs of metrics and GPU, seconds.
    pub sample_s: f64,
    /// Limits on single waits.
    pub timeouts: TimeoutConfig,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            ramp_s: 0.5,
            warm_up_s: 120.0,
            loops: 1,
            loops_small: 3,
            small_up_to: 6,
            chunk_ms: 100,
            tail_silence_ms: 0,
            unique_per_session: false,
            finish_s: 60.0,
            drain_s: 120.0,
            cool_down_s: 60.0,
            ping_s: 10.0,
            sample_s: 1.0,
            timeouts: TimeoutConfig::default(),
        }
    }
}

/// `[load.timeouts]`: limits on single waits; each expiry is an outcome of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutConfig {
    /// Connect, TLS, upgrade and the dialect's ready handshake together, seconds.
    pub connect_s: f64,
    /// No text while speech is owed, seconds.
    pub mute_s: f64,
    /// No byte of any kind, seconds.
    pub idle_s: f64,
    /// From end-of-audio to the final, seconds.
    pub final_s: f64,
}

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self { connect_s: 10.0, mute_s: 30.0, idle_s: 60.0, final_s: 30.0 }
    }
}

/// `[ladder]`: the tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LadderConfig {
    /// Concurrent streams of each tier, ascending.
    pub tiers: Vec<u32>,
    /// Refine between the last passing and the first failing tier.
    pub refine: bool,
    /// Restart the instances before each tier, where draining them is not enough.
    pub restart_each_tier: bool,
    /// What the streams play.
    pub content: LadderContent,
    /// How fast they speak.
    pub pace: Pace,
    /// How often each tier is played.
    pub repeat: u32,
    /// Play a tier again with twice the loops while only its estimate decides.
    pub until_sure: bool,
    /// Loops beyond which `until_sure` gives up.
    pub max_loops: u32,
}

/// What the streams of a ladder play.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LadderContent {
    /// All of them Tape-A.
    #[default]
    Tape,
    /// Each its own draw from the pool.
    Pool,
}

/// How fast streams speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As people do: at 1x real time.
    #[default]
    Real,
    /// Whole calls as fast as the server takes them: the hard ceiling, never N*.
    Off,
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self {
            tiers: vec![3, 6, 12, 18, 24, 30, 36, 48, 60, 75, 90],
            refine: true,
            restart_each_tier: false,
            content: LadderContent::Tape,
            pace: Pace::Real,
            repeat: 1,
            until_sure: false,
            max_loops: 8,
        }
    }
}

/// `[run]`: where results go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Folder under which each run makes its own.
    pub out: PathBuf,
    /// Seed of everything random: bootstraps, and the built-in engine.
    pub seed: u64,
    /// Keep recognised texts in the run directory (`texts-<step>.jsonl`). Calls are personal data: off.
    pub keep_texts: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { out: PathBuf::from("results"), seed: 1, keep_texts: false }
    }
}

impl Config {
    /// Reads and checks a config file; relative paths inside it are relative to the file.
    ///
    /// # Errors
    /// [`ConfigError`], which names the key, the line and the mend.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
        let mut config = Self::parse(&text, path)?;
        let base = path.parent().unwrap_or(Path::new(""));
        let tapes = [&mut config.tape, &mut config.tape_b, &mut config.labelled]
            .into_iter()
            .flat_map(|tape| [&mut tape.manifest, &mut tape.pool])
            .chain([&mut config.pool.folder]);
        let promise = &mut config.sizing.promise;
        for file in
            tapes.chain(&mut config.server.ca_file).chain(&mut promise.histogram).chain(&mut promise.pool)
        {
            if !file.as_os_str().is_empty() {
                *file = base.join(&*file);
            }
        }
        Ok(config)
    }

    /// Parses a config; `path` is only named in errors.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] with line, column and, for a key that is not known, the nearest one that is.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|e| ConfigError::syntax(path, text, &e))
    }

    /// The effective config as it is kept in the run directory.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where a value has no TOML form.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string_pretty(self)
            .map_err(|e| ConfigError::Value { key: "config".into(), why: e.to_string() })
    }

    /// The dialect with its settings.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where the name or one of the settings is not known.
    pub fn dialect(&self) -> Result<Arc<dyn Dialect>, ConfigError> {
        let bad = |why: String| ConfigError::Value { key: "server.options".into(), why };
        let options = serde_json::to_value(&self.server.options).map_err(|e| bad(e.to_string()))?;
        dialect(&self.server.dialect, options).map_err(|e| match &e {
            DialectError::Unknown { name, known } => {
                let near = nearest_of(name, known.split(", "));
                let hint = near.map(|near| format!(": did you mean \"{near}\"?")).unwrap_or_default();
                ConfigError::Value { key: "server.dialect".into(), why: format!("{e}{hint}") }
            }
            DialectError::Settings { .. } => bad(e.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_dialect_is_refused_with_the_nearest() {
        let mut config = Config::default();
        config.server.dialect = "pcmjson".into();
        let message = config.dialect().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            message.starts_with("config key server.dialect: there is no dialect \"pcmjson\""),
            "{message}"
        );
        assert!(message.ends_with("did you mean \"pcm-json\"?"), "{message}");
    }

    #[test]
    fn a_value_with_a_unit_is_refused_in_words_of_a_config() {
        let refused =
            Config::parse("[load]\nramp_s = \"5s\"\n", Path::new("a.toml")).unwrap_err().to_string();
        assert!(refused.contains("expected a number (its unit is the end of the key)"), "{refused}");
    }

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("x.toml"))
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_key() {
        let message = parse("[load]\nramp_s = 0.5\nwarmup_s = 10\n").unwrap_err().to_string();
        assert!(message.contains("x.toml:3"), "{message}");
        assert!(message.contains("warmup_s") && message.contains("did you mean `warm_up_s`"), "{message}");
    }

    #[test]
    fn an_empty_config_is_the_seed_ladder() {
        let config = parse("").unwrap();
        assert_eq!(config.ladder.tiers, [3, 6, 12, 18, 24, 30, 36, 48, 60, 75, 90]);
        assert_eq!(config.load.loops_small, 3);
        config.check().unwrap();
    }

    #[test]
    fn the_effective_config_reads_back_as_itself() {
        let text = "[server]\nurl = \"ws://a/asr\"\nwindow_ms = 2000\n[[instances]]\nname = \"one\"\n";
        let config = parse(text).unwrap();
        assert_eq!(parse(&config.to_toml().unwrap()).unwrap(), config);
    }
}
