//! One stream, memory, words: cases that measure figures of their own.

use serde_json::Value;

use super::{array, at, cell, decision, find, percent, sentences, text, yes};
use crate::messages::{LocalizedText, MessageId, fixed, message, number};
use crate::read::recorded;
use crate::section::{Section, Table};

pub(super) fn baseline(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(sentences(answer, "reasons"));
    let floors = array(answer, "floors").iter().map(|f| {
        let p95 = f.get("p95_s").and_then(Value::as_f64);
        let basis = match f.get("basis").and_then(Value::as_str) {
            Some("wire") => message!(MessageId::DefTtftWire),
            Some("speech") => message!(MessageId::DefTtftSpeech),
            Some("window") => message!(MessageId::DefTtftWindow),
            _ => text(f, "basis"),
        };
        vec![basis, cell(p95), cell(at(f, "max_s")), cell(at(f, "n")), yes(f.get("reachable"))]
    });
    let figures = [
        ("rtf", MessageId::FigRtf),
        ("ttft_wire_s", MessageId::DefTtftWire),
        ("ttft_speech_s", MessageId::DefTtftSpeech),
        ("ttft_window_s", MessageId::DefTtftWindow),
        ("final_s", MessageId::FigFinal),
    ];
    let rows = figures.iter().map(|(key, name)| {
        let of = |pass: &str, what: &str| cell(at(answer, &format!("{pass}.{key}.{what}")));
        vec![
            name.said(),
            of("warm", "p50"),
            of("warm", "max"),
            of("warm", "n"),
            of("cold", "p50"),
            of("cold", "max"),
            of("cold", "n"),
        ]
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

pub(super) fn memory(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(answer.get("no_gpu").and_then(Value::as_str).map(recorded));
    let rows = array(answer, "table").iter().map(|row| {
        vec![
            match row.get("figure").and_then(Value::as_str) {
                Some("pool_tokens" | "pool_gb") => message!(MessageId::FigPool),
                Some("stream_tokens" | "stream_mb") => message!(MessageId::FigStream),
                Some("idle_tokens") => message!(MessageId::FigIdle),
                Some("overhead_gb") => message!(MessageId::FigOverhead),
                _ => text(row, "figure"),
            },
            row.get("unit").and_then(Value::as_str).map_or_else(|| message!(MessageId::NotKnown), recorded),
            dash(at(row, "theory")),
            dash(at(row, "measured")),
            dash(at(row, "low")),
            dash(at(row, "high")),
            cell(at(row, "n")),
            row.get("note").and_then(Value::as_str).map_or_else(LocalizedText::default, recorded),
        ]
    });
    let levels = array(answer, "levels").iter().map(|level| {
        vec![
            cell(at(level, "streams")),
            percent(at(level, "kv_mean")),
            cell(at(level, "n")),
            cell(at(level, "preempt_delta")),
            cell(at(level, "vram_used_bytes").map(|b| b / 1e9)),
            yes(level.get("fit")),
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

pub(super) fn words(answer: &Value) -> Section {
    let mut lead = decision(answer);
    let rate = |v: &Value, path: &str| percent(at(v, path));
    lead.push(message!(
        MessageId::WordsLead,
        rate(answer, "baseline.wer.rate"),
        rate(answer, "baseline.cer.rate"),
        cell(at(answer, "limit_points"))
    ));
    let rise = |v: &Value, key: &str| match (at(v, &format!("{key}.points")), find(v, key)) {
        (Some(points), Some(r)) => {
            let bound = |k| at(r, k).map_or_else(|| "?".into(), fixed);
            LocalizedText::same(format!("{} [{}, {}]", fixed(points), bound("low"), bound("high")))
        }
        _ => message!(MessageId::NotKnown),
    };
    let rows = array(answer, "points").iter().map(|p| {
        vec![
            cell(at(p, "streams")),
            rate(p, "rates.wer.rate"),
            rise(p, "wer_rise"),
            rate(p, "rates.cer.rate"),
            rise(p, "cer_rise"),
            cell(at(p, "rates.wer.calls")),
            cell(at(p, "lost_calls")),
            // As in the ladder: * where only the estimate decides.
            match p.get("sure").and_then(Value::as_bool) {
                Some(false) => LocalizedText::join(&[yes(p.get("alarm")), "*".into()], " ", " "),
                _ => yes(p.get("alarm")),
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
