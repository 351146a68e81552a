//! The same cases against the built-in engine under a paused clock.
//!
//! [`world`] builds a [`World`] whose connections are in-memory pipes to built-in engines behind a
//! per-connection balancer. Run it with [`run`], on a runtime whose clock is paused: every wait takes no time,
//! two and a half hours of ladder pass in seconds, and one seed gives the same bytes again.
//!
//! ```
//! use tapedeck_rehearsal::Settings;
//!
//! let settings: Settings = toml::from_str("instances = 2\n")?;
//! assert_eq!(settings.instances, 2);
//! assert!(toml::from_str::<Settings>("instnaces = 2\n").is_err());
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! Read on in [`Settings`] (what can be set), [`pipes`] (how connections are made), [`instance_control`] (how engines are started
//! and killed) and [`card`] (the memory under them). Everything measured here
//! is simulated and says so; our own lateness and CPU cannot be measured under a paused clock and stay empty.

pub mod card;
pub mod instance_control;
pub mod pipes;
mod topology;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_cases::loaded_tape::load;
use tapedeck_cases::{CaseError, Machine, Role, Seams, StepBegins, World};
use tapedeck_config::{Commands, Config, ConfigError, InstanceConfig, key};
use tapedeck_engine::{
    Balancer, Engine, EngineHandle, FaultInjectionError, Fixtures, KnownCall, Options, Params,
};
use tapedeck_metrics::EngineKind;
use tapedeck_stats::rng::seed_of;
use tokio::sync::watch;

use card::Card;
use instance_control::InstanceControl;
use pipes::{BALANCER, Pipes};

/// The `[rehearsal]` table of the config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Built-in engines behind the balancer.
    pub instances: u32,
    /// What each of them is like.
    pub engine: Params,
    /// Memory of the card that they share, bytes; left out, they fill it to 92 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card_bytes: Option<u64>,
    /// How long the balancer goes on dealing calls to an engine that is down, seconds: 0 is a balancer that sees it at
    /// once, one with health checks needs some seconds.
    pub balancer_blind_s: f64,
    /// A fault to inject into sessions of the engines, as `tape-engine --fault-injection` has it, e.g. `tail-lost/100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(alias = "mischief")]
    pub fault_injection: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            instances: 3,
            engine: Params::demo(),
            card_bytes: None,
            balancer_blind_s: 0.0,
            fault_injection: None,
        }
    }
}

impl Settings {
    /// The settings that a config asks for.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for a key or value of the `[rehearsal]` table that cannot be used.
    pub fn of(config: &Config) -> Result<Self, ConfigError> {
        Self::from_table(key!(rehearsal), config.rehearsal.clone())
    }

    /// The settings in a table; `key` is only named in errors.
    pub(crate) fn from_table(key: &str, table: toml::Table) -> Result<Self, ConfigError> {
        let bad = |why: String| ConfigError::value(key, why);
        let settings: Self = table.try_into().map_err(|e: toml::de::Error| bad(e.message().to_string()))?;
        if settings.instances == 0 {
            return Err(bad("instances = 0: give at least 1".into()));
        }
        if Duration::try_from_secs_f64(settings.balancer_blind_s).is_err() {
            return Err(bad(format!(
                "balancer_blind_s = {}: give 0 or more seconds",
                settings.balancer_blind_s
            )));
        }
        Ok(settings)
    }
}

/// The address of the rehearsed load balancer; the host exists in this process alone.
#[must_use]
pub fn server_url() -> String {
    format!("ws://{BALANCER}/asr")
}

/// A world of built-in engines that remember the config's tape. What the config says of servers and instances
/// is replaced; tape, load, ladder, limits and seed are kept.
///
/// Must be called within the runtime that will run the case, because the engines live on its clock.
///
/// # Errors
/// As [`World::real`], and settings of the engine that cannot work.
pub fn world(config: Config, interrupt: watch::Receiver<bool>) -> Result<World, CaseError> {
    world_with(config, &[], interrupt)
}

