//! Long calls, topologies, repetition: cases that are ladders or tiers beside the first.

use tapedeck_answers::{Candidate, LongCallsAnswer, RepeatabilityAnswer, TopologyAnswer};
use tapedeck_l10n::Localize;
use tapedeck_record::CallFigure;
use tapedeck_slo::{CapacityState, Estimate, Figure, StepFigure, TierReport};

use super::{cell, decision, percent, unknown};
use crate::messages::{LocalizedText, MessageId, fixed, message};
use crate::section::{Section, Table};

pub(super) fn long_calls(answer: &LongCallsAnswer) -> Section {
    let mut lead = decision(answer.decision);
    let share = cell(answer.correction);
    // Beside a lower bound the share is one as well.
    let share = match answer.capacity.state {
        CapacityState::AtLeastUnproven | CapacityState::Censored => {
            LocalizedText { en: format!(">= {}", share.en), zh: format!(">= {}", share.zh) }
        }
        _ => share,
    };
    lead.push(message!(MessageId::LongAnswer, answer.capacity.state.n_star(answer.capacity.n_star), share));
    lead.extend(answer.predicted.iter().map(Localize::text));
    let tiers = &answer.tiers;
    Section {
        lead,
        tables: vec![Table { caption: None, head: tier_head(), rows: tiers.iter().map(tier_row).collect() }],
        ..Section::default()
    }
}

/// What had been predicted of a topology, beside what became of it.
fn predicted(candidate: &Candidate) -> LocalizedText {
    let ranges: Vec<LocalizedText> = candidate
        .predicted
        .iter()
        .map(|one| {
            let verdict = match one.agrees {
                Some(true) => message!(MessageId::PredictedAgrees),
                Some(false) => message!(MessageId::PredictedDiffers),
                None => unknown(),
            };
            message!(MessageId::PredictedRange, one.low, one.high, verdict)
        })
        .collect();
    if ranges.is_empty() { message!(MessageId::NotKnown) } else { LocalizedText::join(&ranges, "; ", "；") }
}

/// A p95 with its interval, as the ladder shows it.
fn with_interval(estimate: Option<&Estimate>) -> LocalizedText {
    let Some(e) = estimate else { return unknown() };
    let value = fixed(e.value);
    if e.low.is_none() && e.high.is_none() {
        return value.into();
    }
    let bound = |b: Option<f64>, none: &str| b.map_or_else(|| none.to_owned(), fixed);
    format!("{value} [{}, {}]", bound(e.low, "?"), bound(e.high, "∞")).into()
}

fn p95(figure: Figure, report: &TierReport) -> LocalizedText {
    with_interval(figure.estimate(report).as_ref())
}

pub(super) fn topologies(answer: &TopologyAnswer) -> Section {
    let best = answer.recommended.as_deref().map(|best| message!(MessageId::TopologyBest, best));
    let rows = answer.candidates.iter().map(|c| {
        // The load at which all are compared is each one's first tier.
        let common = c.tiers.first();
        vec![
            c.name.as_str().into(),
            c.instances.into(),
            c.capacity.state.n_star(c.capacity.n_star),
            predicted(c),
            common.map_or_else(unknown, |t| t.streams.into()),
            common.map_or_else(|| cell(c.rtf_p95), |t| p95(Figure::Call(CallFigure::Rtf), t)),
            common.map_or_else(|| cell(c.lag_p95_s), |t| p95(Figure::Call(CallFigure::LagMaxS), t)),
            common.map_or_else(unknown, |t| t.calls_counted.into()),
            percent(c.kv_room),
            c.err_streams.into(),
        ]
    });
    Section {
        lead: best
            .into_iter()
            .chain([answer.why.text()])
            .chain(answer.prediction_notes.iter().map(Localize::text))
            .collect(),
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

pub(super) fn repeat(answer: &RepeatabilityAnswer) -> Section {
    let mut lead = decision(answer.decision);
    lead.push(answer.repeatability.text());
    let (before, after) = (Some(&answer.before), answer.after.as_ref());
    // Where the two tiers were written down whole, their intervals are known as well.
    let figure = |tier: Option<&TierReport>, name: &str, value: Option<f64>| {
        let judged = Figure::JUDGED.into_iter().find(|f| f.of_step() == name);
        let p95 = judged.zip(tier).and_then(|(figure, tier)| figure.estimate(tier));
        let same = |p95: &Estimate| value.is_some_and(|v| (p95.value - v).abs() < 1e-9);
        p95.filter(same).map_or_else(|| cell(value), |p95| with_interval(Some(&p95)))
    };
    let rows = answer.repeatability.figures.iter().map(|f| {
        vec![
            match f.figure.as_str() {
                "ttft_p95" => message!(MessageId::HeadTtft),
                "rtf_p95" => message!(MessageId::HeadRtf),
                "final_p95" => message!(MessageId::HeadFinal),
                "kv_pool_p95" => StepFigure::KvPoolP95.spec().name.into(),
                other => LocalizedText::same(other.to_owned()),
            },
            figure(before, &f.figure, f.before),
            figure(after, &f.figure, f.after),
            percent(f.change),
            match f.drift {
                Some(true) => message!(MessageId::Yes),
                Some(false) => message!(MessageId::No),
                None => unknown(),
            },
        ]
    });
    let calls = |tier: Option<&TierReport>| tier.map_or_else(unknown, |t| t.calls_counted.into());
    Section {
        lead,
        tables: vec![Table {
            caption: Some(message!(MessageId::RepeatCaption, answer.streams, calls(before), calls(after))),
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
        p95(Figure::Ttft, report),
        p95(Figure::Call(CallFigure::Rtf), report),
        p95(Figure::Final, report),
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
