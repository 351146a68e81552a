//! `tape-stream`: chat completions, measured piece by piece, on the command line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tapedeck_record::ExitCode;
use tapedeck_stream::config::Spread;
use tapedeck_stream::record::load_model;
use tapedeck_stream::{
    Config, Figures, Outcome, Pace, Percentiles, Plan, Prompt, Reply, Target, figures, prompts, record,
    run as send,
};
use tapedeck_transport::{HttpLimits, NetConnector, NetOptions, Secret, SecretError, TlsOptions};
use tokio::sync::mpsc;

use crate::console::Console;
use tapedeck_cli::signals;
use tapedeck_cli::{Failure, usage};

/// Largest answer that is read, bytes.
const LARGEST_ANSWER: usize = 64 << 20;

/// Measure chat completions of an OpenAI-style server: first text, whole answer, gaps, tokens, goodput, cost.
#[derive(Debug, Parser)]
#[command(
    name = "tape-stream",
    version,
    after_help = "Examples:\n  tape-stream --url http://127.0.0.1:8000 --model Qwen/Qwen3-0.6B --prompt 'Explain KV cache in three sentences.' --requests 8 --concurrency 2\n  \
                  tape-stream --config stream.toml --rate 0.5 --requests 200 --out results/open-0.5\n\n\
                  The API key is taken from INFERENCE_API_KEY (or the variable that the config names) and never printed.\n\n\
                  Exit codes: 0 measured, 1 requests failed, 2 usage or config, 3 nothing could be asked, 130 interrupted."
)]
pub struct Cli {
    /// Config file (TOML); see docs/text-streams.md. Flags override single keys
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the server; /v1/chat/completions is added where there is no path
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Model, as the server calls it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// One prompt for all requests
    #[arg(long, value_name = "TEXT", conflicts_with = "prompts")]
    pub prompt: Option<String>,
    /// File of prompts: one a line, or JSON lines
    #[arg(long, value_name = "FILE")]
    pub prompts: Option<PathBuf>,
    /// Text that stands in front of every prompt
    #[arg(long, value_name = "FILE")]
    pub prefix_file: Option<PathBuf>,
    /// Put the request's number in front of everything, so that no prefix cache hits
    #[arg(long)]
    pub unique: bool,
    /// Draw the order of the prompts from the seed
    #[arg(long)]
    pub shuffle: bool,
    /// Most tokens of an answer [default: 256]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature [default: 0]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// Whether the model may think first [default: say nothing about it]
    #[arg(long, value_name = "BOOL")]
    pub thinking: Option<bool>,
    /// Requests at once: the closed loop [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub concurrency: Option<u32>,
    /// Requests a second, answered or not: the open loop
    #[arg(long, value_name = "PER_S", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// How the open loop's requests are spread [default: poisson]
    #[arg(long, value_enum, requires = "rate")]
    pub arrivals: Option<SpreadArg>,
    /// Requests that count [default: 8]
    #[arg(long, value_name = "N")]
    pub requests: Option<u32>,
    /// Requests before those [default: 0]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// Do not send one request alone first
    #[arg(long)]
    pub no_cold: bool,
    /// Longest time for one request, seconds [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub timeout_s: Option<u32>,
    /// Seed of arrivals and order [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// What the run is for, for its record
    #[arg(long, value_name = "TEXT")]
    pub experiment: Option<String>,
    /// Write requests.jsonl, figures.json and record.toml into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How requests are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpreadArg {
    /// Independent users
    Poisson,
    /// Even gaps
    Uniform,
    /// Bursts
    Bursty,
}

