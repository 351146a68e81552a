//! What is known of a call beforehand, and what was measured on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figure::{FigureSpec, Glossary, Summarised, call_record};
use crate::outcome::{OutcomeClass, OutcomeDetail};
use crate::speech::SpeechMap;
use crate::trace::FinalKind;

/// What is known of a call on the tape before it is played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMeta {
    /// Index on the tape, in play order, from 0.
    pub index: u32,
    /// Name that is stable across tapes: the file's path within the pool (and channel, where one was chosen).
    pub id: String,
    /// Length of the recording, milliseconds, rounded down.
    pub duration_ms: u32,
    /// Nominal duration bucket, seconds.
    pub bucket_s: u32,
    /// Channel that was taken from a stereo recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Free labels of the recording, e.g. `noise = "car"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where somebody speaks.
    pub speech: SpeechMap,
}

/// Word (or character) errors of one call against its reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordCounts {
    /// Tokens of the reference.
    pub ref_tokens: u32,
    /// Tokens replaced by others.
    pub sub: u32,
    /// Tokens of the reference that are missing.
    pub del: u32,
    /// Tokens that the reference does not have.
    pub ins: u32,
}

impl WordCounts {
    /// All errors.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.sub + self.del + self.ins
    }
}

// A figure of single calls is one entry here: the compiler then names the place in the scoring where its value is missing,
// and tables, plots, comparisons, limits, the glossary and docs/figures.md follow.
call_record! {
/// Every per-call figure; one line of `calls.jsonl`. An empty value is unknown or not applicable, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Stream number, from 0.
    pub stream: u32,
    /// Ordinal of the call within its stream, from 0.
    pub seq: u32,
    /// Index of the call on the tape.
    pub call: u32,
    /// Name of the tape, where the streams of a tier play different ones; otherwise it is the tier's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<String>,
    /// Nominal duration bucket, seconds.
    pub bucket_s: u32,
    /// Whether the call counts towards the tier's verdict.
    pub counted: bool,
    /// `c0` in seconds from the run's origin.
    pub start_s: f64,
    /// Instant at which the stream was free again, seconds from the run's origin.
    pub done_s: f64,
    /// Audio of the call, tail silence included, seconds.
    pub audio_s: f64,
    /// Instance that served the call, where the dialect tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// How the call ended, with the server's words.
    #[serde(flatten)]
    pub outcome: OutcomeDetail,
    /// What that does to the verdict.
    pub class: OutcomeClass,
    /// `c1 - c0`, seconds.
    pub connect_s: Option<f64> = ConnectS {
        Seconds, Lower;
        name: "Time to connect", "建连时间";
        is: "from the first attempt until the session takes audio", "从首次尝试到会话可收音频";
        summarised: Some(Summarised::drawn(12));
    },
    /// First non-empty text minus `p_0`, seconds.
    pub ttft_wire_s: Option<f64> = TtftWireS {
        Seconds, Lower;
        name: "First text from the first chunk", "首字（自首块）";
        is: "first text minus the planned send time of the first chunk", "首个文本减去首块的计划发送时刻";
        summarised: Some(Summarised::drawn(0).wordless_fail());
    },
    /// First non-empty text minus the first speech onset, seconds.
    pub ttft_speech_s: Option<f64> = TtftSpeechS {
        Seconds, Lower;
        name: "First text from the first speech", "首字（自首次说话）";
        is: "first text minus the first speech onset", "首个文本减去首次说话的开始";
        summarised: Some(Summarised::drawn(2).wordless_fail());
    },
    /// First non-empty text minus the planned end of the first inference window with >= 300 ms of speech.
    pub ttft_window_s: Option<f64> = TtftWindowS {
        Seconds, Lower;
        name: "First text from the first window with speech", "首字（自首个语音窗口）";
        is: "first text minus the end of the first inference window with speech", "首个文本减去首个含语音的推理窗口的结束";
        summarised: Some(Summarised::drawn(4).wordless_fail());
    },
    /// First text since which the call's text begins as it does in the end, minus `p_0`, seconds.
    pub ttft_kept_s: Option<f64> = TtftKeptS {
        Seconds, Lower;
        name: "First text that stays", "首个保留的文本";
        is: "first text since which the call's text begins as it does in the end, minus the planned send time of the first chunk", "首个此后开头不再改变的文本减去首块的计划发送时刻";
        floor: 0.05;
        compared: true;
        curve: Some("ttft-kept");
        glossary: Some(Glossary::from("calls.jsonl"));
        summarised: Some(Summarised::drawn(24).wordless_fail());
    },
    /// First message of any kind minus `p_0`, seconds.
    pub first_response_s: Option<f64> = FirstResponseS {
        Seconds, Lower;
        name: "First response", "首次响应";
        is: "first message of any kind minus the first chunk's planned send time", "任意首条消息减去首块的计划发送时刻";
    },
    /// `f - p_last`, seconds.
    pub final_s: Option<f64> = FinalS {
        Seconds, Lower;
        name: "Final", "终稿延迟";
        is: "last text minus the planned end of the audio", "最后文本减去音频的计划结束";
        summarised: Some(Summarised::drawn(8));
    },
    /// `f -` planned end of the last speech, seconds.
    pub final_speech_s: Option<f64> = FinalSpeechS {
        Seconds, Lower;
        name: "Final from the end of speech", "终稿延迟（自说话结束）";
        is: "last text minus the planned end of the last speech", "最后文本减去最后一次说话的计划结束";
        // A step is judged by one of the two finals, which share their draws.
        summarised: Some(Summarised::drawn(8));
    },
    /// What decided `f`.
    pub final_kind: Option<FinalKind>,
    /// Length of the union of owed intervals / audio; empty where the dialect gives no evidence.
    pub rtf: Option<f64> = Rtf {
        Ratio, Lower;
        name: "Real-time factor (RTF)", "实时率 RTF";
        is: "time with an outstanding response / length of the audio", "欠答复的时长 / 音频长度";
        floor: 0.02;
        compared: true;
        curve: Some("rtf");
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Length of the union of intervals in which the server owed an answer / length of the audio; below 1 it keeps up.",
            "服务端欠答复的区间并集长度 / 音频长度；小于 1 即跟得上。",
        ));
        summarised: Some(Summarised::drawn(6));
    },
    /// `(f - c1) / audio`: about 1.0 when the call ended as it was spoken.
    pub pace: Option<f64> = Pace {
        Ratio, Lower;
        name: "Pace", "节奏";
        is: "whole call / length of the audio; about 1 when it ended as it was spoken", "整通时长 / 音频长度；边说边出时约为 1";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "(Final - start) / audio; about 1 when the call ended as it was spoken.",
            "（终稿 - 开始）/ 音频长度；边说边出时约为 1。",
        ));
        summarised: Some(Summarised::drawn(10));
    },
    /// Longest owed interval, seconds.
    pub lag_max_s: Option<f64> = LagMaxS {
        Seconds, Lower;
        name: "Lag", "欠账延迟";
        is: "longest time with an outstanding response", "欠答复的最长时间";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Longest interval in which the server owed an answer, seconds.",
            "服务端欠答复的最长区间，秒。",
        ));
        summarised: Some(Summarised::drawn(14));
    },
    /// Slope of the owed lag over the call's age, milliseconds per minute.
    pub age_slope_ms_per_min: Option<f64> = AgeSlopeMsPerMin {
        MillisecondsPerMinute, Lower;
        name: "Growth of lag", "延迟增长";
        is: "growth of the lag with the call's age", "欠账延迟随通话变长的增长";
    },
    /// Longest gap between texts while speech was flowing, seconds.
    pub stall_max_s: Option<f64> = StallMaxS {
        Seconds, Lower;
        name: "Stall", "停顿";
        is: "longest gap between texts while speech was flowing", "说话期间两次文本之间的最长间隔";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Longest stretch of speech between two texts, seconds.",
            "两次文本之间最长的说话时长，秒。",
        ));
        summarised: Some(Summarised::drawn(16));
    },
    /// Our sender's lateness, 99th percentile over the call's chunks, milliseconds.
    pub wake_late_p99_ms: Option<f64> = WakeLateP99Ms {
        Milliseconds, Lower;
        name: "Lateness of our sender", "压测端发送迟到";
        is: "our own lateness at p99 of the call's chunks", "压测端对该通各块的迟到，p99";
    },
    /// Our sender's worst lateness, milliseconds.
    pub wake_late_max_ms: Option<f64> = WakeLateMaxMs {
        Milliseconds, Lower;
        name: "Worst lateness of our sender", "压测端最大发送迟到";
        is: "our own worst lateness in the call", "压测端在该通中的最大迟到";
    },
    /// Longest time that the server's back-pressure held a chunk, milliseconds.
    pub blocked_max_ms: Option<f64> = BlockedMaxMs {
        Milliseconds, Lower;
        name: "Back-pressure", "反压";
        is: "longest time that back-pressure held a chunk", "反压扣住一块音频的最长时间";
        summarised: Some(Summarised::drawn(18));
    },
    /// Median WebSocket ping round trip, milliseconds.
    pub rtt_p50_ms: Option<f64> = RttP50Ms {
        Milliseconds, Lower;
        name: "Round trip", "往返时间";
        is: "median WebSocket ping round trip of the call", "该通 WebSocket ping 往返时间的中位数";
        summarised: Some(Summarised::drawn(20).column("rtt_ms"));
    },
    /// Characters taken back / characters final.
    pub revisions: Option<f64> = Revisions {
        Ratio, Lower;
        name: "Text taken back", "改写率";
        is: "characters taken back / characters final", "收回的字符数 / 最终字符数";
        summarised: Some(Summarised::drawn(22));
    },
    /// Result messages received.
    pub messages: u32,
    /// Broken invariants of the dialect.
    pub violations: u32 = Violations {
        Count, Lower;
        name: "Broken rules", "违反协议次数";
        is: "broken rules of the protocol in the call", "该通违反协议规则的次数";
    },
    /// Errors of the finals against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_finals: Option<WordCounts>,
    /// Errors of finals + tail against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordCounts>,
    /// Character errors of finals + tail against the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<WordCounts>,
}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_figure_goes_by_the_name_of_its_field() {
        for figure in CallFigure::ALL {
            let id = figure.spec().id;
            assert_eq!(serde_json::to_value(figure).unwrap(), id);
            assert_eq!(serde_json::from_value::<CallFigure>(id.into()).unwrap(), *figure);
        }
    }

    #[test]
    fn no_figure_draws_from_the_stream_of_another() {
        // The two finals are one figure from two anchors.
        let drawn = CallFigure::ALL.iter().filter(|f| **f != CallFigure::FinalSpeechS);
        let streams: Vec<u64> = drawn.filter_map(|f| f.spec().summarised).map(|s| s.stream).collect();
        let apart: BTreeSet<u64> = streams.iter().flat_map(|s| [*s, s + 1]).collect();
        assert_eq!(apart.len(), 2 * streams.len(), "{streams:?}");
    }
}
