//! Soak and faults: what time and injuries do.

use serde_json::Value;

use super::{array, at, cell, find, sentences, text, yes};
use crate::messages::{Lang, LocalizedText, MessageId, message, number};
use crate::plots;
use crate::read::Run;
use crate::section::{Section, Table};

pub(super) fn soak(run: &Run, answer: &Value, lang: Lang) -> Section {
    let mut lead: Vec<LocalizedText> = sentences(answer, "soak.complaints").collect();
    if lead.is_empty() && answer.get("soak").is_some_and(|s| !s.is_null()) {
        lead.push(message!(MessageId::NoComplaint));
    }
    lead.extend(sentences(answer, "soak.unknown"));
    let mib = |v: Option<f64>| cell(v.map(|v| v / 1_048_576.0));
    let mut slopes = Vec::new();
    let memory: Vec<Vec<LocalizedText>> = array(answer, "soak.memory")
        .iter()
        .map(|m| {
            if let (Some(of), Some(per_h), Some(threshold)) =
                (m.get("of").and_then(Value::as_str), at(m, "leak.per_h"), at(m, "leak.threshold_per_h"))
            {
                slopes.push(plots::Slope { of: of.to_string(), per_h, threshold_per_h: threshold });
            }
            vec![
                LocalizedText::join(&[memory_of(m), text(m, "of")], " ", " "),
                match find(m, "leak.verdict").and_then(Value::as_str) {
                    Some("leak") => message!(MessageId::VerdictLeak),
                    Some("no_leak") => message!(MessageId::VerdictNoLeak),
                    Some("step") => message!(MessageId::VerdictStep),
                    _ => message!(MessageId::NotKnown),
                },
                mib(at(m, "leak.per_h")),
                mib(at(m, "leak.low_per_h")),
                mib(at(m, "leak.high_per_h")),
                mib(at(m, "leak.threshold_per_h")),
                cell(at(m, "leak.points")),
            ]
        })
        .collect();
    let periods = array(answer, "soak.periods");
    let begin_s = periods.first().and_then(|p| at(p, "from_s")).unwrap_or(0.0);
    let hour = |p: &Value| at(p, "from_s").map(|s| (s - begin_s) / 3600.0);
    let over_time = [
        ("ttft", "ttft_p95_s", MessageId::CurveTtft, run.limits.as_ref().map(|l| l.ttft_p95_s)),
        ("rtf", "rtf_p95", MessageId::CurveRtf, run.limits.as_ref().map(|l| l.rtf_p95)),
        ("final", "final_p95_s", MessageId::CurveFinal, run.limits.as_ref().map(|l| l.final_p95_s)),
    ]
    .into_iter()
    .filter_map(|(name, key, title, limit)| {
        let values: Vec<(f64, f64, String)> = periods
            .iter()
            .filter_map(|p| Some((hour(p)?, at(p, key)?, at(p, "calls").map_or_else(|| "?".into(), number))))
            .collect();
        plots::over_time(name, title, &values, limit, lang)
    })
    .collect::<Vec<_>>();
    let periods = periods.iter().map(|p| {
        vec![
            cell(hour(p)),
            cell(at(p, "calls")),
            cell(at(p, "errors")),
            cell(at(p, "ttft_p95_s")),
            cell(at(p, "rtf_p95")),
            cell(at(p, "final_p95_s")),
        ]
    });
    let plots = run
        .steps
        .iter()
        .filter(|s| s.name.starts_with("tc05") && !s.partial)
        .flat_map(|s| plots::memory_over_time(s, &slopes, lang))
        .chain(over_time)
        .collect();
    Section {
        lead,
        tables: vec![
            Table {
                caption: Some(message!(MessageId::LeakCaption)),
                head: vec![
                    message!(MessageId::HeadMemory),
                    message!(MessageId::HeadVerdict),
                    message!(MessageId::HeadPerHour),
                    message!(MessageId::HeadLow),
                    message!(MessageId::HeadHigh),
                    message!(MessageId::HeadThreshold),
                    "n".into(),
                ],
                rows: memory,
            },
            Table {
                caption: Some(message!(MessageId::PeriodCaption)),
                head: vec![
                    message!(MessageId::HeadFromHour),
                    message!(MessageId::HeadCalls),
                    message!(MessageId::HeadErroredCalls),
                    message!(MessageId::HeadTtft),
                    message!(MessageId::HeadRtf),
                    message!(MessageId::HeadFinal),
                ],
                rows: periods.collect(),
            },
        ],
        plots,
        ..Section::default()
    }
}

/// What kind of memory a slope is of.
fn memory_of(memory: &Value) -> LocalizedText {
    match memory.get("what").and_then(Value::as_str) {
        Some("vram") => message!(MessageId::DefVram),
        Some("rss") => message!(MessageId::MemoryOfClient),
        Some("host rss") => message!(MessageId::MemoryOfHost),
        _ => text(memory, "what"),
    }
}

