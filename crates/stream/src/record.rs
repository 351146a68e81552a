//! The record of an experiment: what was asked of what, and what came out, so that it can be repeated and compared.

use serde::{Deserialize, Serialize};

use crate::chat::Generation;
use crate::config::{Config, Limits, Load};
use crate::figures::{Figures, Percentiles};

/// `[setup]`: what no server tells about itself. Copied into the record as it stands; empty is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// What the run is for, and the one thing that it changes.
    pub experiment: String,
    /// Revision of the model.
    pub model_revision: String,
    /// Tokenizer and chat template, with their versions.
    pub tokenizer_template: String,
    /// Engine and its exact version.
    pub engine: String,
    /// Digest of the container image.
    pub image_digest: String,
    /// GPUs: type, number, memory, how they are connected.
    pub device: String,
    /// Driver, CUDA or ROCm, kernel backend.
    pub software: String,
    /// Types of weights, activations and KV cache.
    pub precision: String,
    /// Context length, sequences and tokens per step that the engine allows.
    pub engine_limits: String,
    /// Cold or warm, prefix rules, routing.
    pub cache: String,
    /// How the quality of the answers was judged.
    pub quality: String,
    /// Peak of GPU memory, if it was watched.
    pub peak_memory: String,
}

/// One experiment. Every key is there; what is unknown says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What the run is for.
    pub experiment: String,
    /// Model and revision.
    pub model: String,
    /// Tokenizer and template.
    pub tokenizer_template: String,
    /// Engine and version.
    pub engine: String,
    /// Image.
    pub image_digest: String,
    /// GPUs.
    pub device: String,
    /// Software under the engine.
    pub software: String,
    /// Types.
    pub precision: String,
    /// The engine's limits.
    pub limits: String,
    /// Cache.
    pub cache: String,
    /// How answers were made.
    pub generation: Generation,
    /// How they were asked for.
    pub load: RecordedLoad,
    /// Counts of outcomes.
    pub quality: RecordedQuality,
    /// Times, tokens, cost.
    pub metrics: RecordedMetrics,
}

/// How requests were sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedLoad {
    /// `closed, 2 at once` or `open, poisson, 0.5 a second`.
    pub model: String,
    /// Requests that count.
    pub requests: u64,
    /// Requests before those, the cold one not among them.
    pub warm_up: u32,
    /// Distinct prompts.
    pub prompts: u64,
    /// Mean tokens of a prompt as the server counts them.
    pub prompt_tokens_mean: String,
    /// Mean tokens of an answer as the server counts them.
    pub completion_tokens_mean: String,
    /// How late requests went out, 99th percentile, milliseconds; open loop only.
    pub late_p99_ms: String,
    /// Measured window, seconds.
    pub window_s: f64,
}

/// Counts of outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedQuality {
    /// How the answers were judged.
    pub judged: String,
    /// Whole answers.
    pub success: u64,
    /// Cut at the limit of tokens.
    pub length_cut: u64,
    /// Without text.
    pub empty: u64,
    /// Errors.
    pub errors: u64,
}

/// Times, tokens, cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedMetrics {
    /// First text of the cold request, seconds.
    pub ttft_cold_s: String,
    /// Median, p95 and p99 of the first text, seconds.
    pub ttft_s: String,
    /// The same of the whole answer.
    pub e2e_s: String,
    /// The same of gaps between chunks.
    pub chunk_gap_s: String,
    /// Answers a second.
    pub requests_per_s: f64,
    /// Answer tokens a second, by the server's count.
    pub output_tokens_per_s: String,
    /// Good answers a second, and what makes one good.
    pub goodput_per_s: f64,
    /// The limits of a good answer.
    pub good_means: Limits,
    /// Peak of GPU memory.
    pub peak_memory: String,
    /// What the window cost, with the currency.
    pub cost: String,
    /// The same per thousand good answers.
    pub cost_per_1000_good: String,
}

const UNKNOWN: &str = "unknown";

