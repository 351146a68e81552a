//! What is understood of metrics pages and GPU read-outs.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use tapedeck_metrics::gpu::{GpuDevice, GpuProcess, from_dcgm_page, from_smi_csv};
use tapedeck_metrics::{
    Buckets, EngineKind, Normalised, Page, carries, fetch_page, guess_kind, normalise, parse, why_not_metrics,
};
use tapedeck_record::{ExitCode, Histogram, Metric};
use tapedeck_transport::{Endpoint, HttpLimits, NetConnector, NetOptions, Secret, TlsOptions};

use tapedeck_cli::Failure;

/// Flags of `tape-doctor metrics`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Metrics pages or nvidia-smi CSV: files, `-` for standard input, or URLs
    #[arg(required = true, value_name = "FILE-or-URL")]
    pub sources: Vec<String>,
    /// Print one JSON array instead of text
    #[arg(long)]
    pub json: bool,
    /// Whose names to expect [default: what the page looks like]
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Environment variable that holds the bearer token for URLs
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,
    /// PEM file with a further authority to trust for https URLs
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Limit for one answer, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub timeout_s: u64,
}

/// Kinds of engines as the command line spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// vLLM 0.8 and later
    Vllm,
    /// sglang with --enable-metrics
    Sglang,
    /// An engine whose page says nothing that is known here
    None,
}

impl From<Kind> for EngineKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Vllm => Self::Vllm,
            Kind::Sglang => Self::Sglang,
            Kind::None => Self::None,
        }
    }
}

/// Metrics without which the preemption red line cannot be watched.
const RED_LINES: [Metric; 2] = [Metric::KvPool, Metric::Preemptions];

/// What was found in one source.
enum Found {
    /// It could not be had, or is no metrics page.
    Nothing(String),
    /// A page.
    Page {
        kind: EngineKind,
        expected: bool,
        series: usize,
        normalised: Box<Normalised>,
        gpus: Vec<GpuDevice>,
    },
    /// A GPU read-out.
    Gpus(Vec<GpuDevice>),
}

/// Runs the command and writes what it finds to `out`.
///
/// # Errors
/// Wrong flags, files that cannot be read, a system that refuses a runtime.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let mut findings = Vec::new();
    for source in &args.sources {
        let found = if source.contains("://") {
            match fetch(args, source)? {
                Ok(page) => from_page(&page, args.kind),
                Err(why) => Found::Nothing(why),
            }
        } else {
            from_text(&read(source)?, args.kind)
        };
        findings.push((source.as_str(), found));
    }
    let text = if args.json {
        let all: Vec<Value> = findings.iter().map(|(source, found)| to_json(source, found)).collect();
        format!("{:#}\n", Value::Array(all))
    } else {
        findings.iter().map(|(source, found)| to_text(source, found)).collect::<Vec<_>>().join("\n")
    };
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| Failure::System { what: "write the findings", source })?;
    Ok(findings.iter().map(|(_, found)| verdict(found)).max().unwrap_or(ExitCode::Ok))
}

fn read(source: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if source == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(source).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            Err(Failure::Usage(format!("cannot read {source}: {error}; give a file or an http(s) URL")))
        }
    }
}

/// The page behind a URL, or why there is none.
fn fetch(args: &Args, url: &str) -> Result<Result<Page, String>, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let endpoint: Endpoint = url.parse().map_err(|error| usage(&error))?;
    let bearer =
        args.token_env.as_deref().map(Secret::from_env).transpose().map_err(|error| usage(&error))?;
    let tls = TlsOptions { extra_ca_file: args.ca.clone(), ..TlsOptions::default() };
    let connector =
        NetConnector::new(NetOptions { tls, ..NetOptions::default() }).map_err(|error| usage(&error))?;
    let limits = HttpLimits { timeout: Duration::from_secs(args.timeout_s.max(1)), ..HttpLimits::default() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start a runtime", source })?;
    let fetched = runtime.block_on(fetch_page(&connector, &endpoint, bearer.as_ref(), limits));
    Ok(fetched.map(|fetched| fetched.page).map_err(|error| error.to_string()))
}

