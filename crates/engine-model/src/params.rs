//! What one instance can do, and what it costs: the knobs of the model.

use serde::{Deserialize, Serialize};

use crate::faults::Faults;
use crate::vram::Vram;

/// What an engine keeps of a session between two windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionModel {
    /// The session is one request whose KV is kept and grows for the whole call; each window computes only its own
    /// audio. An idle session keeps its blocks and its place among `max_num_seqs` (vLLM's realtime endpoint).
    Resident,
    /// Every window is a request of its own that sends all audio so far, and frees its KV when it is answered
    /// (the official Qwen3-ASR streaming loop).
    Rolling,
}

/// The law of a step's length: `base + streams x per_stream + prefill tokens x per_prefill_token + context tokens of
/// everything in the batch x per_context_token`, all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepCost {
    /// Every step, however empty: launches, sampling, the scheduler. ns, default 10 ms.
    pub base_ns: u64,
    /// Every request that takes part in the step. ns, default 0.8 ms.
    pub per_stream_ns: u64,
    /// Every prompt token computed in the step, audio encoder included. ns, default 60 us.
    pub per_prefill_token_ns: u64,
    /// Every token of context that attention reads for the requests in the step. ns, default 400 ns.
    pub per_context_token_ns: u64,
}

impl Default for StepCost {
    fn default() -> Self {
        Self {
            base_ns: 10_000_000,
            per_stream_ns: 800_000,
            per_prefill_token_ns: 60_000,
            per_context_token_ns: 400,
        }
    }
}

/// How words suffer when the engine is late: the chance that a word of a window is wrong, as a function of the
/// window's lag (completion minus the arrival of its last audio).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Degradation {
    /// Chance of a wrong word without any lag. 0..1, default 0.03.
    pub base: f64,
    /// Chance of a wrong word at `full_lag_ms` and beyond. 0..1, default 0.25.
    pub worst: f64,
    /// Up to this lag the words stay as good as they are. ms, default 1000.
    pub from_lag_ms: u32,
    /// From this lag on it does not get worse; linear in between. ms, default 10,000.
    pub full_lag_ms: u32,
}

impl Default for Degradation {
    fn default() -> Self {
        Self { base: 0.03, worst: 0.25, from_lag_ms: 1_000, full_lag_ms: 10_000 }
    }
}

impl Degradation {
    /// The chance that a word of a window completed `lag_ns` late is wrong.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "lags are far below 2^53 ns")]
    pub fn word_error(&self, lag_ns: u64) -> f64 {
        let from = u64::from(self.from_lag_ms) * 1_000_000;
        let full = u64::from(self.full_lag_ms) * 1_000_000;
        if lag_ns <= from {
            return self.base;
        }
        if lag_ns >= full {
            return self.worst;
        }
        let share = (lag_ns - from) as f64 / (full - from) as f64;
        share.mul_add(self.worst - self.base, self.base)
    }
}

/// One instance of the engine. Every field has a default, so a file names only what it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What is kept between windows. Default `resident`.
    pub session: SessionModel,
    /// Audio gathered before the engine is asked. ms, default 2000 (official Qwen3-ASR streaming; vLLM realtime: 5000).
    pub window_ms: u32,
    /// A session that fell behind answers all complete windows with one request instead of one by one. Default false.
    pub coalesce: bool,
    /// Audio tokens for a second of audio, in thousandths. Default 12,500 (12.5 a second; vLLM realtime counts 13).
    pub audio_tokens_per_s_milli: u32,
    /// Text tokens for a second of speech, in thousandths. Default 5000.
    pub text_tokens_per_s_milli: u32,
    /// Prompt tokens around the audio of every request: of each window when resident, of each re-sent prompt when
    /// rolling. Default 10 (vLLM realtime; the rolling prompt has about 30).
    pub template_tokens: u32,
    /// Tokens generated in every window before its first word (`language English<asr_text>`). Default 4.
    pub preface_tokens: u32,
    /// Rolling only: text tokens taken back and generated anew in each window. Default 5 (official streaming).
    pub rollback_tokens: u32,
    /// Most tokens generated for one window; text beyond is lost. Default 64.
    pub max_window_tokens: u32,
    /// Most tokens of context of one request; a session that outgrows it fails. Default 65,536.
    pub max_model_len: u32,
    /// Usable KV blocks. Default 5900 (10.8 GB at 112 KiB a token: a third of a 48 GB card less the weights).
    pub kv_blocks: u32,
    /// Tokens in a block. Default 16.
    pub block_tokens: u32,
    /// Most requests computed at once; resident sessions count from their first window to their end. Default 256.
    pub max_num_seqs: u32,
    /// Most tokens computed in one step: a decode counts one, a prompt is cut to what is left. Default 2048.
    pub max_batched_tokens: u32,
    /// Sessions beyond this are refused at the door. Default none: everyone is let in.
    pub max_sessions: Option<u32>,
    /// From the last audio of a window until its request reaches the scheduler: feature extraction, network inside
    /// the house. ns, default 15 ms.
    pub intake_ns: u64,
    /// What a step costs.
    pub step: StepCost,
    /// Relative spread of a step's length (standard deviation of a bell-shaped factor around 1). Default 0.05.
    pub jitter: f64,
    /// Whether computed prompts are remembered and a second session with the same audio skips them. Default false.
    pub prefix_cache: bool,
    /// Whether prepared audio is remembered; a hit skips `intake_ns`. Default false.
    pub mm_cache: bool,
    /// How words suffer from lag.
    pub degradation: Degradation,
    /// Memory of the card.
    pub vram: Vram,
    /// What is wrong with it. Default nothing.
    pub faults: Faults,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            session: SessionModel::Resident,
            window_ms: 2_000,
            coalesce: false,
            audio_tokens_per_s_milli: 12_500,
            text_tokens_per_s_milli: 5_000,
            template_tokens: 10,
            preface_tokens: 4,
            rollback_tokens: 5,
            max_window_tokens: 64,
            max_model_len: 65_536,
            kv_blocks: 5_900,
            block_tokens: 16,
            max_num_seqs: 256,
            max_batched_tokens: 2_048,
            max_sessions: None,
            intake_ns: 15_000_000,
            step: StepCost::default(),
            jitter: 0.05,
            prefix_cache: false,
            mm_cache: false,
            degradation: Degradation::default(),
            vram: Vram::default(),
            faults: Faults::default(),
        }
    }
}

