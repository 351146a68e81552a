//! Everything outside the process, behind seams.
//!
//! A case sees the engines, the clock and the machine only through its [`World`]. [`World::real`] holds real
//! sockets and real probes; the rehearsal builds another one over in-memory pipes and a paused clock. The
//! cases cannot tell which of the two they run in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tapedeck_config::{Config, ConfigError, InstanceConfig, key};
use tapedeck_fleet::{Control, Instance};
use tapedeck_l10n::localized;
use tapedeck_load::{PreparedCalls, Target};
use tapedeck_metrics::gpu::GpuSource;
use tapedeck_metrics::{ClientProbe, ProcSelf, fetch_page};
use tapedeck_rundir::{Event, RunDir, events_of};
use tapedeck_tape::Tape;
use tapedeck_transport::{
    BoxFuture, Connector, Endpoint, HttpLimits, NetConnector, NetOptions, Secret, TlsOptions,
};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

use crate::control::shell;
use crate::environment;
use crate::error::CaseError;
use crate::gpu;
use crate::link::Link;
use crate::loaded_tape::{LoadedTape, Role, load};
use crate::prediction::Predictor;
use crate::shell::Told;

/// The metric by which a built-in engine makes itself known.
const SIMULATED: &str = "tapedeck_simulated";

/// What only the operating system knows; a rehearsal knows nothing of it.
pub trait Machine: Send + Sync + fmt::Debug {
    /// Wall-clock time, seconds since 1970-01-01 UTC.
    fn unix_s(&self) -> Option<f64>;
    /// Free space where results are written, bytes.
    fn disk_free_bytes(&self, at: &Path) -> Option<u64>;
    /// Files and sockets that this process may hold open at once.
    fn max_open_files(&self) -> Option<u64>;
    /// Processes that run or wait to, averaged over a minute.
    fn load_average(&self) -> Option<f64> {
        None
    }
    /// The network interface that leads to a host.
    fn link<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Option<Link>> {
        let _ = (host, port);
        Box::pin(std::future::ready(None))
    }
    /// What a command of the config prints, given at most so long; nothing where no command is ever run.
    fn ask<'a>(&'a self, command: &'a str, limit: Duration) -> BoxFuture<'a, Option<Told>> {
        let _ = (command, limit);
        Box::pin(std::future::ready(None))
    }
}

/// Whoever has to know that a step begins, so that it depends on nothing that was played before it.
pub trait StepBegins: Send + Sync + fmt::Debug {
    /// A step of this name is about to be played.
    fn step_begins(&self, step: &str);
}

/// The seams of one run.
#[derive(Debug, Clone)]
pub struct World {
    /// The effective config.
    pub config: Config,
    /// Tape-A.
    pub tape: Arc<Tape>,
    /// The same, cut and framed for the dialect; shared by all streams.
    pub prepared: Arc<PreparedCalls>,
    /// The other tapes that the case plays.
    pub loaded_tapes: BTreeMap<Role, LoadedTape>,
    /// Where the streams connect to, and what they speak there.
    pub target: Target,
    /// How everything else connects.
    pub connector: Arc<dyn Connector>,
    /// The engines behind the site.
    pub instances: Vec<Instance>,
    /// Hands on the engines.
    pub control: Arc<dyn Control>,
    /// The GPUs under the engines, where they can be read.
    pub gpus: Vec<Arc<dyn GpuSource>>,
    /// Our own process, where it can be watched.
    pub client: Option<Arc<dyn ClientProbe>>,
    /// The operating system.
    pub machine: Arc<dyn Machine>,
    /// Who prepares the engines for a step; nobody where they are real.
    pub prepare: Option<Arc<dyn StepBegins>>,
    /// Whether the clock is paused, so that nothing can be said of our own lateness.
    pub paused: bool,
    /// Whether any of the engines is a built-in one; everything that is written then says so.
    pub simulated: bool,
    /// Memory in use on each GPU before anything was played, bytes by uuid; known from the first load point on.
    pub vram_baseline: OnceCell<BTreeMap<String, u64>>,
    /// Zero of the run's clock.
    pub origin: Instant,
    /// Who predicts what is going to be measured, where somebody does.
    pub prediction: Option<Arc<dyn Predictor>>,
    /// Becomes true when the user wants to stop.
    pub interrupt: watch::Receiver<bool>,
}

impl World {
    /// Real sockets in real time, with Tape-A and the tapes in `needs`.
    ///
    /// # Errors
    /// A config value that cannot work, a tape that is not there or cannot be loaded, a certificate file that cannot
    /// be read.
    pub fn real(config: Config, needs: &[Role], interrupt: watch::Receiver<bool>) -> Result<Self, CaseError> {
        let seams = Seams::real(&config, interrupt)?;
        let tapes = load(&config, needs)?;
        Self::assemble(config, tapes, seams)
    }

