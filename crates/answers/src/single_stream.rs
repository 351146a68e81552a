//! What one stream alone answers (TC-01).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::{Evidence, Outcome, Schema};
use tapedeck_slo::TtftBasis;

use crate::decision::Decision;
use crate::rate::ErrorRate;

/// What a single stream answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SingleStreamAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Whether every call went well, within the limits, on anchors that can be met.
    pub decision: Decision,
    /// Why not, in plain sentences.
    pub reasons: Vec<String>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Name of the tape.
    pub tape: String,
    /// What the dialect lets us know; decides whether there is a real-time factor at all.
    pub evidence: Evidence,
    /// Every call, in the order of play.
    pub calls: Vec<SingleStreamCall>,
    /// The passes after the first.
    pub warm: SingleStreamFigures,
    /// The first pass: graphs, caches and connections may not be ready yet.
    pub cold: SingleStreamFigures,
    /// What first text cannot fall below, over all calls of the tape; empty where none has speech.
    pub floors: Vec<Floor>,
    /// What first text counts from.
    pub ttft_basis: TtftBasis,
    /// Broken invariants of the dialect, over all calls.
    pub violations: u64,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

/// One call of the single stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SingleStreamCall {
    /// Its name across tapes.
    pub id: String,
    /// Whether it belongs to the first pass.
    pub cold: bool,
    /// Audio, seconds.
    pub audio_s: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// Instance that served it, where the dialect tells.
    pub instance: Option<String>,
    /// Real-time factor.
    pub rtf: Option<f64>,
    /// First text from the first chunk, seconds.
    pub ttft_wire_s: Option<f64>,
    /// First text from the first speech, seconds.
    pub ttft_speech_s: Option<f64>,
    /// First text from the end of the first window with speech, seconds.
    pub ttft_window_s: Option<f64>,
    /// Final from the end of the audio, seconds.
    pub final_s: Option<f64>,
    /// Broken invariants of the dialect.
    pub violations: u32,
}

/// Figures of several calls. What is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SingleStreamFigures {
    /// Real-time factor.
    pub rtf: Option<Few>,
    /// First text from the first chunk, seconds.
    pub ttft_wire_s: Option<Few>,
    /// First text from the first speech, seconds.
    pub ttft_speech_s: Option<Few>,
    /// First text from the end of the first window with speech, seconds.
    pub ttft_window_s: Option<Few>,
    /// Final from the end of the audio, seconds.
    pub final_s: Option<Few>,
    /// Time to connect, seconds.
    pub connect_s: Option<Few>,
    /// Word errors of finals + tail over all calls with a reference.
    pub words: Option<ErrorRate>,
    /// Character errors, likewise.
    pub chars: Option<ErrorRate>,
}

/// A few observations: too few for a percentile to mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Few {
    /// Median.
    pub p50: f64,
    /// Largest.
    pub max: f64,
    /// Observations.
    pub n: u64,
}

/// What first text cannot fall below on an anchor, whoever serves it: leading silence and the server's window pass
/// before there is anything to recognise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The anchor.
    pub basis: TtftBasis,
    /// 95th percentile over the calls of the tape, seconds.
    pub p95_s: f64,
    /// The largest, seconds.
    pub max_s: f64,
    /// Calls with speech.
    pub n: u64,
    /// Whether the limit can be met at all.
    pub reachable: bool,
}

impl SingleStreamAnswer {
    /// First text of the warm passes on the basis that the limit counts from.
    #[must_use]
    pub const fn ttft(&self) -> Option<Few> {
        match self.ttft_basis {
            TtftBasis::Wire => self.warm.ttft_wire_s,
            TtftBasis::Speech => self.warm.ttft_speech_s,
            TtftBasis::Window => self.warm.ttft_window_s,
        }
    }
}
