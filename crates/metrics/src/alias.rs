//! Whose names mean what: one table per engine, names without prefix and without `_total`.
//!
//! vLLM's names cover 0.8 to 0.32, sglang's both of its collectors (the one before and the one after the streaming
//! sessions). The first source of a row that the page carries is taken.

use tapedeck_record::{EngineKind, Metric};

use crate::parse::{Page, Series};

/// The metrics that an engine of this kind carries in some version; a limit on any other one is not applicable.
pub fn metrics_of(kind: EngineKind) -> impl Iterator<Item = Metric> {
    rows(kind).iter().map(|row| row.metric)
}

/// Whether an engine of this kind carries a metric in some version.
#[must_use]
pub fn carries(kind: EngineKind, metric: Metric) -> bool {
    metrics_of(kind).any(|known| known == metric)
}

/// The kind whose names a page carries most of; [`EngineKind::None`] if it carries none that are known.
#[must_use]
pub fn guess_kind(page: &Page) -> EngineKind {
    let count = |kind| {
        let own = |series: &&Series| prefixes(kind).iter().any(|prefix| series.name.starts_with(prefix));
        page.series.iter().filter(own).count()
    };
    match (count(EngineKind::Vllm), count(EngineKind::Sglang)) {
        (0, 0) => EngineKind::None,
        (vllm, sglang) if vllm >= sglang => EngineKind::Vllm,
        _ => EngineKind::Sglang,
    }
}

/// How several series of one instance become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    /// They are parts of a whole.
    Add,
    /// A mean would hide the worst.
    Max,
}

/// One name on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Name without prefix and without `_total`.
    pub(crate) name: &'static str,
    /// Only series with this label value, where only some of them count.
    pub(crate) only: Option<(&'static str, &'static str)>,
    /// Only series whose label does not have this value.
    pub(crate) without: Option<(&'static str, &'static str)>,
    /// Whether a family that is declared but has no series yet stands at zero: a counter with labels shows none until
    /// it counts for the first time.
    pub(crate) zero_when_declared: bool,
}

/// One of our names and where it may come from, the preferred source first.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) metric: Metric,
    pub(crate) combine: Combine,
    pub(crate) sources: &'static [Source],
    /// Which versions carry it, or what else a reader of "missing" should know.
    pub(crate) note: &'static str,
    /// What says the same in other versions: where the page has that, this is not missing.
    pub(crate) unless: &'static [Metric],
}

/// One histogram and where it comes from.
#[derive(Debug)]
pub(crate) struct HistogramRow {
    pub(crate) name: &'static str,
    pub(crate) sources: &'static [&'static str],
    /// Whether the sum means what it says.
    pub(crate) sum_is_sound: bool,
}

const fn plain(name: &'static str) -> Source {
    Source { name, only: None, without: None, zero_when_declared: false }
}

const fn only(name: &'static str, label: &'static str, value: &'static str) -> Source {
    Source { name, only: Some((label, value)), without: None, zero_when_declared: false }
}