    /// A world over given seams and tapes, Tape-A among them: what both constructors share.
    ///
    /// # Errors
    /// As [`World::real`].
    pub fn assemble(
        mut config: Config,
        tapes: BTreeMap<Role, Tape>,
        seams: Seams,
    ) -> Result<Self, CaseError> {
        config.check()?;
        let endpoint = endpoint(key!(server.url), &config.server.url)?;
        let dialect = config.dialect()?;
        // Where the config says nothing, the dialect may know its server's window.
        let window = dialect.window().and_then(|window| u32::try_from(window.as_millis()).ok());
        config.server.window_ms = config.server.window_ms.or(window);
        let mut loaded_tapes = tapes
            .into_iter()
            .map(|(role, tape)| Ok((role, LoadedTape::new(tape, dialect.as_ref(), &config.load)?)))
            .collect::<Result<BTreeMap<_, _>, CaseError>>()?;
        let LoadedTape { tape, prepared } = loaded_tapes.remove(&Role::A).ok_or_else(|| Role::A.missing())?;
        let bearer = bearer(&config)?;
        let instances = config
            .instances
            .iter()
            .map(|i| instance(i, bearer.as_ref()))
            .collect::<Result<Vec<_>, ConfigError>>()?;
        let target = Target { connector: Arc::clone(&seams.connector), endpoint, dialect, bearer };
        Ok(Self {
            tape,
            prepared,
            loaded_tapes,
            target,
            connector: seams.connector,
            instances,
            control: seams.control,
            gpus: seams.gpus,
            client: seams.client,
            machine: seams.machine,
            prepare: seams.prepare,
            paused: seams.paused,
            simulated: seams.paused,
            prediction: None,
            vram_baseline: OnceCell::new(),
            origin: Instant::now(),
            interrupt: seams.interrupt,
            config,
        })
    }

    /// Asks every instance what it is: a built-in engine says so on its metrics page, whatever carries it.
    pub async fn recognise_engines(&mut self) {
        for instance in &self.instances {
            let Some(endpoint) = &instance.metrics else { continue };
            let bearer = instance.bearer.as_ref();
            let page = fetch_page(&*self.connector, endpoint, bearer, HttpLimits::default()).await;
            // An instance that does not answer is the preflight's to report.
            let names = page.map(|fetched| fetched.page.series).unwrap_or_default();
            self.simulated |= names.iter().any(|series| series.name == SIMULATED);
        }
    }

    /// A tape by what it is for.
    ///
    /// # Errors
    /// [`CaseError::NoTape`] where the world was made without it.
    pub fn loaded_tape(&self, role: Role) -> Result<LoadedTape, CaseError> {
        match role {
            Role::A => Ok(LoadedTape { tape: self.tape.clone(), prepared: self.prepared.clone() }),
            other => self.loaded_tapes.get(&other).cloned().ok_or_else(|| other.missing()),
        }
    }

    /// The same without its prepared calls; nothing where the world was made without it.
    #[must_use]
    pub fn tape_of(&self, role: Role) -> Option<&Tape> {
        match role {
            Role::A => Some(&self.tape),
            other => self.loaded_tapes.get(&other).map(|loaded_tape| &*loaded_tape.tape),
        }
    }

    /// MD5 of every tape, by its name.
    #[must_use]
    pub fn tape_digests(&self) -> BTreeMap<String, String> {
        let others = self.loaded_tapes.values().map(|loaded_tape| &loaded_tape.tape);
        [&self.tape].into_iter().chain(others).map(|t| (t.manifest.name.clone(), t.md5.clone())).collect()
    }

    /// Sets the clock so that it goes on where that of the run left off: what was written into the run earlier then
    /// lies in the past. Call it once, before anything is played.
    ///
    /// A paused clock is set to the end of the last whole step, as if the run had never ended: the step that comes next
    /// then gives the same bytes as in a run that was not interrupted.
    pub async fn resume_clock(&mut self, dir: &RunDir) {
        if self.paused {
            let whole =
                |event: &Event| event.step.as_deref().is_some_and(|step| dir.finished(step).is_some());
            let (events, _) = events_of(dir.path()).unwrap_or_default();
            let events = events.into_iter().filter(whole).map(|event| event.at_s);
            let windows = dir.steps().iter().filter(|s| !s.partial).map(|s| s.report.window_to_s);
            let end_s = events.chain(windows).fold(0.0, f64::max);
            // The paused clock stands at whole milliseconds.
            tokio::time::sleep(seconds((end_s * 1e3).round() / 1e3)).await;
            // The engines begin anew, and are told from now on by what they held when the run began.
            let vram = environment::vram_before_load(dir);
            if !vram.is_empty() {
                self.vram_baseline = OnceCell::new_with(Some(vram));
            }
        } else if let (Some(then), Some(now)) = (dir.info().origin_unix_s, self.machine.unix_s()) {
            self.origin = self.origin.checked_sub(seconds((now - then).max(0.0))).unwrap_or(self.origin);
        }
    }

