//! What every figure means, where it comes from, in both languages.

use tapedeck_slo::Figure;

use crate::messages::{LocalizedText, MessageId, message};

/// A figure's definition.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Key in files.
    pub key: &'static str,
    /// Name for people.
    pub name: LocalizedText,
    /// Definition with its unit.
    pub definition: LocalizedText,
    /// Which file it is read from.
    pub source: &'static str,
}

/// Every figure a report shows.
#[must_use]
pub fn glossary() -> Vec<Entry> {
    let entry = |key, name: MessageId, definition: MessageId, source| Entry {
        key,
        name: message!(name),
        definition: message!(definition),
        source,
    };
    let mut all = vec![
        entry("n_star", MessageId::DefNStar, MessageId::DefNStarIs, "steps.jsonl"),
        entry("published", MessageId::DefPublished, MessageId::DefPublishedIs, "steps.jsonl, run.toml"),
        entry("streams", MessageId::DefStreams, MessageId::DefStreamsIs, "steps.jsonl"),
        entry("p95", MessageId::DefP95, MessageId::DefP95Is, "calls.jsonl"),
        entry("interval", MessageId::DefInterval, MessageId::DefIntervalIs, "steps.jsonl"),
        entry("verdict", MessageId::DefVerdict, MessageId::DefVerdictIs, "steps.jsonl"),
        entry("point", MessageId::DefPoint, MessageId::DefPointIs, "steps.jsonl"),
        entry("calls_counted", MessageId::DefCalls, MessageId::DefCallsIs, "calls.jsonl"),
        entry("parts", MessageId::DefPart, MessageId::DefPartIs, "calls.jsonl, series.jsonl, hdr/"),
        entry("floor", MessageId::DefFloor, MessageId::DefFloorIs, "tc01.json"),
        entry("theory", MessageId::DefTheory, MessageId::DefTheoryIs, "tc02.json"),
        entry("measured", MessageId::DefMeasured, MessageId::DefMeasuredIs, "tc02.json"),
        entry("kv_mean", MessageId::DefKvMean, MessageId::DefKvMeanIs, "tc02.json"),
        entry("rise", MessageId::DefRise, MessageId::DefRiseIs, "tc04.json"),
        entry("lost_calls", MessageId::DefLost, MessageId::DefLostIs, "tc04.json"),
        entry("errors", MessageId::DefErroredCalls, MessageId::DefErroredCallsIs, "tc05.json"),
        entry("per_h", MessageId::DefSlope, MessageId::DefSlopeIs, "tc05.json"),
        entry("share", MessageId::DefShare, MessageId::DefShareIs, "tc06.json"),
        entry("in_flight", MessageId::DefInFlight, MessageId::DefInFlightIs, "tc06.json"),
        entry("new_calls", MessageId::DefNewCalls, MessageId::DefNewCallsIs, "tc06.json"),
        entry("ejected_s", MessageId::DefEjected, MessageId::DefEjectedIs, "tc06.json"),
        entry("alone_back_s", MessageId::DefAlone, MessageId::DefAloneIs, "tc06.json"),
        entry("back_s", MessageId::DefBack, MessageId::DefBackIs, "tc06.json"),
        entry("rejoined_s", MessageId::DefRejoined, MessageId::DefRejoinedIs, "tc06.json"),
        entry("retries_needed", MessageId::DefRetries, MessageId::DefRetriesIs, "tc06.json"),
        entry("kv_room", MessageId::DefKvRoom, MessageId::DefKvRoomIs, "tc07.json"),
        entry("change", MessageId::DefChange, MessageId::DefChangeIs, "tc08.json"),
    ];
    all.extend(Figure::all().filter_map(|figure| {
        let (key, name, definition, source) = figure.spec().explained()?;
        // The judged ones go by the labels of their plots.
        let name = if Figure::JUDGED.contains(&figure) { figure.spec().label() } else { name };
        Some(Entry { key, name, definition, source })
    }));
    all
}

/// Which figure a heading names.
const HEADS: [(MessageId, &str); 45] = [
    (MessageId::HeadStep, "streams"),
    (MessageId::HeadStreams, "streams"),
    (MessageId::HeadVerdict, "verdict"),
    (MessageId::HeadReason, "verdict"),
    (MessageId::HeadTtft, "ttft_s"),
    (MessageId::HeadRtf, "rtf"),
    (MessageId::HeadFinal, "final_s"),
    (MessageId::HeadKv, "kv_pool_p95"),
    (MessageId::HeadPreempted, "preempt_delta"),
    (MessageId::HeadErrors, "err_streams"),
    (MessageId::HeadErroredCalls, "errors"),
    (MessageId::HeadCalls, "calls_counted"),
    (MessageId::HeadGoodput, "goodput_per_h"),
    (MessageId::HeadGpu, "gpu_util"),
    (MessageId::HeadVram, "vram_used_bytes"),
    (MessageId::HeadPart, "parts"),
    (MessageId::HeadFloorP95, "floor"),
    (MessageId::HeadTheory, "theory"),
    (MessageId::HeadMeasured, "measured"),
    (MessageId::HeadKvMean, "kv_mean"),
    (MessageId::HeadRise, "rise"),
    (MessageId::HeadLost, "lost_calls"),
    (MessageId::HeadPerHour, "per_h"),
    (MessageId::HeadThreshold, "per_h"),
    (MessageId::HeadShare, "share"),
    (MessageId::HeadBroken, "in_flight"),
    (MessageId::HeadNewErrors, "new_calls"),
    (MessageId::HeadEjected, "ejected_s"),
    (MessageId::HeadAlone, "alone_back_s"),
    (MessageId::HeadInTime, "alone_back_s"),
    (MessageId::HeadBack, "back_s"),
    (MessageId::HeadRejoined, "rejoined_s"),
    (MessageId::HeadRetries, "retries_needed"),
    (MessageId::HeadLag, "lag_max_s"),
    (MessageId::HeadKvRoom, "kv_room"),
    (MessageId::HeadChange, "change"),
    (MessageId::HeadDrift, "change"),
    (MessageId::HeadWer, "wer"),
    (MessageId::HeadCer, "wer"),
    (MessageId::HeadAlarm, "rise"),
    (MessageId::HeadNStar, "n_star"),
    (MessageId::HeadWarmP50, "p95"),
    (MessageId::HeadColdP50, "p95"),
    (MessageId::HeadReachable, "floor"),
    (MessageId::HeadLow, "interval"),
];

/// The hover text of a heading, where it names a figure.
pub(crate) fn hover_of(head: &LocalizedText) -> Option<LocalizedText> {
    HEADS.iter().find(|(word, _)| word.said() == *head).and_then(|(_, key)| hover(key))
}

/// The definition of a figure.
pub(crate) fn definition(key: &str) -> Option<LocalizedText> {
    glossary().into_iter().find(|e| e.key == key).map(|e| e.definition)
}

/// The hover text of a figure.
pub(crate) fn hover(key: &str) -> Option<LocalizedText> {
    let entry = glossary().into_iter().find(|e| e.key == key)?;
    Some(message!(MessageId::HoverDefinition, entry.name, entry.definition, entry.source))
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