pub(super) fn faults(run: &Run, answer: &Value, lang: Lang) -> Section {
    // The limit stands in the run's settings, wherever that version keeps it.
    let fault = run.config.as_ref().and_then(|c| c.get("fault"));
    let limit_s = fault
        .and_then(toml::Value::as_table)
        .and_then(|f| f.values().find_map(|v| v.get("lag_p95_s")).and_then(toml::Value::as_float));
    let mut lead: Vec<LocalizedText> = sentences(answer, "complaints").collect();
    if lead.is_empty() {
        lead.push(message!(MessageId::NoComplaint));
    }
    lead.extend(sentences(answer, "unknown"));
    let toll = |v: &Value, key: &str| {
        let errors: f64 = find(v, &format!("{key}.errors"))
            .and_then(Value::as_object)
            .map_or(0.0, |e| e.values().filter_map(Value::as_f64).sum());
        match at(v, &format!("{key}.calls")) {
            Some(calls) => LocalizedText::same(format!("{} / {}", number(errors), number(calls))),
            None => message!(MessageId::NotKnown),
        }
    };
    let (mut rows, mut happened, mut plots) = (Vec::new(), Vec::new(), Vec::new());
    for (index, incident) in array(answer, "incidents").iter().enumerate() {
        rows.push(vec![
            cell(at(incident, "streams")),
            cell(at(incident, "share")),
            text(incident, "timeline.fault"),
            text(incident, "timeline.instance"),
            toll(incident, "in_flight"),
            toll(incident, "new_calls"),
            cell(at(incident, "ejected_s")),
            cell(at(incident, "alone_back_s")),
            yes(incident.get("alone_in_time")),
            cell(at(incident, "back_s")),
            cell(at(incident, "rejoined_s")),
            yes(incident.get("retries_needed")),
        ]);
        let fault_s = at(incident, "timeline.fault_s").unwrap_or(0.0);
        happened.extend(timeline(incident, fault_s));
        let steps: Vec<(f64, Option<f64>)> = array(incident, "recovery.steps")
            .iter()
            .filter_map(|s| Some((at(s, "from_s")? - fault_s, at(s, "lag_p95_s"))))
            .collect();
        let marks: Vec<(f64, String)> = [("start_s", MessageId::MarkStart), ("well_s", MessageId::MarkWell)]
            .iter()
            .filter_map(|(key, word)| {
                let s = at(incident, &format!("timeline.{key}"))?;
                Some((s - fault_s, word.template(lang).to_string()))
            })
            .collect();
        let streams = at(incident, "streams").map_or_else(String::new, number);
        let title = crate::messages::fill(MessageId::FaultTitle.template(lang), &[&streams]);
        plots.extend(plots::recovery(index + 1, &title, &steps, &marks, limit_s, lang));
    }
    Section {
        lead,
        tables: vec![
            Table {
                caption: Some(message!(MessageId::FaultCaption)),
                head: vec![
                    message!(MessageId::HeadStreams),
                    message!(MessageId::HeadShare),
                    message!(MessageId::HeadFault),
                    message!(MessageId::HeadInstance),
                    message!(MessageId::HeadBroken),
                    message!(MessageId::HeadNewErrors),
                    message!(MessageId::HeadEjected),
                    message!(MessageId::HeadAlone),
                    message!(MessageId::HeadInTime),
                    message!(MessageId::HeadBack),
                    message!(MessageId::HeadRejoined),
                    message!(MessageId::HeadRetries),
                ],
                rows,
            },
            Table {
                caption: Some(message!(MessageId::TimelineCaption)),
                head: vec![
                    message!(MessageId::HeadStreams),
                    message!(MessageId::HeadAfterFault),
                    message!(MessageId::HeadEvent),
                ],
                rows: happened,
            },
        ],
        plots,
        ..Section::default()
    }
}

/// What happened in one incident, in the order in which it did.
fn timeline(incident: &Value, fault_s: f64) -> Vec<Vec<LocalizedText>> {
    let after = |path: &str| at(incident, path).map(|s| s - fault_s);
    let start_s = after("timeline.start_s");
    // Rejoining counts from the start command.
    let rejoined_s = at(incident, "rejoined_s").zip(start_s).map(|(s, start)| s + start);
    let fault =
        message!(MessageId::FaultDone, text(incident, "timeline.fault"), text(incident, "timeline.instance"));
    let mut happened: Vec<(f64, LocalizedText)> = [
        (Some(0.0), fault),
        // Where nothing was lost there is no last one.
        (at(incident, "ejected_s").filter(|s| *s > 0.0), message!(MessageId::FaultEjected)),
        (at(incident, "alone_back_s"), message!(MessageId::FaultAlone)),
        (start_s, message!(MessageId::FaultStart)),
        (after("timeline.well_s"), message!(MessageId::FaultWell)),
        (rejoined_s, message!(MessageId::FaultRejoined)),
        (at(incident, "back_s"), message!(MessageId::FaultBack)),
    ]
    .into_iter()
    .filter_map(|(at_s, said)| Some((at_s?, said)))
    .collect();
    happened.sort_by(|a, b| a.0.total_cmp(&b.0));
    let streams = cell(at(incident, "streams"));
    happened.into_iter().map(|(at_s, said)| vec![streams.clone(), number(at_s).into(), said]).collect()
}
