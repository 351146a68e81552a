//! What a ladder answers (TC-03).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::ExitCode;
use tapedeck_slo::{Capacity, CapacityState, TierReport};

/// What a ladder answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderAnswer {
    /// N* with its state.
    pub capacity: Capacity,
    /// The tiers it follows from, in the order in which they were played.
    pub tiers: Vec<TierReport>,
    /// How far repetitions of a tier lie apart; empty unless tiers were repeated.
    pub spread: Vec<Repeats>,
    /// How fast whole calls went; empty unless the ladder was climbed without pace. There is no N* then.
    pub offline: Vec<Ceiling>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

/// How far the repetitions of a tier lie apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Streams.
    pub streams: u32,
    /// `ttft_p95`, `rtf_p95`, `final_p95` or `kv_pool_p95`.
    pub figure: String,
    /// Mean over the repetitions.
    pub mean: f64,
    /// Standard deviation / mean.
    pub cv: Option<f64>,
    /// Repetitions.
    pub n: u64,
}

/// How fast whole calls went at one number of streams, sent as fast as the server took them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Streams, each with one call at a time.
    pub streams: u32,
    /// Seconds of audio finished per second, all streams together.
    pub audio_s_per_s: Option<f64>,
    /// Processing time / audio of a call, median.
    pub rtf_p50: Option<f64>,
    /// The same, 95th percentile.
    pub rtf_p95: Option<f64>,
    /// Calls behind it.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
}

impl LadderAnswer {
    /// The exit code: was the question answered, and is the answer good enough for `require` streams?
    #[must_use]
    pub fn exit_code(&self, require: Option<u32>) -> ExitCode {
        if self.interrupted {
            return ExitCode::Interrupted;
        }
        if !self.offline.is_empty() {
            let whole = self.offline.iter().all(|c| c.errors == 0 && c.audio_s_per_s.is_some());
            return if whole { ExitCode::Ok } else { ExitCode::No };
        }
        let reached = self.capacity.n_star;
        match (self.capacity.state, require) {
            (CapacityState::None, _) => ExitCode::No,
            (CapacityState::Undecided, _) => ExitCode::Undecidable,
            (_, Some(require)) if reached.is_some_and(|n| n >= require) => ExitCode::Ok,
            (CapacityState::AtLeastUnproven, _) => ExitCode::Undecidable,
            // A ladder that never failed has not shown that `require` is out of reach.
            (CapacityState::Censored, Some(_)) => ExitCode::Undecidable,
            (CapacityState::Exact, Some(_)) => ExitCode::No,
            (CapacityState::Exact | CapacityState::Censored, None) => ExitCode::Ok,
        }
    }
}
