//! The books of a campaign: every part with its answer, on one table.

use tapedeck_answers::{Decision, Part};
use tapedeck_l10n::Localize;

use super::cell;
use crate::messages::{LocalizedText, MessageId, message};
use crate::read::Run;
use crate::section::{Section, Table};

/// What the campaign answered, if the run is one.
pub(crate) fn campaign(run: &Run) -> Option<Section> {
    let answer = run.answers.campaign.as_ref()?;
    let mut lead = Vec::new();
    if answer.interrupted {
        lead.push(message!(MessageId::CampaignInterrupted));
    }
    lead.extend(answer.stopped.as_ref().map(|why| message!(MessageId::CampaignStopped, why.text())));
    let parts = answer.parts.iter().map(|part| {
        vec![
            title(part.part).said(),
            match part.decision {
                Some(Decision::Yes) => message!(MessageId::Yes),
                Some(Decision::No) => message!(MessageId::No),
                Some(Decision::Undecidable) => message!(MessageId::Undecided),
                // A part without a decision was left out; its sentence says why.
                None => message!(MessageId::LeftOut),
            },
            part.sentence.text(),
            cell(Some((part.seconds / 6.0).round() / 10.0)),
        ]
    });
    let reruns = answer.reruns.iter().map(|rerun| {
        vec![LocalizedText::same(rerun.run.display().to_string()), rerun.capacity.text(), rerun.why.text()]
    });
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

const fn title(part: Part) -> MessageId {
    match part {
        Part::Tc01 => MessageId::CaseTc01,
        Part::Tc02 => MessageId::CaseTc02,
        Part::Tc03 => MessageId::CaseTc03,
        Part::Tc03b => MessageId::CaseTc03b,
        Part::Tc04 => MessageId::CaseTc04,
        Part::Tc05 => MessageId::CaseTc05,
        Part::Tc06 => MessageId::CaseTc06,
        Part::Tc07 => MessageId::CaseTc07,
        Part::Tc08 => MessageId::CaseTc08,
    }
}
