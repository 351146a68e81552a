//! `vllm-realtime`: the socket that vLLM itself opens at `/v1/realtime`.
//!
//! Audio goes out as base64 in JSON, text comes back as pieces that are appended. The server collects 5 s of
//! audio and answers it as one burst, so a first word cannot come sooner. With Qwen3-ASR each burst begins
//! with a mark, `language English<asr_text>`, which is no text: it tells which window the burst answers.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tapedeck_record::{Evidence, MessageKind, Texts};

use crate::{
    Dialect, Frame, Incoming, Reading, Ready, Session, SessionStart, Signal,
    frame::chunks,
    json,
    registry::{Settings, stranger},
    transcript::{count, taken_back},
};

/// Audio that the server runs as one prompt.
const SEGMENT: Duration = Duration::from_secs(5);
/// The same, bytes of 16 kHz s16le.
const SEGMENT_BYTES: usize = 160_000;
/// Audio below which the server's feature extractor fails: 20 ms, bytes. Its own bound is a little lower.
const LEAST_BYTES: usize = 640;
/// Tokens of a prompt beside its audio, and the most that are generated: what each segment adds whatever is
/// said.
const FIXED_TOKENS: u32 = 10 + 64;
/// Tokens a second of audio becomes.
const TOKENS_PER_SECOND: u32 = 13;
/// Tokens that a whole segment can add to a session.
const SEGMENT_TOKENS: u32 = FIXED_TOKENS + 5 * TOKENS_PER_SECOND;

/// The settings of `vllm-realtime`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VllmRealtime {
    /// The served model's name. Default `Qwen/Qwen3-ASR-1.7B`.
    pub model: String,
    /// Whether each window's text begins with `language X<asr_text>`, which then is the evidence for owed
    /// intervals. Set it to false where the language is forced, or the model writes no marks. Default true.
    pub language_marks: bool,
    /// The server's `--max-model-len`, tokens. A session that outgrows it kills the engine and with it every
    /// other session, so calls that may are refused before the run. Default none: nothing is refused.
    pub max_model_len: Option<u32>,
}

impl Default for VllmRealtime {
    fn default() -> Self {
        Self { model: "Qwen/Qwen3-ASR-1.7B".to_owned(), language_marks: true, max_model_len: None }
    }
}

/// The longest session that is sure to fit into `max_model_len` tokens.
///
/// A session is one request whose context grows: by 13 tokens a second of audio, and by 10 of template and at
/// most 64 of text for each 5 s begun.
///
/// ```
/// use tapedeck_protocol::vllm_realtime::longest_session;
///
/// assert_eq!(longest_session(65_536).as_secs() / 60, 39); // minutes
/// assert_eq!(longest_session(4_096).as_secs(), 145);
/// ```
#[must_use]
pub fn longest_session(max_model_len: u32) -> Duration {
    let room = max_model_len.saturating_sub(1);
    let whole = SEGMENT * (room / SEGMENT_TOKENS);
    let rest = (room % SEGMENT_TOKENS).saturating_sub(FIXED_TOKENS);
    whole + Duration::from_secs(rest.into()) / TOKENS_PER_SECOND
}

impl Settings for VllmRealtime {
    const NAME: &'static str = "vllm-realtime";

    fn check(&self) -> Result<(), String> {
        if self.model.trim().is_empty() {
            return Err("model: must name the served model, as /v1/models lists it".to_owned());
        }
        if self.max_model_len.is_some_and(|len| longest_session(len).is_zero()) {
            return Err(
                "max_model_len: leaves no room for a session; it is the server's --max-model-len".to_owned()
            );
        }
        Ok(())
    }

    fn signs(message: &Value) -> bool {
        match json::text(message, "type") {
            Some("session.created") => message.get("session").is_none(),
            Some("transcription.delta" | "transcription.done") => true,
            _ => false,
        }
    }
}

impl Dialect for VllmRealtime {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evidence(&self) -> Evidence {
        if self.language_marks { Evidence::PerWindow } else { Evidence::None }
    }

