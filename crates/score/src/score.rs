//! Every per-call figure.

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallMeta, CallRecord, Evidence, Message, MessageKind, Trace, WordCounts};
use tapedeck_stats::percentile;

use crate::outstanding::{Outstanding, outstanding_intervals, union_ns};

/// What has to be known of the server and its dialect to read a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// How the dialect lets us tell when a stretch of audio has been answered.
    pub evidence: Evidence,
    /// Length of the server's inference windows, milliseconds; empty where it has no fixed windows.
    #[serde(default)]
    pub window_ms: Option<u32>,
    /// Speech that makes a window the first from which text can be expected, milliseconds. Default 300.
    #[serde(default = "window_speech_min_ms")]
    pub window_speech_min_ms: u32,
}

const fn window_speech_min_ms() -> u32 {
    300
}

impl Rules {
    /// The usual rules for a dialect with this evidence.
    #[must_use]
    pub const fn new(evidence: Evidence, window_ms: Option<u32>) -> Self {
        Self { evidence, window_ms, window_speech_min_ms: window_speech_min_ms() }
    }
}

/// Errors against the reference, counted elsewhere; empty where there is no reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words {
    /// Word errors of the finals.
    pub finals: Option<WordCounts>,
    /// Word errors of finals + tail.
    pub finals_and_tail: Option<WordCounts>,
    /// Character errors of finals + tail.
    pub chars: Option<WordCounts>,
}

/// `a - b` in seconds; nanosecond clocks of one run differ by far less than 2^53.
#[expect(clippy::cast_precision_loss, reason = "differences within a run are far below 2^53 ns")]
fn seconds_between(a_ns: u64, b_ns: u64) -> f64 {
    if a_ns >= b_ns { (a_ns - b_ns) as f64 / 1e9 } else { -((b_ns - a_ns) as f64 / 1e9) }
}

/// Turns the trace of one call into its figures: a pure function, so other rules need no new run.
///
/// What a trace does not show is empty, never 0. Latencies are differences to a *planned* instant and can be
/// negative: a text that comes before anybody spoke precedes its anchor.
#[must_use]
pub fn score(trace: &Trace, meta: &CallMeta, rules: &Rules, words: &Words) -> CallRecord {
    let c1_ns = trace.c1_ns;
    let after = |anchor: Option<u64>, at: Option<u64>| Some(seconds_between(at?, anchor?));
    let results = || trace.messages.iter().filter(move |m| c1_ns.is_some_and(|c1| m.at_ns > c1));
    let first_text = results().find(|m| m.chars > 0).map(|m| m.at_ns);
    let first_chunk = if trace.chunk_ns > 0 { trace.planned_ns(0) } else { None };
    let last_chunk = trace.planned_last_ns();
    // A call that was sent at once had no speech at any instant.
    let spoken = trace.chunk_ns > 0;
    let speech_at =
        |ms: Option<u32>| Some(c1_ns.filter(|_| spoken)? + (u64::from(ms?) * 1_000_000).min(trace.audio_ns));
    let outstanding = outstanding_intervals(trace, meta, rules);
    CallRecord {
        stream: trace.stream,
        seq: trace.seq,
        call: trace.call,
        tape: trace.tape.clone(),
        bucket_s: meta.bucket_s,
        counted: trace.counted,
        start_s: seconds_between(trace.c0_ns, 0),
        done_s: seconds_between(trace.done_ns, 0),
        audio_s: seconds_between(trace.audio_ns, 0),
        instance: trace.instance.clone(),
        outcome: trace.outcome.clone(),
        class: trace.outcome.outcome.class(!meta.speech.is_silent()),
        connect_s: after(Some(trace.c0_ns), c1_ns),
        ttft_wire_s: after(first_chunk, first_text),
        ttft_speech_s: after(speech_at(meta.speech.onset_ms()), first_text),
        ttft_window_s: after(first_window_ns(trace, meta, rules), first_text),
        ttft_kept_s: after(first_chunk, trace.kept_from_ns.filter(|_| trace.final_ns.is_some())),
        first_response_s: after(first_chunk, results().map(|m| m.at_ns).next()),
        final_s: after(last_chunk, trace.final_ns),
        final_speech_s: after(speech_at(meta.speech.end_ms()), trace.final_ns),
        final_kind: trace.final_kind,
        rtf: outstanding.as_deref().and_then(|outstanding| rtf(outstanding, trace)),
        pace: after(c1_ns, trace.final_ns)
            .filter(|_| trace.audio_ns > 0)
            .map(|s| s / seconds_between(trace.audio_ns, 0)),
        lag_max_s: outstanding
            .as_deref()
            .and_then(|o| o.iter().map(Outstanding::lag_ns).max())
            .map(|ns| seconds_between(ns, 0)),
        age_slope_ms_per_min: outstanding.as_deref().and_then(|o| age_slope(o, c1_ns?)),
        stall_max_s: if spoken { stall_max_s(trace, meta) } else { None },
        wake_late_p99_ms: quantile_ms(&trace.wake_late_us, 0.99),
        wake_late_max_ms: quantile_ms(&trace.wake_late_us, 1.0),
        blocked_max_ms: quantile_ms(&trace.blocked_us, 1.0),
        rtt_p50_ms: quantile_ms(&trace.rtt_us, 0.5),
        revisions: revisions(&trace.messages),
        messages: u32::try_from(trace.messages.len()).unwrap_or(u32::MAX),
        violations: trace.violations,
        words_finals: words.finals,
        words: words.finals_and_tail,
        chars: words.chars,
    }
}

