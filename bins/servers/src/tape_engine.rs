//! `tape-engine`: simulated engines on real sockets, alone or behind a balancer.
//!
//! Once ready it prints one JSON line with the addresses it got, so that nothing needs fixed ports:
//! `{"simulated":true,"instances":["127.0.0.1:41001"],"balancer":"127.0.0.1:41002"}`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use tapedeck_engine::{
    Balancer, Bearer, Engine, EngineHandle, FaultInjection, Fixtures, KnownCall, Options, Params, Proxy,
    Refusal,
};
use tapedeck_record::ExitCode;
use tapedeck_tape::{Tape, TapeCall};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use tapedeck_cli::Failure;
use tapedeck_cli::serving::{accept, announce, listen, wait};
use tapedeck_cli::signals::interrupt;

/// Serve simulated speech recognition on real sockets: pcm-json at /asr, /metrics with vLLM's names, /health.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "tape-engine",
    version,
    after_help = "Examples:\n  tape-engine --instances 3 --balancer 127.0.0.1:0\n  \
                  tape-engine --listen 127.0.0.1:9001 --instances 1 --tape tape-a.json --pool calls\n  \
                  tape-engine --balance 127.0.0.1:9001,127.0.0.1:9002 --listen 127.0.0.1:9000\n\n\
                  Exit codes: 0 asked to stop, and open calls could finish, 2 usage, parameters or tape, 3 environment, \
                  130 asked to stop, and calls were cut."
)]
pub struct Cli {
    /// Address of the first instance (the others take the next ports; with port 0 any free ones), or of the
    /// balancer with --balance
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = tapedeck_cli::address)]
    pub listen: SocketAddr,
    /// Instances in this process
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub instances: u16,
    /// Number of the first instance; names and seeds follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub first: u32,
    /// Instances are called this and their number
    #[arg(long, value_name = "NAME", default_value = "inst")]
    pub name: String,
    /// Also balance connections over the instances, fewest calls first, at this address
    #[arg(long, value_name = "ADDR", value_parser = tapedeck_cli::address)]
    pub balancer: Option<SocketAddr>,
    /// Run no instance but a balancer in front of these addresses
    #[arg(long, value_name = "ADDR,ADDR", value_delimiter = ',', conflicts_with_all = ["balancer", "params", "tape", "fault_injection"])]
    pub balance: Vec<String>,
    /// Engine parameters (TOML); without it, the defaults
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Manifest of a tape whose calls are answered with their reference words
    #[arg(long, value_name = "FILE", requires = "pool")]
    pub tape: Option<PathBuf>,
    /// Folder of the tape's recordings
    #[arg(long, value_name = "DIR", requires = "tape")]
    pub pool: Option<PathBuf>,
    /// Seed of the models and of the errors they make
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How callers are turned away when an instance is full
    #[arg(long, value_enum, default_value_t = HowToRefuse::Handshake)]
    pub refusal: HowToRefuse,
    /// Environment variable that holds the bearer token asked of callers
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,
    /// Inject a fault into sessions, e.g. close:2000:1011 or mute:500/4; an unknown word prints the whole list
    #[arg(long, value_name = "FAULT", alias = "mischief")]
    pub fault_injection: Option<FaultInjection>,
    /// Seconds that open calls get to finish after SIGTERM or Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub drain_s: u64,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
}

/// How callers are turned away when an instance is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HowToRefuse {
    /// HTTP 503 instead of the upgrade
    Handshake,
    /// An error message, then close code 1013
    Message,
}

/// The line that says that we are ready.
#[derive(Debug, Serialize)]
struct Ready {
    simulated: bool,
    instances: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balancer: Option<String>,
}

/// Serves until SIGTERM or Ctrl-C, then lets open calls finish.
///
/// # Errors
/// Parameters, tape or flags that are wrong; an address that cannot be had.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(cli.threads))
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start the runtime", source })?;
    let stopped = interrupt()?;
    if cli.balance.is_empty() {
        let params = cli.params.as_deref().map_or_else(|| Ok(Params::default()), read_params)?;
        let fixtures = Arc::new(fixtures(cli)?);
        runtime.block_on(serve(cli, &params, &fixtures, stopped))
    } else {
        runtime.block_on(balance(cli, stopped))
    }
}

