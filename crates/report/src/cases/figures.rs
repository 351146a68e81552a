//! One stream, memory, words: cases that measure figures of their own.

use tapedeck_answers::{
    ErrorRate, Few, FootprintAnswer, QualityAnswer, Rise, SingleStreamAnswer, SingleStreamFigures, TableRow,
};
use tapedeck_l10n::Localize;
use tapedeck_record::CallFigure;

use super::{cell, decision, percent, unknown, yes};
use crate::messages::{LocalizedText, MessageId, fixed, message, number};
use crate::section::{Section, Table};

pub(super) fn baseline(answer: &SingleStreamAnswer) -> Section {
    let mut lead = decision(answer.decision);
    lead.extend(answer.reasons.iter().map(Localize::text));
    let floors = answer.floors.iter().map(|f| {
        let basis = f.basis.figure().spec().label();
        vec![basis, cell(Some(f.p95_s)), cell(Some(f.max_s)), f.n.into(), yes(Some(f.reachable))]
    });
    type Get = fn(&SingleStreamFigures) -> Option<Few>;
    let figures: [(Get, CallFigure); 5] = [
        (|f| f.rtf, CallFigure::Rtf),
        (|f| f.ttft_wire_s, CallFigure::TtftWireS),
        (|f| f.ttft_speech_s, CallFigure::TtftSpeechS),
        (|f| f.ttft_window_s, CallFigure::TtftWindowS),
        (|f| f.final_s, CallFigure::FinalS),
    ];
    let rows = figures.iter().map(|(get, figure)| {
        let of = |few: Option<Few>| {
            let n = few.map_or_else(unknown, |f| f.n.into());
            [cell(few.map(|f| f.p50)), cell(few.map(|f| f.max)), n]
        };
        let name = figure.spec().label();
        [name].into_iter().chain(of(get(&answer.warm))).chain(of(get(&answer.cold))).collect()
    });
    Section {
        lead,
        tables: vec![
            Table {
                caption: Some(message!(MessageId::BaselineCaption)),
                head: vec![
                    message!(MessageId::HeadFigure),
                    message!(MessageId::HeadWarmP50),
                    message!(MessageId::HeadWarmMax),
                    "n".into(),
                    message!(MessageId::HeadColdP50),
                    message!(MessageId::HeadColdMax),
                    "n".into(),
                ],
                rows: rows.collect(),
            },
            Table {
                caption: Some(message!(MessageId::FloorCaption)),
                head: vec![
                    message!(MessageId::HeadAnchor),
                    message!(MessageId::HeadFloorP95),
                    message!(MessageId::HeadMax),
                    "n".into(),
                    message!(MessageId::HeadReachable),
                ],
                rows: floors.collect(),
            },
        ],
        ..Section::default()
    }
}

/// A figure, or a dash where there is none to be had.
fn dash(value: Option<f64>) -> LocalizedText {
    value.map_or_else(|| "—".into(), |v| number(v).into())
}

/// The unit of a figure of the table.
fn unit(row: &TableRow) -> LocalizedText {
    let zh = match row.figure.as_str() {
        "pool_tokens" => "token / 实例",
        "pool_gb" | "overhead_gb" => "GB / 实例",
        "stream_tokens" => "token，时间均值",
        "stream_mb" => "MB，时间均值",
        "idle_tokens" => "token / 实例，无通话时",
        _ => return LocalizedText::same(&row.unit),
    };
    LocalizedText { en: row.unit.clone(), zh: zh.into() }
}

pub(super) fn memory(answer: &FootprintAnswer) -> Section {
    let mut lead = decision(answer.decision);
    lead.extend(answer.no_gpu.as_ref().map(Localize::text));
    let rows = answer.table.iter().map(|row| {
        vec![
            match row.figure.as_str() {
                "pool_tokens" | "pool_gb" => message!(MessageId::FigPool),
                "stream_tokens" | "stream_mb" => message!(MessageId::FigStream),
                "idle_tokens" => message!(MessageId::FigIdle),
                "overhead_gb" => message!(MessageId::FigOverhead),
                other => LocalizedText::same(other),
            },
            unit(row),
            dash(row.theory),
            dash(row.measured),
            dash(row.low),
            dash(row.high),
            row.n.map_or_else(unknown, LocalizedText::from),
            row.note.text(),
        ]
    });
    let levels = answer.levels.iter().map(|level| {
        vec![
            level.streams.into(),
            percent(level.kv_mean),
            level.n.into(),
            cell(level.preempt_delta),
            cell(level.vram_used_bytes.map(|b| b / 1e9)),
            yes(Some(level.fit)),
        ]
    });
    Section {
        lead,
        tables: vec![
            Table {
                caption: Some(message!(MessageId::VramCaption)),
                head: vec![
                    message!(MessageId::HeadFigure),
                    message!(MessageId::HeadUnit),
                    message!(MessageId::HeadTheory),
                    message!(MessageId::HeadMeasured),
                    message!(MessageId::HeadLow),
                    message!(MessageId::HeadHigh),
                    "n".into(),
                    message!(MessageId::HeadNote),
                ],
                rows: rows.collect(),
            },
            Table {
                caption: Some(message!(MessageId::LevelCaption)),
                head: vec![
                    message!(MessageId::HeadStreams),
                    message!(MessageId::HeadKvMean),
                    "n".into(),
                    message!(MessageId::HeadPreempted),
                    message!(MessageId::HeadVram),
                    message!(MessageId::HeadFit),
                ],
                rows: levels.collect(),
            },
        ],
        ..Section::default()
    }
}

pub(super) fn words(answer: &QualityAnswer) -> Section {
    let mut lead = decision(answer.decision);
    let rate = |rate: Option<ErrorRate>| percent(rate.map(|r| r.rate));
    let baseline = answer.baseline.unwrap_or_default();
    lead.push(message!(
        MessageId::WordsLead,
        rate(baseline.wer),
        rate(baseline.cer),
        cell(Some(answer.limit_points))
    ));
    let rise = |rise: Option<Rise>| {
        rise.map_or_else(unknown, |r| {
            LocalizedText::same(format!("{} [{}, {}]", fixed(r.points), fixed(r.low), fixed(r.high)))
        })
    };
    let rows = answer.points.iter().map(|p| {
        vec![
            p.streams.into(),
            rate(p.rates.wer),
            rise(p.wer_rise),
            rate(p.rates.cer),
            rise(p.cer_rise),
            p.rates.wer.map_or_else(unknown, |r| r.calls.into()),
            p.lost_calls.into(),
            // As in the ladder: * where only the estimate decides.
            match p.sure {
                false => LocalizedText::join(&[yes(Some(p.alarm)), "*".into()], " ", " "),
                true => yes(Some(p.alarm)),
            },
        ]
    });
    Section {
        lead,
        tables: vec![Table {
            caption: None,
            head: vec![
                message!(MessageId::HeadStreams),
                message!(MessageId::HeadWer),
                message!(MessageId::HeadRise),
                message!(MessageId::HeadCer),
                message!(MessageId::HeadRise),
                "n".into(),
                message!(MessageId::HeadLost),
                message!(MessageId::HeadAlarm),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}
