//! The config as a whole: reading it, writing it down, and the dialect that it names.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tapedeck_protocol::Dialect;
use tapedeck_protocol::registry::{DialectError, dialect};
use tapedeck_sizing::SizingPlan;
use tapedeck_slo::Limits;

use crate::cases::{
    CampaignConfig, FaultConfig, FootprintConfig, LongCallsConfig, QualityConfig, RepeatConfig, SingleConfig,
    SoakConfig, TopologyConfig, TopologyRules,
};
use crate::error::{ConfigError, Place, nearest_of};
use crate::key;
use crate::load::{LadderConfig, LoadConfig};
use crate::run::RunConfig;
use crate::server::{BalancerConfig, EnvironmentConfig, GpuConfig, InstanceConfig, Server};
use crate::tapes::{PoolConfig, TapeConfig};

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

impl Config {
    /// Reads a config file; relative paths inside it are relative to the file. Numbers are not held against their ranges
    /// yet: flags may still change them, and [`Config::check`] does it once the config is complete.
    ///
    /// # Errors
    /// [`ConfigError`], which names the line, the key and the mend.
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
    /// [`ConfigError::Syntax`] for what is no TOML, [`ConfigError::Unknown`] with the nearest key for one that is not
    /// known, [`ConfigError::Type`] for a value that does not fit; each with line and column.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let place = |error: &toml::de::Error| Place::of(path, text, error.span());
        let document = toml::Deserializer::parse(text).map_err(|e| ConfigError::syntax(place(&e), &e))?;
        serde_path_to_error::deserialize(document)
            .map_err(|e| ConfigError::refused(Some(place(e.inner())), e.path(), e.inner()))
    }

    /// The effective config as it is kept in the run directory.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where a value has no TOML form.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string_pretty(self).map_err(|e| ConfigError::value("config", e.to_string()))
    }

    /// The same as a tree of keys.
    ///
    /// # Errors
    /// As [`Config::to_toml`].
    pub(crate) fn tree(&self) -> Result<toml::Table, ConfigError> {
        toml::Table::try_from(self).map_err(|e| ConfigError::value("config", e.to_string()))
    }

    /// The dialect with its settings.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where the name or one of the settings is not known.
    pub fn dialect(&self) -> Result<Arc<dyn Dialect>, ConfigError> {
        let bad = |why: String| ConfigError::value(key!(server.options), why);
        let options = serde_json::to_value(&self.server.options).map_err(|e| bad(e.to_string()))?;
        dialect(&self.server.dialect, options).map_err(|e| match &e {
            DialectError::Unknown { name, known } => {
                let near = nearest_of(name, known.split(", "));
                let hint = near.map(|near| format!(": did you mean \"{near}\"?")).unwrap_or_default();
                ConfigError::value(key!(server.dialect), format!("{e}{hint}"))
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
    fn a_value_with_a_unit_is_refused_with_its_place_and_its_range() {
        let refused =
            Config::parse("[load]\nramp_s = \"5s\"\n", Path::new("a.toml")).unwrap_err().to_string();
        assert!(refused.starts_with("a.toml:2:10: config key load.ramp_s: invalid type"), "{refused}");
        assert!(refused.ends_with("give 0 to 1000000 seconds"), "{refused}");
    }

    #[test]
    fn a_whole_section_may_be_misspelt() {
        let refused = parse("[laod]\nramp_s = 1.0\n").unwrap_err().to_string();
        assert_eq!(refused, "x.toml:1:2: there is no config key `laod`: did you mean `load`?");
        let refused = parse("[[instances]]\nname = \"a\"\nhelth = \"x\"\n").unwrap_err().to_string();
        assert!(refused.ends_with("`instances.helth`: did you mean `instances.health`?"), "{refused}");
        let refused = parse("[slo]\nttft_p95 = 3\n").unwrap_err().to_string();
        assert!(refused.ends_with("`slo.ttft_p95`: did you mean `slo.ttft_p95_s`?"), "{refused}");
        let refused = parse("[sizing.promise]\nbloking = 0.01\n").unwrap_err().to_string();
        assert!(refused.ends_with("did you mean `sizing.promise.blocking`?"), "{refused}");
        let refused = parse("[slo]\nttft_basis = \"wier\"\n").unwrap_err().to_string();
        assert!(refused.starts_with("x.toml:2:14: config key slo.ttft_basis: "), "{refused}");
        assert!(refused.ends_with("expected one of `wire`, `speech`, `window`"), "{refused}");
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_place() {
        let refused = parse("[load\n").unwrap_err().to_string();
        assert!(refused.starts_with("x.toml:1:"), "{refused}");
    }

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("x.toml"))
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_key() {
        let message = parse("[load]\nramp_s = 0.5\nwarmup_s = 10\n").unwrap_err().to_string();
        assert!(message.contains("x.toml:3"), "{message}");
        assert!(
            message.contains("warmup_s") && message.contains("did you mean `load.warm_up_s`"),
            "{message}"
        );
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
