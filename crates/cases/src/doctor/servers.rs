//! The servers: reachable, well, legible, and the GPUs under them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tapedeck_config::key;
use tapedeck_fleet::{Action, Health, Instance, health, pool_from};
use tapedeck_load::{CallResult, Control, Plan, PreparedCalls, Timeouts};
use tapedeck_metrics::gpu::distinct;
use tapedeck_metrics::{EngineKind, Normalised, PoolInfo, carries, scrape};
use tapedeck_record::{CallMeta, Metric, Outcome, SpeechMap};
use tapedeck_transport::HttpLimits;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Check, Patient, patience};
use crate::world::seconds;

pub(super) async fn examine(patient: &Patient<'_>, tell: &mut impl FnMut(Check)) {
    let (reached, open) = reach(patient).await;
    tell(reached);
    tell(certificate(patient, open));
    tell(if open {
        session(patient).await
    } else {
        Check::skipped("session", "the server cannot be reached")
    });
    if patient.instances.is_empty() {
        tell(Check::warn(
            "instances",
            "the config names none",
            "give [[instances]] with health and metrics: without them neither drain nor KV pool can be watched",
        ));
    }
    for instance in &patient.instances {
        tell(well(patient, instance).await);
        pages(patient, instance, tell).await;
    }
    gpus(patient, tell).await;
    commands(patient, tell).await;
}

/// Whether the server takes a connection, and how fast.
async fn reach(patient: &Patient<'_>) -> (Check, bool) {
    let endpoint = &patient.target.endpoint;
    let from = Instant::now();
    match patient.target.connector.connect(endpoint).await {
        Ok(_) => {
            let ms = from.elapsed().as_secs_f64() * 1e3;
            (Check::ok("server", format!("{endpoint} takes a connection in {ms:.0} ms")), true)
        }
        // The error says itself what to try.
        Err(error) => {
            let text = error.to_string();
            let see = format!("see `{}` in the config", key!(server.url));
            let (says, hint) = text.rsplit_once("; ").unwrap_or((&text, &see));
            (Check::fail("server", says, hint), false)
        }
    }
}

fn certificate(patient: &Patient<'_>, open: bool) -> Check {
    let server = &patient.config.server;
    if !patient.target.endpoint.tls() {
        Check::skipped("tls", "not used")
    } else if server.accept_any_certificate {
        Check::warn(
            "tls",
            "any certificate is accepted",
            format!(
                "outside a laboratory set {} = false and name the authority in {}",
                key!(server.accept_any_certificate),
                key!(server.ca_file)
            ),
        )
    } else if open {
        Check::ok("tls", "the certificate is good for this name and authority")
    } else {
        Check::skipped("tls", "the server cannot be reached")
    }
}

/// One call of a second of silence, over the very code that plays the tapes.
async fn session(patient: &Patient<'_>) -> Check {
    const NAME: &str = "session";
    let config = patient.config;
    let chunk = Duration::from_millis(config.load.chunk_ms.into());
    let meta = CallMeta {
        index: 0,
        id: "silence".into(),
        duration_ms: 1000,
        bucket_s: 1,
        channel: None,
        tags: Default::default(),
        speech: SpeechMap::default(),
    };
    let silence = (meta, Bytes::from(vec![0; 32_000]));
    let prepared = match PreparedCalls::new(patient.target.dialect.as_ref(), chunk, Duration::ZERO, [silence])
    {
        Ok(prepared) => Arc::new(prepared),
        Err(error) => {
            return Check::fail(NAME, error.to_string(), format!("mend [{}] in the config", key!(load)));
        }
    };
    let timeouts = &config.load.timeouts;
    let plan = Plan {
        ramp: Duration::ZERO,
        warm_up: Duration::ZERO,
        drain: Duration::ZERO,
        timeouts: Timeouts {
            connect: seconds(timeouts.connect_s),
            idle: seconds(timeouts.idle_s),
            no_response: None,
            final_: seconds(timeouts.final_s),
            ..Timeouts::default()
        },
        ping_every: None,
        ..Plan::default()
    };
    let (out, mut calls) = mpsc::unbounded_channel::<CallResult>();
    let control = Control::new();
    let target = patient.target.clone();
    let run = tapedeck_load::run(plan, prepared, target, Instant::now(), control.clone(), out);
    let first = async {
        let first = calls.recv().await;
        control.cut();
        while calls.recv().await.is_some() {}
        first
    };
    let (_, first) = tokio::join!(biased; run, first);
    let Some(CallResult { trace, .. }) = first else {
        return Check::fail(NAME, "no call was made", "run it again");
    };
    let dialect = patient.target.dialect.name();
    let said = trace.outcome.words.as_deref().map(|words| format!(": {words}")).unwrap_or_default();
    let code = trace.outcome.code.map(|code| format!(" ({code})")).unwrap_or_default();
    match trace.outcome.outcome {
        // Silence has no words: a final without any is as good.
        Outcome::Ok | Outcome::EmptyFinal => {
            let ready_ms = trace.c1_ns.map_or(0.0, |c1| ms(c1.saturating_sub(trace.c0_ns)));
            let final_ms = trace.final_ns.zip(trace.end_ns).map(|(f, e)| ms(f.saturating_sub(e)));
            let then = final_ms.map(|ms| format!(", its final {ms:.0} ms after the end")).unwrap_or_default();
            Check::ok(NAME, format!("a second of silence in {dialect}: ready after {ready_ms:.0} ms{then}"))
        }
        Outcome::RefusedBusy => Check::fail(
            NAME,
            format!("the server is full{code}{said}"),
            "wait until it is idle: a run must begin with empty engines",
        ),
        other => Check::fail(
            NAME,
            format!("a second of silence in {dialect} ended as {}{code}{said}", other.name()),
            format!(
                "check the path in {}, {} and {}, and the token",
                key!(server.url),
                key!(server.dialect),
                key!(server.options)
            ),
        ),
    }
}

