//! Every figure that a limit can name.

use tapedeck_record::{CallRecord, OutcomeClass, WordCounts};

use crate::report::{GpuReport, InstanceReport, TierReport};

/// A figure that a limit can name.
#[derive(Debug)]
pub struct Figure {
    /// Its name; that of the field in `calls.jsonl` where it is one.
    pub name: &'static str,
    /// Its unit; empty for ratios and counts.
    pub unit: &'static str,
    /// What it is, in one line.
    pub definition: &'static str,
    pub(super) source: Source,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// One value a call: a statistic has to be named.
    Call(fn(&CallRecord, &TierReport) -> Option<f64>),
    /// One value for a set of judged calls.
    Calls(fn(&[&CallRecord]) -> Option<f64>),
    /// One value a step, with how much stands behind it.
    Step(fn(&TierReport) -> Known),
    /// What the engines' pages tell: one value a step, and one an instance.
    Page(fn(&TierReport) -> Option<f64>, fn(&InstanceReport) -> Option<f64>),
}

/// A value, and how much stands behind it.
pub(super) type Known = Option<(f64, u64)>;

impl Figure {
    /// Whether a statistic has to be named, as in `final_s:p95`.
    #[must_use]
    pub const fn of_calls(&self) -> bool {
        matches!(self.source, Source::Call(_))
    }

    /// Whether it can be demanded `by instance` only, among the parts.
    #[must_use]
    pub const fn only_by_instance(&self) -> bool {
        matches!(self.source, Source::Page(..))
    }

    /// Whether it can be demanded by any part at all.
    #[must_use]
    pub const fn has_parts(&self) -> bool {
        !matches!(self.source, Source::Step(_))
    }
}

/// Every figure, in the order of the reference.
pub static FIGURES: &[Figure] = &[
    call("ttft_s", "s", "first text, counted as the tier's verdict counts it (`slo.ttft_basis`)", |c, r| {
        r.ttft_basis.of(c)
    }),
    call("ttft_wire_s", "s", "first text minus the planned send time of the first chunk", |c, _| {
        c.ttft_wire_s
    }),
    call("ttft_speech_s", "s", "first text minus the first speech onset", |c, _| c.ttft_speech_s),
    call(
        "ttft_window_s",
        "s",
        "first text minus the end of the first inference window with speech",
        |c, _| c.ttft_window_s,
    ),
    call(
        "first_response_s",
        "s",
        "first message of any kind minus the first chunk's planned send time",
        |c, _| c.first_response_s,
    ),
    call("final_s", "s", "last text minus the planned end of the audio", |c, _| c.final_s),
    call("final_speech_s", "s", "last text minus the planned end of the last speech", |c, _| {
        c.final_speech_s
    }),
    call("rtf", "", "time that an answer was owed / length of the audio", |c, _| c.rtf),
    call("pace", "", "whole call / length of the audio; about 1 when it ended as it was spoken", |c, _| {
        c.pace
    }),
    call("lag_max_s", "s", "longest time that an answer was owed", |c, _| c.lag_max_s),
    call("age_slope_ms_per_min", "ms/min", "growth of the lag with the call's age", |c, _| {
        c.age_slope_ms_per_min
    }),
    call("stall_max_s", "s", "longest gap between texts while speech was flowing", |c, _| c.stall_max_s),
    call("connect_s", "s", "from the first attempt until the session takes audio", |c, _| c.connect_s),
    call("rtt_p50_ms", "ms", "median WebSocket ping round trip of the call", |c, _| c.rtt_p50_ms),
    call("blocked_max_ms", "ms", "longest time that back-pressure held a chunk", |c, _| c.blocked_max_ms),
    call("wake_late_p99_ms", "ms", "our own lateness at p99 of the call's chunks", |c, _| c.wake_late_p99_ms),
    call("wake_late_max_ms", "ms", "our own worst lateness in the call", |c, _| c.wake_late_max_ms),
    call("revisions", "", "characters taken back / characters final", |c, _| c.revisions),
    call("violations", "", "broken rules of the protocol in the call", |c, _| Some(f64::from(c.violations))),
    calls("calls", "", "judged calls, errored ones included", |all| Some(count(all.len()))),
    calls("errors", "", "judged calls that errored", |all| Some(count(errors(all)))),
    calls("error_share", "", "errored / judged calls", |all| share(errors(all), all.len())),
    calls("clean_share", "", "calls that ended ok / judged calls", |all| {
        share(all.iter().filter(|c| c.class == OutcomeClass::Ok).count(), all.len())
    }),
    calls("wer", "", "word errors / words of the references, over calls that have one", |all| {
        pooled(all, |c| c.words)
    }),
    calls("cer", "", "character errors / characters of the references, over calls that have one", |all| {
        pooled(all, |c| c.chars)
    }),
    step("err_streams", "", "streams with at least one errored call", |r| {
        Some((f64::from(r.err_streams), u64::from(r.streams)))
    }),
    step("throughput_per_h", "1/h", "calls an hour that ended, whatever their latency", |r| {
        r.throughput_per_h.map(|v| (v, r.calls_counted))
    }),
    step("goodput_per_h", "1/h", "calls an hour that met every limit of `[slo]`", |r| {
        r.goodput_per_h.map(|v| (v, r.calls_counted))
    }),
    step("little_calls", "", "calls in the system by Little's law", |r| {
        r.little_calls.map(|v| (v, r.calls_counted))
    }),
    step("drain_s", "s", "from the last close until every instance was empty", |r| r.drain_s.map(|v| (v, 1))),
    step("server_rtf", "", "processing time that the engines counted / audio played", |r| {
        r.server_rtf.map(|v| (v, scrapes(r)))
    }),
    page(
        "kv_pool_p95",
        "",
        "fill of the KV pool at p95, 0..1; of the worst instance",
        |r| r.kv_pool_p95,
        |i| i.kv_pool_p95,
    ),
    page(
        "kv_pool_max",
        "",
        "highest fill of the KV pool, 0..1; of the worst instance",
        |r| worst(r, |i| i.kv_pool_max),
        |i| i.kv_pool_max,
    ),
    page(
        "preemptions",
        "",
        "requests thrown out of the KV pool, over all instances",
        |r| r.preempt_delta,
        |i| i.preempt_delta,
    ),
    page(
        "prefix_hit_rate",
        "",
        "prefix-cache hits / look-ups, 0..1; of the worst instance",
        |r| r.prefix_hit_rate,
        |i| i.prefix_hit_rate,
    ),
    page(
        "mm_hit_rate",
        "",
        "multimodal-cache hits / look-ups, 0..1; of the worst instance",
        |r| r.mm_hit_rate,
        |i| i.mm_hit_rate,
    ),
    step("client_wake_late_p99_ms", "ms", "our own lateness at p99 over all chunks of the step", |r| {
        r.wake_late_p99_ms.map(|v| (v, r.calls_counted))
    }),
    step(
        "client_drift_ppm",
        "ppm",
        "how much later we woke the longer a call lasted, median over calls",
        |r| r.client_drift_ppm.map(|v| (v, r.calls_counted)),
    ),
    step("client_cpu_share", "", "CPU that the load generator used / this machine's cores, 0..1", |r| {
        r.client_cpu_share.map(|v| (v, 1))
    }),
    step("gpu_util_avg", "", "mean utilisation of the GPUs, 0..1", |r| gpu(r, |g| g.utilisation_avg)),
    step("gpu_util_max", "", "highest utilisation of any GPU, 0..1", |r| gpu(r, |g| g.utilisation_max)),
    step("gpu_temperature_max_c", "C", "highest temperature of any GPU", |r| gpu(r, |g| g.temperature_max_c)),
    step("gpu_power_avg_w", "W", "mean power of all GPUs together", |r| gpu(r, |g| g.power_avg_w)),
    step("vram_used_gb", "10^9 bytes", "highest memory use of all GPUs together", |r| {
        #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
        let gb = |bytes: u64| bytes as f64 / 1e9;
        gpu(r, |g| g.vram_used_bytes.map(gb))
    }),
];

