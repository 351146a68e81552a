//! Sections from the answers of the other cases, read as far as they can be.

use serde_json::Value;
use tapedeck_slo::{Repeatability, TierReport};

use crate::answer::{from, n_star};
use crate::plots;
use crate::read::{Run, recorded};
use crate::section::{Section, Table};
use crate::words::{Lang, Said, Word, number, say};

/// Every case with the command that makes it and what it shows.
const CASES: [(&str, Word); 8] = [
    ("tc01", Word::CaseTc01),
    ("tc02", Word::CaseTc02),
    ("tc03b", Word::CaseTc03b),
    ("tc04", Word::CaseTc04),
    ("tc05", Word::CaseTc05),
    ("tc06", Word::CaseTc06),
    ("tc07", Word::CaseTc07),
    ("tc08", Word::CaseTc08),
];

/// The sections that this run has, and a sentence for each case it has not.
pub(crate) fn sections(run: &Run, lang: Lang) -> (Vec<Section>, Vec<Said>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, title) in CASES {
        let Some(answer) = run.answers.get(name) else {
            missing.push(say!(Word::CaseMissing, title, format!("{name} --into {}", run.name())));
            continue;
        };
        let mut section = match name {
            "tc01" => baseline(answer),
            "tc02" => memory(answer),
            "tc03b" => long_calls(answer),
            "tc04" => words(answer),
            "tc05" => soak(run, answer, lang),
            "tc06" => faults(run, answer, lang),
            "tc07" => topologies(answer),
            _ => repeat(answer),
        };
        section.title = title.said();
        section.id = name;
        if answer.get("interrupted").and_then(Value::as_bool) == Some(true) {
            section.lead.insert(0, say!(Word::CaseInterrupted));
        }
        found.push(section);
    }
    (found, missing)
}

/// A number at a path like `soak.drift.rise_s`.
fn at(value: &Value, path: &str) -> Option<f64> {
    find(value, path)?.as_f64()
}

fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |v, key| v.get(key))
}

fn array<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    find(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: &Value, path: &str) -> Said {
    find(value, path).and_then(Value::as_str).map_or_else(|| say!(Word::NotKnown), Said::same)
}

fn cell(value: Option<f64>) -> Said {
    value.map_or_else(|| say!(Word::NotKnown), |v| number(v).into())
}

fn percent(value: Option<f64>) -> Said {
    value.map_or_else(|| say!(Word::NotKnown), |v| format!("{} %", number(v * 100.0)).into())
}

fn yes(value: Option<&Value>) -> Said {
    match value.and_then(Value::as_bool) {
        Some(true) => say!(Word::Yes),
        Some(false) => say!(Word::No),
        None => say!(Word::NotKnown),
    }
}

/// The decision of a case in words.
fn decision(answer: &Value) -> Vec<Said> {
    match answer.get("decision").and_then(Value::as_str) {
        Some("yes") => vec![say!(Word::DecisionYes)],
        Some("no") => vec![say!(Word::DecisionNo)],
        Some("undecidable") => vec![say!(Word::DecisionOpen)],
        _ => Vec::new(),
    }
}

fn sentences(answer: &Value, path: &str) -> impl Iterator<Item = Said> {
    array(answer, path).iter().filter_map(Value::as_str).map(recorded)
}