const VLLM: &[Row] = &[
    Row {
        metric: Metric::KvPool,
        combine: Combine::Max,
        sources: &[plain("kv_cache_usage_perc"), plain("gpu_cache_usage_perc")],
        note: "every version has it under one of two names",
        unless: &[],
    },
    Row {
        metric: Metric::Preemptions,
        combine: Combine::Add,
        sources: &[plain("num_preemptions")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::Running,
        combine: Combine::Add,
        sources: &[plain("num_requests_running")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::Waiting,
        combine: Combine::Add,
        sources: &[plain("num_requests_waiting")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::WaitingCapacity,
        combine: Combine::Add,
        sources: &[only("num_requests_waiting_by_reason", "reason", "capacity")],
        note: "0.20 and later; before, nothing tells waiting for room from an idle realtime session",
        unless: &[],
    },
    Row {
        metric: Metric::OpenSessions,
        combine: Combine::Add,
        sources: &[plain("websocket_connections_active")],
        note: "0.18 and later",
        unless: &[],
    },
    Row {
        metric: Metric::PrefixQueries,
        combine: Combine::Add,
        sources: &[plain("prefix_cache_queries"), plain("gpu_prefix_cache_queries")],
        note: "the V1 engine; V0 has a rate instead",
        unless: &[Metric::PrefixHitRate],
    },
    Row {
        metric: Metric::PrefixHits,
        combine: Combine::Add,
        sources: &[plain("prefix_cache_hits"), plain("gpu_prefix_cache_hits")],
        note: "the V1 engine; V0 has a rate instead",
        unless: &[Metric::PrefixHitRate],
    },
    Row {
        metric: Metric::PrefixHitRate,
        combine: Combine::Max,
        sources: &[plain("gpu_prefix_cache_hit_rate")],
        note: "the V0 engine only; later ones have counters",
        unless: &[Metric::PrefixQueries],
    },
    Row {
        metric: Metric::MmQueries,
        combine: Combine::Add,
        sources: &[plain("mm_cache_queries")],
        note: "0.11 and later",
        unless: &[],
    },
    Row {
        metric: Metric::MmHits,
        combine: Combine::Add,
        sources: &[plain("mm_cache_hits")],
        note: "0.11 and later",
        unless: &[],
    },
    Row {
        metric: Metric::PromptTokens,
        combine: Combine::Add,
        sources: &[plain("prompt_tokens")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::GenerationTokens,
        combine: Combine::Add,
        sources: &[plain("generation_tokens")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::Finished,
        combine: Combine::Add,
        sources: &[plain("request_success")],
        note: "every version has it",
        unless: &[],
    },
    Row {
        metric: Metric::Refused,
        combine: Combine::Add,
        sources: &[plain("admission_rejections")],
        note: "0.32 and later",
        unless: &[],
    },
];

const VLLM_HISTOGRAMS: &[HistogramRow] = &[
    HistogramRow { name: "ttft", sources: &["time_to_first_token_seconds"], sum_is_sound: true },
    HistogramRow { name: "e2e", sources: &["e2e_request_latency_seconds"], sum_is_sound: true },
    // A realtime session's queue time comes out negative, and prefill and inference swell by the same amount.
    HistogramRow { name: "queue", sources: &["request_queue_time_seconds"], sum_is_sound: false },
    HistogramRow { name: "inference", sources: &["request_inference_time_seconds"], sum_is_sound: false },
    HistogramRow { name: "prefill", sources: &["request_prefill_time_seconds"], sum_is_sound: false },
    HistogramRow { name: "decode", sources: &["request_decode_time_seconds"], sum_is_sound: true },
];

const SGLANG: &[Row] = &[
    Row {
        metric: Metric::KvPool,
        combine: Combine::Max,
        sources: &[plain("token_usage")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::Preemptions,
        combine: Combine::Add,
        sources: &[plain("num_retracted_requests")],
        note: "versions with the counter num_retracted_requests_total; the older gauge num_retracted_reqs forgets",
        unless: &[],
    },
    Row {
        metric: Metric::Running,
        combine: Combine::Add,
        sources: &[plain("num_running_reqs")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::Waiting,
        combine: Combine::Add,
        sources: &[plain("num_queue_reqs")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    // Its queue holds only requests that wait for room: a session between two segments is no request.
    Row {
        metric: Metric::WaitingCapacity,
        combine: Combine::Add,
        sources: &[plain("num_queue_reqs")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::OpenSessions,
        combine: Combine::Add,
        sources: &[plain("num_streaming_sessions")],
        note: "only with streaming sessions enabled",
        unless: &[],
    },
    Row {
        metric: Metric::PrefixQueries,
        combine: Combine::Add,
        sources: &[plain("prefill_effective_tokens"), plain("prompt_tokens")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::PrefixHits,
        combine: Combine::Add,
        sources: &[
            Source {
                name: "prefill_effective_tokens",
                only: None,
                without: Some(("mode", "input")),
                zero_when_declared: false,
            },
            Source { name: "cached_tokens", only: None, without: None, zero_when_declared: true },
        ],
        note: "counted from the first hit on",
        unless: &[],
    },
    Row {
        metric: Metric::PrefixHitRate,
        combine: Combine::Max,
        sources: &[plain("cache_hit_rate")],
        note: "the rate of the last prefill only",
        unless: &[],
    },
    Row {
        metric: Metric::PromptTokens,
        combine: Combine::Add,
        sources: &[plain("prompt_tokens")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::GenerationTokens,
        combine: Combine::Add,
        sources: &[plain("generation_tokens")],
        note: "every version has it with --enable-metrics",
        unless: &[],
    },
    Row {
        metric: Metric::Finished,
        combine: Combine::Add,
        sources: &[plain("num_requests")],
        note: "counted from the first request on",
        unless: &[],
    },
];

const SGLANG_HISTOGRAMS: &[HistogramRow] = &[
    HistogramRow { name: "ttft", sources: &["time_to_first_token_seconds"], sum_is_sound: true },
    HistogramRow { name: "e2e", sources: &["e2e_request_latency_seconds"], sum_is_sound: true },
    HistogramRow { name: "queue", sources: &["queue_time_seconds"], sum_is_sound: true },
];

/// The scalars of a kind.
pub(crate) const fn rows(kind: EngineKind) -> &'static [Row] {
    match kind {
        EngineKind::Vllm => VLLM,
        EngineKind::Sglang => SGLANG,
        EngineKind::None => &[],
    }
}

/// The histograms of a kind.
pub(crate) const fn histogram_rows(kind: EngineKind) -> &'static [HistogramRow] {
    match kind {
        EngineKind::Vllm => VLLM_HISTOGRAMS,
        EngineKind::Sglang => SGLANG_HISTOGRAMS,
        EngineKind::None => &[],
    }
}

/// What the names of a kind start with; a colon that was lost on the way through another exporter is forgiven.
pub(crate) const fn prefixes(kind: EngineKind) -> &'static [&'static str] {
    match kind {
        EngineKind::Vllm => &["vllm:", "vllm_"],
        EngineKind::Sglang => &["sglang:", "sglang_"],
        EngineKind::None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn the_kind_is_guessed_from_the_names() {
        let guess = |text: &str| guess_kind(&parse(text));
        assert_eq!(guess("up 1\nvllm:num_requests_running 1\n"), EngineKind::Vllm);
        assert_eq!(guess("sglang:token_usage 1\nsglang:num_queue_reqs 1\nvllm:x 1\n"), EngineKind::Sglang);
        assert_eq!(guess("up 1"), EngineKind::None);
    }

    #[test]
    fn no_name_is_listed_twice_and_every_row_has_a_source() {
        for kind in [EngineKind::Vllm, EngineKind::Sglang] {
            let mut metrics: Vec<_> = metrics_of(kind).collect();
            metrics.sort_unstable();
            metrics.dedup();
            assert_eq!(metrics.len(), rows(kind).len(), "{kind}");
            assert!(rows(kind).iter().all(|row| !row.sources.is_empty() && !row.note.is_empty()));
        }
    }
}
