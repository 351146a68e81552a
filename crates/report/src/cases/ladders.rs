//! Long calls, topologies, repetition: cases that are ladders or tiers beside the first.

use serde_json::Value;
use tapedeck_slo::{CapacityState, Estimate, Repeatability, Spread, TierReport};

use super::{array, at, cell, decision, percent, text};
use crate::answer::{from, n_star};
use crate::read::recorded;
use crate::section::{Section, Table};
use crate::words::{Said, Word, fixed, say};

pub(super) fn long_calls(answer: &Value) -> Section {
    let mut lead = decision(answer);
    if let Some(capacity) = from::<tapedeck_slo::Capacity>(answer, "capacity") {
        let share = cell(at(answer, "correction"));
        // Beside a lower bound the share is one as well.
        let share = match capacity.state {
            CapacityState::AtLeastUnproven | CapacityState::Censored => {
                Said { en: format!(">= {}", share.en), zh: format!(">= {}", share.zh) }
            }
            _ => share,
        };
        lead.push(say!(Word::LongAnswer, n_star(&capacity), share));
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

/// A p95 with its interval, as the ladder shows it.
fn with_interval(estimate: Option<&Estimate>) -> Said {
    let Some(e) = estimate else { return say!(Word::NotKnown) };
    let value = fixed(e.value);
    if e.low.is_none() && e.high.is_none() {
        return value.into();
    }
    let bound = |b: Option<f64>, none: &str| b.map_or_else(|| none.to_owned(), fixed);
    format!("{value} [{}, {}]", bound(e.low, "?"), bound(e.high, "∞")).into()
}

fn p95(spread: &Option<Spread>) -> Said {
    with_interval(spread.as_ref().map(|s| &s.p95))
}

pub(super) fn topologies(answer: &Value) -> Section {
    let why = answer.get("why").and_then(Value::as_str);
    let best = answer.get("recommended").and_then(Value::as_str).map(|b| say!(Word::TopologyBest, b));
    let rows = array(answer, "candidates").iter().map(|c| {
        let capacity = from::<tapedeck_slo::Capacity>(c, "capacity");
        // The load at which all are compared is each one's first tier.
        let tiers: Vec<TierReport> = from(c, "tiers").unwrap_or_default();
        let common = tiers.first();
        vec![
            text(c, "name"),
            cell(at(c, "instances")),
            capacity.map_or_else(|| say!(Word::NotKnown), |c| n_star(&c)),
            predicted(c),
            common.map_or_else(|| say!(Word::NotKnown), |t| t.streams.into()),
            common.map_or_else(|| cell(at(c, "rtf_p95")), |t| p95(&t.rtf)),
            common.map_or_else(|| cell(at(c, "lag_p95_s")), |t| p95(&t.lag_max)),
            common.map_or_else(|| say!(Word::NotKnown), |t| t.calls_counted.into()),
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
                say!(Word::HeadCommonLoad),
                say!(Word::HeadRtf),
                say!(Word::HeadLag),
                say!(Word::HeadCalls),
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
    let [before, after]: [Option<TierReport>; 2] = ["before", "after"].map(|key| from(answer, key));
    // Where the two tiers were written down whole, their intervals are known as well.
    let figure = |tier: &Option<TierReport>, name: &str, value: Option<f64>| {
        let spread = tier.as_ref().and_then(|t| match name {
            "ttft_p95" => t.ttft.as_ref(),
            "rtf_p95" => t.rtf.as_ref(),
            "final_p95" => t.final_latency.as_ref(),
            _ => None,
        });
        let same = |s: &&Spread| value.is_some_and(|v| (s.p95.value - v).abs() < 1e-9);
        spread.filter(same).map_or_else(|| cell(value), |s| with_interval(Some(&s.p95)))
    };
    let rows = repeated.iter().flat_map(|r| &r.figures).map(|f| {
        vec![
            match f.figure.as_str() {
                "ttft_p95" => say!(Word::HeadTtft),
                "rtf_p95" => say!(Word::HeadRtf),
                "final_p95" => say!(Word::HeadFinal),
                "kv_pool_p95" => say!(Word::CurveKv),
                other => Said::same(other.to_owned()),
            },
            figure(&before, &f.figure, f.before),
            figure(&after, &f.figure, f.after),
            percent(f.change),
            match f.drift {
                Some(true) => say!(Word::Yes),
                Some(false) => say!(Word::No),
                None => say!(Word::NotKnown),
            },
        ]
    });
    let calls = |tier: &Option<TierReport>| {
        tier.as_ref().map_or_else(|| say!(Word::NotKnown), |t| t.calls_counted.into())
    };
    Section {
        lead,
        tables: vec![Table {
            caption: Some(say!(
                Word::RepeatCaption,
                cell(at(answer, "streams")),
                calls(&before),
                calls(&after)
            )),
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