/// Fills the record in.
#[must_use]
pub fn record(config: &Config, prompts: usize, figures: &Figures) -> Record {
    let setup = &config.setup;
    let told = |text: &str| if text.trim().is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    let spread = |p: &Option<Percentiles>| {
        known(p.map(|p| {
            let p99 = p.p99.map_or_else(|| "unknown below 100 values".into(), |s| format!("{s:.4}"));
            format!("p50 {:.4}, p95 {:.4}, p99 {p99}, max {:.4}, n {}", p.p50, p.p95, p.max, p.n)
        }))
    };
    let tokens = figures.tokens;
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 tokens")]
    let mean = |sum: u64| {
        known((tokens.reported > 0).then(|| format!("{:.1}", sum as f64 / tokens.reported as f64)))
    };
    let money = |amount: Option<f64>| {
        known(amount.map(|a| format!("{a:.6} {}", config.price.currency).trim_end().to_owned()))
    };
    let cold = figures.cold.as_ref();
    Record {
        experiment: told(&setup.experiment),
        model: format!("{}, revision {}", config.server.model, told(&setup.model_revision)),
        tokenizer_template: told(&setup.tokenizer_template),
        engine: told(&setup.engine),
        image_digest: told(&setup.image_digest),
        device: told(&setup.device),
        software: told(&setup.software),
        precision: told(&setup.precision),
        limits: told(&setup.engine_limits),
        cache: told(&setup.cache),
        generation: config.generation.clone(),
        load: RecordedLoad {
            model: load_model(&config.load),
            requests: figures.requests,
            warm_up: config.load.warm_up,
            prompts: prompts as u64,
            prompt_tokens_mean: mean(tokens.prompt),
            completion_tokens_mean: mean(tokens.completion),
            late_p99_ms: match config.load.rate_per_s {
                Some(_) => known(figures.late_p99_ms.map(|ms| format!("{ms:.2}"))),
                None => "not applicable".into(),
            },
            window_s: figures.window_s,
        },
        quality: RecordedQuality {
            judged: told(&setup.quality),
            success: figures.answered - figures.length_cut,
            length_cut: figures.length_cut,
            empty: figures.empty,
            errors: figures.errors,
        },
        metrics: RecordedMetrics {
            ttft_cold_s: known(cold.and_then(|r| r.ttft_s).map(|s| format!("{s:.4}"))),
            ttft_s: spread(&figures.ttft),
            e2e_s: spread(&figures.total),
            chunk_gap_s: spread(&figures.gap),
            requests_per_s: figures.requests_per_s,
            output_tokens_per_s: known(figures.tokens_per_s.map(|t| format!("{t:.2}"))),
            goodput_per_s: figures.goodput_per_s,
            good_means: config.limits,
            peak_memory: told(&setup.peak_memory),
            cost: money(figures.cost),
            cost_per_1000_good: money(figures.cost_per_good.map(|c| c * 1000.0)),
        },
    }
}

/// The load in words.
#[must_use]
pub fn load_model(load: &Load) -> String {
    match load.law() {
        Some(law) => format!("open, {}, {} a second", law.name(), load.rate_per_s.unwrap_or_default()),
        None => format!("closed, {} at once", load.concurrency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::figures;

    #[test]
    fn every_key_is_there_and_the_unknown_says_so() {
        let mut config = Config::default();
        config.server.model = "m".into();
        config.setup.engine = "vllm 0.32".into();
        config.load.rate_per_s = Some(0.5);
        let record = record(&config, 3, &figures(&[], &config.limits, &config.price));
        let text = toml::to_string_pretty(&record).unwrap();
        for line in [
            "model = \"m, revision unknown\"",
            "engine = \"vllm 0.32\"",
            "device = \"unknown\"",
            "model = \"open, poisson, 0.5 a second\"",
            "cost = \"unknown\"",
            "max_tokens = 256",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(toml::from_str::<Record>(&text).unwrap(), record);
    }
}
