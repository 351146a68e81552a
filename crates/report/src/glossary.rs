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
        entry("parts", Word::DefPart, Word::DefPartIs, "calls.jsonl, series.jsonl, hdr/"),
        entry("floor", Word::DefFloor, Word::DefFloorIs, "tc01.json"),
        entry("theory", Word::DefTheory, Word::DefTheoryIs, "tc02.json"),
        entry("measured", Word::DefMeasured, Word::DefMeasuredIs, "tc02.json"),
        entry("kv_mean", Word::DefKvMean, Word::DefKvMeanIs, "tc02.json"),
        entry("rise", Word::DefRise, Word::DefRiseIs, "tc04.json"),
        entry("lost_calls", Word::DefLost, Word::DefLostIs, "tc04.json"),
        entry("errors", Word::DefErroredCalls, Word::DefErroredCallsIs, "tc05.json"),
        entry("per_h", Word::DefSlope, Word::DefSlopeIs, "tc05.json"),
        entry("share", Word::DefShare, Word::DefShareIs, "tc06.json"),
        entry("in_flight", Word::DefInFlight, Word::DefInFlightIs, "tc06.json"),
        entry("new_calls", Word::DefNewCalls, Word::DefNewCallsIs, "tc06.json"),
        entry("ejected_s", Word::DefEjected, Word::DefEjectedIs, "tc06.json"),
        entry("alone_back_s", Word::DefAlone, Word::DefAloneIs, "tc06.json"),
        entry("back_s", Word::DefBack, Word::DefBackIs, "tc06.json"),
        entry("rejoined_s", Word::DefRejoined, Word::DefRejoinedIs, "tc06.json"),
        entry("retries_needed", Word::DefRetries, Word::DefRetriesIs, "tc06.json"),
        entry("kv_room", Word::DefKvRoom, Word::DefKvRoomIs, "tc07.json"),
        entry("change", Word::DefChange, Word::DefChangeIs, "tc08.json"),
    ]
}

/// Which figure a heading names.
const HEADS: [(Word, &str); 45] = [
    (Word::HeadStep, "streams"),
    (Word::HeadStreams, "streams"),
    (Word::HeadVerdict, "verdict"),
    (Word::HeadReason, "verdict"),
    (Word::HeadTtft, "ttft_s"),
    (Word::HeadRtf, "rtf"),
    (Word::HeadFinal, "final_s"),
    (Word::HeadKv, "kv_pool_p95"),
    (Word::HeadPreempted, "preempt_delta"),
    (Word::HeadErrors, "err_streams"),
    (Word::HeadErroredCalls, "errors"),
    (Word::HeadCalls, "calls_counted"),
    (Word::HeadGoodput, "goodput_per_h"),
    (Word::HeadGpu, "gpu_util"),
    (Word::HeadVram, "vram_used_bytes"),
    (Word::HeadPart, "parts"),
    (Word::HeadFloorP95, "floor"),
    (Word::HeadTheory, "theory"),
    (Word::HeadMeasured, "measured"),
    (Word::HeadKvMean, "kv_mean"),
    (Word::HeadRise, "rise"),
    (Word::HeadLost, "lost_calls"),
    (Word::HeadPerHour, "per_h"),
    (Word::HeadThreshold, "per_h"),
    (Word::HeadShare, "share"),
    (Word::HeadBroken, "in_flight"),
    (Word::HeadNewErrors, "new_calls"),
    (Word::HeadEjected, "ejected_s"),
    (Word::HeadAlone, "alone_back_s"),
    (Word::HeadInTime, "alone_back_s"),
    (Word::HeadBack, "back_s"),
    (Word::HeadRejoined, "rejoined_s"),
    (Word::HeadRetries, "retries_needed"),
    (Word::HeadLag, "lag_max_s"),
    (Word::HeadKvRoom, "kv_room"),
    (Word::HeadChange, "change"),
    (Word::HeadDrift, "change"),
    (Word::HeadWer, "wer"),
    (Word::HeadCer, "wer"),
    (Word::HeadAlarm, "rise"),
    (Word::HeadNStar, "n_star"),
    (Word::HeadWarmP50, "p95"),
    (Word::HeadColdP50, "p95"),
    (Word::HeadReachable, "floor"),
    (Word::HeadLow, "interval"),
];

/// The hover text of a heading, where it names a figure.
pub(crate) fn hover_of(head: &Said) -> Option<Said> {
    HEADS.iter().find(|(word, _)| word.said() == *head).and_then(|(_, key)| hover(key))
}

/// The hover text of a figure.
pub(crate) fn hover(key: &str) -> Option<Said> {
    let entry = glossary().into_iter().find(|e| e.key == key)?;
    Some(say!(Word::HoverDefinition, entry.name, entry.definition, entry.source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_a_heading_is_defined_and_no_key_twice() {
        for (word, key) in HEADS {
            assert!(hover(key).is_some(), "{word:?} names {key}, which is not defined");
        }
        let mut keys: Vec<_> = glossary().into_iter().map(|e| e.key).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