/// Planned end of the first inference window that holds enough speech.
fn first_window_ns(trace: &Trace, meta: &CallMeta, rules: &Rules) -> Option<u64> {
    let window_ms = rules.window_ms.filter(|&ms| ms > 0)?;
    let c1_ns = trace.c1_ns?;
    if trace.chunk_ns == 0 {
        return None;
    }
    let audio_ms = u32::try_from(trace.audio_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX);
    let first = (0..audio_ms.div_ceil(window_ms)).find(|&j| {
        let start_ms = j.saturating_mul(window_ms);
        let end_ms = start_ms.saturating_add(window_ms).min(audio_ms);
        meta.speech.within_ms(start_ms, end_ms) >= rules.window_speech_min_ms
    })?;
    let end_ns = ((u64::from(first) + 1) * u64::from(window_ms) * 1_000_000).min(trace.audio_ns);
    Some(c1_ns + (end_ns.div_ceil(trace.chunk_ns) * trace.chunk_ns).min(trace.audio_ns))
}

/// Union of owed intervals / audio; empty where a debt was never settled, because its length is unknown.
fn rtf(outstanding: &[Outstanding], trace: &Trace) -> Option<f64> {
    let settled = outstanding.iter().all(|o| o.closed) && trace.final_ns.is_some();
    (settled && trace.audio_ns > 0)
        .then(|| seconds_between(union_ns(outstanding), 0) / seconds_between(trace.audio_ns, 0))
}

/// Slope of the lag over the call's age, milliseconds per minute, by least squares.
///
/// One point per answer: the lag of the newest window it settles. Older windows settled by the same answer only
/// waited for the server's window to fill, which says nothing about its speed.
fn age_slope(outstanding: &[Outstanding], c1_ns: u64) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut answer_ns = None;
    for o in outstanding.iter().filter(|o| o.closed && o.window.is_some()) {
        let point = (seconds_between(o.from_ns, c1_ns) / 60.0, seconds_between(o.lag_ns(), 0) * 1e3);
        match points.last_mut() {
            Some(last) if answer_ns == Some(o.to_ns) => *last = point,
            _ => points.push(point),
        }
        answer_ns = Some(o.to_ns);
    }
    if points.len() < 3 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a call has far fewer than 2^53 windows")]
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sxx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    (sxx > 0.0).then(|| sxy / sxx)
}

/// Longest stretch of speech between one text and the next (or the end of the call), seconds.
///
/// Only speech counts, so a pause of the speaker is no stall; speech before the first text belongs to the
/// first-text latency. Empty where no text ever came.
fn stall_max_s(trace: &Trace, meta: &CallMeta) -> Option<f64> {
    let c1_ns = trace.c1_ns?;
    let age_ms = |at_ns: u64| u32::try_from(at_ns.saturating_sub(c1_ns) / 1_000_000).unwrap_or(u32::MAX);
    let mut texts = trace.messages.iter().filter(|m| m.at_ns > c1_ns && m.chars > 0).map(|m| m.at_ns);
    let mut from_ns = texts.next()?;
    let end_ns = trace.final_ns.unwrap_or(trace.done_ns);
    let mut longest_ms = 0;
    for to_ns in texts.chain([end_ns]) {
        longest_ms = longest_ms.max(meta.speech.within_ms(age_ms(from_ns), age_ms(to_ns.max(from_ns))));
        from_ns = from_ns.max(to_ns);
    }
    Some(f64::from(longest_ms) / 1e3)
}

/// Characters taken back / characters final; where nothing was called final, the longest text stands in.
fn revisions(messages: &[Message]) -> Option<f64> {
    let chars = |m: &Message| f64::from(m.chars);
    let finals: f64 = messages.iter().filter(|m| m.kind == MessageKind::Final).map(chars).sum();
    let end: f64 = messages.iter().filter(|m| m.kind == MessageKind::End).map(chars).sum();
    let shown = messages.iter().map(chars).fold(0.0, f64::max);
    let whole = [finals, end, shown].into_iter().find(|&c| c > 0.0)?;
    Some(messages.iter().map(|m| f64::from(m.revised)).sum::<f64>() / whole)
}

/// A quantile of microseconds, in milliseconds.
fn quantile_ms(us: &[u32], q: f64) -> Option<f64> {
    let mut values: Vec<f64> = us.iter().map(|&v| f64::from(v) / 1e3).collect();
    percentile(&mut values, q)
}
