//! The `[sizing]` section of a config: what is to be sized.

use serde::{Deserialize, Serialize};

use crate::arch::{Architecture, Dtype};
use crate::error::SizingError;
use crate::promise::PromisePlan;
use crate::session::Session;
use crate::supply::{Card, Topology};

/// The `[sizing]` section. Every key has a default, which is Qwen3-ASR-0.6B on an A40; a file names what differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SizingPlan {
    /// Layers of the text stack. Default 28.
    pub layers: u32,
    /// KV heads of each layer. Default 8.
    pub kv_heads: u32,
    /// Numbers in one key or value. Default 128.
    pub head_dim: u32,
    /// Their format: `float32`, `float16`, `bfloat16`, `fp8`, `int8`. Default `bfloat16`.
    pub dtype: Dtype,
    /// How a session is kept: `plan`, `vllm-realtime`, `official-streaming`, `whole-utterance`. Default `plan`.
    pub session: String,
    /// Seconds of audio in a window; overrides the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Text tokens per second; overrides the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_tokens_per_s: Option<f64>,
    /// Seconds for which a rolling or whole request holds its tokens; unknown without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_s: Option<f64>,
    /// Memory of the card, GB (10^9 bytes). Default 48.
    pub card_gb: f64,
    /// Weights of the model, GB. Default 1.8.
    pub weights_gb: f64,
    /// Overhead of an instance, GB; an estimate until it is measured. Default 2.
    pub overhead_gb: f64,
    /// Share of the card that all instances together may take. Default 0.92.
    pub share: f64,
    /// The deployment, e.g. `3x0.30`; where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Longest context of a request, tokens; where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u32>,
    /// What the capacity statement promises.
    pub promise: PromisePlan,
}

impl Default for SizingPlan {
    fn default() -> Self {
        let (arch, card) = (Architecture::qwen3_asr_0_6b(), Card::a40_qwen3_asr_0_6b());
        Self {
            layers: arch.layers,
            kv_heads: arch.kv_heads,
            head_dim: arch.head_dim,
            dtype: arch.dtype,
            session: "plan".into(),
            window_s: None,
            text_tokens_per_s: None,
            answer_s: None,
            card_gb: card.memory_gb,
            weights_gb: card.weights_gb,
            overhead_gb: card.overhead_gb,
            share: 0.92,
            topology: None,
            max_model_len: None,
            promise: PromisePlan::default(),
        }
    }
}

impl SizingPlan {
    /// The architecture.
    ///
    /// # Errors
    /// As [`Architecture::check`].
    pub fn architecture(&self) -> Result<Architecture, SizingError> {
        let architecture = Architecture {
            layers: self.layers,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            dtype: self.dtype,
        };
        architecture.check()?;
        Ok(architecture)
    }

    /// The session.
    ///
    /// # Errors
    /// A preset that is not known, or as [`Session::check`].
    pub fn session(&self) -> Result<Session, SizingError> {
        let mut session = Session::preset(&self.session)?;
        session.window_s = self.window_s.or(session.window_s);
        session.text_tokens_per_s = self.text_tokens_per_s.unwrap_or(session.text_tokens_per_s);
        session.answer_s = self.answer_s.or(session.answer_s);
        session.check()?;
        Ok(session)
    }

    /// The card.
    ///
    /// # Errors
    /// As [`Card::check`].
    pub fn card(&self) -> Result<Card, SizingError> {
        let card =
            Card { memory_gb: self.card_gb, weights_gb: self.weights_gb, overhead_gb: self.overhead_gb };
        card.check()?;
        Ok(card)
    }

    /// The deployment, where it is known.
    ///
    /// # Errors
    /// A text that is no topology.
    pub fn topology(&self) -> Result<Option<Topology>, SizingError> {
        self.topology.as_deref().map(str::parse).transpose()
    }
}
