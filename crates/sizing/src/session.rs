//! How many tokens a call keeps in the pool, under each way of keeping a session.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{StaticText, localized};

use crate::error::{SizingError, not_negative, positive};

/// What an engine keeps of a call while it is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionModel {
    /// Everything so far, for the whole call: it grows and is freed at the end (vLLM realtime).
    Resident,
    /// Each window is a request of its own with all audio so far, freed when answered (official Qwen3-ASR streaming).
    Rolling,
    /// One request after the call, freed when answered (upload and transcribe).
    Whole,
}

impl SessionModel {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::Rolling => "rolling",
            Self::Whole => "whole",
        }
    }
}

/// How fast a call gathers tokens, and for how long they stay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// What is kept.
    pub model: SessionModel,
    /// Tokens of a second of audio.
    pub audio_tokens_per_s: f64,
    /// Tokens of the text spoken in a second, on average over the call.
    pub text_tokens_per_s: f64,
    /// Tokens of the prompt that every request carries once.
    pub template_tokens: f64,
    /// Seconds of audio in a window; empty: tokens are counted as if they came evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Resident only: tokens of the prompt around each window.
    #[serde(default)]
    pub window_template_tokens: f64,
    /// Most text tokens that one window can add; empty: no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_text_most: Option<f64>,
    /// Rolling and whole: seconds for which a request holds its tokens. Empty: unknown, and a mean is then an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_s: Option<f64>,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CallTokens {
    /// Length of the call, s.
    pub call_s: f64,
    /// Tokens at the end of the call, when it holds most of them, at the mean rate of text.
    pub peak: f64,
    /// The same if every window said as much as it may; equals `peak` where there is no such limit.
    pub most: f64,
    /// Mean over the time of the call.
    pub mean: f64,
    /// Whether `mean` is only an upper bound, because nobody knows how long a request holds its tokens.
    pub mean_is_bound: bool,
}

/// A day: longer calls are a slip of the unit.
const LONGEST_S: f64 = 86_400.0;

impl Session {
    /// The arithmetic of the load-test plan: 12.5 audio and 5 text tokens a second and 30 of template, kept and growing
    /// evenly.
    #[must_use]
    pub const fn plan() -> Self {
        Self {
            model: SessionModel::Resident,
            audio_tokens_per_s: 12.5,
            text_tokens_per_s: 5.0,
            template_tokens: 30.0,
            window_s: None,
            window_template_tokens: 0.0,
            window_text_most: None,
            answer_s: None,
        }
    }

    /// vLLM's realtime endpoint: windows of 5 s with 13 audio tokens a second, 10 of template and at most 64 of text,
    /// all kept for the whole session.
    #[must_use]
    pub const fn vllm_realtime() -> Self {
        Self {
            model: SessionModel::Resident,
            audio_tokens_per_s: 13.0,
            text_tokens_per_s: 5.0,
            template_tokens: 0.0,
            window_s: Some(5.0),
            window_template_tokens: 10.0,
            window_text_most: Some(64.0),
            answer_s: None,
        }
    }

    /// The official streaming loop: every 2 s all audio so far is sent again.
    #[must_use]
    pub const fn official_streaming() -> Self {
        Self { model: SessionModel::Rolling, window_s: Some(2.0), ..Self::plan() }
    }

    /// One request after the call.
    #[must_use]
    pub const fn whole_utterance() -> Self {
        Self { model: SessionModel::Whole, ..Self::plan() }
    }

    /// A preset by name: `plan`, `vllm-realtime`, `official-streaming`, `whole-utterance`; or the bare models' names.
    ///
    /// # Errors
    /// A name that is none of these.
    pub fn preset(name: &str) -> Result<Self, SizingError> {
        match name {
            "plan" => Ok(Self::plan()),
            "vllm-realtime" | "resident" => Ok(Self::vllm_realtime()),
            "official-streaming" | "rolling" => Ok(Self::official_streaming()),
            "whole-utterance" | "whole" => Ok(Self::whole_utterance()),
            _ => Err(SizingError::Unknown {
                what: StaticText::new("session preset", "会话预设"),
                given: name.to_owned(),
                known:
                    "plan, vllm-realtime (resident), official-streaming (rolling), whole-utterance (whole)"
                        .into(),
            }),
        }
    }

    /// Checks every figure.
    ///
    /// # Errors
    /// The first that is negative, not a number or absurd; rates that are all zero; a rolling session without a window.
    pub fn check(&self) -> Result<(), SizingError> {
        for (what, given) in [
            (StaticText::new("audio tokens per second", "每秒音频 token 数"), self.audio_tokens_per_s),
            (StaticText::new("text tokens per second", "每秒文本 token 数"), self.text_tokens_per_s),
            (StaticText::new("template tokens", "模板 token 数"), self.template_tokens),
            (
                StaticText::new("template tokens of a window", "每窗口模板 token 数"),
                self.window_template_tokens,
            ),
            (
                StaticText::new("most text tokens of a window", "每窗口文本 token 上限"),
                self.window_text_most.unwrap_or(0.0),
            ),
        ] {
            not_negative(what, given, 1e6)?;
        }
        if let Some(window_s) = self.window_s {
            // Below a tenth of a second, a day's call would have millions of windows to add up.
            if positive(StaticText::new("window (s)", "窗口（s）"), window_s, LONGEST_S)? < 0.1 {
                return Err(SizingError::Inconsistent(localized!(
                    "window (s) is {window_s}: give at least 0.1, the length of a chunk",
                    "窗口（s）为 {window_s}：至少 0.1，即一个音频块的长度"
                )));
            }
        }
        if let Some(answer_s) = self.answer_s {
            not_negative(StaticText::new("answer time (s)", "应答时长（s）"), answer_s, LONGEST_S)?;
        }
        if self.audio_tokens_per_s + self.text_tokens_per_s <= 0.0 {
            return Err(SizingError::Inconsistent(localized!(
                "audio and text tokens per second are both 0: a call would need no memory; give at least one",
                "每秒音频与文本 token 数都为 0：通话将不占显存；请至少给出一个"
            )));
        }
        if self.model == SessionModel::Rolling && self.window_s.is_none() {
            return Err(SizingError::Nothing {
                what: StaticText::new("a rolling session has no window", "滚动会话没有窗口"),
                hint: StaticText::new("give the window in seconds, such as 2", "请给出窗口秒数，例如 2"),
            });
        }
        Ok(())
    }

