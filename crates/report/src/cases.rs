//! Sections from the answers of the other cases.

mod campaign;
mod endurance;
mod figures;
mod ladders;

use tapedeck_answers::Decision;

pub(crate) use self::campaign::campaign;
use self::endurance::{faults, soak};
use self::figures::{baseline, memory, words};
use self::ladders::{long_calls, repeat, topologies};
use crate::messages::{Lang, LocalizedText, MessageId, message, number};
use crate::read::Run;
use crate::section::Section;

/// The sections that this run has, and a sentence for each case it has not.
pub(crate) fn sections(run: &Run, lang: Lang) -> (Vec<Section>, Vec<LocalizedText>) {
    let a = &run.answers;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    // File, title, and the section with whether the case was interrupted.
    type Entry = (&'static str, MessageId, Option<(Section, bool)>);
    let all: [Entry; 8] = [
        ("tc01", MessageId::CaseTc01, a.single_stream.as_ref().map(|a| (baseline(a), a.interrupted))),
        ("tc02", MessageId::CaseTc02, a.footprint.as_ref().map(|a| (memory(a), a.interrupted))),
        ("tc03b", MessageId::CaseTc03b, a.long_calls.as_ref().map(|a| (long_calls(a), a.interrupted))),
        ("tc04", MessageId::CaseTc04, a.quality.as_ref().map(|a| (words(a), a.interrupted))),
        ("tc05", MessageId::CaseTc05, a.soak.as_ref().map(|a| (soak(run, a, lang), a.interrupted))),
        ("tc06", MessageId::CaseTc06, a.fault.as_ref().map(|a| (faults(run, a, lang), a.interrupted))),
        ("tc07", MessageId::CaseTc07, a.topology.as_ref().map(|a| (topologies(a), a.interrupted))),
        ("tc08", MessageId::CaseTc08, a.repeatability.as_ref().map(|a| (repeat(a), a.interrupted))),
    ];
    for (name, title, section) in all {
        let Some((mut section, interrupted)) = section else {
            missing.push(message!(MessageId::CaseMissing, title, format!("{name} --into {}", run.name())));
            continue;
        };
        section.title = title.said();
        section.id = name;
        section.source = format!("{name}.json");
        if interrupted {
            section.lead.insert(0, message!(MessageId::CaseInterrupted));
        }
        found.push(section);
    }
    (found, missing)
}

fn unknown() -> LocalizedText {
    message!(MessageId::NotKnown)
}

fn cell(value: Option<f64>) -> LocalizedText {
    value.map_or_else(unknown, |v| number(v).into())
}

fn percent(value: Option<f64>) -> LocalizedText {
    value.map_or_else(unknown, |v| format!("{} %", number(v * 100.0)).into())
}

fn yes(value: Option<bool>) -> LocalizedText {
    match value {
        Some(true) => message!(MessageId::Yes),
        Some(false) => message!(MessageId::No),
        None => unknown(),
    }
}

/// The decision of a case in words.
fn decision(decision: Decision) -> Vec<LocalizedText> {
    vec![match decision {
        Decision::Yes => message!(MessageId::DecisionYes),
        Decision::No => message!(MessageId::DecisionNo),
        Decision::Undecidable => message!(MessageId::DecisionOpen),
    }]
}
