//! Long calls, topologies, repetition: cases that are ladders or tiers beside the first.

use serde_json::Value;
use tapedeck_l10n::Localize;
use tapedeck_slo::{CapacityState, Estimate, Repeatability, Spread, TierReport};

use super::{array, at, cell, decision, percent, text};
use crate::answer::{from, n_star};
use crate::messages::{LocalizedText, MessageId, fixed, message};
use crate::read::recorded;
use crate::section::{Section, Table};

pub(super) fn long_calls(answer: &Value) -> Section {
    let mut lead = decision(answer);
    if let Some(capacity) = from::<tapedeck_slo::Capacity>(answer, "capacity") {
        let share = cell(at(answer, "correction"));
        // Beside a lower bound the share is one as well.
        let share = match capacity.state {
            CapacityState::AtLeastUnproven | CapacityState::Censored => {
                LocalizedText { en: format!(">= {}", share.en), zh: format!(">= {}", share.zh) }
            }
            _ => share,
        };
        lead.push(message!(MessageId::LongAnswer, n_star(&capacity), share));
    }
    let tiers: Vec<TierReport> = from(answer, "tiers").unwrap_or_default();
    Section {
        lead,
        tables: vec![Table { caption: None, head: tier_head(), rows: tiers.iter().map(tier_row).collect() }],
        ..Section::default()
    }
}

/// What had been predicted of a topology, beside what became of it.
fn predicted(candidate: &Value) -> LocalizedText {
    let ranges: Vec<LocalizedText> = array(candidate, "predicted")
        .iter()
        .map(|one| {
            let verdict = match one.get("agrees").and_then(Value::as_bool) {
                Some(true) => message!(MessageId::PredictedAgrees),
                Some(false) => message!(MessageId::PredictedDiffers),
                None => message!(MessageId::NotKnown),
            };
            message!(MessageId::PredictedRange, cell(at(one, "low")), cell(at(one, "high")), verdict)
        })
        .collect();
    if ranges.is_empty() { message!(MessageId::NotKnown) } else { LocalizedText::join(&ranges, "; ", "；") }
}

/// A p95 with its interval, as the ladder shows it.
fn with_interval(estimate: Option<&Estimate>) -> LocalizedText {
    let Some(e) = estimate else { return message!(MessageId::NotKnown) };
    let value = fixed(e.value);
    if e.low.is_none() && e.high.is_none() {
        return value.into();
    }
    let bound = |b: Option<f64>, none: &str| b.map_or_else(|| none.to_owned(), fixed);
    format!("{value} [{}, {}]", bound(e.low, "?"), bound(e.high, "∞")).into()
}

fn p95(spread: &Option<Spread>) -> LocalizedText {
    with_interval(spread.as_ref().map(|s| &s.p95))
}

pub(super) fn topologies(answer: &Value) -> Section {
    let why = answer.get("why").and_then(Value::as_str);
    let best =
        answer.get("recommended").and_then(Value::as_str).map(|b| message!(MessageId::TopologyBest, b));
    let rows = array(answer, "candidates").iter().map(|c| {
        let capacity = from::<tapedeck_slo::Capacity>(c, "capacity");
        // The load at which all are compared is each one's first tier.
        let tiers: Vec<TierReport> = from(c, "tiers").unwrap_or_default();
        let common = tiers.first();
        vec![
            text(c, "name"),
            cell(at(c, "instances")),
            capacity.map_or_else(|| message!(MessageId::NotKnown), |c| n_star(&c)),
            predicted(c),
            common.map_or_else(|| message!(MessageId::NotKnown), |t| t.streams.into()),
            common.map_or_else(|| cell(at(c, "rtf_p95")), |t| p95(&t.rtf)),
            common.map_or_else(|| cell(at(c, "lag_p95_s")), |t| p95(&t.lag_max)),
            common.map_or_else(|| message!(MessageId::NotKnown), |t| t.calls_counted.into()),
            percent(at(c, "kv_room")),
            cell(at(c, "err_streams")),
        ]
    });
    Section {
        lead: best.into_iter().chain(why.map(recorded)).collect(),
        tables: vec![Table {
            caption: Some(message!(MessageId::TopologyCaption)),
            head: vec![
                message!(MessageId::HeadTopology),
                message!(MessageId::HeadInstances),
                message!(MessageId::HeadNStar),
                message!(MessageId::HeadPredicted),
                message!(MessageId::HeadCommonLoad),
                message!(MessageId::HeadRtf),
                message!(MessageId::HeadLag),
                message!(MessageId::HeadCalls),
                message!(MessageId::HeadKvRoom),
                message!(MessageId::HeadErrors),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

pub(super) fn repeat(answer: &Value) -> Section {
    let mut lead = decision(answer);
    let repeated: Option<Repeatability> = from(answer, "repeatability");
    lead.extend(repeated.as_ref().map(Localize::text));
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
                "ttft_p95" => message!(MessageId::HeadTtft),
                "rtf_p95" => message!(MessageId::HeadRtf),
                "final_p95" => message!(MessageId::HeadFinal),
                "kv_pool_p95" => message!(MessageId::CurveKv),
                other => LocalizedText::same(other.to_owned()),
            },
            figure(&before, &f.figure, f.before),
            figure(&after, &f.figure, f.after),
            percent(f.change),
            match f.drift {
                Some(true) => message!(MessageId::Yes),
                Some(false) => message!(MessageId::No),
                None => message!(MessageId::NotKnown),
            },
        ]
    });
    let calls = |tier: &Option<TierReport>| {
        tier.as_ref().map_or_else(|| message!(MessageId::NotKnown), |t| t.calls_counted.into())
    };
    Section {
        lead,
        tables: vec![Table {
            caption: Some(message!(
                MessageId::RepeatCaption,
                cell(at(answer, "streams")),
                calls(&before),
                calls(&after)
            )),
            head: vec![
                message!(MessageId::HeadFigure),
                message!(MessageId::HeadFirst),
                message!(MessageId::HeadSecond),
                message!(MessageId::HeadChange),
                message!(MessageId::HeadDrift),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

/// One row for a tier of another case.
fn tier_row(report: &TierReport) -> Vec<LocalizedText> {
    vec![
        report.streams.into(),
        crate::html::verdict_name(report.verdict),
        p95(&report.ttft),
        p95(&report.rtf),
        p95(&report.final_latency),
        percent(report.kv_pool_p95),
        report.calls_counted.into(),
        report.reasons_text(),
    ]
}

fn tier_head() -> Vec<LocalizedText> {
    vec![
        message!(MessageId::HeadStreams),
        message!(MessageId::HeadVerdict),
        message!(MessageId::HeadTtft),
        message!(MessageId::HeadRtf),
        message!(MessageId::HeadFinal),
        message!(MessageId::HeadKv),
        message!(MessageId::HeadCalls),
        message!(MessageId::HeadReason),
    ]
}
