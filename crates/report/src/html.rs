//! The report as one HTML file: no network, no script, for a screen, a phone and paper.

mod appendix;
mod ladder;
mod steps;

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use tapedeck_slo::{Capacity, Verdict};

use crate::answer::Answer;
use crate::cases;
use crate::glossary::{hover, hover_of};
use crate::integrity::Severity;
use crate::messages::{Lang, LocalizedText, MessageId, message};
use crate::plots::Named;
use crate::read::Run;
use crate::section::{Section, Table};

const STYLE: &str = include_str!("report.css");

/// A page and the plots on it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) plots: Vec<Named>,
}

/// The name of a verdict for people.
pub(crate) fn verdict_name(verdict: Verdict) -> LocalizedText {
    match verdict {
        Verdict::Pass => message!(MessageId::Pass),
        Verdict::Fail => message!(MessageId::Fail),
        Verdict::Invalid => message!(MessageId::Invalid),
        Verdict::Unknown => message!(MessageId::UnknownVerdict),
        Verdict::Suspect => message!(MessageId::Suspect),
        Verdict::Unstable => message!(MessageId::Unstable),
    }
}

/// Words between tags, in which `names` stand as code.
#[derive(Clone, Copy)]
struct Inline<'a>(&'a str);

impl Render for Inline<'_> {
    fn render_to(&self, out: &mut String) {
        let mut rest = self.0;
        while let Some((before, (name, after))) =
            rest.split_once('`').and_then(|(before, behind)| Some((before, behind.split_once('`')?)))
        {
            html! { (before) code { (name) } }.render_to(out);
            rest = after;
        }
        rest.render_to(out);
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
    fn t(&self, word: MessageId) -> Inline<'static> {
        Inline(word.template(self.lang))
    }

    fn s<'b>(&self, said: &'b LocalizedText) -> Inline<'b> {
        Inline(said.text(self.lang))
    }

    fn whole(&mut self, texts: &[Vec<String>]) -> Markup {
        let name = self.run.name();
        let title = format!("{} · {name}", self.t(MessageId::Report).0);
        let campaign = cases::campaign(self.run);
        let (cases, missing_cases) = cases::sections(self.run, self.lang);
        let main = html! {
            main {
                (self.answer_section())
                @if let Some(section) = crate::promise::section(self.answer) { (self.section(&section)) }
                @if let Some(campaign) = &campaign { (self.section(campaign)) }
                (self.warnings())
                (self.ladder())
                (self.curves())
                (self.diagnoses())
                (self.distributions())
                (self.timelines())
                (self.drain())
                @for section in &cases { (self.section(section)) }
                (self.other_steps())
                @if !missing_cases.is_empty() { (self.missing(&missing_cases)) }
                (self.risk_list())
                (self.environment())
                (self.transcripts(texts))
                (self.definitions())
            }
        };
        let body = html! {
            (self.head(&name, &cases, &main.0))
            (main)
            footer { p { (self.t(MessageId::Footer)) } }
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

    /// The heading, with a way to every section that there is.
    fn head(&self, name: &str, cases: &[Section], main: &str) -> Markup {
        let info = self.run.info.as_ref();
        let began = info.and_then(|i| i.origin_unix_s).and_then(|s| {
            let at = jiff::SignedDuration::try_from_secs_f64(s).ok()?;
            jiff::Timestamp::from_duration(at).ok()
        });
        let (class, badge) = match self.answer.simulated {
            Some(true) => ("badge sim", MessageId::BadgeSimulated),
            Some(false) => ("badge real", MessageId::BadgeReal),
            None => ("badge sim", MessageId::BadgeUnknown),
        };
        let before = [
            ("answer", MessageId::Answer),
            ("statement", MessageId::Statement),
            ("campaign", MessageId::Campaign),
            ("warnings", MessageId::Warnings),
            ("ladder", MessageId::Ladder),
            ("curves", MessageId::Curves),
            ("diagnosis", MessageId::Diagnosis),
            ("distributions", MessageId::Distributions),
            ("timelines", MessageId::Timelines),
            ("drain", MessageId::DrainTitle),
        ];
        let behind = [
            ("steps", MessageId::OtherSteps),
            ("missing", MessageId::MissingCases),
            ("risks", MessageId::Risks),
            ("environment", MessageId::Environment),
            ("transcripts", MessageId::Transcripts),
            ("definitions", MessageId::Definitions),
        ];
        let places = before
            .iter()
            .map(|(id, word)| (*id, self.t(*word)))
            .chain(cases.iter().map(|case| (case.id, self.s(&case.title))))
            .chain(behind.iter().map(|(id, word)| (*id, self.t(*word))));
        html! {
            header {
                h1 { (self.t(MessageId::Report)) }
                p class="run" { (name) " " span class=(class) { (self.t(badge)) } }
                @if let Some(info) = info {
                    p class="small" {
                        (self.t(MessageId::CaseIs)) " " (info.case) " · " (self.t(MessageId::SeedIs)) " " (info.seed)
                        @if let Some(began) = began { " · " (began.strftime("%Y-%m-%d %H:%M UTC").to_string()) }
                    }
                }
                nav {
                    @for (id, title) in places {
                        @if main.contains(&format!("<section id=\"{id}\"")) { a href={ "#" (id) } { (title) } " " }
                    }
                }
            }
        }
    }

    fn answer_section(&self) -> Markup {
        let none = self.answer.short.is_none();
        html! {
            section id="answer" {
                h2 { (self.t(MessageId::Answer)) }
                @if !self.answer.withheld.is_empty() {
                    div class="warn" {
                        strong { (self.t(MessageId::Withheld)) }
                        ul { @for why in &self.answer.withheld { li { (self.s(why)) } } }
                    }
                }
                div class="cards" {
                    (self.card(MessageId::ShortCalls, self.answer.short.as_ref(), none))
                    (self.card(MessageId::LongCalls, self.answer.long.as_ref(), false))
                }
                @if self.answer.short.is_some() {
                    p class="small" { "N*: " (self.t(MessageId::DefNStarIs)) }
                    p class="small" { (self.t(MessageId::DefStreams)) ": " (self.t(MessageId::DefStreamsIs)) }
                }
                @if let Some(capacity) = &self.answer.short {
                    dl class="facts" {
                        dt { (self.t(MessageId::WhatLimits)) }
                        dd {
                            (self.sentence(&Answer::limited(capacity)))
                            @if let Some(knee) = Answer::knee(self.run, capacity) { " " (self.s(&knee)) }
                        }
                        dt { (self.t(MessageId::HowSure)) }
                        dd { ul {
                            @if self.answer.unfinished { li { strong { (self.t(MessageId::Unfinished)) } } }
                            @for why in self.answer.sureness(capacity) { li { (self.s(&why)) } }
                        } }
                        dt { (self.t(MessageId::SimulatedOrReal)) }
                        dd { (self.t(match self.answer.simulated {
                            Some(true) => MessageId::IsSimulated,
                            Some(false) => MessageId::IsReal,
                            None => MessageId::IsUnknown,
                        })) }
                    }
                }
            }
        }
    }

    fn card(&self, title: MessageId, capacity: Option<&Capacity>, withheld: bool) -> Markup {
        let tip = hover("n_star");
        html! {
            div class="card" title=[tip.as_ref().map(|t| self.s(t).0)] {
                p class="label" { (self.t(title)) }
                @match capacity {
                    Some(c) => {
                        p class="big" { (self.s(&c.state.stated("N*".into(), c.n_star))) }
                        @if let Some(said) = self.answer.published(c) { p { (self.s(&said)) } }
                        // What limits short calls, and how sure that is, stands at length below the cards.
                        @if title == MessageId::LongCalls {
                            p class="small" { (self.sentence(&Answer::limited(c))) }
                            @for why in self.answer.sureness(c) { p class="small" { (self.s(&why)) } }
                        }
                    }
                    None => {
                        p class="big none" { "—" }
                        p { (self.t(match (title, withheld && !self.answer.withheld.is_empty()) {
                            (_, true) => MessageId::NotStated,
                            (MessageId::LongCalls, _) => MessageId::NotMeasuredLong,
                            _ => MessageId::NotMeasured,
                        })) }
                    }
                }
            }
        }
    }

    fn warnings(&self) -> Markup {
        let warnings: Vec<_> =
            self.run.warnings.iter().filter(|d| d.severity != Severity::Withhold).collect();
        html! {
            @if !warnings.is_empty() {
                section id="warnings" {
                    h2 { (self.t(MessageId::Warnings)) }
                    ul { @for warning in warnings { li { (self.s(&warning.said)) } } }
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
                @for said in &section.lead { p { (self.sentence(said)) } }
                @if !section.source.is_empty() {
                    p class="small" { (self.s(&message!(MessageId::SectionSource, section.source.as_str()))) }
                }
                div class="plots" { @for plot in plots { (plot) } }
                @for table in section.tables.iter().filter(|t| !t.rows.is_empty()) { (self.table(table)) }
                @if !section.warnings.is_empty() {
                    h3 { (self.t(MessageId::Uncertain)) }
                    ul { @for warning in &section.warnings { li { (self.s(warning)) } } }
                }
            }
        }
    }

    /// A sentence that a case wrote down begins and ends like one.
    fn sentence(&self, said: &LocalizedText) -> Markup {
        let text = said.text(self.lang);
        if self.lang != Lang::En {
            return Inline(text).render();
        }
        let mut rest = text.chars();
        let mut out: String = rest.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(rest).collect();
        if out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ')') {
            out.push('.');
        }
        Inline(&out).render()
    }

    /// A heading that tells its definition to whoever points at it.
    fn heading(&self, head: &LocalizedText, of_text: bool) -> Markup {
        html! {
            th class=[of_text.then_some("text")] title=[hover_of(head).as_ref().map(|tip| self.s(tip).0)] { (self.s(head)) }
        }
    }

    fn table(&self, table: &Table) -> Markup {
        let rows = aligned(&table.rows);
        // A column with words in it reads from the left, numbers stand below each other at the right.
        let cells =
            |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.text(self.lang));
        let long = |text: &str| text.chars().count() > 24 && with_interval(text).is_none();
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "-><".contains(c));
        let class_of = |at: usize| match at {
            0 => None,
            _ if cells(at).any(long) => Some("reason"),
            _ if !cells(at).any(number) => Some("text"),
            _ => None,
        };
        let classes: Vec<Option<&str>> = (0..table.head.len()).map(class_of).collect();
        let class = |at: usize| classes.get(at).copied().flatten();
        html! {
            div class="scroll" { table {
                @if let Some(caption) = &table.caption { caption { div { (self.s(caption)) } } }
                thead { tr { @for (at, head) in table.head.iter().enumerate() { (self.heading(head, class(at).is_some())) } } }
                tbody { @for row in &rows { tr {
                    @for (at, cell) in row.iter().enumerate() {
                        @if at == 0 { th scope="row" { (self.s(cell)) } }
                        @else {
                            td class=[class(at)] {
                                @match with_interval(cell.text(self.lang)) {
                                    Some((value, interval)) => { (value) span class="ci" { (interval) } },
                                    None => (self.s(cell)),
                                }
                            }
                        }
                    }
                } } }
            } }
        }
    }
}

