//! `tape-gateway`: a streaming gateway in front of stock vLLM.
//!
//! Once ready it prints one JSON line with the address it got, so that nothing needs a fixed port:
//! `{"listen":"127.0.0.1:41001","backend":"realtime","upstreams_up":3}`. After that one JSON line on standard
//! error for every session that is over: sizes, times and outcome, never a word of the text.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use tapedeck_gateway::{Backend, Gateway, Options, Realtime, Rolling, SessionLog, Upstream};
use tapedeck_record::ExitCode;
use tapedeck_transport::{Endpoint, NetConnector, NetOptions, Secret, TlsOptions};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use tapedeck_cli::Failure;
use tapedeck_cli::serving::{accept, announce, listen, wait};
use tapedeck_cli::signals::interrupt;

const EXAMPLES: &str = "\
Examples:
  Three servers with /v1/realtime (vLLM 0.17 or later):
    tape-gateway --listen 0.0.0.0:9000 \\
      --upstream http://127.0.0.1:9001,http://127.0.0.1:9002,http://127.0.0.1:9003
  Any qwen-asr-serve, by windows of 2 s:
    tape-gateway --backend rolling --upstream http://127.0.0.1:9001

Exit codes:
  0    stopped, with all calls finished
  2    wrong flags
  3    the system refused, e.g. an address that is taken
  130  calls were cut at the end of --drain-s

See docs/gateway.md.";

/// Take streamed calls as pcm-json and have them recognised by vLLM servers that know no such thing.
#[derive(Debug, Clone, Parser)]
#[command(name = "tape-gateway", version, after_help = EXAMPLES)]
pub struct Cli {
    /// vLLM servers, as URLs; NAME=URL to choose the name that callers are told
    #[arg(long, value_name = "URL,URL", value_delimiter = ',', required = true)]
    pub upstream: Vec<String>,
    /// Address for callers; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = tapedeck_cli::address)]
    pub listen: SocketAddr,
    /// How speech becomes text
    #[arg(long, value_enum, default_value_t = How::Realtime)]
    pub backend: How,
    /// Name of the model [default: the first that the upstream lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// rolling: audio between two requests, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub window_s: f64,
    /// rolling: requests at a call's start whose text is not built upon
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub unfixed_chunks: u32,
    /// rolling: tokens at the end of the text that may still change
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub unfixed_tokens: u32,
    /// rolling: most tokens that a window may add
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub max_tokens: u32,
    /// Sessions at a time; one more is refused with 503
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_sessions: u32,
    /// Longest call, seconds of audio
    #[arg(long, value_name = "SECONDS", default_value_t = 1_200.0)]
    pub max_audio_s: f64,
    /// rolling: audio that may wait before the gateway reads no more of a caller, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub backlog_s: f64,
    /// How long a caller may be silent on the wire, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub idle_s: f64,
    /// How long an upstream may take for one answer, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, alias = "patience-s")]
    pub timeout_s: f64,
    /// Seconds that open calls get to finish after SIGTERM or Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub drain_s: f64,
    /// Environment variable that holds the upstreams' bearer token
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,
    /// Extra certificate authority for https upstreams (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca: Option<std::path::PathBuf>,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
}

/// How speech becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// vLLM's own WebSocket (0.17 and later)
    Realtime,
    /// Windows over /v1/chat/completions
    Rolling,
}

/// The line that says that we are ready.
#[derive(Debug, Serialize)]
struct Ready {
    listen: String,
    backend: &'static str,
    upstreams_up: usize,
}

/// Serves until SIGTERM or Ctrl-C, then lets open calls finish.
///
/// # Errors
/// Flags that are wrong, an address that cannot be had.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let options = options(cli)?;
    let net = NetOptions {
        tls: TlsOptions { extra_ca_file: cli.ca.clone(), ..TlsOptions::default() },
        ..NetOptions::default()
    };
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let connector = NetConnector::new(net).map_err(|error| usage(&error))?;
    let gateway = Gateway::new(options, Arc::new(connector), log).map_err(|error| usage(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(cli.threads))
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start the runtime", source })?;
    let stopped = interrupt()?;
    let drain = duration("--drain-s", cli.drain_s)?;
    runtime.block_on(serve(cli, &gateway, stopped, drain))
}

