//! What stands at the end: what is missing, risks, environment, transcripts, definitions.

use maud::{Markup, html};
use tapedeck_slo::TierReport;

use super::Writer;
use crate::glossary::glossary;
use crate::messages::{LocalizedText, MessageId, number};
use crate::risks::{Level, risks};
use crate::settings::flatten;

impl Writer<'_> {
    pub(super) fn missing(&self, cases: &[LocalizedText]) -> Markup {
        html! {
            section id="missing" {
                h2 { (self.t(MessageId::MissingCases)) }
                ul { @for said in cases { li { (self.s(said)) } } }
            }
        }
    }

    pub(super) fn risk_list(&self) -> Markup {
        html! {
            section id="risks" {
                h2 { (self.t(MessageId::Risks)) }
                ul class="risks" { @for risk in risks(self.run, self.answer) {
                    @let (class, word) = match risk.level {
                        Level::Seen => ("fail", MessageId::RiskSeen),
                        Level::Unknown => ("open", MessageId::RiskUnknown),
                        Level::Fine => ("pass", MessageId::RiskFine),
                    };
                    li { span class={ "tag " (class) } { (self.t(word)) } " " (self.s(&risk.said)) }
                } }
            }
        }
    }

    pub(super) fn environment(&self) -> Markup {
        let mut rows = Vec::new();
        if let Some(table) = &self.run.environment {
            flatten("", &toml::Value::Table(table.clone()), &mut rows);
        }
        let mut settings = Vec::new();
        if let Some(config) = &self.run.config {
            flatten("", &toml::Value::Table(config.tree.clone()), &mut settings);
        }
        html! {
            section id="environment" {
                h2 { (self.t(MessageId::Environment)) }
                @if rows.is_empty() { p { (self.t(MessageId::NoEnvironment)) } } @else { (self.pairs(&rows)) }
                @if !settings.is_empty() {
                    h3 { (self.t(MessageId::Settings)) }
                    (self.pairs(&settings))
                }
                (self.sender())
            }
        }
    }

    /// Our own lateness and drift, at their worst.
    fn sender(&self) -> Markup {
        let worst = |key: &str, of: fn(&TierReport) -> Option<f64>| {
            let steps = self.run.steps.iter().filter_map(|s| Some((of(&s.report)?, s.name.as_str())));
            let (value, step) = steps.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
            Some((key.to_owned(), format!("{} ({step})", number(value))))
        };
        let rows: Vec<_> = [
            worst("wake_late_p99_ms", |r| r.wake_late_p99_ms),
            worst("client_drift_ppm", |r| r.client_drift_ppm),
            worst("client_cpu_share", |r| r.client_cpu_share),
        ]
        .into_iter()
        .flatten()
        .collect();
        html! {
            h3 { (self.t(MessageId::Sender)) }
            @if rows.is_empty() { p { (self.t(MessageId::SenderUnknown)) } } @else {
                p class="small" { (self.t(MessageId::SenderLead)) }
                (self.pairs(&rows))
            }
        }
    }

    pub(super) fn transcripts(&self, texts: &[Vec<String>]) -> Markup {
        html! {
            @if !texts.is_empty() {
                section id="transcripts" {
                    h2 { (self.t(MessageId::Transcripts)) }
                    div class="scroll" { table {
                        thead { tr { @for word in [MessageId::HeadStep, MessageId::HeadCall, MessageId::HeadText] { th { (self.t(word)) } } } }
                        tbody { @for row in texts { tr { @for cell in row { td class="reason foreign" { (cell) } } } } }
                    } }
                }
            }
        }
    }

    pub(super) fn definitions(&self) -> Markup {
        html! {
            section id="definitions" {
                h2 { (self.t(MessageId::Definitions)) }
                div class="scroll" { table class="pairs" {
                    thead { tr { th { (self.t(MessageId::HeadFigure)) } th { (self.t(MessageId::HeadDefinition)) } th { (self.t(MessageId::HeadSource)) } } }
                    tbody { @for entry in glossary() { tr {
                        th scope="row" { (self.s(&entry.name)) " (" code { (entry.key) } ")" }
                        td class="reason" { (self.s(&entry.definition)) }
                        td { (entry.source) }
                    } } }
                } }
            }
        }
    }

    fn pairs(&self, rows: &[(String, String)]) -> Markup {
        html! {
            div class="scroll" { table class="pairs names" { tbody { @for (key, value) in rows {
                tr { th scope="row" { (key) } td class="reason" { (value) } }
            } } } }
        }
    }
}