/// Runs the instances, and their balancer where one is asked for.
async fn serve(
    cli: &Cli,
    params: &Params,
    fixtures: &Arc<Fixtures>,
    stopped: watch::Receiver<bool>,
) -> Result<ExitCode, Failure> {
    let mut engines = Vec::new();
    let mut ready = Ready { simulated: true, instances: Vec::new(), balancer: None };
    for n in 0..cli.instances {
        let engine = Engine::spawn(params.clone(), Arc::clone(fixtures), options(cli, u32::from(n))?)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let mut at = cli.listen;
        if at.port() != 0 {
            let port = at.port().checked_add(n).ok_or_else(|| Failure::Usage("ports end at 65535".into()))?;
            at.set_port(port);
        }
        let (listener, address) = listen(at).await?;
        ready.instances.push(address.to_string());
        let server = engine.clone();
        tokio::spawn(accept(listener, move |stream| server.serve(stream)));
        engines.push(engine);
    }
    if let Some(at) = cli.balancer {
        let (listener, address) = listen(at).await?;
        ready.balancer = Some(address.to_string());
        let balancer = Balancer::new(engines.clone());
        tokio::spawn(accept(listener, move |stream| balancer.serve(stream)));
    }
    announce(&ready)?;
    wait(stopped).await;
    Ok(drain(&engines, Duration::from_secs(cli.drain_s)).await)
}

/// Runs a balancer in front of engines elsewhere.
async fn balance(cli: &Cli, stopped: watch::Receiver<bool>) -> Result<ExitCode, Failure> {
    let proxy = Proxy::new(cli.balance.clone());
    let (listener, address) = listen(cli.listen).await?;
    let watcher = proxy.clone();
    tokio::spawn(async move { watcher.watch().await });
    tokio::spawn(accept(listener, move |stream| {
        let proxy = proxy.clone();
        async move { proxy.serve(stream).await }
    }));
    announce(&Ready {
        simulated: true,
        instances: cli.balance.clone(),
        balancer: Some(address.to_string()),
    })?;
    wait(stopped).await;
    Ok(ExitCode::Ok)
}

/// Lets open calls finish; the answer tells whether they could.
async fn drain(engines: &[EngineHandle], limit: Duration) -> ExitCode {
    let open = || engines.iter().any(|engine| engine.open_sockets() > 0);
    engines.iter().for_each(EngineHandle::drain);
    let until = Instant::now() + limit;
    while open() && Instant::now() < until {
        sleep(Duration::from_millis(20)).await;
    }
    if open() { ExitCode::Interrupted } else { ExitCode::Ok }
}

/// What instance number `n` of this process is told.
fn options(cli: &Cli, n: u32) -> Result<Options, Failure> {
    let number = cli.first.saturating_add(n);
    let bearer = match &cli.token_env {
        None => None,
        Some(variable) => match std::env::var(variable) {
            Ok(token) if !token.is_empty() => Some(Bearer::new(token)),
            _ => return Err(Failure::Usage(format!("--token-env: the variable {variable} is not set"))),
        },
    };
    Ok(Options {
        bearer,
        refusal: match cli.refusal {
            HowToRefuse::Handshake => Refusal::Handshake,
            HowToRefuse::Message => Refusal::Message,
        },
        fault_injection: cli.fault_injection,
        ..Options::new(format!("{}{number}", cli.name), cli.seed.wrapping_add(u64::from(number)))
    })
}

/// Reads engine parameters.
fn read_params(path: &Path) -> Result<Params, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let params: Params = toml::from_str(&text).map_err(|error| wrong(&error))?;
    params.check().map_err(|error| wrong(&error))?;
    Ok(params)
}

/// Everything the engines know by heart.
fn fixtures(cli: &Cli) -> Result<Fixtures, Failure> {
    let (Some(tape), Some(pool)) = (&cli.tape, &cli.pool) else { return Ok(Fixtures::default()) };
    let tape = Tape::load(tape, pool).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Fixtures::new(tape.calls.into_iter().map(known).collect()))
}

/// What the engine needs of a call on a tape. A reference without times is spread over the call's speech.
fn known(call: TapeCall) -> KnownCall {
    let speech: Vec<(u32, u32)> =
        call.meta.speech.intervals().iter().map(|interval| (*interval).into()).collect();
    let segments = match call.reference {
        None => Vec::new(),
        Some(reference) if reference.segments.is_empty() => {
            let from = call.meta.speech.onset_ms().unwrap_or(0);
            let to = call.meta.speech.end_ms().unwrap_or(call.meta.duration_ms);
            vec![(from, to, reference.text)]
        }
        Some(reference) => reference.segments.into_iter().map(|s| (s.start_ms, s.end_ms, s.text)).collect(),
    };
    KnownCall { pcm: call.pcm, segments, speech }
}
