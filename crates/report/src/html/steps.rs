//! Step by step: diagnosis, distributions, time lines, drain.

use maud::{Markup, html};

use super::Writer;
use crate::diagnose::{Diagnosis, diagnose, part_name};
use crate::messages::{MessageId, fixed, message, number};
use crate::plots::{self, Named};
use crate::read::Step;
use tapedeck_l10n::Localize;

/// Seconds of a part of the wait, or a dash where nothing tells.
fn show(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "—".to_string(), fixed)
}

impl Writer<'_> {
    pub(super) fn diagnoses(&self) -> Markup {
        let all = diagnose(self.run);
        // Where no tier of the ladder failed, the first of the others is looked into at length.
        let (ladder, others): (Vec<_>, Vec<_>) = all.iter().partition(|d| d.step.of_ladder());
        let (long, short) =
            if ladder.is_empty() && others.len() == 1 { (others, ladder) } else { (ladder, others) };
        html! {
            section id="diagnosis" {
                h2 { (self.t(MessageId::Diagnosis)) }
                @if all.is_empty() { p { (self.t(MessageId::NothingFailed)) } }
                @for one in long { (self.diagnosis(one)) }
                @if !short.is_empty() { (self.diagnoses_in_short(&short)) }
            }
        }
    }

    /// A row each: most of them fail for the same reason as the ladder, and are meant to.
    fn diagnoses_in_short(&self, all: &[&Diagnosis<'_>]) -> Markup {
        html! {
            h3 { (self.t(MessageId::DiagnosisOthers)) }
            div class="scroll" { table {
                thead { tr {
                    th { (self.t(MessageId::HeadStep)) } th class="text" { (self.t(MessageId::HeadGrewMost)) }
                    th { (self.t(MessageId::HeadCalm)) } th { (self.t(MessageId::HeadHere)) } th { "n" }
                    th class="text" { (self.t(MessageId::NextExperiment)) }
                } }
                tbody { @for d in all {
                    @let grew = d.parts.iter().find(|p| Some(p.part) == d.grew);
                    tr {
                        th scope="row" { (d.step.name) }
                        td class="reason" { @match grew {
                            Some(part) => (self.s(&part_name(part.part))),
                            None => (self.t(MessageId::NothingGrew)),
                        } }
                        td { (show(grew.and_then(|p| p.before_s))) } td { (show(grew.and_then(|p| p.after_s))) }
                        td { @match grew { Some(part) => (part.n), None => "—" } }
                        td class="reason" {
                            @for (at, finding) in d.findings.iter().enumerate() {
                                @if at > 0 { br; } (self.s(&finding.next))
                            }
                        }
                    }
                } }
            } }
        }
    }

    pub(super) fn distributions(&mut self) -> Markup {
        let cumulative: Vec<Markup> =
            plots::cumulative(self.run, self.lang).into_iter().map(|n| self.figure(n)).collect();
        let small: Vec<Named> =
            self.run.ladder().into_iter().flat_map(|s| plots::histograms(s, self.lang)).collect();
        let small: Vec<Markup> = small.into_iter().map(|n| self.figure(n)).collect();
        html! {
            section id="distributions" {
                h2 { (self.t(MessageId::Distributions)) }
                p class="small" { (self.t(MessageId::DistributionsLead)) }
                div class="plots" { @for plot in cumulative { (plot) } }
                div class="plots small-plots" { @for plot in small { (plot) } }
            }
        }
    }

    pub(super) fn timelines(&mut self) -> Markup {
        let run = self.run;
        let mut parts = Vec::new();
        for step in plots::timeline_steps(run, self.answer) {
            let plots = plots::timeline(run, step, self.lang);
            let drawn: Vec<Markup> = plots.into_iter().map(|n| self.figure(n)).collect();
            parts.push(html! {
                h3 { (step.name) }
                @if drawn.is_empty() { p { (self.t(MessageId::NoSeries)) } }
                div class="plots" { @for plot in drawn { (plot) } }
                (self.events(step))
            });
        }
        html! {
            section id="timelines" {
                h2 { (self.t(MessageId::Timelines)) }
                p class="small" { (self.t(MessageId::TimelinesLead)) }
                @for part in parts { (part) }
            }
        }
    }

    pub(super) fn drain(&mut self) -> Markup {
        let Some(named) = plots::drains(self.run, self.lang) else { return html! {} };
        let figure = self.figure(named);
        html! {
            section id="drain" {
                h2 { (self.t(MessageId::DrainTitle)) }
                p class="small" { @if let Some(drain) = crate::glossary::definition("drain_s") { (self.s(&drain)) } }
                div class="plots" { (figure) }
            }
        }
    }

    fn diagnosis(&self, d: &Diagnosis<'_>) -> Markup {
        let grew = d.grew.map(part_name);
        html! {
            article {
                h3 { (self.s(&d.heading())) }
                @match &grew {
                    Some(part) => p { strong { (self.s(&message!(MessageId::GrewMost, part.clone()))) } },
                    None if d.calm.is_some() => p { (self.t(MessageId::NothingGrew)) },
                    None => {},
                }
                div class="scroll" { table {
                    thead { tr {
                        th { (self.t(MessageId::HeadPart)) }
                        th { (d.calm.map_or("—", |calm| calm.name.as_str())) } th { (d.step.name) } th { (self.t(MessageId::HeadGrowth)) } th { "n" }
                    } }
                    tbody { @for part in &d.parts {
                        tr class=[(Some(part.part) == d.grew).then_some("broken")] {
                            th scope="row" { (self.s(&part_name(part.part))) }
                            td { (show(part.before_s)) } td { (show(part.after_s)) }
                            td { (show(part.grown_s())) } td { (part.n) }
                        }
                    } }
                } }
                p class="small" { (self.t(MessageId::PartsNote)) }
                h4 { (self.t(MessageId::EnginesSay)) }
                ul { @for said in &d.counters { li { (self.s(said)) } } }
                h4 { (self.t(MessageId::Symptoms)) }
                @if d.findings.is_empty() { p { (self.t(MessageId::NoSymptom)) } }
                @for finding in &d.findings {
                    dl class="facts" {
                        dt { (self.t(MessageId::Seen)) } dd { (self.s(&finding.seen)) }
                        dt { (self.t(MessageId::TakeApart)) } dd { (self.s(&finding.look)) }
                        dt { (self.t(MessageId::NextExperiment)) } dd { strong { (self.s(&finding.next)) } }
                    }
                }
            }
        }
    }

    fn events(&self, step: &Step) -> Markup {
        let all: Vec<_> =
            self.run.events.iter().filter(|e| e.step.as_deref() == Some(&step.name)).take(60).collect();
        let origin_s = plots::origin_s(step);
        html! {
            @if !all.is_empty() {
                div class="scroll" { table {
                    thead { tr {
                        th class="text" { (self.t(MessageId::HeadEvent)) } th { (self.t(MessageId::HeadIntoStep)) }
                        th { (self.t(MessageId::HeadAt)) } th class="text" { (self.t(MessageId::HeadNote)) }
                    } }
                    tbody { @for e in all { tr {
                        td { code { (e.what) } } td { (number(e.at_s - origin_s)) } td { (number(e.at_s)) }
                        td class="reason" { @if let Some(detail) = &e.detail { (self.s(&detail.text())) } }
                    } } }
                } }
            }
        }
    }
}