impl Cli {
    /// The config with the flags' keys in it.
    ///
    /// # Errors
    /// A config that cannot be used.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path).map_err(usage)?,
            None => Config::default(),
        };
        let c = &mut config;
        set(&mut c.server.url, self.url.as_ref());
        set(&mut c.server.model, self.model.as_ref());
        set(&mut c.prompts.file, self.prompts.as_ref());
        set(&mut c.generation.max_tokens, self.max_tokens.as_ref());
        set(&mut c.generation.temperature, self.temperature.as_ref());
        set(&mut c.load.requests, self.requests.as_ref());
        set(&mut c.load.warm_up, self.warm_up.as_ref());
        set(&mut c.load.timeout_s, self.timeout_s.as_ref());
        set(&mut c.load.seed, self.seed.as_ref());
        set(&mut c.setup.experiment, self.experiment.as_ref());
        c.prompts.unique |= self.unique;
        c.prompts.shuffle |= self.shuffle;
        c.prompts.prefix_file = self.prefix_file.clone().or_else(|| c.prompts.prefix_file.take());
        c.generation.thinking = self.thinking.or(c.generation.thinking);
        if let Some(concurrency) = self.concurrency {
            c.load.concurrency = concurrency;
            c.load.rate_per_s = None;
        }
        c.load.rate_per_s = self.rate.or(c.load.rate_per_s);
        if let Some(spread) = self.arrivals {
            c.load.arrivals = match spread {
                SpreadArg::Poisson => Spread::Poisson,
                SpreadArg::Uniform => Spread::Uniform,
                SpreadArg::Bursty => Spread::Bursty,
            };
        }
        c.load.cold_first &= !self.no_cold;
        config.check().map_err(usage)?;
        Ok(config)
    }

    fn prompts(&self, config: &Config) -> Result<Vec<Prompt>, Failure> {
        let Some(text) = &self.prompt else { return prompts::load(&config.prompts).map_err(usage) };
        let mut prompt = Prompt::user(text);
        if let Some(path) = &config.prompts.prefix_file {
            let prefix = std::fs::read_to_string(path)
                .map_err(|e| Failure::Usage(format!("cannot read {}: {e}", path.display())))?;
            prompt.put_in_front(&prefix);
        }
        Ok(vec![prompt])
    }
}

