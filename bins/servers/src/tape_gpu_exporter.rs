//! `tape-gpu-exporter`: the GPUs of this machine as a metrics page, for a load generator that runs elsewhere.
//!
//! Once ready it prints one JSON line with the address it got and the GPUs it found:
//! `{"listen":"127.0.0.1:9400","gpus":["GPU-5d8f..."]}`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use http::{Method, Request, StatusCode};
use serde::Serialize;
use tapedeck_metrics::gpu::{GpuDevice, GpuError, GpuSource, Nvml, to_page};
use tapedeck_record::ExitCode;
use tapedeck_server::{Incoming, Reply, Upgrade, metrics_page, plain};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

use tapedeck_cli::Failure;
use tapedeck_cli::serving::{accept, announce, listen, wait};
use tapedeck_cli::signals::interrupt;

const EXAMPLES: &str = "\
Examples:
  tape-gpu-exporter --once                      print the page and end
  tape-gpu-exporter --listen 0.0.0.0:9400       serve /metrics and /health to the network
  tape-doctor metrics http://gpu-host:9400/metrics   on the client: what is understood of it

In the client's config:
  [gpu]
  url = \"http://gpu-host:9400/metrics\"

Exit codes:
  0    stopped by SIGTERM or Ctrl-C; with --once, the page was printed
  2    wrong flags
  3    no GPU can be read, or the address is taken

See docs/gpu.md.";

/// A reading this young is shared by all who ask: the driver is asked once, however many scrape.
const FRESH: Duration = Duration::from_millis(200);

/// Show this machine's GPUs as a metrics page with DCGM's names, read through the NVIDIA driver.
#[derive(Debug, Clone, Parser)]
#[command(name = "tape-gpu-exporter", version, after_help = EXAMPLES)]
pub struct Cli {
    /// Address to serve at; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9400", value_parser = tapedeck_cli::address)]
    pub listen: SocketAddr,
    /// How long the driver may take for one reading, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, alias = "patience-s")]
    pub timeout_s: f64,
    /// Print the page once and end
    #[arg(long, conflicts_with = "listen")]
    pub once: bool,
}

/// The line that says that we are ready.
#[derive(Debug, Serialize)]
struct Ready {
    listen: String,
    gpus: Vec<String>,
}

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
/// Flags that are wrong, no GPU that can be read, an address that cannot be had.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let timeout_after = Duration::try_from_secs_f64(cli.timeout_s)
        .map_err(|_| Failure::Usage(format!("--timeout-s: {} is not a number of seconds", cli.timeout_s)))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start the runtime", source })?;
    let gpus =
        Arc::new(Gpus { driver: Nvml::new().with_processes(), timeout_after, latest: Mutex::default() });
    let stopped = interrupt()?;
    let answer = runtime.block_on(async {
        let first = gpus.read().await.map_err(|error| Failure::System {
            what: "tell of GPUs (run this on their host, with the driver loaded)",
            source: io::Error::other(error.to_string()),
        })?;
        if cli.once { print(&first) } else { serve(cli, gpus, &first, stopped).await }
    });
    // A driver that hangs must not keep us from ending.
    runtime.shutdown_background();
    answer
}

/// Prints the page.
fn print(gpus: &[GpuDevice]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(to_page(gpus).as_bytes()).and_then(|()| out.flush());
    written.map_err(|source| Failure::System { what: "print the page", source })?;
    Ok(ExitCode::Ok)
}

async fn serve(
    cli: &Cli,
    gpus: Arc<Gpus>,
    first: &[GpuDevice],
    stopped: watch::Receiver<bool>,
) -> Result<ExitCode, Failure> {
    let (listener, address) = listen(cli.listen).await?;
    tokio::spawn(accept(listener, move |stream| converse(stream, Arc::clone(&gpus))));
    let known = first.iter().map(|gpu| gpu.id.clone()).collect();
    announce(&Ready { listen: address.to_string(), gpus: known })?;
    wait(stopped).await;
    Ok(ExitCode::Ok)
}

/// What the driver says.
type Told = Result<Vec<GpuDevice>, GpuError>;

/// The GPUs, and what was last known of them.
#[derive(Debug)]
struct Gpus {
    driver: Nvml,
    timeout_after: Duration,
    latest: Mutex<Option<(Instant, Told)>>,
}

impl Gpus {
    /// Asks the driver, unless somebody has just done so.
    async fn read(&self) -> Told {
        let mut latest = self.latest.lock().await;
        if let Some((_, answer)) = latest.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return answer.clone();
        }
        let answer = timeout(self.timeout_after, self.driver.read()).await.unwrap_or_else(|_| {
            Err(GpuError::Failed(format!("the driver has not answered within {:?}", self.timeout_after)))
        });
        *latest = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// Serves one connection until it ends.
async fn converse(stream: TcpStream, gpus: Arc<Gpus>) {
    tapedeck_server::serve(stream, |request| {
        let gpus = Arc::clone(&gpus);
        async move { (answer(&gpus, &request).await, None::<Upgrade<()>>) }
    })
    .await;
}

async fn answer(gpus: &Gpus, request: &Request<Incoming>) -> Reply {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match gpus.read().await {
            Ok(gpus) => metrics_page(to_page(&gpus)),
            Err(error) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        (&Method::GET, "/health") => health(&gpus.read().await),
        (_, "/metrics" | "/health") => plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET is known here.\n"),
        _ => plain(StatusCode::NOT_FOUND, "Nothing here; try /metrics or /health.\n"),
    }
}

/// Well when every GPU that is known can be read.
fn health(read: &Told) -> Reply {
    let lost = |gpu: &GpuDevice| gpu.why_unreadable().map(|why| format!("{}: {why}\n", gpu.id));
    match read {
        Ok(gpus) => match gpus.iter().filter_map(lost).collect::<String>() {
            none if none.is_empty() => plain(StatusCode::OK, ""),
            lost => plain(StatusCode::SERVICE_UNAVAILABLE, lost),
        },
        Err(error) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}
