//! The report as one HTML file: no network, no script, for a screen, a phone and paper.

mod appendix;
mod ladder;
mod steps;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use tapedeck_slo::{Capacity, Verdict};

use crate::answer::{Answer, n_star_line, published};
use crate::cases;
use crate::doubt::Weight;
use crate::glossary::{hover, hover_of};
use crate::plots::Named;
use crate::read::Run;
use crate::section::{Section, Table};
use crate::words::{Lang, Said, Word, say};

const STYLE: &str = include_str!("report.css");

/// A page and the plots on it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) plots: Vec<Named>,
}

/// The name of a verdict for people.
pub(crate) fn verdict_name(verdict: Verdict) -> Said {
    match verdict {
        Verdict::Pass => say!(Word::Pass),
        Verdict::Fail => say!(Word::Fail),
        Verdict::Invalid => say!(Word::Invalid),
        Verdict::Unknown => say!(Word::UnknownVerdict),
        Verdict::Suspect => say!(Word::Suspect),
        Verdict::Unstable => say!(Word::Unstable),
    }
}

struct Writer<'a> {
    run: &'a Run,
    answer: &'a Answer,
    lang: Lang,
    plots: Vec<Named>,
}

/// Writes the page in one language.
pub(crate) fn page(run: &Run, answer: &Answer, lang: Lang, texts: &[Vec<String>]) -> Page {
    let mut writer = Writer { run, answer, lang, plots: Vec::new() };
    let html = writer.whole(texts).into_string();
    Page { html, plots: writer.plots }
}

