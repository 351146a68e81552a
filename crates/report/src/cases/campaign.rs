//! The books of a campaign: every part with its answer, on one table.

use serde_json::Value;

use super::{CASES, array, at, cell, text};
use crate::messages::{LocalizedText, MessageId, message};
use crate::read::{Run, recorded};
use crate::section::{Section, Table};

/// What the campaign answered, if the run is one.
pub(crate) fn campaign(run: &Run) -> Option<Section> {
    let answer = run.answers.get("campaign")?;
    let mut lead = Vec::new();
    if answer.get("interrupted").and_then(Value::as_bool) == Some(true) {
        lead.push(message!(MessageId::CampaignInterrupted));
    }
    lead.extend(
        answer
            .get("stopped")
            .and_then(Value::as_str)
            .map(|why| message!(MessageId::CampaignStopped, recorded(why))),
    );
    let parts = array(answer, "parts").iter().map(|part| {
        vec![
            title(part.get("part").and_then(Value::as_str)),
            match part.get("decision").and_then(Value::as_str) {
                Some("yes") => message!(MessageId::Yes),
                Some("no") => message!(MessageId::No),
                Some("undecidable") => message!(MessageId::Undecided),
                // A part without a decision was left out; its sentence says why.
                _ => message!(MessageId::LeftOut),
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
        title: message!(MessageId::Campaign),
        source: "campaign.json".into(),
        lead,
        tables: vec![
            Table {
                caption: Some(message!(MessageId::CampaignCaption)),
                head: vec![
                    message!(MessageId::HeadPlayed),
                    message!(MessageId::HeadGood),
                    message!(MessageId::HeadReason),
                    message!(MessageId::HeadMinutes),
                ],
                rows: parts.collect(),
            },
            Table {
                caption: Some(message!(MessageId::RerunCaption)),
                head: vec![
                    message!(MessageId::HeadRun),
                    message!(MessageId::HeadNStar),
                    message!(MessageId::HeadReason),
                ],
                rows: reruns.collect(),
            },
        ],
        ..Section::default()
    })
}

fn title(part: Option<&str>) -> LocalizedText {
    match part {
        Some("tc03") => message!(MessageId::CaseTc03),
        Some(name) => CASES
            .iter()
            .find(|(case, _)| *case == name)
            .map_or_else(|| LocalizedText::same(name), |(_, title)| title.said()),
        None => message!(MessageId::NotKnown),
    }
}

fn sentence(value: &Value, key: &str) -> LocalizedText {
    value.get(key).and_then(Value::as_str).map_or_else(|| message!(MessageId::NotKnown), recorded)
}
