//! The books of a campaign: every part with its answer, on one table.

use serde_json::Value;

use super::{CASES, array, at, cell, text};
use crate::read::{Run, recorded};
use crate::section::{Section, Table};
use crate::words::{Said, Word, say};

/// What the campaign answered, if the run is one.
pub(crate) fn campaign(run: &Run) -> Option<Section> {
    let answer = run.answers.get("campaign")?;
    let mut lead = Vec::new();
    if answer.get("interrupted").and_then(Value::as_bool) == Some(true) {
        lead.push(say!(Word::CampaignInterrupted));
    }
    lead.extend(
        answer.get("stopped").and_then(Value::as_str).map(|why| say!(Word::CampaignStopped, recorded(why))),
    );
    let parts = array(answer, "parts").iter().map(|part| {
        vec![
            title(part.get("part").and_then(Value::as_str)),
            match part.get("decision").and_then(Value::as_str) {
                Some("yes") => say!(Word::Yes),
                Some("no") => say!(Word::No),
                Some("undecidable") => say!(Word::Undecided),
                // A part without a decision was left out; its sentence says why.
                _ => say!(Word::LeftOut),
            },
            sentence(part, "sentence"),
            cell(at(part, "seconds").map(|s| (s / 6.0).round() / 10.0)),
        ]
    });
    let reruns = array(answer, "reruns")
        .iter()
        .map(|rerun| vec![text(rerun, "run"), sentence(rerun, "capacity"), sentence(rerun, "why")]);
    Some(Section {
        id: "campaign",
        title: say!(Word::Campaign),
        source: "campaign.json".into(),
        lead,
        tables: vec![
            Table {
                caption: Some(say!(Word::CampaignCaption)),
                head: vec![
                    say!(Word::HeadPlayed),
                    say!(Word::HeadGood),
                    say!(Word::HeadReason),
                    say!(Word::HeadMinutes),
                ],
                rows: parts.collect(),
            },
            Table {
                caption: Some(say!(Word::RerunCaption)),
                head: vec![say!(Word::HeadRun), say!(Word::HeadNStar), say!(Word::HeadReason)],
                rows: reruns.collect(),
            },
        ],
        ..Section::default()
    })
}

fn title(part: Option<&str>) -> Said {
    match part {
        Some("tc03") => say!(Word::CaseTc03),
        Some(name) => CASES
            .iter()
            .find(|(case, _)| *case == name)
            .map_or_else(|| Said::same(name), |(_, title)| title.said()),
        None => say!(Word::NotKnown),
    }
}

fn sentence(value: &Value, key: &str) -> Said {
    value.get(key).and_then(Value::as_str).map_or_else(|| say!(Word::NotKnown), recorded)
}
