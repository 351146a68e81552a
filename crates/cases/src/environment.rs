//! `environment.toml`: what was under test, as far as it can be found out from here.
//!
//! Pages, GPUs and tapes are asked; what none of them tells, the commands of `[environment]` do. Two figures are known
//! only after the first load point and are added then: memory before any load, and how often the prefix cache hit.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_config::{ConfigError, key};
use tapedeck_fleet::{Action, pool_from};
use tapedeck_metrics::{EngineKind, PoolInfo, scrape};
use tapedeck_record::Case;
use tapedeck_rundir::RunDir;
use tapedeck_slo::TierReport;
use tapedeck_transport::{Connector, Endpoint, HttpLimits, Secret, http_get};

use crate::error::CaseError;
use crate::world::{World, seconds};

/// Where it is kept in a run.
const FILE: &str = "environment.toml";

/// The environment of a run. What could not be found out is left out.
#[derive(Debug, Serialize)]
struct Environment {
    tapedeck: String,
    simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_balancer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus_unreadable: Option<String>,
    client: Client,
    server: Server,
    tapes: BTreeMap<String, Tape>,
    instances: BTreeMap<String, Instance>,
    gpus: BTreeMap<String, Gpu>,
    commands: BTreeMap<String, Answer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
}

/// One GPU.
#[derive(Debug, Serialize)]
struct Gpu {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_total_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mig: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

/// What one command of the config told.
#[derive(Debug, Serialize)]
struct Answer {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What is known after the first load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Measured {
    /// The load point.
    step: String,
    /// Prefix cache hits / look-ups while it ran, by instance, 0..1; about 0 where the cache is off.
    #[serde(default)]
    prefix_hit_rate: BTreeMap<String, f64>,
    /// Memory in use before any load, by GPU.
    #[serde(default)]
    vram_before_load_bytes: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct Client {
    os: &'static str,
    arch: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_open_files: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Server {
    url: String,
    dialect: String,
    evidence: tapedeck_record::Evidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u32>,
    /// Store and forward: a capacity of whole utterances, not to be compared with a streaming one.
    whole_utterances: bool,
    certificate_checked: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Tape {
    md5: String,
    calls: usize,
    audio_s: f64,
    speech_s: f64,
}

#[derive(Debug, Default, Serialize)]
struct Instance {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kv_pool_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kv_pool_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_model_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix_caching: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_memory_utilization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

impl Instance {
    fn of(kind: &'static str, pool: Option<&PoolInfo>) -> Self {
        let Some(pool) = pool else { return Self { kind, ..Self::default() } };
        Self {
            kind,
            unreadable: None,
            kv_pool_tokens: pool.size_tokens,
            kv_pool_source: Some(pool.source.clone()),
            block_size: pool.block_size,
            max_model_len: pool.max_model_len,
            prefix_caching: pool.prefix_caching,
            gpu_memory_utilization: pool.gpu_memory_utilization,
            ..Self::default()
        }
    }

    /// Adds what the engine's own pages say of version and model.
    async fn ask(
        &mut self,
        connector: &dyn Connector,
        page: &Endpoint,
        bearer: Option<&Secret>,
        sglang: bool,
    ) {
        let limits = HttpLimits { timeout: Duration::from_secs(3), max_bytes: 1 << 20 };
        let json = async |path: &str| -> Option<serde_json::Value> {
            let answer = http_get(connector, &page.with_path(path), bearer, limits).await.ok()?;
            answer.status.is_success().then(|| serde_json::from_slice(&answer.body).ok())?
        };
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let version = json(if sglang { "/get_server_info" } else { "/version" }).await;
        self.engine_version = version.and_then(|v| text(v.get("version")?));
        let models = json("/v1/models").await;
        if let Some(model) = models.as_ref().and_then(|m| m.get("data")?.get(0)) {
            self.model = model.get("id").and_then(text);
            let longest = model.get("max_model_len").and_then(serde_json::Value::as_u64);
            self.max_model_len = self.max_model_len.or(longest);
        }
    }
}

/// Finds out what can be found out and writes it down.
///
/// # Errors
/// Whatever the run directory refuses. An instance that does not answer is noted, not an error.
pub async fn record(world: &World, dir: &RunDir) -> Result<(), CaseError> {
    let mut instances = BTreeMap::new();
    for instance in &world.instances {
        let kind = instance.kind.name();
        let known = match &instance.metrics {
            Some(endpoint) if instance.kind != EngineKind::None => {
                let bearer = instance.bearer.as_ref();
                let read =
                    scrape(&*world.connector, endpoint, bearer, instance.kind, HttpLimits::default()).await;
                match read {
                    Ok(scraped) => {
                        let pool = pool(world, &instance.name, scraped.normalised.pool).await;
                        let mut known = Instance::of(kind, pool.as_ref());
                        let sglang = instance.kind == EngineKind::Sglang;
                        known.ask(&*world.connector, endpoint, bearer, sglang).await;
                        known
                    }
                    Err(e) => Instance { kind, unreadable: Some(e.to_string()), ..Instance::default() },
                }
            }
            _ => Instance::of(kind, pool(world, &instance.name, None).await.as_ref()),
        };
        instances.insert(instance.name.clone(), known);
    }
    let others = world.loaded_tapes.values().map(|loaded_tape| &loaded_tape.tape);
    let tapes = [&world.tape].into_iter().chain(others).map(|tape| {
        let known = Tape {
            md5: tape.md5.clone(),
            calls: tape.calls.len(),
            audio_s: ms_to_s(tape.duration_ms()),
            speech_s: ms_to_s(tape.speech_ms()),
        };
        (tape.manifest.name.clone(), known)
    });
    let earlier = Earlier::read(dir);
    let (gpus, gpus_unreadable) = gpus(world).await;
    let environment = Environment {
        tapedeck: env!("CARGO_PKG_VERSION").into(),
        simulated: world.simulated,
        load_balancer: world.config.environment.load_balancer.clone(),
        gpus_unreadable,
        client: Client {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cores: std::thread::available_parallelism().ok().map(Into::into),
            max_open_files: world.machine.max_open_files(),
        },
        server: Server {
            url: world.target.endpoint.to_string(),
            dialect: world.target.dialect.name().into(),
            evidence: world.target.dialect.evidence(),
            window_ms: world.config.server.window_ms,
            whole_utterances: !world.target.dialect.answers_during_call(),
            certificate_checked: !world.config.server.accept_any_certificate,
        },
        tapes: earlier.tapes.into_iter().chain(tapes).collect(),
        instances,
        gpus,
        commands: commands(world).await,
        measured: earlier.measured,
    };
    write(dir, &environment)
}

/// Adds what is known after a load point; the first one of a run is kept.
///
/// # Errors
/// Whatever the run directory refuses.
pub(crate) fn measured(
    world: &World,
    dir: &RunDir,
    step: &str,
    report: &TierReport,
) -> Result<(), CaseError> {
    let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default();
    let Ok(mut known) = toml::from_str::<toml::Table>(&text) else { return Ok(()) };
    if known.is_empty() || known.contains_key("measured") {
        return Ok(());
    }
    let rates = report.instances.iter().filter_map(|(name, i)| Some((name.clone(), i.prefix_hit_rate?)));
    let measured = Measured {
        step: step.to_owned(),
        prefix_hit_rate: rates.collect(),
        vram_before_load_bytes: world.vram_baseline.get().cloned().unwrap_or_default(),
    };
    known.insert("measured".into(), toml::Value::try_from(&measured).map_err(refused)?);
    write(dir, &known)
}

fn write(dir: &RunDir, what: &impl Serialize) -> Result<(), CaseError> {
    let toml = toml::to_string_pretty(what).map_err(refused)?;
    Ok(dir.write_file(FILE, toml.as_bytes())?)
}

fn refused(error: toml::ser::Error) -> ConfigError {
    ConfigError::value(key!(environment), error.to_string())
}

/// Every GPU that the sources tell of, and why a source told nothing.
async fn gpus(world: &World) -> (BTreeMap<String, Gpu>, Option<String>) {
    let (mut found, mut whys) = (BTreeMap::new(), Vec::new());
    for source in &world.gpus {
        match source.read().await {
            Err(error) => whys.push(error.to_string()),
            Ok(devices) => {
                for device in devices {
                    let gpu = Gpu {
                        unreadable: device.why_unreadable().map(str::to_owned),
                        name: device.name,
                        driver: device.driver,
                        memory_total_bytes: device.reading.memory_total_bytes,
                        mig: device.mig,
                    };
                    found.entry(device.id).or_insert(gpu);
                }
            }
        }
    }
    (found, (!whys.is_empty()).then(|| whys.join("; ")))
}

/// What the commands of the config tell, one after the other.
async fn commands(world: &World) -> BTreeMap<String, Answer> {
    let config = &world.config.environment;
    let mut answers = BTreeMap::new();
    for (name, command) in &config.commands {
        // A rehearsal runs no command, and says nothing of what it would have told.
        let Some(told) = world.machine.ask(command, seconds(config.timeout_s)).await else { continue };
        let (output, error) = match told {
            Ok(output) => (Some(output), None),
            Err(error) => (None, Some(error)),
        };
        answers.insert(name.clone(), Answer { command: command.clone(), output, error });
    }
    answers
}

/// Memory in use on each GPU before any load, as the run's first load point found it.
pub(crate) fn vram_before_load(dir: &RunDir) -> BTreeMap<String, u64> {
    let measured = Earlier::read(dir).measured;
    // Another topology has other engines on the same GPUs.
    let there = |m: &Measured| dir.finished(&m.step).is_some_and(|s| s.id.case != Case::Topology);
    measured.filter(there).map(|m| m.vram_before_load_bytes).unwrap_or_default()
}

/// What earlier cases of the same run wrote down.
#[derive(Default, Deserialize)]
struct Earlier {
    #[serde(default)]
    tapes: BTreeMap<String, Tape>,
    measured: Option<Measured>,
}

impl Earlier {
    fn read(dir: &RunDir) -> Self {
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default();
        // A file that cannot be read is written anew.
        toml::from_str(&text).unwrap_or_default()
    }
}

/// The KV pool as the page tells it; what the page leaves out, the instance's log may tell.
pub(crate) async fn pool(world: &World, instance: &str, page: Option<PoolInfo>) -> Option<PoolInfo> {
    let told = page.as_ref().is_some_and(|pool| pool.size_tokens.is_some());
    if told || !world.control.can(instance, Action::Log) {
        return page;
    }
    // A log that cannot be had is no reason to stop: what is not known stays empty.
    match (page, pool_from(&*world.control, instance).await.ok().flatten()) {
        (Some(mut page), Some(log)) => {
            page.fill_from(&log);
            Some(page)
        }
        (page, log) => page.or(log),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the length of a tape is far below 2^53 ms")]
fn ms_to_s(ms: u64) -> f64 {
    ms as f64 / 1e3
}
