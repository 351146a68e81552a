//! The metrics page: the model's counters under the names and in the shapes of vLLM 0.24 and later.

use tapedeck_metrics::{Exposition, Kind, NumberStyle, count};

use crate::engine::Core;

/// A page being written. Every series carries `engine` and `model_name`; other labels are given in
/// alphabetical order around them, as vLLM prints them.
struct Page<'a> {
    text: Exposition,
    model_name: &'a str,
}

/// The page of an instance at this instant.
pub(crate) fn page(core: &Core) -> String {
    let (counters, sockets) = core.counters();
    let params = &core.params;
    let mut page = Page { text: Exposition::new(NumberStyle::Python), model_name: &core.options.model_name };

    page.bare("tapedeck_simulated", Kind::Gauge, "1: every figure on this page is simulated.", 1.0);
    let whole = |n: u32| f64::from(n);
    page.one("vllm:num_requests_running", Kind::Gauge, "Requests being computed.", whole(counters.running));
    page.one(
        "vllm:num_requests_waiting",
        Kind::Gauge,
        "Requests that wait, whatever for.",
        whole(counters.waiting_capacity + counters.waiting_deferred),
    );
    let by_reason = "vllm:num_requests_waiting_by_reason";
    page.text.family(by_reason, Kind::Gauge, "Waiting requests by reason: capacity, deferred.");
    for (reason, n) in [("capacity", counters.waiting_capacity), ("deferred", counters.waiting_deferred)] {
        page.sample(by_reason, &[], &[("reason", reason)], whole(n));
    }
    let help = "Share of the KV blocks in use; 1 is all.";
    page.one("vllm:kv_cache_usage_perc", Kind::Gauge, help, counters.kv_usage);
    for (name, help, value) in [
        ("prefix_cache_queries", "Tokens looked up in the prefix cache.", counters.prefix_queries),
        ("prefix_cache_hits", "Tokens found in the prefix cache.", counters.prefix_hits),
        ("mm_cache_queries", "Items looked up in the multimodal cache.", counters.mm_queries),
        ("mm_cache_hits", "Items found in the multimodal cache.", counters.mm_hits),
        ("num_preemptions", "Preemptions since the start.", counters.preemptions),
        ("prompt_tokens", "Prompt tokens of everything answered.", counters.prompt_tokens),
        ("generation_tokens", "Tokens generated.", counters.generation_tokens),
    ] {
        page.one(&format!("vllm:{name}_total"), Kind::Counter, help, count(value));
    }
    let success = "vllm:request_success_total";
    page.text.family(success, Kind::Counter, "Requests finished, by reason.");
    let finished = counters.finished;
    for (reason, n) in [
        ("stop", finished.stop),
        ("length", finished.length),
        ("abort", finished.abort),
        ("error", 0),
        ("repetition", 0),
    ] {
        page.sample(success, &[("finished_reason", reason)], &[], count(n));
    }

    let ttft = "vllm:time_to_first_token_seconds";
    page.text.family(ttft, Kind::Histogram, "From the last audio of a window to its first token.");
    let bucket = format!("{ttft}_bucket");
    for (bound_ns, n) in counters.ttft.cumulative() {
        page.sample(&bucket, &[("le", &format!("{:?}", seconds(bound_ns)))], &[], count(n));
    }
    page.sample(&bucket, &[("le", "+Inf")], &[], count(counters.ttft.count));
    page.sample(&format!("{ttft}_count"), &[], &[], count(counters.ttft.count));
    page.sample(&format!("{ttft}_sum"), &[], &[], seconds(counters.ttft.sum_ns));

    // vLLM keeps one block for itself: the size it tells includes it, the usage does not.
    let blocks = u64::from(params.kv_blocks) + 1;
    let tokens = blocks * u64::from(params.block_tokens);
    let info = "vllm:cache_config_info";
    page.text.family(info, Kind::Gauge, "Settings of the KV cache, as labels.");
    let settings = [
        ("block_size", params.block_tokens.to_string()),
        ("cache_dtype", "auto".into()),
        ("enable_prefix_caching", if params.prefix_cache { "True" } else { "False" }.into()),
        ("engine", "0".into()),
        ("gpu_memory_utilization", "None".into()),
        ("kv_cache_max_concurrency", format!("{:?}", ratio(tokens, u64::from(params.max_model_len)))),
        ("kv_cache_memory_bytes", "None".into()),
        ("kv_cache_size_tokens", tokens.to_string()),
        ("num_gpu_blocks", blocks.to_string()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    page.text.sample(info, &settings, 1.0);

    page.bare("vllm:websocket_connections_active", Kind::Gauge, "Open WebSockets.", count(sockets.active));
    page.bare(
        "vllm:websocket_connections_total",
        Kind::Counter,
        "WebSockets since the start.",
        count(sockets.total),
    );
    page.text.finish()
}

impl Page<'_> {
    /// A sample with the labels that every series has, and others before and after `model_name`.
    fn sample(&mut self, name: &str, before: &[(&str, &str)], after: &[(&str, &str)], value: f64) {
        let labels: Vec<_> =
            [&[("engine", "0")][..], before, &[("model_name", self.model_name)], after].concat();
        self.text.sample(name, &labels, value);
    }

    /// A family of one series.
    fn one(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.text.family(name, kind, help);
        self.sample(name, &[], &[], value);
    }

    /// A family of one series without labels.
    fn bare(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.text.family(name, kind, help);
        self.text.sample(name, &[], value);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a page shows times far below 2^53 ns to the digit")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "token counts lie far below 2^53")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}