const fn call(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    of: fn(&CallRecord, &TierReport) -> Option<f64>,
) -> Figure {
    Figure { name, unit, definition, source: Source::Call(of) }
}

const fn calls(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    of: fn(&[&CallRecord]) -> Option<f64>,
) -> Figure {
    Figure { name, unit, definition, source: Source::Calls(of) }
}

const fn step(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    of: fn(&TierReport) -> Known,
) -> Figure {
    Figure { name, unit, definition, source: Source::Step(of) }
}

const fn page(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    of: fn(&TierReport) -> Option<f64>,
    of_one: fn(&InstanceReport) -> Option<f64>,
) -> Figure {
    Figure { name, unit, definition, source: Source::Page(of, of_one) }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are far below 2^53")]
const fn count(n: usize) -> f64 {
    n as f64
}

fn errors(all: &[&CallRecord]) -> usize {
    all.iter().filter(|c| c.class == OutcomeClass::Error).count()
}

fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count(part) / count(of))
}

fn pooled(all: &[&CallRecord], words: fn(&CallRecord) -> Option<WordCounts>) -> Option<f64> {
    let counts = all.iter().filter_map(|c| words(c));
    let (wrong, of) = counts
        .fold((0_u64, 0_u64), |(wrong, of), w| (wrong + u64::from(w.errors()), of + u64::from(w.ref_tokens)));
    #[expect(clippy::cast_precision_loss, reason = "numbers of words are far below 2^53")]
    let rate = wrong as f64 / of as f64;
    (of > 0).then_some(rate)
}

fn worst(report: &TierReport, of: fn(&InstanceReport) -> Option<f64>) -> Option<f64> {
    report.instances.values().filter_map(of).reduce(f64::max)
}

pub(super) fn scrapes(report: &TierReport) -> u64 {
    report.instances.values().map(|i| i.scrapes).sum()
}

fn gpu(report: &TierReport, of: impl Fn(&GpuReport) -> Option<f64>) -> Known {
    let gpus = report.gpu.as_ref()?;
    of(gpus).map(|v| (v, u64::from(gpus.gpus)))
}