/// [`world`] with further tapes, which the engines remember too.
///
/// # Errors
/// As [`world`], and a tape that the config does not name.
pub fn world_with(
    mut config: Config,
    needs: &[Role],
    interrupt: watch::Receiver<bool>,
) -> Result<World, CaseError> {
    let settings = Settings::of(&config)?;
    let tapes = load(&config, needs)?;
    let fixtures = Arc::new(Fixtures::new(tapes.values().flat_map(|tape| &tape.calls).map(known).collect()));
    let engines =
        spawn(&settings, "inst", config.run.seed, &fixtures, &format!("{}.engine", key!(rehearsal)))?;
    config.server.url = server_url();
    config.server.dialect = "pcm-json".into();
    config.server.options = toml::Table::new();
    config.server.token_env = None;
    config.instances = described(&engines);
    let card = Card::new(engines.clone(), settings.card_bytes);
    let mut all = engines.clone();
    let mut pipes = Pipes::new(balancer(&settings, engines));
    for topology in topology::rehearsed(&mut config, &fixtures)? {
        all.extend(topology.engines.iter().cloned());
        pipes = pipes.and(topology.host, balancer(&topology.settings, topology.engines));
    }
    let renewal = Renewal { engines: all.clone(), seed: config.run.seed };
    let seams = Seams {
        connector: Arc::new(pipes),
        control: Arc::new(InstanceControl::new(&all)),
        gpus: vec![Arc::new(card.under(all))],
        client: None,
        machine: Arc::new(Nowhere),
        prepare: Some(Arc::new(renewal)),
        paused: true,
        interrupt,
    };
    World::assemble(config, tapes, seams)
}

/// Starts engines `<name>1`, `<name>2`...; `key` is only named in errors.
fn spawn(
    settings: &Settings,
    name: &str,
    seed: u64,
    fixtures: &Arc<Fixtures>,
    key: &str,
) -> Result<Vec<EngineHandle>, ConfigError> {
    let fault_injection = match &settings.fault_injection {
        Some(fault) => Some(fault.parse().map_err(|e: FaultInjectionError| {
            ConfigError::value(format!("{}.fault_injection", key!(rehearsal)), e.to_string())
        })?),
        None => None,
    };
    (1..=settings.instances)
        .map(|n| {
            let name = format!("{name}{n}");
            let options = Options { fault_injection, ..Options::new(&*name, seed_of(seed, &name)) };
            Engine::spawn(settings.engine.clone(), fixtures.clone(), options)
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| ConfigError::value(key, e.to_string()))
}

fn balancer(settings: &Settings, engines: Vec<EngineHandle>) -> Balancer {
    let blind = Duration::try_from_secs_f64(settings.balancer_blind_s).unwrap_or_default();
    Balancer::new(engines).blind_for(blind)
}

/// What a config would say of these engines.
fn described(engines: &[EngineHandle]) -> Vec<InstanceConfig> {
    engines
        .iter()
        .map(|engine| InstanceConfig {
            name: engine.name().to_string(),
            health: Some(format!("http://{}/health", engine.name())),
            metrics: Some(format!("http://{}/metrics", engine.name())),
            direct: Some(format!("ws://{}/asr", engine.name())),
            kind: EngineKind::Vllm,
            managed: true,
            commands: Commands::default(),
        })
        .collect()
}

/// Runs a case to its end on a runtime of its own with a paused clock.
///
/// # Errors
/// Only if the runtime cannot be built.
pub fn run<F: Future>(case: F) -> std::io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(case))
}

fn known(call: &tapedeck_tape::TapeCall) -> KnownCall {
    let segments = call.reference.iter().flat_map(|r| &r.segments);
    KnownCall {
        pcm: call.pcm.clone(),
        segments: segments.map(|s| (s.start_ms, s.end_ms, s.text.clone())).collect(),
        speech: call.meta.speech.intervals().iter().map(|i| (i.start_ms, i.end_ms)).collect(),
    }
}

/// Renews the engines when a step begins: whatever is random in it then follows from the run's seed, the step's name and
/// the engine's alone, so that a step which is resumed, or played in another order, gives the same bytes. Calls that are
/// still open go on, and the drain of the step before has been seen by then.
#[derive(Debug)]
struct Renewal {
    engines: Vec<EngineHandle>,
    seed: u64,
}

impl StepBegins for Renewal {
    fn step_begins(&self, step: &str) {
        for engine in &self.engines {
            engine.renew(seed_of(self.seed, &format!("{step} {}", engine.name())));
        }
    }
}

/// A machine of which nothing is known.
#[derive(Debug)]
struct Nowhere;

impl Machine for Nowhere {
    fn unix_s(&self) -> Option<f64> {
        None
    }

    fn disk_free_bytes(&self, _: &Path) -> Option<u64> {
        None
    }

    fn max_open_files(&self) -> Option<u64> {
        None
    }
}