fn from_text(text: &str, kind: Option<Kind>) -> Found {
    if let Ok(gpus) = from_smi_csv(text) {
        return Found::Gpus(gpus);
    }
    let page = parse(text);
    match why_not_metrics(&page) {
        Some(why) => Found::Nothing(format!("not a metrics page: {why}")),
        None => from_page(&page, kind),
    }
}

fn from_page(page: &Page, kind: Option<Kind>) -> Found {
    let guessed = guess_kind(page);
    let gpus = from_dcgm_page(page).unwrap_or_default();
    if kind.is_none() && guessed == EngineKind::None && !gpus.is_empty() {
        return Found::Gpus(gpus);
    }
    let engine = kind.map_or(guessed, EngineKind::from);
    Found::Page {
        kind: engine,
        // Who says `--kind none` knows that there is nothing to find.
        expected: kind.is_some() || engine != EngineKind::None,
        series: page.series.len(),
        normalised: Box::new(normalise(page, engine)),
        gpus,
    }
}

fn blind(kind: EngineKind, normalised: &Normalised) -> Vec<&'static str> {
    let lost = |metric: &Metric| carries(kind, *metric) && !normalised.scrape.values.contains_key(metric);
    RED_LINES.iter().filter(|metric| lost(metric)).map(|metric| metric.name()).collect()
}

fn verdict(found: &Found) -> ExitCode {
    match found {
        Found::Nothing(_) => ExitCode::Environment,
        Found::Gpus(_) => ExitCode::Ok,
        Found::Page { kind, expected, normalised, .. } => {
            if *expected && blind(*kind, normalised).is_empty() { ExitCode::Ok } else { ExitCode::No }
        }
    }
}

/// A figure as short as it can be without losing what matters.
fn figure(value: f64) -> String {
    if value.fract().abs() < f64::EPSILON { format!("{value:.0}") } else { format!("{value:.4}") }
}

fn to_text(source: &str, found: &Found) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = match found {
        Found::Nothing(why) => writeln!(text, "{source}: {why}"),
        Found::Gpus(gpus) => {
            writeln!(text, "{source}: {} GPU(s)", gpus.len()).and_then(|()| gpu_lines(&mut text, gpus))
        }
        Found::Page { kind, expected, series, normalised, gpus } => {
            page_lines(&mut text, source, (*kind, *expected, *series), normalised)
                .and_then(|()| gpu_lines(&mut text, gpus))
        }
    };
    text
}

fn page_lines(
    text: &mut String,
    source: &str,
    (kind, expected, series): (EngineKind, bool, usize),
    normalised: &Normalised,
) -> std::fmt::Result {
    let lost = normalised.not_understood;
    writeln!(text, "{source}: kind {kind}, {series} series, {lost} line(s) not understood")?;
    for line in &normalised.examples {
        writeln!(text, "  not understood     {line}")?;
    }
    if !expected {
        writeln!(
            text,
            "  no name on this page belongs to an engine that is known here; is it the right page?"
        )?;
    }
    for (metric, value) in &normalised.scrape.values {
        let from = normalised.names.get(metric).map(String::as_str).unwrap_or_default();
        writeln!(text, "  {:<18} {:>14}   {from}", metric.name(), figure(*value))?;
    }
    for (name, histogram) in &normalised.scrape.histograms {
        writeln!(text, "  {name:<18} {}", histogram_words(histogram))?;
    }
    if let Some(pool) = &normalised.pool {
        let size = pool.size_tokens.map_or("size unknown".to_owned(), |tokens| format!("{tokens} tokens"));
        let caching = match pool.prefix_caching {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        };
        writeln!(
            text,
            "  pool               {size}, prefix caching {caching}, engines {} ({})",
            pool.engines, pool.source
        )?;
    }
    for missing in &normalised.missing {
        writeln!(text, "  missing            {missing}")?;
    }
    let blind = blind(kind, normalised);
    if !blind.is_empty() {
        writeln!(text, "  the red lines cannot be watched without {}", blind.join(" and "))?;
    }
    Ok(())
}

fn histogram_words(histogram: &Histogram) -> String {
    let all = Buckets::of(histogram);
    let mut words = format!("{:>14} observed", figure(all.total()));
    if let Some(mean) = all.mean() {
        let _ = write!(words, ", mean {mean:.3} s");
    } else if histogram.sum.is_none() {
        words.push_str(", sum not usable");
    }
    if let Some(p95) = all.quantile(0.95) {
        let _ = write!(words, ", p95 between {} and {} s", p95.lower, p95.upper);
    }
    words
}