async fn well(patient: &Patient<'_>, instance: &Instance) -> Check {
    let name = format!("health {}", instance.name);
    let limits = HttpLimits { timeout: patience(patient.config), ..HttpLimits::default() };
    match health(&*patient.target.connector, instance, limits).await {
        Health::Up => Check::ok(name, "it is well"),
        Health::Down { why } => {
            let key = key!(instances[instance.name].health);
            Check::fail(name, why, format!("start the instance, or mend {key} in the config"))
        }
        Health::Unknown => Check::warn(
            name,
            "it has neither a health page nor a metrics page",
            "give one of the two: a fall of the instance shows as errors of calls only",
        ),
    }
}

/// Metrics, red lines, caches and pool of one instance.
async fn pages(patient: &Patient<'_>, instance: &Instance, tell: &mut impl FnMut(Check)) {
    let named = |what: &str| format!("{what} {}", instance.name);
    let (Some(endpoint), true) = (&instance.metrics, instance.kind != EngineKind::None) else {
        tell(Check::warn(
            named("metrics"),
            "none are read: no metrics page, or kind = \"none\"",
            "name the page and the kind, or live without KV pool, preemptions and a proven drain",
        ));
        return;
    };
    let limits = HttpLimits { timeout: patience(patient.config), ..HttpLimits::default() };
    let bearer = instance.bearer.as_ref();
    let normalised = match scrape(&*patient.target.connector, endpoint, bearer, instance.kind, limits).await {
        Ok(scraped) => scraped.normalised,
        Err(error) => {
            tell(Check::fail(
                named("metrics"),
                error.to_string(),
                format!(
                    "mend {} in the config; `tape-doctor metrics URL` shows what a page holds",
                    key!(instances[instance.name].metrics)
                ),
            ));
            return;
        }
    };
    tell(Check::ok(
        named("metrics"),
        format!(
            "{} values and {} histograms",
            normalised.scrape.values.len(),
            normalised.scrape.histograms.len()
        ),
    ));
    tell(hard_limits(named("red lines"), instance.kind, &normalised));
    let control = &patient.seams.control;
    let mut pool = normalised.pool.unwrap_or_default();
    if pool.size_tokens.is_none() && control.can(&instance.name, Action::Log) {
        // A log that cannot be had leaves the pool unknown, which the check then says.
        if let Ok(Some(log)) = pool_from(&**control, &instance.name).await {
            pool.fill_from(&log);
        }
    }
    tell(caches(named("caches"), patient, &pool));
    tell(kv_pool(named("kv pool"), patient, &pool));
}

fn hard_limits(name: String, kind: EngineKind, normalised: &Normalised) -> Check {
    let expected = [Metric::KvPool, Metric::Preemptions].into_iter().filter(|metric| carries(kind, *metric));
    let missing: Vec<&str> =
        expected.filter(|m| !normalised.scrape.values.contains_key(m)).map(Metric::name).collect();
    if missing.is_empty() {
        return Check::ok(
            name,
            "KV pool and preemptions can be watched, as far as such an engine tells them",
        );
    }
    let words = normalised.missing.iter().find(|m| missing.contains(&m.what.as_str()));
    Check::fail(
        name,
        words.map_or_else(|| format!("{} not on the page", missing.join(" and ")), ToString::to_string),
        "is this the engine's own page, and has it been started with its statistics on?",
    )
}