fn set<T: Clone>(key: &mut T, flag: Option<&T>) {
    if let Some(value) = flag {
        key.clone_from(value);
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let config = cli.config()?;
    let plan = plan(cli, &config)?;
    let prompts = plan.prompts.len();
    let site = site(&config)?;
    let interrupt = signals::interrupt()?;
    let console = Console::new(cli.json, false);
    if !cli.json {
        let key = if site.bearer.is_some() { "with an API key" } else { "without an API key" };
        console.line(&format!(
            "Asking {} for {} {key}: {}",
            site.endpoint,
            site.model,
            load_model(&config.load)
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start a runtime", source })?;
    let (replies, whole) = runtime.block_on(async {
        let (out, mut heard) = mpsc::unbounded_channel();
        let sending = tokio::spawn(send(plan, site, interrupt, out));
        let mut replies: Vec<Reply> = Vec::new();
        while let Some(reply) = heard.recv().await {
            if !cli.json && !reply.outcome.answered() {
                let words = reply.words.as_deref().unwrap_or("");
                console.line(&format!("request {}: {} {words}", reply.n, reply.outcome.name()));
            }
            replies.push(reply);
        }
        replies.sort_by_key(|r| r.n);
        (replies, sending.await.unwrap_or(false))
    });
    console.finish();
    let found = figures(&replies, &config.limits, &config.price);
    if let Some(out) = &cli.out {
        keep(out, &replies, &found, &config, prompts)?;
    }
    if cli.json {
        console.answer("stream", &found);
    } else {
        summary(&found, &config).iter().for_each(|line| console.line(line));
        if let Some(out) = &cli.out {
            console.line(&format!("Evidence: {}", out.display()));
        }
    }
    Ok(code(&replies, &found, whole))
}

fn code(replies: &[Reply], found: &Figures, whole: bool) -> ExitCode {
    let unreachable = |r: &Reply| matches!(r.outcome, Outcome::ConnectFailed);
    if !whole {
        ExitCode::Interrupted
    } else if replies.iter().all(unreachable) {
        ExitCode::Environment
    } else if found.errors > 0 || found.answered == 0 {
        ExitCode::No
    } else {
        ExitCode::Ok
    }
}

fn plan(cli: &Cli, config: &Config) -> Result<Plan, Failure> {
    let load = &config.load;
    let all = cli.prompts(config)?;
    let requests = u64::from(load.requests) + u64::from(load.warm_up) + u64::from(load.cold_first);
    let requests = usize::try_from(requests).unwrap_or(usize::MAX);
    Ok(Plan {
        pace: match load.law() {
            Some(law) => Pace::Open { law, seed: load.seed },
            None => Pace::Closed { concurrency: load.concurrency },
        },
        cold_first: load.cold_first,
        warm_up: usize::try_from(load.warm_up).unwrap_or(usize::MAX),
        order: prompts::order(all.len(), requests, config.prompts.shuffle.then_some(load.seed)),
        prompts: all,
        unique: config.prompts.unique,
        generation: config.generation.clone(),
        limits: HttpLimits { timeout: Duration::from_secs(load.timeout_s.into()), max_bytes: LARGEST_ANSWER },
    })
}

fn site(config: &Config) -> Result<Target, Failure> {
    let server = &config.server;
    let tls = TlsOptions {
        extra_ca_file: server.ca_file.clone(),
        danger_accept_invalid_certs: server.accept_any_certificate,
    };
    let timeout = Duration::from_secs(server.connect_s.into());
    let connector =
        NetConnector::new(NetOptions { tls, timeout }).map_err(|e| Failure::Usage(e.to_string()))?;
    let bearer = match Secret::from_env(&server.key_env) {
        Ok(key) => Some(key),
        Err(SecretError::Missing(_)) => None,
        Err(e) => return Err(Failure::Usage(e.to_string())),
    };
    let endpoint = server.endpoint().map_err(usage)?;
    Ok(Target { connector: Arc::new(connector), endpoint, bearer, model: server.model.clone() })
}

/// Writes what was found.
fn keep(
    out: &Path,
    replies: &[Reply],
    found: &Figures,
    config: &Config,
    prompts: usize,
) -> Result<(), Failure> {
    let system = |source| Failure::System { what: "write the results", source };
    let other = |e: &dyn std::fmt::Display| system(std::io::Error::other(e.to_string()));
    std::fs::create_dir_all(out).map_err(system)?;
    let mut lines = String::new();
    for reply in replies {
        let line = serde_json::to_string(reply).map_err(|e| other(&e))?;
        let _ = writeln!(lines, "{line}");
    }
    let record = toml::to_string_pretty(&record(config, prompts, found)).map_err(|e| other(&e))?;
    let figures = serde_json::to_string_pretty(found).map_err(|e| other(&e))?;
    for (name, text) in [("requests.jsonl", lines), ("figures.json", figures), ("record.toml", record)] {
        std::fs::write(out.join(name), text).map_err(system)?;
    }
    Ok(())
}

/// What was found.
#[must_use]
pub fn summary(f: &Figures, config: &Config) -> Vec<String> {
    let row = |name: &str, value: String, meaning: &str| {
        format!("{name:<16} {value:<52} {meaning}").trim_end().to_owned()
    };
    let unknown = || "unknown".to_owned();
    let spread = |p: &Option<Percentiles>| {
        p.map_or_else(unknown, |p| {
            let high = p.p95_high.map_or_else(String::new, |h| format!(" (<= {h:.3})"));
            format!("p50 {:.3} s, p95 {:.3} s{high}, max {:.3} s, n {}", p.p50, p.p95, p.max, p.n)
        })
    };
    let outcomes: Vec<String> = f.outcomes.iter().map(|(o, n)| format!("{n} {}", o.name())).collect();
    let mut lines = vec![String::new(), row("requests", f.requests.to_string(), &outcomes.join(", "))];
    if let Some(cold) = &f.cold {
        let first = cold.ttft_s.map_or_else(unknown, |s| format!("{s:.3} s"));
        let value = format!("{}, first text {first}, total {:.3} s", cold.outcome.name(), cold.total_s);
        lines.push(row("cold", value, "the first request, alone; counted nowhere else"));
    }
    lines.extend([
        row("first text", spread(&f.ttft), "to the first non-empty content, thinking excluded"),
        row("whole answer", spread(&f.total), ""),
        row("gap", spread(&f.gap), "between chunks with text; a chunk is not a token"),
        row("window", format!("{:.3} s", f.window_s), ""),
        row("throughput", format!("{:.4} answers a second", f.requests_per_s), "whole or cut"),
        row(
            "tokens",
            f.tokens_per_s.map_or_else(unknown, |t| format!("{t:.2} a second")),
            "of answers, by the server's count",
        ),
    ]);
    let limits = config.limits;
    let good =
        format!("within {} s, {} s and gaps of {} s, whole", limits.ttft_s, limits.total_s, limits.gap_s);
    lines.push(row("goodput", format!("{:.4} answers a second ({})", f.goodput_per_s, f.good), &good));
    if let Some(cached) = f.tokens.cached {
        lines.push(row(
            "cached",
            format!("{cached} of {} prompt tokens", f.tokens.prompt),
            "by the server's count",
        ));
    }
    let cost = f.cost.map_or_else(unknown, |c| format!("{c:.6} {}", config.price.currency));
    lines.push(row("cost", cost, "of the window"));
    lines.push(row(
        "Little's law",
        format!("{:.3} = {:.3}", f.under_way, f.rate_times_stay),
        "under way = starts a second x mean stay",
    ));
    if config.load.rate_per_s.is_some() {
        lines.push(row(
            "our lateness",
            f.late_p99_ms.map_or_else(unknown, |ms| format!("{ms:.2} ms p99")),
            "planned against actual",
        ));
    }
    if f.without_done > 0 {
        lines.push(format!("note: {} answers ended without [DONE]", f.without_done));
    }
    if f.thinking_only > 0 {
        lines.push(format!(
            "note: {} answers held thinking alone; raise --max-tokens or give --thinking false",
            f.thinking_only
        ));
    }
    lines
}