    fn ready(&self) -> Ready {
        Ready::OnMessage
    }

    fn window(&self) -> Option<Duration> {
        Some(SEGMENT)
    }

    fn longest_call(&self) -> Option<Duration> {
        self.max_model_len.map(longest_session)
    }

    /// One `append` per chunk. What is left over after the last whole segment must be 20 ms or more, or the
    /// server fails without a final: the last message is padded with as much silence as that takes.
    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        // A single whole chunk is the beginning of a call, made again for one session: not its end.
        let padding = if pcm.len() == chunk_bytes { 0 } else { padding(pcm.len(), chunk_bytes) };
        let last = pcm.len().div_ceil(chunk_bytes.max(1)).saturating_sub(1);
        chunks(pcm, chunk_bytes)
            .enumerate()
            .map(|(i, chunk)| {
                if i == last && padding > 0 {
                    let mut longer = chunk.to_vec();
                    longer.resize(longer.len() + padding, 0);
                    append(&longer)
                } else {
                    append(&chunk)
                }
            })
            .collect()
    }

    fn session(&self, _start: &SessionStart) -> Box<dyn Session> {
        Box::new(RealtimeSession { settings: self.clone(), ..RealtimeSession::default() })
    }
}

/// Bytes of silence that the last message needs.
fn padding(bytes: usize, chunk_bytes: usize) -> usize {
    let short = |rest: usize| if rest == 0 { 0 } else { LEAST_BYTES.saturating_sub(rest) };
    let by_frame = short(bytes % chunk_bytes.max(1));
    // The first padding may end a segment, or begin one.
    by_frame + short((bytes + by_frame) % SEGMENT_BYTES)
}

fn append(pcm: &[u8]) -> Frame {
    const HEAD: &str = r#"{"type":"input_audio_buffer.append","audio":""#;
    let mut text = String::with_capacity(HEAD.len() + pcm.len().div_ceil(3) * 4 + 2);
    text.push_str(HEAD);
    STANDARD.encode_string(pcm, &mut text);
    text.push_str("\"}");
    Frame::Text(text.into())
}

fn say(message: &Value) -> Frame {
    Frame::Text(message.to_string().into())
}

/// One call's conversation.
#[derive(Debug, Default)]
struct RealtimeSession {
    settings: VllmRealtime,
    created: bool,
    replies: Vec<Frame>,
    text: Marked,
    /// The whole text, as the end marker gives it.
    done: Option<String>,
    violations: u32,
}

impl RealtimeSession {
    /// The window that a message belongs to which arrives now.
    fn window(&self) -> Option<u32> {
        if !self.settings.language_marks || self.text.opens_window() {
            return None;
        }
        self.text.windows.checked_sub(1)
    }

    fn created(&mut self, message: &Value) -> Reading {
        if message.get("session").is_some() {
            let words = "the server looks like OpenAI's realtime API, or SGLang's: the same path, another protocol, \
                         which none of the dialects speaks";
            return Reading::signal(Signal::Protocol(words.to_owned()));
        }
        if self.created {
            self.violations += 1; // a session is made once
            return Reading::EMPTY;
        }
        self.created = true;
        self.replies = vec![
            say(&json!({ "type": "session.update", "model": self.settings.model })),
            // Not the last: this one starts the generation. Without it the server stays silent for ever.
            say(&json!({ "type": "input_audio_buffer.commit", "final": false })),
        ];
        Reading::signal(Signal::Ready)
    }

    fn delta(&mut self, message: &Value) -> Reading {
        let Some(delta) = json::text(message, "delta") else {
            return Reading::signal(Signal::Protocol("a delta without text".to_owned()));
        };
        let chars = self.text.push(delta);
        let kind = if chars == 0 { MessageKind::Empty } else { MessageKind::Partial };
        Reading { kind, chars, window: self.window(), ..Reading::EMPTY }
    }