fn gpu_lines(text: &mut String, gpus: &[GpuDevice]) -> std::fmt::Result {
    for gpu in gpus {
        let name = gpu.name.as_deref().unwrap_or("unnamed");
        let mig = if gpu.mig == Some(true) { ", cut into MIG slices" } else { "" };
        writeln!(text, "  {} ({name}{mig})", gpu.id)?;
        for (field, value) in gpu_figures(gpu) {
            match value {
                Some(value) => writeln!(text, "    {field:<18} {:>14}", figure(value))?,
                None => {
                    let why = gpu.not_available.get(field).map_or("not told", String::as_str);
                    writeln!(text, "    {field:<18} {:>14}   {why}", "not available")?;
                }
            }
        }
        if let Some(why) = gpu.not_available.get("throttle") {
            writeln!(text, "    {:<18} {:>14}   {why}", "throttle", "not available")?;
        } else {
            let reasons = gpu.reading.throttle.join(", ");
            let reasons = if reasons.is_empty() { "nothing holds it down" } else { &reasons };
            writeln!(text, "    {:<18} {reasons:>14}", "throttle")?;
        }
        process_lines(text, gpu)?;
    }
    Ok(())
}

/// Who computes on it, where the read-out tells.
fn process_lines(text: &mut String, gpu: &GpuDevice) -> std::fmt::Result {
    for process in &gpu.processes {
        let name = process.name.as_deref().unwrap_or("unnamed");
        let bytes = process.memory_bytes.map_or("not available".to_owned(), |bytes| bytes.to_string());
        writeln!(text, "    {:<18} {bytes:>14}   {name}", format!("process {}", process.pid))?;
    }
    if let Some(why) = gpu.not_available.get("processes") {
        writeln!(text, "    {:<18} {:>14}   {why}", "processes", "not available")?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a GPU's memory are far below 2^53")]
fn gpu_figures(gpu: &GpuDevice) -> [(&'static str, Option<f64>); 6] {
    let reading = &gpu.reading;
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    [
        ("utilisation", reading.utilisation),
        ("memory_used_bytes", bytes(reading.memory_used_bytes)),
        ("memory_total_bytes", bytes(reading.memory_total_bytes)),
        ("power_w", reading.power_w),
        ("temperature_c", reading.temperature_c),
        ("sm_clock_mhz", reading.sm_clock_mhz),
    ]
}

fn to_json(source: &str, found: &Found) -> Value {
    match found {
        Found::Nothing(why) => json!({ "source": source, "ok": false, "error": why }),
        Found::Gpus(gpus) => json!({ "source": source, "ok": true, "gpus": gpus_json(gpus) }),
        Found::Page { kind, series, normalised, gpus, .. } => {
            let values: Map<String, Value> = normalised
                .scrape
                .values
                .iter()
                .map(|(metric, value)| {
                    let from = normalised.names.get(metric);
                    (metric.name().to_owned(), json!({ "value": value, "from": from }))
                })
                .collect();
            json!({
                "source": source,
                "ok": verdict(found) == ExitCode::Ok,
                "kind": kind.name(),
                "series": series,
                "not_understood": normalised.not_understood,
                "examples": normalised.examples,
                "values": values,
                "histograms": normalised.scrape.histograms,
                "pool": normalised.pool,
                "missing": normalised.missing,
                "gpus": gpus_json(gpus),
            })
        }
    }
}

fn processes_json(gpu: &GpuDevice) -> Vec<Value> {
    let one = |process: &GpuProcess| json!({ "pid": process.pid, "name": process.name, "memory_bytes": process.memory_bytes });
    gpu.processes.iter().map(one).collect()
}

fn gpus_json(gpus: &[GpuDevice]) -> Vec<Value> {
    gpus.iter()
        .map(|gpu| {
            json!({
                "id": gpu.id,
                "name": gpu.name,
                "mig": gpu.mig,
                "reading": gpu.reading,
                "not_available": gpu.not_available,
                "processes": processes_json(gpu),
            })
        })
        .collect()
}
