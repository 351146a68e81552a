//! The limits a deployment has to keep, and the thresholds of the tests that guard the verdict.

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallFigure, CallRecord};

/// Which anchor the first-text limit counts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TtftBasis {
    /// The planned send time of the first chunk (`ttft_wire_s`).
    #[default]
    Wire,
    /// The instant at which somebody begins to speak (`ttft_speech_s`).
    Speech,
    /// The planned end of the first inference window that holds enough speech (`ttft_window_s`).
    Window,
}

impl TtftBasis {
    /// Every basis.
    pub const ALL: [Self; 3] = [Self::Wire, Self::Speech, Self::Window];

    /// The word used in configs and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Speech => "speech",
            Self::Window => "window",
        }
    }

    /// The call's first-text latency on this basis, seconds.
    #[must_use]
    pub fn of(self, call: &CallRecord) -> Option<f64> {
        self.figure().get(call)
    }

    /// The figure that counts from this basis.
    #[must_use]
    pub const fn figure(self) -> CallFigure {
        match self {
            Self::Wire => CallFigure::TtftWireS,
            Self::Speech => CallFigure::TtftSpeechS,
            Self::Window => CallFigure::TtftWindowS,
        }
    }
}

/// Thresholds of the stationarity tests: does the tier get worse while it runs?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StationarityRules {
    /// Chance of a false alarm over all series and tiers of a ladder, one-sided. Default 0.01.
    pub alpha: f64,
    /// Length of a block, seconds: calls within a block may depend on each other. Default 60.
    pub block_s: f64,
    /// Resamples of the block bootstrap. Default 10000 (a family of 33 tests needs p-values below 0.0003).
    pub resamples: u32,
    /// A rise below this share of the limit is no alarm, however certain. Default 0.10.
    pub min_rise_share: f64,
    /// A rise below this many seconds is no alarm (latencies only). Default 0.05.
    pub min_rise_s: f64,
}

impl Default for StationarityRules {
    fn default() -> Self {
        Self { alpha: 0.01, block_s: 60.0, resamples: 10_000, min_rise_share: 0.10, min_rise_s: 0.05 }
    }
}

/// Thresholds of the rules that end a tier while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiveRules {
    /// How far back the rules look, seconds. Default 60.
    pub window_s: f64,
    /// Calls that must lie in the window before anything is decided from them. Default 20.
    pub min_calls: u32,
    /// First-text p95 (failures as +infinity) above which the tier is aborted, seconds. Default 5.
    pub ttft_p95_s: f64,
    /// Share of errored streams above which the tier, and the ladder, are aborted. Default 0.05.
    pub error_share: f64,
    /// VRAM above the zero-stream baseline that ends the tier, bytes. Default 1 GiB.
    pub vram_over_baseline_bytes: u64,
    /// Free VRAM below which the tier ends, bytes. Default 512 MiB.
    pub vram_free_bytes: u64,
    /// GPU temperature above which the ladder pauses, degrees Celsius. Default 87.
    pub gpu_pause_c: f64,
    /// GPU temperature below which it goes on, degrees Celsius. Default 80.
    pub gpu_resume_c: f64,
    /// Failed scrapes in a row after which an instance is reported as silent. Default 5.
    pub silent_scrapes: u32,
}

impl Default for LiveRules {
    fn default() -> Self {
        Self {
            window_s: 60.0,
            min_calls: 20,
            ttft_p95_s: 5.0,
            error_share: 0.05,
            vram_over_baseline_bytes: 1 << 30,
            vram_free_bytes: 512 << 20,
            gpu_pause_c: 87.0,
            gpu_resume_c: 80.0,
            silent_scrapes: 5,
        }
    }
}

/// Every limit of a tier; the `[slo]` table of the config.
///
/// All three latency limits bind. An unknown key is refused, so that a typo never loosens a limit. Ranges stand with those
/// of the whole config, in `tapedeck-config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Where first-text latency counts from: `wire`, `speech` or `window`. Default `wire`.
    pub ttft_basis: TtftBasis,
    /// First-text p95, seconds. Default 1.0.
    pub ttft_p95_s: f64,
    /// Real-time factor p95. Default 0.5.
    pub rtf_p95: f64,
    /// Final latency p95, seconds. Default 2.0.
    pub final_p95_s: f64,
    /// KV pool use p95 of the worst instance that is already too full. Default 0.98.
    pub kv_pool_p95: f64,
    /// Our own wake lateness p99, milliseconds, above which a tier is invalid. Default 10.
    pub wake_late_p99_ms: f64,
    /// Share of this machine's cores at which the load generator makes a tier invalid. Default 0.5.
    pub loadgen_cpu_share: f64,
    /// Prefix or multimodal cache hit rate above which a tier is suspect. Default 0.01.
    pub cache_hit_rate: f64,
    /// Share of errored streams above which the ladder is aborted. Default 0.05.
    pub error_abort_share: f64,
    /// Rise of CER or WER over the single-stream baseline that raises the quality alarm, points. Default 1.0.
    pub quality_points: f64,
    /// Published capacity = floor(this x N*). Default 0.7.
    pub safety_factor: f64,
    /// Two-sided confidence of every interval. Default 0.95.
    pub confidence: f64,
    /// Resamples of the bootstrap by stream. Default 1000.
    pub bootstrap_resamples: u32,
    /// Stationarity tests.
    pub stationarity: StationarityRules,
    /// Rules that end a tier while it runs.
    pub live: LiveRules,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ttft_basis: TtftBasis::Wire,
            ttft_p95_s: 1.0,
            rtf_p95: 0.5,
            final_p95_s: 2.0,
            kv_pool_p95: 0.98,
            wake_late_p99_ms: 10.0,
            loadgen_cpu_share: 0.5,
            cache_hit_rate: 0.01,
            error_abort_share: 0.05,
            quality_points: 1.0,
            safety_factor: 0.7,
            confidence: 0.95,
            bootstrap_resamples: 1000,
            stationarity: StationarityRules::default(),
            live: LiveRules::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let limits = Limits::default();
        let figures = [
            limits.ttft_p95_s,
            limits.rtf_p95,
            limits.final_p95_s,
            limits.kv_pool_p95,
            limits.wake_late_p99_ms,
            limits.loadgen_cpu_share,
            limits.cache_hit_rate,
            limits.error_abort_share,
            limits.safety_factor,
            limits.quality_points,
        ];
        let shown = figures.map(|f| f.to_string()).join(" ");
        assert_eq!(shown, "1 0.5 2 0.98 10 0.5 0.01 0.05 0.7 1");
        assert_eq!(limits.ttft_basis, TtftBasis::Wire);
        assert_eq!(serde_json::from_str::<Limits>("{}").unwrap(), limits);
    }

    #[test]
    fn a_part_can_be_set_and_a_typo_is_refused() {
        let limits: Limits =
            serde_json::from_str(r#"{"ttft_basis": "window", "live": {"min_calls": 5}}"#).unwrap();
        assert_eq!((limits.ttft_basis, limits.live.min_calls), (TtftBasis::Window, 5));
        let refused = serde_json::from_str::<Limits>(r#"{"ttft_p95": 3}"#).unwrap_err().to_string();
        assert!(refused.contains("unknown field `ttft_p95`") && refused.contains("ttft_p95_s"), "{refused}");
    }
}