async fn serve(
    cli: &Cli,
    gateway: &Gateway,
    stopped: watch::Receiver<bool>,
    drain: Duration,
) -> Result<ExitCode, Failure> {
    let (listener, address) = listen(cli.listen).await?;
    gateway.check().await;
    let watcher = gateway.clone();
    tokio::spawn(async move { watcher.watch().await });
    let server = gateway.clone();
    tokio::spawn(accept(listener, move |stream| server.serve(stream)));
    let backend = match cli.backend {
        How::Realtime => "realtime",
        How::Rolling => "rolling",
    };
    announce(&Ready { listen: address.to_string(), backend, upstreams_up: gateway.upstreams_up() })?;
    wait(stopped).await;
    gateway.drain();
    let until = Instant::now() + drain;
    while gateway.open_sessions() > 0 && Instant::now() < until {
        sleep(Duration::from_millis(20)).await;
    }
    if gateway.open_sessions() > 0 {
        return Ok(ExitCode::Interrupted);
    }
    // The last callers get the time to read their final and to close.
    sleep(Duration::from_millis(200).min(drain)).await;
    Ok(ExitCode::Ok)
}

/// Writes the line of a session. A log that cannot be written must not end calls.
fn log(session: &SessionLog) {
    if let Ok(line) = serde_json::to_string(session) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// What the flags come to.
fn options(cli: &Cli) -> Result<Options, Failure> {
    let upstreams = cli.upstream.iter().zip(1..).map(|(text, n)| upstream(text, n));
    let backend = match cli.backend {
        How::Realtime => Backend::Realtime(Realtime::default()),
        How::Rolling => Backend::Rolling(Rolling {
            window: duration("--window-s", cli.window_s)?,
            unfixed_chunks: cli.unfixed_chunks,
            unfixed_tokens: cli.unfixed_tokens,
            max_tokens: cli.max_tokens,
        }),
    };
    let bearer = cli.token_env.as_deref().map(Secret::from_env).transpose();
    Ok(Options {
        model: cli.model.clone(),
        backend,
        bearer: bearer.map_err(|error| Failure::Usage(format!("--token-env: {error}")))?,
        max_sessions: cli.max_sessions,
        max_audio: duration("--max-audio-s", cli.max_audio_s)?,
        backlog: duration("--backlog-s", cli.backlog_s)?,
        idle: duration("--idle-s", cli.idle_s)?,
        timeout_after: duration("--timeout-s", cli.timeout_s)?,
        ..Options::new(upstreams.collect::<Result<_, _>>()?)
    })
}

/// `URL` or `NAME=URL`; without a name, the number makes one.
fn upstream(text: &str, n: usize) -> Result<Upstream, Failure> {
    let (name, url) = match text.split_once('=') {
        Some((name, url)) if !name.contains(':') && !name.is_empty() => (name.to_owned(), url),
        _ => (format!("inst{n}"), text),
    };
    let endpoint: Endpoint = url.parse().map_err(|error| Failure::Usage(format!("--upstream: {error}")))?;
    Ok(Upstream::new(name, endpoint))
}

fn duration(flag: &str, seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::Usage(format!("{flag}: {seconds} is not a number of seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_have_the_names_they_are_given() {
        let named = |text| upstream(text, 3).map(|u| (u.name, u.endpoint.to_string())).unwrap();
        assert_eq!(named("http://h:1"), ("inst3".into(), "http://h:1/".into()));
        assert_eq!(named("a=http://h:1/?x=y"), ("a".into(), "http://h:1/?x=y".into()));
        assert_eq!(named("http://h:1/?x=y").0, "inst3");
        assert!(upstream("h:1", 1).unwrap_err().to_string().contains("--upstream"));
    }
}
