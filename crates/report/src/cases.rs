//! Sections from the answers of the other cases, read as far as they can be.

mod campaign;
mod endurance;
mod figures;
mod ladders;

use serde_json::Value;

pub(crate) use self::campaign::campaign;
use self::endurance::{faults, soak};
use self::figures::{baseline, memory, words};
use self::ladders::{long_calls, repeat, topologies};
use crate::messages::{Lang, LocalizedText, MessageId, message, number};
use crate::read::{Run, recorded};
use crate::section::Section;

/// Every case with the command that makes it and what it shows.
const CASES: [(&str, MessageId); 8] = [
    ("tc01", MessageId::CaseTc01),
    ("tc02", MessageId::CaseTc02),
    ("tc03b", MessageId::CaseTc03b),
    ("tc04", MessageId::CaseTc04),
    ("tc05", MessageId::CaseTc05),
    ("tc06", MessageId::CaseTc06),
    ("tc07", MessageId::CaseTc07),
    ("tc08", MessageId::CaseTc08),
];

/// The sections that this run has, and a sentence for each case it has not.
pub(crate) fn sections(run: &Run, lang: Lang) -> (Vec<Section>, Vec<LocalizedText>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, title) in CASES {
        let Some(answer) = run.answers.get(name) else {
            missing.push(message!(MessageId::CaseMissing, title, format!("{name} --into {}", run.name())));
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
        section.source = format!("{name}.json");
        if answer.get("interrupted").and_then(Value::as_bool) == Some(true) {
            section.lead.insert(0, message!(MessageId::CaseInterrupted));
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

fn text(value: &Value, path: &str) -> LocalizedText {
    find(value, path)
        .and_then(Value::as_str)
        .map_or_else(|| message!(MessageId::NotKnown), LocalizedText::same)
}

fn cell(value: Option<f64>) -> LocalizedText {
    value.map_or_else(|| message!(MessageId::NotKnown), |v| number(v).into())
}

fn percent(value: Option<f64>) -> LocalizedText {
    value.map_or_else(|| message!(MessageId::NotKnown), |v| format!("{} %", number(v * 100.0)).into())
}

fn yes(value: Option<&Value>) -> LocalizedText {
    match value.and_then(Value::as_bool) {
        Some(true) => message!(MessageId::Yes),
        Some(false) => message!(MessageId::No),
        None => message!(MessageId::NotKnown),
    }
}

/// The decision of a case in words.
fn decision(answer: &Value) -> Vec<LocalizedText> {
    match answer.get("decision").and_then(Value::as_str) {
        Some("yes") => vec![message!(MessageId::DecisionYes)],
        Some("no") => vec![message!(MessageId::DecisionNo)],
        Some("undecidable") => vec![message!(MessageId::DecisionOpen)],
        _ => Vec::new(),
    }
}

fn sentences(answer: &Value, path: &str) -> impl Iterator<Item = LocalizedText> {
    array(answer, path).iter().filter_map(Value::as_str).map(recorded)
}