/// A number and the interval that stands behind it in brackets.
fn with_interval(text: &str) -> Option<(&str, &str)> {
    let at = text.find(" [")?;
    let (value, interval) = (text.get(..at)?, text.get(at + 1..)?);
    (value.parse::<f64>().is_ok() && interval.ends_with(']')).then_some((value, interval))
}

/// Numbers of a column with as many decimals as its longest has, as far as they are known: points then stand below
/// each other.
fn aligned(rows: &[Vec<LocalizedText>]) -> Vec<Vec<LocalizedText>> {
    let split = |text: &str| {
        let (digits, unit) = text.strip_suffix(" %").map_or((text, ""), |digits| (digits, " %"));
        let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && digits.bytes().all(|b| b.is_ascii_digit() || b"-.".contains(&b));
        (plain && digits.parse::<f64>().is_ok()).then(|| (digits.to_owned(), unit.to_owned()))
    };
    let decimals = |digits: &str| digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let mut all = rows.to_vec();
    for at in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
        let cells = || rows.iter().filter_map(|row| split(&row.get(at)?.en));
        let most = cells().map(|(digits, _)| decimals(&digits)).max().unwrap_or(0);
        for cell in all.iter_mut().filter_map(|row| row.get_mut(at)) {
            let Some((digits, unit)) = split(&cell.en) else { continue };
            let known = digits.parse().map_or(0, tapedeck_l10n::decimals);
            let missing = most.min(known).saturating_sub(decimals(&digits));
            if missing > 0 {
                let point = if digits.contains('.') { "" } else { "." };
                *cell = LocalizedText::same(format!("{digits}{point}{}{unit}", "0".repeat(missing)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_words_stand_as_code() {
        let shown = |text| Inline(text).render().into_string();
        assert_eq!(
            shown("play `tc01` <twice>, `a&b`."),
            "play <code>tc01</code> &lt;twice&gt;, <code>a&amp;b</code>."
        );
        assert_eq!(shown("one ` alone"), "one ` alone");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn an_interval_is_told_from_other_brackets() {
        assert_eq!(with_interval("0.465 [0.455, ∞]"), Some(("0.465", "[0.455, ∞]")));
        assert_eq!(with_interval("-1.2 [-3, 4]"), Some(("-1.2", "[-3, 4]")));
        for text in ["3x0.30 [old]", "0.5 [", "[1, 2]", "0.5", "Ünd [1, 2]"] {
            assert_eq!(with_interval(text), None, "{text}");
        }
    }

    #[test]
    fn points_of_a_column_stand_below_each_other() {
        let cell = |text: &str| LocalizedText::same(text.to_owned());
        let rows = [["0.256", "3", "5 %"], ["12.3", "48", "0.25 %"], ["-", "1", "9.5 %"], ["1", "2", "1e5"]];
        let rows: Vec<Vec<LocalizedText>> =
            rows.iter().map(|row| row.iter().map(|c| cell(c)).collect()).collect();
        let column = |at: usize| aligned(&rows).into_iter().map(|row| row[at].en.clone()).collect::<Vec<_>>();
        // 12.3 was rounded to two decimals: there is no third that one could show.
        assert_eq!(column(0), ["0.256", "12.30", "-", "1.000"]);
        assert_eq!(column(1), ["3", "48", "1", "2"]);
        assert_eq!(column(2), ["5.00 %", "0.25 %", "9.50 %", "1e5"]);
    }
}
