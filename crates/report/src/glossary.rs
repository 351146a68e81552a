//! What every figure means, where it comes from, in both languages.

use crate::words::{Said, Word, say};

/// A figure's definition.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Key in files.
    pub key: &'static str,
    /// Name for people.
    pub name: Said,
    /// Definition with its unit.
    pub definition: Said,
    /// Which file it is read from.
    pub source: &'static str,
}

/// Every figure a report shows.
#[must_use]
pub fn glossary() -> Vec<Entry> {
    let entry = |key, name: Word, definition: Word, source| Entry {
        key,
        name: say!(name),
        definition: say!(definition),
        source,
    };
    vec![
        entry("n_star", Word::DefNStar, Word::DefNStarIs, "steps.jsonl"),
        entry("published", Word::DefPublished, Word::DefPublishedIs, "steps.jsonl, run.toml"),
        entry("streams", Word::DefStreams, Word::DefStreamsIs, "steps.jsonl"),
        entry("ttft_s", Word::FigTtft, Word::DefTtftIs, "calls.jsonl"),
        entry("rtf", Word::FigRtf, Word::DefRtfIs, "calls.jsonl"),
        entry("final_s", Word::FigFinal, Word::DefFinalIs, "calls.jsonl"),
        entry("p95", Word::DefP95, Word::DefP95Is, "calls.jsonl"),
        entry("interval", Word::DefInterval, Word::DefIntervalIs, "steps.jsonl"),
        entry("verdict", Word::DefVerdict, Word::DefVerdictIs, "steps.jsonl"),
        entry("point", Word::DefPoint, Word::DefPointIs, "steps.jsonl"),
        entry("err_streams", Word::DefErrors, Word::DefErrorsIs, "calls.jsonl"),
        entry("kv_pool_p95", Word::DefKv, Word::DefKvIs, "series.jsonl"),
        entry("preempt_delta", Word::DefPreempt, Word::DefPreemptIs, "series.jsonl"),
        entry("calls_counted", Word::DefCalls, Word::DefCallsIs, "calls.jsonl"),
        entry("throughput_per_h", Word::DefThroughput, Word::DefThroughputIs, "calls.jsonl"),
        entry("goodput_per_h", Word::DefGoodput, Word::DefGoodputIs, "calls.jsonl"),
        entry("little_calls", Word::DefLittle, Word::DefLittleIs, "calls.jsonl"),
        entry("wer", Word::DefWer, Word::DefWerIs, "calls.jsonl"),
        entry("vram_used_bytes", Word::DefVram, Word::DefVramIs, "series.jsonl"),
        entry("gpu_util", Word::DefGpu, Word::DefGpuIs, "series.jsonl"),
        entry("drain_s", Word::DefDrain, Word::DefDrainIs, "events.jsonl"),
        entry("wake_late_p99_ms", Word::DefWake, Word::DefWakeIs, "hdr/, trace/"),
        entry("stall_max_s", Word::DefStall, Word::DefStallIs, "calls.jsonl"),
        entry("lag_max_s", Word::DefLag, Word::DefLagIs, "calls.jsonl"),
        entry("pace", Word::DefPace, Word::DefPaceIs, "calls.jsonl"),
        entry("server_rtf", Word::DefServerRtf, Word::DefServerRtfIs, "series.jsonl"),
    ]
}

/// The hover text of a figure.
pub(crate) fn hover(key: &str) -> Option<Said> {
    let entry = glossary().into_iter().find(|e| e.key == key)?;
    Some(say!(Word::HoverDefinition, entry.name, entry.definition, entry.source))
}
