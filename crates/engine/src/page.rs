//! The metrics page: the model's counters under the names and in the shapes of vLLM 0.24 and later.

use std::fmt::{Display, Write as _};

use crate::engine::Core;

/// A page being written. Every series carries `engine` and `model_name`; other labels are given in
/// alphabetical order around them, as vLLM prints them.
struct Page {
    text: String,
    model_name: String,
}

/// The page of an instance at this instant.
pub(crate) fn page(core: &Core) -> String {
    let (counters, sockets) = core.counters();
    let params = &core.params;
    let mut page =
        Page { text: String::with_capacity(8 * 1024), model_name: escaped(&core.options.model_name) };

    page.bare("tapedeck_simulated", "gauge", "1: every figure on this page is simulated.", 1);
    page.one("num_requests_running", "gauge", "Requests being computed.", counters.running);
    page.one(
        "num_requests_waiting",
        "gauge",
        "Requests that wait, whatever for.",
        counters.waiting_capacity + counters.waiting_deferred,
    );
    page.head("num_requests_waiting_by_reason", "gauge", "Waiting requests by reason: capacity, deferred.");
    for (reason, n) in [("capacity", counters.waiting_capacity), ("deferred", counters.waiting_deferred)] {
        let labels = page.labels("", &format!(",reason=\"{reason}\""));
        page.line("num_requests_waiting_by_reason", &labels, n);
    }
    page.one("kv_cache_usage_perc", "gauge", "Share of the KV blocks in use; 1 is all.", counters.kv_usage);
    for (name, help, value) in [
        ("prefix_cache_queries_total", "Tokens looked up in the prefix cache.", counters.prefix_queries),
        ("prefix_cache_hits_total", "Tokens found in the prefix cache.", counters.prefix_hits),
        ("mm_cache_queries_total", "Items looked up in the multimodal cache.", counters.mm_queries),
        ("mm_cache_hits_total", "Items found in the multimodal cache.", counters.mm_hits),
        ("num_preemptions_total", "Preemptions since the start.", counters.preemptions),
        ("prompt_tokens_total", "Prompt tokens of everything answered.", counters.prompt_tokens),
        ("generation_tokens_total", "Tokens generated.", counters.generation_tokens),
    ] {
        page.one(name, "counter", help, value);
    }
    page.head("request_success_total", "counter", "Requests finished, by reason.");
    let finished = counters.finished;
    for (reason, n) in [
        ("stop", finished.stop),
        ("length", finished.length),
        ("abort", finished.abort),
        ("error", 0),
        ("repetition", 0),
    ] {
        let labels = format!("engine=\"0\",finished_reason=\"{reason}\",model_name=\"{}\"", page.model_name);
        page.line("request_success_total", &labels, n);
    }

    let ttft = "time_to_first_token_seconds";
    page.head(ttft, "histogram", "From the last audio of a window to its first token.");
    for (bound_ns, n) in counters.ttft.cumulative() {
        let labels = page.labels(&format!(",le=\"{:?}\"", seconds(bound_ns)), "");
        page.line("time_to_first_token_seconds_bucket", &labels, n);
    }
    let labels = page.labels(",le=\"+Inf\"", "");
    page.line("time_to_first_token_seconds_bucket", &labels, counters.ttft.count);
    let labels = page.labels("", "");
    page.line("time_to_first_token_seconds_count", &labels, counters.ttft.count);
    page.line("time_to_first_token_seconds_sum", &labels, seconds(counters.ttft.sum_ns));

    // vLLM keeps one block for itself: the size it tells includes it, the usage does not.
    let blocks = u64::from(params.kv_blocks) + 1;
    let block = params.block_tokens;
    let tokens = blocks * u64::from(block);
    page.head("cache_config_info", "gauge", "Settings of the KV cache, as labels.");
    let settings = format!(
        "block_size=\"{block}\",cache_dtype=\"auto\",enable_prefix_caching=\"{caching}\",engine=\"0\",\
         gpu_memory_utilization=\"None\",kv_cache_max_concurrency=\"{concurrency:?}\",\
         kv_cache_memory_bytes=\"None\",kv_cache_size_tokens=\"{tokens}\",num_gpu_blocks=\"{blocks}\"",
        caching = if params.prefix_cache { "True" } else { "False" },
        concurrency = ratio(tokens, u64::from(params.max_model_len)),
    );
    page.line("cache_config_info", &settings, 1);

    page.bare("vllm:websocket_connections_active", "gauge", "Open WebSockets.", sockets.active);
    page.bare("vllm:websocket_connections_total", "counter", "WebSockets since the start.", sockets.total);
    page.text
}

impl Page {
    /// The labels that every series has, with others before and after `model_name`.
    fn labels(&self, before: &str, after: &str) -> String {
        format!("engine=\"0\"{before},model_name=\"{}\"{after}", self.model_name)
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Number) {
        let _ = writeln!(self.text, "vllm:{name}{{{labels}}} {}", value.python());
    }

    /// A family of one series.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Number) {
        self.head(name, kind, help);
        let labels = self.labels("", "");
        self.line(name, &labels, value);
    }

    /// A family of one series without labels, its name in full.
    fn bare(&mut self, name: &str, kind: &str, help: &str, value: impl Number) {
        let value = value.python();
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
}

/// Numbers are printed as Python prints floats: `12.0`.
trait Number {
    fn python(self) -> String;
}

impl Number for f64 {
    fn python(self) -> String {
        format!("{self:?}")
    }
}

impl Number for u64 {
    fn python(self) -> String {
        whole(self)
    }
}

impl Number for u32 {
    fn python(self) -> String {
        whole(self)
    }
}

impl Number for i32 {
    fn python(self) -> String {
        whole(self)
    }
}

fn whole(n: impl Display) -> String {
    format!("{n}.0")
}

#[expect(clippy::cast_precision_loss, reason = "a page shows times far below 2^53 ns to the digit")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "token counts lie far below 2^53")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// A label value: backslash, quote and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