    /// The tokens of a call of `call_s` seconds.
    ///
    /// # Errors
    /// As [`Session::check`], and a length that is not above 0 and up to a day.
    pub fn tokens(&self, call_s: f64) -> Result<CallTokens, SizingError> {
        self.check()?;
        let call_s = positive(StaticText::new("call length (s)", "通话时长（s）"), call_s, LONGEST_S)?;
        let rate = self.audio_tokens_per_s + self.text_tokens_per_s;
        let even = |s: f64| self.template_tokens + rate * s;
        match (self.model, self.window_s) {
            (SessionModel::Resident, None) => {
                let peak = even(call_s);
                Ok(CallTokens {
                    call_s,
                    peak,
                    most: peak,
                    mean: f64::midpoint(self.template_tokens, peak),
                    mean_is_bound: false,
                })
            }
            (SessionModel::Resident, Some(window_s)) => Ok(self.staircase(call_s, window_s)),
            (SessionModel::Rolling, Some(window_s)) => {
                // The request at the end of window j holds even(j w) for the answer's time, at most for a window.
                let held = self.answer_s.unwrap_or(window_s).min(window_s);
                let full = (call_s / window_s).floor();
                let area = held * (full * self.template_tokens + rate * window_s * full * (full + 1.0) / 2.0);
                let rest = if call_s - full * window_s > 1e-9 { held * even(call_s) } else { 0.0 };
                let peak = even(call_s);
                Ok(CallTokens {
                    call_s,
                    peak,
                    most: peak,
                    mean: ((area + rest) / call_s).min(peak),
                    mean_is_bound: self.answer_s.is_none(),
                })
            }
            (SessionModel::Rolling | SessionModel::Whole, _) => {
                let peak = even(call_s);
                let mean = self.answer_s.map_or(peak, |held| (peak * held / call_s).min(peak));
                Ok(CallTokens { call_s, peak, most: peak, mean, mean_is_bound: self.answer_s.is_none() })
            }
        }
    }

    /// A resident call that takes a step up at the end of each window.
    fn staircase(&self, call_s: f64, window_s: f64) -> CallTokens {
        let step = |s: f64, most: bool| {
            let spoken = self.text_tokens_per_s * s;
            let text = match (self.window_text_most, most) {
                (Some(limit), true) => limit,
                (Some(limit), false) => spoken.min(limit),
                (None, _) => spoken,
            };
            self.window_template_tokens + self.audio_tokens_per_s * s + text
        };
        let full = ((call_s + 1e-9) / window_s).floor();
        let rest = (call_s - full * window_s).max(0.0);
        let at_end = |most: bool| {
            self.template_tokens
                + full * step(window_s, most)
                + if rest > 1e-9 { step(rest, most) } else { 0.0 }
        };
        // During window j the tokens of the j windows before it are held.
        let area = step(window_s, false) * (window_s * full * (full - 1.0) / 2.0 + full * rest);
        CallTokens {
            call_s,
            peak: at_end(false),
            most: at_end(true).max(at_end(false)),
            mean: self.template_tokens + (area / call_s).max(0.0),
            mean_is_bound: false,
        }
    }

    /// How long a resident session may last before it outgrows `max_model_len` tokens, s: with the mean rate of text, and
    /// if every window said as much as it may. On vLLM's realtime endpoint a session that goes beyond takes the whole
    /// engine with it, so the second figure is the one to stay below. Windows are whole, as in the engine.
    ///
    /// # Errors
    /// As [`Session::check`], no tokens at all, or a session that is not resident.
    pub fn longest_s(&self, max_model_len: u32) -> Result<LengthBound, SizingError> {
        self.check()?;
        let room = crate::error::count(
            StaticText::new("max_model_len (tokens)", "max_model_len（token）"),
            max_model_len,
        )? - self.template_tokens;
        let text_most = match (self.window_s, self.window_text_most) {
            (Some(window_s), Some(most)) => {
                (most / window_s).max(self.text_tokens_per_s.min(most / window_s))
            }
            _ => self.text_tokens_per_s,
        };
        let template = self.window_s.map_or(0.0, |window_s| self.window_template_tokens / window_s);
        let seconds = |text: f64| (room / (self.audio_tokens_per_s + template + text)).max(0.0);
        Ok(LengthBound {
            max_model_len,
            expected_s: seconds(self.text_tokens_per_s.min(text_most)),
            safe_s: seconds(text_most),
        })
    }
}

/// How long a session may last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LengthBound {
    /// Tokens of context that the engine allows a request.
    pub max_model_len: u32,
    /// Seconds until they are used up at the mean rate of text.
    pub expected_s: f64,
    /// Seconds until they are used up if every window said as much as it may: safe below this.
    pub safe_s: f64,
}
