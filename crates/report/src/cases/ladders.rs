//! Long calls, topologies, repetition: cases that are ladders or tiers beside the first.

use serde_json::Value;
use tapedeck_slo::{Repeatability, TierReport};

use super::{array, at, cell, decision, percent, text};
use crate::answer::{from, n_star};
use crate::read::recorded;
use crate::section::{Section, Table};
use crate::words::{Said, Word, say};

pub(super) fn long_calls(answer: &Value) -> Section {
    let mut lead = decision(answer);
    if let Some(capacity) = from::<tapedeck_slo::Capacity>(answer, "capacity") {
        lead.push(say!(Word::LongAnswer, n_star(&capacity), cell(at(answer, "correction"))));
    }
    let tiers: Vec<TierReport> = from(answer, "tiers").unwrap_or_default();
    Section {
        lead,
        tables: vec![Table { caption: None, head: tier_head(), rows: tiers.iter().map(tier_row).collect() }],
        ..Section::default()
    }
}

/// What had been predicted of a topology, beside what became of it.
fn predicted(candidate: &Value) -> Said {
    let ranges: Vec<Said> = array(candidate, "predicted")
        .iter()
        .map(|one| {
            let verdict = match one.get("agrees").and_then(Value::as_bool) {
                Some(true) => say!(Word::PredictedAgrees),
                Some(false) => say!(Word::PredictedDiffers),
                None => say!(Word::NotKnown),
            };
            say!(Word::PredictedRange, cell(at(one, "low")), cell(at(one, "high")), verdict)
        })
        .collect();
    if ranges.is_empty() { say!(Word::NotKnown) } else { Said::join(&ranges, "; ", "；") }
}

pub(super) fn topologies(answer: &Value) -> Section {
    let why = answer.get("why").and_then(Value::as_str);
    let best = answer.get("recommended").and_then(Value::as_str).map(|b| say!(Word::TopologyBest, b));
    let rows = array(answer, "candidates").iter().map(|c| {
        let capacity = from::<tapedeck_slo::Capacity>(c, "capacity");
        vec![
            text(c, "name"),
            cell(at(c, "instances")),
            capacity.map_or_else(|| say!(Word::NotKnown), |c| n_star(&c)),
            predicted(c),
            cell(at(c, "rtf_p95")),
            cell(at(c, "lag_p95_s")),
            percent(at(c, "kv_room")),
            cell(at(c, "err_streams")),
        ]
    });
    Section {
        lead: best.into_iter().chain(why.map(recorded)).collect(),
        tables: vec![Table {
            caption: Some(say!(Word::TopologyCaption)),
            head: vec![
                say!(Word::HeadTopology),
                say!(Word::HeadInstances),
                say!(Word::HeadNStar),
                say!(Word::HeadPredicted),
                say!(Word::HeadRtf),
                say!(Word::HeadLag),
                say!(Word::HeadKvRoom),
                say!(Word::HeadErrors),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

pub(super) fn repeat(answer: &Value) -> Section {
    let mut lead = decision(answer);
    let repeated: Option<Repeatability> = from(answer, "repeatability");
    lead.extend(repeated.as_ref().map(|r| recorded(&r.sentence())));
    let rows = repeated.iter().flat_map(|r| &r.figures).map(|f| {
        vec![
            Said::same(f.figure.clone()),
            cell(f.before),
            cell(f.after),
            percent(f.change),
            match f.drift {
                Some(true) => say!(Word::Yes),
                Some(false) => say!(Word::No),
                None => say!(Word::NotKnown),
            },
        ]
    });
    Section {
        lead,
        tables: vec![Table {
            caption: Some(say!(Word::RepeatCaption, cell(at(answer, "streams")))),
            head: vec![
                say!(Word::HeadFigure),
                say!(Word::HeadFirst),
                say!(Word::HeadSecond),
                say!(Word::HeadChange),
                say!(Word::HeadDrift),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

/// One row for a tier of another case.
fn tier_row(report: &TierReport) -> Vec<Said> {
    let p95 = |s: &Option<tapedeck_slo::Spread>| cell(s.as_ref().map(|s| s.p95.value));
    vec![
        report.streams.into(),
        crate::html::verdict_name(report.verdict),
        p95(&report.ttft),
        p95(&report.rtf),
        p95(&report.final_latency),
        percent(report.kv_pool_p95),
        report.calls_counted.into(),
        Said::join(&report.reasons.iter().map(|r| recorded(r)).collect::<Vec<_>>(), "; ", "；"),
    ]
}

fn tier_head() -> Vec<Said> {
    vec![
        say!(Word::HeadStreams),
        say!(Word::HeadVerdict),
        say!(Word::HeadTtft),
        say!(Word::HeadRtf),
        say!(Word::HeadFinal),
        say!(Word::HeadKv),
        say!(Word::HeadCalls),
        say!(Word::HeadReason),
    ]
}