fn baseline(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(sentences(answer, "reasons"));
    let floors = array(answer, "floors").iter().map(|f| {
        let p95 = f.get("p95_s").and_then(Value::as_f64);
        vec![text(f, "basis"), cell(p95), cell(at(f, "max_s")), cell(at(f, "n")), yes(f.get("reachable"))]
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

fn memory(answer: &Value) -> Section {
    let mut lead = decision(answer);
    lead.extend(answer.get("no_gpu").and_then(Value::as_str).map(recorded));
    let rows = array(answer, "table").iter().map(|row| {
        vec![
            text(row, "figure"),
            text(row, "unit"),
            cell(at(row, "theory")),
            cell(at(row, "measured")),
            cell(at(row, "low")),
            cell(at(row, "high")),
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

fn long_calls(answer: &Value) -> Section {
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

fn words(answer: &Value) -> Section {
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
            let bound = |k| at(r, k).map_or_else(|| "?".into(), number);
            Said::same(format!("{} ({} .. {})", number(points), bound("low"), bound("high")))
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
            yes(p.get("alarm")),
        ]
    });
    Section {
        lead,
        tables: vec![Table {
            caption: None,
            head: vec![
                say!(Word::HeadStreams),
                "WER".into(),
                say!(Word::HeadRise),
                "CER".into(),
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

fn soak(run: &Run, answer: &Value, lang: Lang) -> Section {
    let mut lead: Vec<Said> = sentences(answer, "soak.complaints").collect();
    if lead.is_empty() && answer.get("soak").is_some_and(|s| !s.is_null()) {
        lead.push(say!(Word::NoComplaint));
    }
    lead.extend(sentences(answer, "soak.unknown"));
    let mib = |v: Option<f64>| cell(v.map(|v| v / 1_048_576.0));
    let mut slopes = Vec::new();
    let memory: Vec<Vec<Said>> = array(answer, "soak.memory")
        .iter()
        .map(|m| {
            if let (Some(of), Some(per_h), Some(threshold)) =
                (m.get("of").and_then(Value::as_str), at(m, "leak.per_h"), at(m, "leak.threshold_per_h"))
            {
                slopes.push((of.to_string(), per_h, threshold));
            }
            vec![
                Said::join(&[text(m, "what"), text(m, "of")], " ", " "),
                match find(m, "leak.verdict").and_then(Value::as_str) {
                    Some("leak") => say!(Word::VerdictLeak),
                    Some("no_leak") => say!(Word::VerdictNoLeak),
                    Some("step") => say!(Word::VerdictStep),
                    _ => say!(Word::NotKnown),
                },
                mib(at(m, "leak.per_h")),
                mib(at(m, "leak.low_per_h")),
                mib(at(m, "leak.high_per_h")),
                mib(at(m, "leak.threshold_per_h")),
                cell(at(m, "leak.points")),
            ]
        })
        .collect();
    let periods = array(answer, "soak.periods").iter().map(|p| {
        vec![
            cell(at(p, "from_s").map(|s| s / 3600.0)),
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
        .collect();
    Section {
        lead,
        tables: vec![
            Table {
                caption: Some(say!(Word::LeakCaption)),
                head: vec![
                    say!(Word::HeadMemory),
                    say!(Word::HeadVerdict),
                    say!(Word::HeadPerHour),
                    say!(Word::HeadLow),
                    say!(Word::HeadHigh),
                    say!(Word::HeadThreshold),
                    "n".into(),
                ],
                rows: memory,
            },
            Table {
                caption: Some(say!(Word::PeriodCaption)),
                head: vec![
                    say!(Word::HeadFromHour),
                    say!(Word::HeadCalls),
                    say!(Word::HeadErrors),
                    say!(Word::HeadTtft),
                    say!(Word::HeadRtf),
                    say!(Word::HeadFinal),
                ],
                rows: periods.collect(),
            },
        ],
        plots,
        ..Section::default()
    }
}

fn faults(run: &Run, answer: &Value, lang: Lang) -> Section {
    // The limit stands in the run's settings, wherever that version keeps it.
    let fault = run.config.as_ref().and_then(|c| c.get("fault"));
    let limit_s = fault
        .and_then(toml::Value::as_table)
        .and_then(|f| f.values().find_map(|v| v.get("lag_p95_s")).and_then(toml::Value::as_float));
    let mut lead: Vec<Said> = sentences(answer, "complaints").collect();
    if lead.is_empty() {
        lead.push(say!(Word::NoComplaint));
    }
    lead.extend(sentences(answer, "unknown"));
    let toll = |v: &Value, key: &str| {
        let errors: f64 = find(v, &format!("{key}.errors"))
            .and_then(Value::as_object)
            .map_or(0.0, |e| e.values().filter_map(Value::as_f64).sum());
        match at(v, &format!("{key}.calls")) {
            Some(calls) => Said::same(format!("{} / {}", number(errors), number(calls))),
            None => say!(Word::NotKnown),
        }
    };
    let mut rows = Vec::new();
    let mut plots = Vec::new();
    for (index, incident) in array(answer, "incidents").iter().enumerate() {
        rows.push(vec![
            cell(at(incident, "streams")),
            cell(at(incident, "share")),
            text(incident, "timeline.fault"),
            text(incident, "timeline.instance"),
            toll(incident, "in_flight"),
            toll(incident, "new_calls"),
            cell(at(incident, "ejected_s")),
            cell(at(incident, "recovery.recovery_s")),
            yes(find(incident, "recovery.in_time")),
            cell(at(incident, "rejoined_s")),
            yes(incident.get("retries_needed")),
        ]);
        let fault_s = at(incident, "timeline.fault_s").unwrap_or(0.0);
        let steps: Vec<(f64, Option<f64>)> = array(incident, "recovery.steps")
            .iter()
            .filter_map(|s| Some((at(s, "from_s")? - fault_s, at(s, "lag_p95_s"))))
            .collect();
        let marks: Vec<(f64, String)> = [("start_s", Word::MarkStart), ("well_s", Word::MarkWell)]
            .iter()
            .filter_map(|(key, word)| {
                let s = at(incident, &format!("timeline.{key}"))?;
                Some((s - fault_s, word.template(lang).to_string()))
            })
            .collect();
        let streams = at(incident, "streams").map_or_else(String::new, number);
        let title = crate::words::fill(Word::FaultTitle.template(lang), &[&streams]);
        plots.extend(plots::recovery(index + 1, &title, &steps, &marks, limit_s, lang));
    }
    Section {
        lead,
        tables: vec![Table {
            caption: Some(say!(Word::FaultCaption)),
            head: vec![
                say!(Word::HeadStreams),
                say!(Word::HeadShare),
                say!(Word::HeadFault),
                say!(Word::HeadInstance),
                say!(Word::HeadBroken),
                say!(Word::HeadNewErrors),
                say!(Word::HeadEjected),
                say!(Word::HeadRecovered),
                say!(Word::HeadInTime),
                say!(Word::HeadRejoined),
                say!(Word::HeadRetries),
            ],
            rows,
        }],
        plots,
        ..Section::default()
    }
}

fn topologies(answer: &Value) -> Section {
    let why = answer.get("why").and_then(Value::as_str);
    let best = answer.get("recommended").and_then(Value::as_str).map(|b| say!(Word::TopologyBest, b));
    let rows = array(answer, "candidates").iter().map(|c| {
        let capacity = from::<tapedeck_slo::Capacity>(c, "capacity");
        vec![
            text(c, "name"),
            cell(at(c, "instances")),
            capacity.map_or_else(|| say!(Word::NotKnown), |c| n_star(&c)),
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
                "N*".into(),
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

fn repeat(answer: &Value) -> Section {
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
