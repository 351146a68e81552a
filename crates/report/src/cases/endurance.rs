//! Soak and faults: what time and injuries do.

use tapedeck_answers::{Fault, FaultAnswer, Incident, Memory, SoakAnswer, Toll};
use tapedeck_config::key;
use tapedeck_l10n::Localize;
use tapedeck_record::{CallFigure, Case};
use tapedeck_slo::{Figure, LeakVerdict, Period};

use super::{cell, unknown, yes};
use crate::messages::{Lang, LocalizedText, MessageId, message, number};
use crate::plots;
use crate::read::Run;
use crate::section::{Section, Table};

pub(super) fn soak(run: &Run, answer: &SoakAnswer, lang: Lang) -> Section {
    let found = answer.soak.as_ref();
    let mut lead: Vec<LocalizedText> =
        found.into_iter().flat_map(|s| &s.complaints).map(Localize::text).collect();
    if lead.is_empty() && found.is_some() {
        lead.push(message!(MessageId::NoComplaint));
    }
    lead.extend(found.into_iter().flat_map(|s| &s.unknown).map(Localize::text));
    let mib = |v: Option<f64>| cell(v.map(|v| v / 1_048_576.0));
    let mut slopes = Vec::new();
    let memory: Vec<Vec<LocalizedText>> = found
        .into_iter()
        .flat_map(|s| &s.memory)
        .map(|m| {
            let leak = &m.leak;
            slopes.extend(leak.per_h.map(|per_h| plots::Slope {
                of: m.of.clone(),
                per_h,
                threshold_per_h: leak.threshold_per_h,
            }));
            vec![
                LocalizedText::join(&[memory_of(m), m.of.as_str().into()], " ", " "),
                match leak.verdict {
                    LeakVerdict::Leak => message!(MessageId::VerdictLeak),
                    LeakVerdict::NoLeak => message!(MessageId::VerdictNoLeak),
                    LeakVerdict::Step => message!(MessageId::VerdictStep),
                    LeakVerdict::Unknown => unknown(),
                },
                mib(leak.per_h),
                mib(leak.low_per_h),
                mib(leak.high_per_h),
                mib(Some(leak.threshold_per_h)),
                leak.points.into(),
            ]
        })
        .collect();
    let periods: &[Period] = found.map_or(&[], |s| &s.periods);
    let begin_s = periods.first().map_or(0.0, |p| p.from_s);
    let hour = |p: &Period| (p.from_s - begin_s) / 3600.0;
    type Get = fn(&Period) -> Option<f64>;
    let curves: [(Get, Figure, Option<f64>); 3] = [
        (|p| p.ttft_p95_s, Figure::Ttft, run.limits.as_ref().map(|l| l.ttft_p95_s)),
        (|p| p.rtf_p95, Figure::Call(CallFigure::Rtf), run.limits.as_ref().map(|l| l.rtf_p95)),
        (|p| p.final_p95_s, Figure::Final, run.limits.as_ref().map(|l| l.final_p95_s)),
    ];
    let over_time: Vec<_> = curves
        .into_iter()
        .filter_map(|(get, figure, limit)| {
            let values: Vec<(f64, f64, String)> =
                periods.iter().filter_map(|p| Some((hour(p), get(p)?, p.calls.to_string()))).collect();
            plots::over_time(figure, &values, limit, lang)
        })
        .collect();
    let periods = periods.iter().map(|p| {
        vec![
            cell(Some(hour(p))),
            p.calls.into(),
            p.errors.into(),
            cell(p.ttft_p95_s),
            cell(p.rtf_p95),
            cell(p.final_p95_s),
        ]
    });
    let plots = run
        .steps
        .iter()
        .filter(|s| s.id.case == Case::Soak && !s.partial)
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
fn memory_of(memory: &Memory) -> LocalizedText {
    match memory.what.as_str() {
        "vram" => message!(MessageId::MemoryOfGpus),
        "rss" => message!(MessageId::MemoryOfClient),
        "host rss" => message!(MessageId::MemoryOfHost),
        other => LocalizedText::same(other),
    }
}

const fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Kill => "kill",
        Fault::Freeze => "freeze",
        Fault::BalancerRestart => "balancer_restart",
    }
}

fn toll(toll: &Toll) -> LocalizedText {
    LocalizedText::same(format!("{} / {}", toll.broken(), toll.calls))
}

pub(super) fn faults(run: &Run, answer: &FaultAnswer, lang: Lang) -> Section {
    let recorded = run.config.as_ref();
    let limit_s = recorded.and_then(|c| c.section(key!(fault), |config| config.fault.recovery.lag_p95_s));
    let mut lead: Vec<LocalizedText> = answer.complaints.iter().map(Localize::text).collect();
    if lead.is_empty() {
        lead.push(message!(MessageId::NoComplaint));
    }
    lead.extend(answer.unknown.iter().map(Localize::text));
    let (mut rows, mut happened, mut plots) = (Vec::new(), Vec::new(), Vec::new());
    for (index, incident) in answer.incidents.iter().enumerate() {
        rows.push(vec![
            incident.streams.into(),
            cell(Some(incident.share)),
            fault_name(incident.timeline.fault).into(),
            incident.timeline.instance.as_str().into(),
            toll(&incident.in_flight),
            toll(&incident.new_calls),
            cell(incident.ejected_s),
            cell(incident.alone_back_s),
            yes(incident.alone_in_time),
            cell(incident.back_s),
            cell(incident.rejoined_s),
            yes(Some(incident.retries_needed)),
        ]);
        happened.extend(timeline(incident));
        let fault_s = incident.timeline.fault_s;
        let steps: Vec<(f64, Option<f64>)> =
            incident.recovery.steps.iter().map(|s| (s.from_s - fault_s, s.lag_p95_s)).collect();
        let marks: Vec<(f64, String)> = [
            (incident.timeline.start_s, MessageId::MarkStart),
            (incident.timeline.well_s, MessageId::MarkWell),
        ]
        .into_iter()
        .filter_map(|(at_s, word)| Some((at_s? - fault_s, word.template(lang).to_string())))
        .collect();
        let title =
            crate::messages::fill(MessageId::FaultTitle.template(lang), &[&incident.streams.to_string()]);
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
fn timeline(incident: &Incident) -> Vec<Vec<LocalizedText>> {
    let line = &incident.timeline;
    let after = |at_s: Option<f64>| at_s.map(|s| s - line.fault_s);
    let start_s = after(line.start_s);
    // Rejoining counts from the start command.
    let rejoined_s = incident.rejoined_s.zip(start_s).map(|(s, start)| s + start);
    let fault = message!(MessageId::FaultDone, fault_name(line.fault), line.instance.as_str());
    let mut happened: Vec<(f64, LocalizedText)> = [
        (Some(0.0), fault),
        // Where nothing was lost there is no last one.
        (incident.ejected_s.filter(|s| *s > 0.0), message!(MessageId::FaultEjected)),
        (incident.alone_back_s, message!(MessageId::FaultAlone)),
        (start_s, message!(MessageId::FaultStart)),
        (after(line.well_s), message!(MessageId::FaultWell)),
        (rejoined_s, message!(MessageId::FaultRejoined)),
        (incident.back_s, message!(MessageId::FaultBack)),
    ]
    .into_iter()
    .filter_map(|(at_s, said)| Some((at_s?, said)))
    .collect();
    happened.sort_by(|a, b| a.0.total_cmp(&b.0));
    happened
        .into_iter()
        .map(|(at_s, said)| vec![incident.streams.into(), number(at_s).into(), said])
        .collect()
}
