//! What one stream alone answers (TC-01).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
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
    /// Why not.
    pub reasons: Vec<SingleStreamReason>,
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

/// Why a single stream is not well, or why that cannot be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum SingleStreamReason {
    /// A call did not end well.
    CallEnded {
        /// Its number, from 1.
        call: u32,
        /// How it ended.
        outcome: Outcome,
        /// What the server said of it.
        words: Option<String>,
    },
    /// The server broke the rules of its dialect.
    Violations {
        /// How often.
        times: u64,
    },
    /// No server can keep the limit on this tape.
    LimitBelowFloor {
        /// The limit on first text, seconds.
        limit_s: f64,
        /// What first text counts from.
        basis: TtftBasis,
        /// What passes before there is anything to recognise, seconds.
        floor_s: f64,
    },
    /// First text is beyond its limit.
    FirstTextBeyond {
        /// The largest, seconds.
        max_s: f64,
        /// The limit, seconds.
        limit_s: f64,
    },
    /// The real-time factor is beyond its limit.
    RealTimeFactorBeyond {
        /// The largest.
        max: f64,
        /// The limit.
        limit: f64,
    },
    /// The final is beyond its limit.
    FinalBeyond {
        /// The largest, seconds.
        max_s: f64,
        /// The limit, seconds.
        limit_s: f64,
    },
    /// No call has a first text.
    FirstTextUnknown {
        /// What first text counts from.
        basis: TtftBasis,
    },
    /// The real-time factor may be high because the config does not tell the server's window.
    WindowUnknown,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(SingleStreamReason);

impl Localize for SingleStreamReason {
    fn text(&self) -> LocalizedText {
        let beyond = |name: &str, max: &f64, limit: &f64| {
            localized!("{name} reached {max:.3}, the limit is {limit}", "{name} 达到 {max:.3}，上限 {limit}")
        };
        match self {
            Self::CallEnded { call, outcome, words } => {
                let outcome = outcome.name();
                match words {
                    Some(words) => localized!(
                        "call {call} ended {outcome} ({words})",
                        "第 {call} 通以 {outcome} 结束（{words}）"
                    ),
                    None => localized!("call {call} ended {outcome}", "第 {call} 通以 {outcome} 结束"),
                }
            }
            Self::Violations { times } => {
                localized!("{times} broken invariants of the dialect", "违反协议约定 {times} 次")
            }
            Self::LimitBelowFloor { limit_s, basis, floor_s } => {
                let basis = basis.name();
                localized!(
                    "TTFT p95 <= {limit_s} s cannot be met from `{basis}`: at least {floor_s:.3} s pass before there is anything to recognise",
                    "以 `{basis}` 为基准不可能满足首字 p95 <= {limit_s} s：至少要过 {floor_s:.3} s 才有可识别的内容"
                )
            }
            Self::FirstTextBeyond { max_s, limit_s } => beyond("TTFT", max_s, limit_s),
            Self::RealTimeFactorBeyond { max, limit } => beyond("RTF", max, limit),
            Self::FinalBeyond { max_s, limit_s } => beyond("final", max_s, limit_s),
            Self::FirstTextUnknown { basis } => {
                let basis = basis.name();
                localized!("no first text was measured from `{basis}`", "没有测到以 `{basis}` 为基准的首字")
            }
            Self::WindowUnknown => localized!(
                "server.window_ms is not set, so an answer is owed for every chunk as soon as it was sent; for a server that listens window by window set it to the length of its window",
                "没有设置 server.window_ms，因此每个音频块一发出就算欠一个应答；若服务端逐窗处理，请把它设为窗口长度"
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