/// Why a set of parameters cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("engine parameter `{field}` is {value}: {rule}")]
#[non_exhaustive]
pub struct ParamError {
    /// The parameter at fault.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it must be.
    pub rule: &'static str,
}

impl Params {
    /// Checks that a model with these parameters can make progress.
    ///
    /// # Errors
    /// The first parameter that is out of its range, with the rule it breaks.
    pub fn check(&self) -> Result<(), ParamError> {
        let positive: [(&'static str, u64); 6] = [
            ("max_window_tokens", self.max_window_tokens.into()),
            ("max_model_len", self.max_model_len.into()),
            ("kv_blocks", self.kv_blocks.into()),
            ("block_tokens", self.block_tokens.into()),
            ("max_num_seqs", self.max_num_seqs.into()),
            ("step.base_ns", self.step.base_ns),
        ];
        for (field, value) in positive {
            if value == 0 {
                return Err(ParamError { field, value: value.to_string(), rule: "must be at least 1" });
            }
        }
        if self.window_ms < 100 {
            let value = self.window_ms.to_string();
            return Err(ParamError { field: "window_ms", value, rule: "must be at least 100" });
        }
        if self.max_batched_tokens < self.max_num_seqs {
            let rule = "must be at least max_num_seqs, or some requests would never get a token";
            return Err(ParamError {
                field: "max_batched_tokens",
                value: self.max_batched_tokens.to_string(),
                rule,
            });
        }
        let shares = [
            ("degradation.base", self.degradation.base),
            ("degradation.worst", self.degradation.worst),
            ("vram.noise_memory", self.vram.noise_memory),
            ("faults.mute_share", self.faults.mute_share),
            ("faults.tail_lost_share", self.faults.tail_lost_share),
            ("faults.prefix_hit_share", self.faults.prefix_hit_share),
        ];
        let sizes = [
            ("vram.noise_bytes", self.vram.noise_bytes),
            ("vram.leak_bytes_per_hour", self.vram.leak_bytes_per_hour),
            ("faults.slowdown_per_hour", self.faults.slowdown_per_hour),
        ];
        let factor = self.faults.slow_batch.map_or(1.0, |slow| slow.factor);
        let ranges = [("jitter", self.jitter, 0.0..=0.25, "must lie in 0..0.25")]
            .into_iter()
            .chain(shares.map(|(field, value)| (field, value, 0.0..=1.0, "must lie in 0..1")))
            .chain(sizes.map(|(field, value)| (field, value, 0.0..=f64::MAX, "must be a number not below 0")))
            .chain([("faults.slow_batch.factor", factor, 1.0..=f64::MAX, "must be a number not below 1")]);
        for (field, value, range, rule) in ranges {
            if !range.contains(&value) {
                return Err(ParamError { field, value: value.to_string(), rule });
            }
        }
        if self.degradation.full_lag_ms <= self.degradation.from_lag_ms {
            let value = self.degradation.full_lag_ms.to_string();
            let rule = "must be more than degradation.from_lag_ms";
            return Err(ParamError { field: "degradation.full_lag_ms", value, rule });
        }
        Ok(())
    }

    /// Tokens that the KV pool holds.
    #[must_use]
    pub fn kv_tokens(&self) -> u64 {
        u64::from(self.kv_blocks) * u64::from(self.block_tokens)
    }

    /// Audio tokens of the first `audio_ms` of a call.
    #[must_use]
    pub fn audio_tokens(&self, audio_ms: u32) -> u32 {
        tokens(audio_ms, self.audio_tokens_per_s_milli)
    }

    /// Text tokens of `speech_ms` of speech.
    #[must_use]
    pub fn text_tokens(&self, speech_ms: u32) -> u32 {
        tokens(speech_ms, self.text_tokens_per_s_milli)
    }
}

fn tokens(length_ms: u32, per_s_milli: u32) -> u32 {
    u32::try_from(u64::from(length_ms) * u64::from(per_s_milli) / 1_000_000).unwrap_or(u32::MAX)
}

impl Params {
    /// One instance of the demo deployment: three of them share a 48 GB card, so each has a third of its memory (5900
    /// blocks = 10.8 GB of KV) and steps that are slow for so small a model.
    #[must_use]
    pub fn demo() -> Self {
        let step = StepCost {
            base_ns: 18_000_000,
            per_stream_ns: 7_000_000,
            per_prefill_token_ns: 300_000,
            per_context_token_ns: 400,
        };
        Self { step, ..Self::default() }
    }
}