impl Writer<'_> {
    fn t(&self, word: Word) -> &'static str {
        word.template(self.lang)
    }

    fn s<'b>(&self, said: &'b Said) -> &'b str {
        said.text(self.lang)
    }

    fn whole(&mut self, texts: &[Vec<String>]) -> Markup {
        let name = self.run.name();
        let title = format!("{} · {name}", self.t(Word::Report));
        let campaign = cases::campaign(self.run);
        let (cases, missing_cases) = cases::sections(self.run, self.lang);
        let body = html! {
            (self.head(&name, &cases))
            main {
                (self.answer_section())
                @if let Some(section) = crate::promise::section(self.answer) { (self.section(&section)) }
                @if let Some(campaign) = &campaign { (self.section(campaign)) }
                (self.doubts())
                (self.ladder())
                (self.curves())
                (self.diagnoses())
                (self.distributions())
                (self.timelines())
                (self.drain())
                @for section in &cases { (self.section(section)) }
                @if !missing_cases.is_empty() { (self.missing(&missing_cases)) }
                (self.risk_list())
                (self.environment())
                (self.transcripts(texts))
                (self.definitions())
            }
            footer { p { (self.t(Word::Footer)) } }
        };
        html! {
            (DOCTYPE)
            html lang=(self.lang.tag()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                    link rel="icon" href="data:,";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body { (body) }
            }
        }
    }

    fn head(&self, name: &str, cases: &[Section]) -> Markup {
        let info = self.run.info.as_ref();
        let began = info.and_then(|i| i.origin_unix_s).and_then(|s| {
            let at = jiff::SignedDuration::try_from_secs_f64(s).ok()?;
            jiff::Timestamp::from_duration(at).ok()
        });
        let (class, badge) = match self.answer.simulated {
            Some(true) => ("badge sim", Word::BadgeSimulated),
            Some(false) => ("badge real", Word::BadgeReal),
            None => ("badge sim", Word::BadgeUnknown),
        };
        html! {
            header {
                h1 { (self.t(Word::Report)) }
                p class="run" { (name) " " span class=(class) { (self.t(badge)) } }
                @if let Some(info) = info {
                    p class="small" {
                        (self.t(Word::CaseIs)) " " (info.case) " · " (self.t(Word::SeedIs)) " " (info.seed)
                        @if let Some(began) = began { " · " (began.strftime("%Y-%m-%d %H:%M UTC").to_string()) }
                    }
                }
                nav {
                    @for (id, word) in [
                        ("answer", Word::Answer), ("statement", Word::Statement), ("ladder", Word::Ladder), ("curves", Word::Curves),
                        ("diagnosis", Word::Diagnosis), ("distributions", Word::Distributions),
                        ("timelines", Word::Timelines),
                    ] { a href={ "#" (id) } { (self.t(word)) } " " }
                    @for case in cases { a href={ "#" (case.id) } { (self.s(&case.title)) } " " }
                    @for (id, word) in [
                        ("risks", Word::Risks), ("environment", Word::Environment), ("definitions", Word::Definitions),
                    ] { a href={ "#" (id) } { (self.t(word)) } " " }
                }
            }
        }
    }

    fn answer_section(&self) -> Markup {
        let none = self.answer.short.is_none();
        html! {
            section id="answer" {
                h2 { (self.t(Word::Answer)) }
                @if !self.answer.withheld.is_empty() {
                    div class="warn" {
                        strong { (self.t(Word::Withheld)) }
                        ul { @for why in &self.answer.withheld { li { (self.s(why)) } } }
                    }
                }
                div class="cards" {
                    (self.card(Word::ShortCalls, self.answer.short.as_ref(), none))
                    (self.card(Word::LongCalls, self.answer.long.as_ref(), false))
                }
                @if self.answer.short.is_some() {
                    p class="small" { "N*: " (self.t(Word::DefNStarIs)) " " (self.t(Word::DefStreamsIs)) }
                }
                @if let Some(capacity) = &self.answer.short {
                    dl class="facts" {
                        dt { (self.t(Word::WhatLimits)) }
                        dd {
                            (self.s(&Answer::limited(capacity)))
                            @if let Some(knee) = Answer::knee(self.run, capacity) { " " (self.s(&knee)) }
                        }
                        dt { (self.t(Word::HowSure)) }
                        dd { ul { @for why in self.answer.sureness(capacity) { li { (self.s(&why)) } } } }
                        dt { (self.t(Word::SimulatedOrReal)) }
                        dd { (self.t(match self.answer.simulated {
                            Some(true) => Word::IsSimulated,
                            Some(false) => Word::IsReal,
                            None => Word::IsUnknown,
                        })) }
                    }
                }
            }
        }
    }

    fn card(&self, title: Word, capacity: Option<&Capacity>, withheld: bool) -> Markup {
        let tip = hover("n_star");
        html! {
            div class="card" title=[tip.as_ref().map(|t| self.s(t))] {
                p class="label" { (self.t(title)) }
                @match capacity {
                    Some(c) => {
                        p class="big" { (self.s(&n_star_line(c))) }
                        @if let Some(said) = published(c) { p { (self.s(&said)) } }
                    }
                    None => {
                        p class="big none" { "—" }
                        p { (self.t(match (title, withheld && !self.answer.withheld.is_empty()) {
                            (_, true) => Word::NotStated,
                            (Word::LongCalls, _) => Word::NotMeasuredLong,
                            _ => Word::NotMeasured,
                        })) }
                    }
                }
            }
        }
    }

    fn doubts(&self) -> Markup {
        let doubts: Vec<_> = self.run.doubts.iter().filter(|d| d.weight != Weight::Withhold).collect();
        html! {
            @if !doubts.is_empty() {
                section id="doubts" {
                    h2 { (self.t(Word::Doubts)) }
                    ul { @for doubt in doubts { li { (self.s(&doubt.said)) } } }
                }
            }
        }
    }

    fn figure(&mut self, named: Named) -> Markup {
        let svg = named.plot.svg();
        self.plots.push(named);
        html! { figure { (PreEscaped(svg)) } }
    }

    fn section(&mut self, section: &Section) -> Markup {
        let plots: Vec<Markup> = section.plots.iter().cloned().map(|n| self.figure(n)).collect();
        html! {
            section id=(section.id) {
                h2 { (self.s(&section.title)) }
                @for said in &section.lead { p { (self.s(said)) } }
                @if !section.source.is_empty() {
                    p class="small" { (self.s(&say!(Word::SectionSource, section.source.as_str()))) }
                }
                div class="plots" { @for plot in plots { (plot) } }
                @for table in section.tables.iter().filter(|t| !t.rows.is_empty()) { (self.table(table)) }
                @if !section.doubts.is_empty() {
                    h3 { (self.t(Word::Uncertain)) }
                    ul { @for doubt in &section.doubts { li { (self.s(doubt)) } } }
                }
            }
        }
    }

    /// A heading that tells its definition to whoever points at it.
    fn heading(&self, head: &Said, of_text: bool) -> Markup {
        html! {
            th class=[of_text.then_some("text")] title=[hover_of(head).as_ref().map(|tip| self.s(tip))] { (self.s(head)) }
        }
    }

    fn table(&self, table: &Table) -> Markup {
        // A column with words in it reads from the left, numbers stand below each other at the right.
        let words = |at: usize| {
            let long = |row: &Vec<Said>| row.get(at).is_some_and(|cell| self.s(cell).chars().count() > 24);
            at > 0 && table.rows.iter().any(long)
        };
        let of_text: Vec<bool> = (0..table.head.len()).map(words).collect();
        let is_text = |at: usize| of_text.get(at) == Some(&true);
        html! {
            div class="scroll" { table {
                @if let Some(caption) = &table.caption { caption { (self.s(caption)) } }
                thead { tr { @for (at, head) in table.head.iter().enumerate() { (self.heading(head, is_text(at))) } } }
                tbody { @for row in &table.rows { tr {
                    @for (at, cell) in row.iter().enumerate() {
                        @if at == 0 { th scope="row" { (self.s(cell)) } }
                        @else { td class=[is_text(at).then_some("reason")] { (self.s(cell)) } }
                    }
                } } }
            } }
        }
    }
}