    /// Seconds on the run's clock.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.origin.elapsed().as_secs_f64()
    }

    /// Whether the user wants to stop.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        *self.interrupt.borrow()
    }

    /// Completes when the user wants to stop; never where nobody can say so.
    pub async fn until_interrupted(&self) {
        let mut interrupt = self.interrupt.clone();
        if interrupt.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What differs between a real world and a rehearsed one.
#[derive(Debug)]
pub struct Seams {
    /// How every connection is made.
    pub connector: Arc<dyn Connector>,
    /// Hands on the engines.
    pub control: Arc<dyn Control>,
    /// The GPUs, where they can be read.
    pub gpus: Vec<Arc<dyn GpuSource>>,
    /// Our own process, where it can be watched.
    pub client: Option<Arc<dyn ClientProbe>>,
    /// The operating system.
    pub machine: Arc<dyn Machine>,
    /// Who prepares the engines for a step.
    pub prepare: Option<Arc<dyn StepBegins>>,
    /// Whether the clock is paused and the engines are the built-in ones.
    pub paused: bool,
    /// Becomes true when the user wants to stop.
    pub interrupt: watch::Receiver<bool>,
}

impl Seams {
    /// Real sockets, this machine, and the GPUs as `[gpu]` says.
    ///
    /// # Errors
    /// A certificate file that cannot be read, an address that is none.
    pub fn real(config: &Config, interrupt: watch::Receiver<bool>) -> Result<Self, ConfigError> {
        let tls = TlsOptions {
            extra_ca_file: config.server.ca_file.clone(),
            danger_accept_invalid_certs: config.server.accept_any_certificate,
        };
        let timeout = seconds(config.load.timeouts.connect_s);
        let connector = NetConnector::new(NetOptions { tls, timeout })
            .map_err(|e| ConfigError::value(key!(server.ca_file), e.to_string()))?;
        let connector: Arc<dyn Connector> = Arc::new(connector);
        Ok(Self {
            control: shell(config),
            gpus: gpu::sources(&config.gpu, &connector)?,
            connector,
            client: Some(Arc::new(ProcSelf::default())),
            machine: Arc::new(ThisMachine),
            prepare: None,
            paused: false,
            interrupt,
        })
    }
}

/// A checked number of seconds as a duration.
pub(crate) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::ZERO)
}

pub(crate) fn endpoint(key: &str, url: &str) -> Result<Endpoint, ConfigError> {
    if url.is_empty() {
        return Err(ConfigError::value(
            key,
            localized!(
                "is missing: give an address such as ws://host:9000/asr, or --rehearse to use the built-in engine",
                "缺失：请给出地址，例如 ws://host:9000/asr，或用 --rehearse 使用内置引擎"
            ),
        ));
    }
    url.parse().map_err(|e| ConfigError::value(key, format!("{e}")))
}

/// The token that the config names, where it names one.
pub(crate) fn bearer(config: &Config) -> Result<Option<Secret>, ConfigError> {
    let from = |name: &String| Secret::from_env(name);
    config
        .server
        .token_env
        .as_ref()
        .map(from)
        .transpose()
        .map_err(|e| ConfigError::value(key!(server.token_env), e.to_string()))
}

/// An instance of the config with its addresses understood.
pub(crate) fn instance(config: &InstanceConfig, bearer: Option<&Secret>) -> Result<Instance, ConfigError> {
    let parse = |key: String, url: &Option<String>| url.as_deref().map(|url| endpoint(&key, url)).transpose();
    let name = &config.name;
    Ok(Instance {
        name: name.clone(),
        health: parse(key!(instances[name].health), &config.health)?,
        metrics: parse(key!(instances[name].metrics), &config.metrics)?,
        direct: parse(key!(instances[name].direct), &config.direct)?,
        kind: config.kind,
        bearer: bearer.cloned(),
    })
}

/// The operating system of this process.
#[derive(Debug)]
struct ThisMachine;

impl Machine for ThisMachine {
    #[expect(clippy::disallowed_methods, reason = "this is the seam through which wall time comes")]
    fn unix_s(&self) -> Option<f64> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    }

    fn disk_free_bytes(&self, at: &Path) -> Option<u64> {
        let stat = rustix::fs::statvfs(at).ok()?;
        Some(stat.f_bavail * stat.f_frsize)
    }

    fn max_open_files(&self) -> Option<u64> {
        // Raising the soft limit to the hard one costs nothing and saves the user a ulimit.
        rlimit::increase_nofile_limit(u64::MAX).ok()
    }

    fn load_average(&self) -> Option<f64> {
        std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
    }

    fn link<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Option<Link>> {
        Box::pin(crate::link::find(host, port))
    }

    fn ask<'a>(&'a self, command: &'a str, limit: Duration) -> BoxFuture<'a, Option<Told>> {
        Box::pin(async move { Some(crate::shell::run(command, limit).await) })
    }
}