fn caches(name: String, patient: &Patient<'_>, pool: &PoolInfo) -> Check {
    match pool.prefix_caching {
        Some(false) => Check::ok(name, "prefix caching is off"),
        Some(true) if patient.config.load.unique_per_session => {
            let key = key!(load.unique_per_session);
            Check::ok(name, format!("prefix caching is on, and {key} keeps it from hitting on audio"))
        }
        Some(true) => Check::fail(
            name,
            "prefix caching is on: streams that replay one tape would meet each other's cache",
            format!(
                "start the engine with --no-enable-prefix-caching, or set {} = true",
                key!(load.unique_per_session)
            ),
        ),
        None => Check::skipped(name, "the page does not tell; hits are measured while a tier runs"),
    }
}

/// The pool that there is, beside the one that arithmetic expects.
fn kv_pool(name: String, patient: &Patient<'_>, pool: &PoolInfo) -> Check {
    const FAR: f64 = 0.25;
    let Some(tokens) = pool.size_tokens else {
        return Check::warn(
            name,
            "its size is told by neither the page nor a log",
            "give a `log` command for the instance: without the size, theory stays theory",
        );
    };
    let sizing = &patient.config.sizing;
    let theory = || {
        let topology = sizing.topology().ok()??;
        let gb = topology.pool_gb(&sizing.card().ok()?).ok()?;
        Some((topology, gb, sizing.architecture().ok()?.kv_bytes_per_token().ok()?))
    };
    let Some((topology, expected_gb, token_bytes)) = theory() else {
        let key = key!(sizing.topology);
        let says = format!("{tokens} tokens; the config has no {key} to compare them with");
        return Check::skipped(name, says);
    };
    #[expect(clippy::cast_precision_loss, reason = "bytes of a card are far below 2^53")]
    let gb = tokens as f64 * token_bytes as f64 / 1e9;
    let says = format!("{tokens} tokens are {gb:.1} GB, {topology} should leave {expected_gb:.1} GB");
    if (gb - expected_gb).abs() > FAR * expected_gb.abs() {
        Check::warn(
            name,
            says,
            format!(
                "compare --gpu-memory-utilization, the weights and the KV's dtype with [{}]; calibrate {}",
                key!(sizing),
                key!(sizing.overhead_gb)
            ),
        )
    } else {
        Check::ok(name, says)
    }
}

async fn gpus(patient: &Patient<'_>, tell: &mut impl FnMut(Check)) {
    if patient.seams.gpus.is_empty() {
        tell(Check::warn(
            "gpu",
            "the config names no way to read one",
            "give [gpu] nvml, url or command: without it neither leaks nor heat are seen",
        ));
        return;
    }
    let mut devices = Vec::new();
    for source in &patient.seams.gpus {
        match source.read().await {
            Ok(found) => devices.extend(found),
            Err(error) => tell(Check::fail(
                "gpu",
                error.to_string(),
                "mend [gpu] in the config; `tape-doctor metrics` shows what a page or a CSV holds",
            )),
        }
    }
    for gpu in distinct(devices) {
        let name = format!("gpu {}", gpu.id.chars().take(12).collect::<String>());
        if let Some(why) = gpu.why_unreadable() {
            tell(Check::fail(name, why, "reset or replace the card before anything is measured on it"));
            continue;
        }
        let mut says = gpu.name.clone().unwrap_or_else(|| "nameless".into());
        if let Some(driver) = &gpu.driver {
            says = format!("{says}, driver {driver}");
        }
        let memory = (gpu.reading.memory_used_bytes, gpu.reading.memory_total_bytes);
        match memory {
            (Some(used), Some(total)) => {
                let says = format!("{says}, {} of {} MiB in use", used >> 20, total >> 20);
                tell(Check::ok(name, says));
            }
            _ => {
                let why = gpu.not_available.get("memory_used_bytes").map_or("not told", String::as_str);
                tell(Check::warn(
                    name,
                    format!("{says}, memory in use: {why}"),
                    "read the GPU another way, or as a user who may: a leak cannot be seen like this",
                ));
            }
        }
    }
}

async fn commands(patient: &Patient<'_>, tell: &mut impl FnMut(Check)) {
    let environment = &patient.config.environment;
    for (name, command) in &environment.commands {
        let check = format!("command {name}");
        tell(match patient.seams.machine.ask(command, seconds(environment.timeout_s)).await {
            None => Check::skipped(check, "no command is run here"),
            Some(Ok(told)) => {
                Check::ok(check, told.lines().next().unwrap_or("it printed nothing").to_owned())
            }
            Some(Err(why)) => {
                Check::warn(check, why, format!("mend {}.{name} in the config", key!(environment.commands)))
            }
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "a wait of a doctor is far below 2^53 ns")]
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