    fn done(&mut self, message: &Value) -> Reading {
        let Some(text) = json::text(message, "text") else {
            return Reading::signal(Signal::Protocol("an end marker without text".to_owned()));
        };
        let mut whole = Marked::default();
        whole.push(text);
        let whole = whole.text();
        let shown = self.text.text();
        if shown.trim() != whole.trim() {
            self.violations += 1; // the end is the sum of its pieces
        }
        if self.settings.language_marks && self.text.windows == 0 && !whole.trim().is_empty() {
            self.violations += 1; // marks were promised: the evidence is none
        }
        let whole = whole.trim().to_owned();
        let (chars, revised) = (count(&whole), taken_back(shown.trim(), &whole));
        self.done = Some(whole);
        Reading {
            kind: MessageKind::End,
            chars,
            revised,
            window: self.window(),
            signal: Signal::Final,
            ..Reading::EMPTY
        }
    }
}

/// An error in the server's words, its code behind them.
fn error(message: &Value) -> Signal {
    match json::complaint(message) {
        Some((words, Some("too_many_sessions"))) => Signal::Busy(words),
        Some((words, _)) => Signal::ServerError(words),
        None => Signal::ServerError("an error without words".to_owned()),
    }
}

impl Session for RealtimeSession {
    fn ending(&mut self) -> Vec<Frame> {
        vec![say(&json!({ "type": "input_audio_buffer.commit", "final": true }))]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        if self.done.is_some() {
            self.violations += 1; // nothing may follow the end
        }
        let message = match json::object(message) {
            Ok(message) => message,
            Err(signal) => return Reading::signal(signal),
        };
        match json::text(&message, "type") {
            Some("session.created") => self.created(&message),
            Some("transcription.delta") => self.delta(&message),
            Some("transcription.done") => self.done(&message),
            Some("error") => Reading::signal(error(&message)),
            _ => Reading::signal(stranger(VllmRealtime::NAME, &message)),
        }
    }

    fn replies(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.replies)
    }

    fn texts(&self) -> Texts {
        let finals = self.done.clone().unwrap_or_default();
        let finals_and_tail = self.done.clone().unwrap_or_else(|| self.text.text().trim().to_owned());
        Texts { finals, finals_and_tail }
    }

    fn tail_open(&self) -> bool {
        self.done.is_none() && !self.text.text().trim().is_empty()
    }

    fn violations(&self) -> u32 {
        self.violations
    }
}

/// Running text out of which the marks `language X<asr_text>` are taken.
#[derive(Debug, Default)]
struct Marked {
    /// Text without marks.
    shown: String,
    /// The end of the text, which may become a mark.
    held: String,
    /// Marks so far.
    windows: u32,
}

const OPEN: &str = "language ";
const CLOSE: &str = "<asr_text>";
/// Longest name of a language, bytes.
const LONGEST_NAME: usize = 32;

/// What a text that begins with an `l` begins with.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// A mark of so many bytes.
    Whole(usize),
    /// As much of one as there is text.
    Begun,
    /// Something else.
    No,
}

fn mark(text: &str) -> Mark {
    let Some(after) = text.strip_prefix(OPEN) else {
        return if OPEN.starts_with(text) { Mark::Begun } else { Mark::No };
    };
    let name =
        after.bytes().take(LONGEST_NAME).take_while(|b| b.is_ascii_alphabetic() || b"-_".contains(b)).count();
    let rest = after.get(name..).unwrap_or_default();
    if name > 0 && rest.starts_with(CLOSE) {
        Mark::Whole(OPEN.len() + name + CLOSE.len())
    } else if CLOSE.starts_with(rest) && (name > 0 || rest.is_empty()) {
        Mark::Begun
    } else {
        Mark::No
    }
}

