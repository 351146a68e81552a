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
use crate::read::{Run, recorded};
use crate::section::Section;
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
        section.source = format!("{name}.json");
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
