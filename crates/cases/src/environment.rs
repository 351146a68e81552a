//! `environment.toml`: what was under test, as far as it can be found out from here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_fleet::{Action, pool_from};
use tapedeck_metrics::{EngineKind, PoolInfo, scrape};
use tapedeck_rundir::RunDir;
use tapedeck_transport::GetLimits;

use crate::error::{CaseError, ConfigError};
use crate::world::World;

/// The environment of a run. What could not be found out is left out.
#[derive(Debug, Serialize)]
struct Environment {
    tapedeck: String,
    simulated: bool,
    client: Client,
    server: Server,
    tapes: BTreeMap<String, Tape>,
    instances: BTreeMap<String, Instance>,
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
                    scrape(&*world.connector, endpoint, bearer, instance.kind, GetLimits::default()).await;
                match read {
                    Ok(scraped) => Instance::of(
                        kind,
                        pool(world, &instance.name, scraped.understood.pool).await.as_ref(),
                    ),
                    Err(e) => Instance { kind, unreadable: Some(e.to_string()), ..Instance::default() },
                }
            }
            _ => Instance::of(kind, pool(world, &instance.name, None).await.as_ref()),
        };
        instances.insert(instance.name.clone(), known);
    }
    let others = world.reels.values().map(|reel| &reel.tape);
    let tapes = [&world.tape].into_iter().chain(others).map(|tape| {
        let known = Tape {
            md5: tape.md5.clone(),
            calls: tape.calls.len(),
            audio_s: ms_to_s(tape.duration_ms()),
            speech_s: ms_to_s(tape.speech_ms()),
        };
        (tape.manifest.name.clone(), known)
    });
    let environment = Environment {
        tapedeck: env!("CARGO_PKG_VERSION").into(),
        simulated: world.simulated,
        client: Client {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cores: std::thread::available_parallelism().ok().map(Into::into),
            max_open_files: world.machine.max_open_files(),
        },
        server: Server {
            url: world.site.endpoint.to_string(),
            dialect: world.site.dialect.name().into(),
            evidence: world.site.dialect.evidence(),
            window_ms: world.config.server.window_ms,
            certificate_checked: !world.config.server.accept_any_certificate,
        },
        tapes: earlier_tapes(dir).into_iter().chain(tapes).collect(),
        instances,
    };
    let toml = toml::to_string_pretty(&environment)
        .map_err(|e| ConfigError::Value { key: "environment".into(), why: e.to_string() })?;
    Ok(dir.write_file("environment.toml", toml.as_bytes())?)
}

/// The tapes that earlier cases of the same run wrote down.
fn earlier_tapes(dir: &RunDir) -> BTreeMap<String, Tape> {
    #[derive(Default, Deserialize)]
    struct Known {
        #[serde(default)]
        tapes: BTreeMap<String, Tape>,
    }
    let text = std::fs::read_to_string(dir.path().join("environment.toml")).unwrap_or_default();
    // A file that cannot be read is written anew.
    toml::from_str::<Known>(&text).unwrap_or_default().tapes
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