impl Marked {
    /// Takes in more text; returns the characters of it that are text, blanks around them left out.
    fn push(&mut self, more: &str) -> u32 {
        let mut all = std::mem::take(&mut self.held);
        all.push_str(more);
        let (mut from, mut look, before) = (0, 0, self.shown.len());
        while let Some(at) = all.get(look..).and_then(|rest| rest.find('l')).map(|at| look + at) {
            match mark(all.get(at..).unwrap_or_default()) {
                Mark::Whole(bytes) => {
                    self.show(all.get(from..at).unwrap_or_default());
                    self.windows = self.windows.saturating_add(1);
                    // Segments are written without a blank between them.
                    self.show(" ");
                    from = at + bytes;
                    look = from;
                }
                Mark::Begun => {
                    self.held = all.split_off(at);
                    break;
                }
                Mark::No => look = at + 1,
            }
        }
        self.show(all.get(from..).unwrap_or_default());
        count(self.shown.get(before..).unwrap_or_default().trim())
    }

    fn show(&mut self, text: &str) {
        let fresh = self.shown.is_empty() || self.shown.ends_with(' ');
        self.shown.push_str(if fresh { text.trim_start() } else { text });
    }

    /// Whether the text so far ends in what is very likely the mark of the next window.
    fn opens_window(&self) -> bool {
        self.held.len() >= OPEN.len() - 1
    }

    /// All text, a mark that was begun and not finished included.
    fn text(&self) -> String {
        format!("{}{}", self.shown, self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_found_wherever_they_are_cut() {
        let raw = "language English<asr_text>Hello all, the language of love.language None<asr_text>\
                   language Chinese<asr_text>你好";
        for cut in 1..raw.len() {
            let mut text = Marked::default();
            for piece in raw.as_bytes().chunks(cut).scan(Vec::new(), |left: &mut Vec<u8>, bytes| {
                left.extend_from_slice(bytes);
                let whole = std::str::from_utf8(left).map_or_else(|e| e.valid_up_to(), str::len);
                let rest = left.split_off(whole);
                Some(String::from_utf8(std::mem::replace(left, rest)).unwrap())
            }) {
                text.push(&piece);
            }
            assert_eq!(
                (text.text().as_str(), text.windows),
                ("Hello all, the language of love. 你好", 3),
                "{cut}"
            );
        }
    }

    #[test]
    fn what_is_no_mark_is_text() {
        for raw in
            ["language", "language English", "language English<asr", "language <asr_text>", "a <asr_text> b"]
        {
            let mut text = Marked::default();
            text.push(raw);
            assert_eq!((text.text().as_str(), text.windows), (raw, 0));
        }
        let long = format!("language {}<asr_text>", "x".repeat(LONGEST_NAME + 1));
        assert_eq!(mark(&long), Mark::No);
    }

    #[test]
    fn the_rest_of_a_call_is_never_too_short() {
        for chunk_ms in [10, 60, 100, 160, 800] {
            for audio_ms in (1..200).chain(4_900..5_100).chain(9_990..10_050) {
                let (bytes, chunk) = (audio_ms * 32, chunk_ms * 32);
                let whole = bytes + padding(bytes, chunk);
                let rest = whole % SEGMENT_BYTES;
                assert!(
                    rest == 0 || rest >= LEAST_BYTES,
                    "{audio_ms} ms in {chunk_ms} ms: {rest} bytes left"
                );
                assert!(whole - bytes < 2 * LEAST_BYTES);
            }
        }
        assert_eq!(padding(32_000, 3_200), 0);
        assert_eq!(padding(SEGMENT_BYTES, 5_120), 0, "ends with its segment");
    }

    #[test]
    fn a_session_must_fit() {
        assert_eq!(longest_session(512), Duration::from_secs(15) + Duration::from_secs(20) / 13);
        assert_eq!(longest_session(24_000).as_secs(), 861);
        assert_eq!(longest_session(75), Duration::ZERO);
        assert_eq!(longest_session(0), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(pieces in prop::collection::vec("(language |l|lang|English|<asr_text>|\\PC{0,5}){0,4}", 0..12)) {
            let mut text = Marked::default();
            for piece in &pieces {
                text.push(piece);
                prop_assert!(text.held.len() < OPEN.len() + LONGEST_NAME + CLOSE.len());
            }
            let mut at_once = Marked::default();
            at_once.push(&pieces.concat());
            prop_assert_eq!(text.windows, at_once.windows);
            prop_assert_eq!(text.text(), at_once.text());
        }
    }
}
