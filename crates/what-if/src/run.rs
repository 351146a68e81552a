//! What a run directory tells: config, environment, steps, series.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tapedeck_answers::files::CAPACITY;
use tapedeck_answers::{Ceiling, LongCallsAnswer};
use tapedeck_config::Config;
use tapedeck_l10n::localized;
use tapedeck_record::{Case, Metric, SampleBody};
use tapedeck_rundir::{CommittedStep, RunInfo, read_json, read_run, samples_of};
use tapedeck_sizing::statement::hard_ceiling;
use tapedeck_sizing::{InstanceSeen, LoadPoint, PoolSource};
use tapedeck_slo::Capacity;
use tapedeck_tape::{Manifest, md5_hex};

use crate::error::{RunError, read, unusable};

/// A run, read.
pub struct Run {
    /// Its folder.
    pub path: PathBuf,
    /// What it is: case, seed, tapes.
    pub info: RunInfo,
    /// Whole steps, each once, with its latest figures.
    pub steps: Vec<CommittedStep>,
    /// Every step, in the order of the journal.
    committed: Vec<CommittedStep>,
    /// The config that it was played with.
    pub config: Config,
    environment: Environment,
    /// N*, where a ladder was climbed.
    pub capacity: Option<Capacity>,
    long: Option<LongCallsAnswer>,
    offline: Vec<Ceiling>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Environment {
    server: Server,
    instances: BTreeMap<String, Instance>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Server {
    window_ms: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Instance {
    kv_pool_tokens: Option<u64>,
    kv_pool_source: Option<PoolSource>,
    block_size: Option<u32>,
    max_model_len: Option<u32>,
}

impl Run {
    /// Reads a run directory.
    ///
    /// # Errors
    /// A folder that is no run, files that cannot be read.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let (info, committed) = read_run(path)?;
        let mut steps: Vec<CommittedStep> = Vec::new();
        for step in committed.iter().filter(|step| !step.partial) {
            // A repetition takes the place of what it repeats.
            steps.retain(|earlier| earlier.step != step.step);
            steps.push(step.clone());
        }
        let config = path.join("run.toml");
        let config = Config::parse(&read(&config)?, &config)?;
        let bad = |file: &str, why: String| unusable(format!("{}: {why}", path.join(file).display()));
        let environment = match std::fs::read_to_string(path.join("environment.toml")) {
            Ok(text) => {
                toml::from_str(&text).map_err(|e| bad("environment.toml", e.message().to_string()))?
            }
            Err(_) => Environment::default(),
        };
        Ok(Self {
            path: path.to_path_buf(),
            info,
            steps,
            committed,
            config,
            environment,
            capacity: read_json(path, CAPACITY)?,
            long: tapedeck_answers::read(path)?,
            offline: tapedeck_answers::read(path)?.unwrap_or_default(),
        })
    }

    /// What the long tape carried, where TC-03b played it in this run.
    pub fn long(&self) -> Option<&Capacity> {
        self.long.as_ref().map(|long| &long.capacity)
    }

    /// Streams that the best throughput without pace is good for, where a ladder without pace was climbed in this run.
    pub fn hard_ceiling(&self) -> Option<u32> {
        hard_ceiling(self.offline.iter().filter_map(|tier| tier.audio_s_per_s))
    }

    /// N*, or why there is none.
    pub fn capacity(&self) -> Result<&Capacity, RunError> {
        self.capacity.as_ref().ok_or_else(|| {
            unusable(format!(
                "{}: there is no capacity.json, so this run found no N*; run tc03, or give --n-star",
                self.path.display()
            ))
        })
    }

    /// The manifest of what was played: the named one, else the config's. It must be the one that the run froze.
    pub fn manifest(&self, named: Option<&Path>) -> Result<Manifest, RunError> {
        self.played(named.unwrap_or(&self.config.tape.manifest), "--run-manifest")
    }

    /// The same for the tape with long calls.
    pub fn long_manifest(&self, named: Option<&Path>) -> Result<Manifest, RunError> {
        self.played(named.unwrap_or(&self.config.tape_b.manifest), "--long-manifest")
    }

    fn played(&self, path: &Path, flag: &str) -> Result<Manifest, RunError> {
        let bytes = std::fs::read(path).map_err(|e| {
            let path = path.display();
            unusable(localized!(
                "cannot read the tape that the run played, {path}: {e}; give {flag} FILE",
                "无法读取该次运行播放的带 {path}：{e}；请给出 {flag} FILE"
            ))
        })?;
        let manifest = Manifest::parse(&bytes, path).map_err(|e| unusable(e.to_string()))?;
        let md5 = md5_hex(&bytes);
        let played = self.info.tapes.values().chain(self.info.tapes.keys()).any(|word| *word == md5);
        if !self.info.tapes.is_empty() && !played {
            let path = path.display();
            return Err(unusable(localized!(
                "{path} is not the tape that the run played (its MD5 is {md5}); give {flag} FILE",
                "{path} 不是该次运行播放的带（其 MD5 为 {md5}）；请给出 {flag} FILE"
            )));
        }
        Ok(manifest)
    }

    /// Number of instances.
    #[must_use]
    pub fn instances(&self) -> u32 {
        let n = self.environment.instances.len().max(self.config.instances.len());
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    /// The inference window, milliseconds.
    #[must_use]
    pub fn window_ms(&self) -> Option<u32> {
        self.environment.server.window_ms.or(self.config.server.window_ms)
    }

    /// Tokens in a block of the KV pool.
    #[must_use]
    pub fn block_tokens(&self) -> Option<u32> {
        self.environment.instances.values().find_map(|i| i.block_size)
    }

    /// The longest context, tokens.
    #[must_use]
    pub fn max_model_len(&self) -> Option<u32> {
        self.environment.instances.values().find_map(|i| i.max_model_len)
    }

    /// Mean pool of an instance, tokens; empty unless every instance tells.
    #[expect(clippy::cast_precision_loss, reason = "tokens of a pool")]
    pub fn pool_tokens(&self) -> Option<f64> {
        let pools: Vec<u64> = self.environment.instances.values().filter_map(|i| i.kv_pool_tokens).collect();
        let all = !pools.is_empty() && pools.len() == self.environment.instances.len();
        all.then(|| pools.iter().sum::<u64>() as f64 / pools.len() as f64)
    }

    /// The KV pool of each instance, with where that is known from.
    #[must_use]
    pub fn instances_seen(&self) -> Vec<InstanceSeen> {
        self.environment
            .instances
            .iter()
            .map(|(name, i)| InstanceSeen {
                name: name.clone(),
                pool_tokens: i.kv_pool_tokens,
                pool_source: i.kv_pool_source.clone(),
            })
            .collect()
    }

    /// The mean use of the pool in the window of each step, and the memory used on all cards at the lowest of them.
    pub fn series(&self) -> Result<(Vec<LoadPoint>, Option<f64>), RunError> {
        let mut kv: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
        let mut memory: BTreeMap<&str, BTreeMap<String, (f64, f64)>> = BTreeMap::new();
        for step in &self.steps {
            let window = step.report.window_from_s..=step.report.window_to_s;
            let samples = samples_of(&self.path, &self.committed, &step.step)?;
            for sample in samples.into_iter().filter(|s| window.contains(&s.at_s)) {
                match sample.body {
                    SampleBody::Engine(scrape) => {
                        if let Some(used) = scrape.values.get(&Metric::KvPool) {
                            let (sum, n) = kv.entry(step.step.as_str()).or_default();
                            *sum += used;
                            *n += 1;
                        }
                    }
                    SampleBody::Gpu(reading) => {
                        if let Some(bytes) = reading.memory_used_bytes {
                            let (sum, n) = memory
                                .entry(step.step.as_str())
                                .or_default()
                                .entry(sample.source)
                                .or_default();
                            #[expect(clippy::cast_precision_loss, reason = "bytes of a card")]
                            let bytes = bytes as f64;
                            *sum += bytes;
                            *n += 1.0;
                        }
                    }
                    _ => {}
                }
            }
        }
        let healthy = |s: &&CommittedStep| {
            s.report.preempt_delta.is_none_or(|n| n == 0.0) && s.report.cut_short.is_none()
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
        let points = self
            .steps
            .iter()
            .filter(healthy)
            // TC-06 played to fewer engines, TC-07 to others.
            .filter(|s| !matches!(s.id.case, Case::Fault | Case::Topology))
            .filter(|s| s.report.streams > 0)
            .filter_map(|s| {
                let &(sum, n) = kv.get(s.step.as_str())?;
                Some(LoadPoint { streams: f64::from(s.report.streams), kv_mean: sum / n as f64, n })
            })
            .collect();
        let lowest = self.steps.iter().min_by_key(|s| s.report.streams).map(|s| s.step.as_str());
        let used = lowest
            .and_then(|step| memory.get(step))
            .map(|cards| cards.values().map(|(sum, n)| sum / n).sum::<f64>());
        Ok((points, used))
    }
}
