//! One stream, memory, words: cases that measure figures of their own.

use serde_json::Value;

use super::{array, at, cell, decision, find, percent, sentences, text, yes};
use crate::read::recorded;
use crate::section::{Section, Table};
use crate::words::{Said, Word, fixed, number, say};

pub(super) fn baseline(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(sentences(answer, "reasons"));
    let floors = array(answer, "floors").iter().map(|f| {
        let p95 = f.get("p95_s").and_then(Value::as_f64);
        let basis = match f.get("basis").and_then(Value::as_str) {
            Some("wire") => say!(Word::DefTtftWire),
            Some("speech") => say!(Word::DefTtftSpeech),
            Some("window") => say!(Word::DefTtftWindow),
            _ => text(f, "basis"),
        };
        vec![basis, cell(p95), cell(at(f, "max_s")), cell(at(f, "n")), yes(f.get("reachable"))]
    });
    let figures = [
        ("rtf", Word::FigRtf),
        ("ttft_wire_s", Word::DefTtftWire),
        ("ttft_speech_s", Word::DefTtftSpeech),
        ("ttft_window_s", Word::DefTtftWindow),
        ("final_s", Word::FigFinal),
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
                caption: Some(say!(Word::BaselineCaption)),
                head: vec![
                    say!(Word::HeadFigure),
                    say!(Word::HeadWarmP50),
                    say!(Word::HeadWarmMax),
                    "n".into(),
                    say!(Word::HeadColdP50),
                    say!(Word::HeadColdMax),
                    "n".into(),
                ],
                rows: rows.collect(),
            },
            Table {
                caption: Some(say!(Word::FloorCaption)),
                head: vec![
                    say!(Word::HeadAnchor),
                    say!(Word::HeadFloorP95),
                    say!(Word::HeadMax),
                    "n".into(),
                    say!(Word::HeadReachable),
                ],
                rows: floors.collect(),
            },
        ],
        ..Section::default()
    }
}

/// A figure, or a dash where there is none to be had.
fn dash(value: Option<f64>) -> Said {
    value.map_or_else(|| "—".into(), |v| number(v).into())
}

pub(super) fn memory(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(answer.get("no_gpu").and_then(Value::as_str).map(recorded));
    let rows = array(answer, "table").iter().map(|row| {
        vec![
            match row.get("figure").and_then(Value::as_str) {
                Some("pool_tokens" | "pool_gb") => say!(Word::FigPool),
                Some("stream_tokens" | "stream_mb") => say!(Word::FigStream),
                Some("idle_tokens") => say!(Word::FigIdle),
                Some("overhead_gb") => say!(Word::FigOverhead),
                _ => text(row, "figure"),
            },
            row.get("unit").and_then(Value::as_str).map_or_else(|| say!(Word::NotKnown), recorded),
            dash(at(row, "theory")),
            dash(at(row, "measured")),
            dash(at(row, "low")),
            dash(at(row, "high")),
            cell(at(row, "n")),
            row.get("note").and_then(Value::as_str).map_or_else(Said::default, recorded),
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
                caption: Some(say!(Word::VramCaption)),
                head: vec![
                    say!(Word::HeadFigure),
                    say!(Word::HeadUnit),
                    say!(Word::HeadTheory),
                    say!(Word::HeadMeasured),
                    say!(Word::HeadLow),
                    say!(Word::HeadHigh),
                    "n".into(),
                    say!(Word::HeadNote),
                ],
                rows: rows.collect(),
            },
            Table {
                caption: Some(say!(Word::LevelCaption)),
                head: vec![
                    say!(Word::HeadStreams),
                    say!(Word::HeadKvMean),
                    "n".into(),
                    say!(Word::HeadPreempted),
                    say!(Word::HeadVram),
                    say!(Word::HeadFit),
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
    lead.push(say!(
        Word::WordsLead,
        rate(answer, "baseline.wer.rate"),
        rate(answer, "baseline.cer.rate"),
        cell(at(answer, "limit_points"))
    ));
    let rise = |v: &Value, key: &str| match (at(v, &format!("{key}.points")), find(v, key)) {
        (Some(points), Some(r)) => {
            let bound = |k| at(r, k).map_or_else(|| "?".into(), fixed);
            Said::same(format!("{} [{}, {}]", fixed(points), bound("low"), bound("high")))
        }
        _ => say!(Word::NotKnown),
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
                Some(false) => Said::join(&[yes(p.get("alarm")), "*".into()], " ", " "),
                _ => yes(p.get("alarm")),
            },
        ]
    });
    Section {
        lead,
        tables: vec![Table {
            caption: None,
            head: vec![
                say!(Word::HeadStreams),
                say!(Word::HeadWer),
                say!(Word::HeadRise),
                say!(Word::HeadCer),
                say!(Word::HeadRise),
                "n".into(),
                say!(Word::HeadLost),
                say!(Word::HeadAlarm),
            ],
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}
