//! The report as one HTML file: no network, no script, for a screen, a phone and paper.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use tapedeck_slo::{Capacity, Estimate, Limit, Spread, TierReport, Verdict};

use crate::answer::{Answer, n_star_line};
use crate::diagnose::{Diagnosis, diagnose, part_name};
use crate::doubt::Weight;
use crate::glossary::{glossary, hover};
use crate::plots::{self, Named};
use crate::read::{Run, Step, recorded};
use crate::risks::{Level, risks};
use crate::section::{Section, Table};
use crate::words::{Lang, Said, Word, number, say};

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
        let (cases, missing_cases) = crate::cases::sections(self.run, self.lang);
        let body = html! {
            (self.head(&name))
            main {
                (self.answer_section())
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

    fn head(&self, name: &str) -> Markup {
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
                        ("answer", Word::Answer), ("ladder", Word::Ladder), ("curves", Word::Curves),
                        ("diagnosis", Word::Diagnosis), ("distributions", Word::Distributions),
                        ("timelines", Word::Timelines), ("risks", Word::Risks),
                        ("environment", Word::Environment), ("definitions", Word::Definitions),
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
                        @if let Some(published) = c.published {
                            p { (self.s(&say!(Word::PublishedIs, number(c.safety_factor), published))) }
                        }
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

    fn ladder(&self) -> Markup {
        let ladder = self.run.ladder();
        let others: Vec<&Step> = self.run.steps.iter().filter(|s| !s.of_ladder() || s.partial).collect();
        html! {
            section id="ladder" {
                h2 { (self.t(Word::Ladder)) }
                p class="small" { (self.t(Word::LadderLead)) }
                @if ladder.is_empty() && others.is_empty() { (self.bare_ladder()) }
                @if !ladder.is_empty() { (self.tiers(&ladder)) }
                @if !others.is_empty() {
                    h3 { (self.t(Word::OtherSteps)) }
                    (self.tiers(&others))
                }
            }
        }
    }

    fn tiers(&self, steps: &[&Step]) -> Markup {
        html! {
            div class="scroll" { table {
                thead { tr {
                    @for (word, key) in [
                        (Word::HeadStep, "streams"), (Word::HeadStreams, "streams"), (Word::HeadVerdict, "verdict"),
                        (Word::HeadReason, "verdict"),
                        (Word::HeadTtft, "ttft_s"), (Word::HeadRtf, "rtf"), (Word::HeadFinal, "final_s"),
                        (Word::HeadKv, "kv_pool_p95"), (Word::HeadPreempted, "preempt_delta"),
                        (Word::HeadErrors, "err_streams"), (Word::HeadCalls, "calls_counted"),
                        (Word::HeadGoodput, "goodput_per_h"), (Word::HeadGpu, "gpu_util"),
                        (Word::HeadVram, "vram_used_bytes"),
                    ] {
                        th class=[(word == Word::HeadReason).then_some("reason")]
                            title=[hover(key).as_ref().map(|t| self.s(t))] { (self.t(word)) }
                    }
                } }
                tbody { @for step in steps { (self.ladder_row(step)) } }
            } }
        }
    }

    fn ladder_row(&self, step: &Step) -> Markup {
        let r = &step.report;
        let class = match r.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            _ => "open",
        };
        let broken = |limit: Limit| r.limit(limit).failed();
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^53")]
        let vram = r.gpu.as_ref().and_then(|g| g.vram_used_bytes).map(|b| b as f64 / 1e9);
        html! {
            tr class=(class) {
                th scope="row" { (step.name) }
                td { (r.streams) }
                td class="verdict" {
                    (self.s(&verdict_name(r.verdict)))
                    @if r.point_only { " *" }
                    @if step.partial { " (" (self.t(Word::Partial)) ")" }
                    @if r.refinement { " (" (self.t(Word::Refinement)) ")" }
                }
                td class="reason" { (self.reasons(r)) }
                (self.p95(r.ttft.as_ref(), broken(Limit::Ttft)))
                (self.p95(r.rtf.as_ref(), broken(Limit::Rtf)))
                (self.p95(r.final_latency.as_ref(), broken(Limit::Final)))
                (self.value(r.kv_pool_p95.map(|k| k * 100.0), " %", broken(Limit::KvPool)))
                (self.value(r.preempt_delta, "", broken(Limit::Preemption)))
                (self.value(Some(f64::from(r.err_streams)), "", broken(Limit::Errors)))
                td { (r.calls_counted) }
                (self.value(r.goodput_per_h, "", false))
                (self.value(r.gpu.as_ref().and_then(|g| g.utilisation_avg).map(|u| u * 100.0), " %", false))
                (self.value(vram, "", false))
            }
        }
    }

    fn reasons(&self, r: &TierReport) -> Markup {
        let all: Vec<Said> = r.reasons.iter().map(|x| recorded(x)).collect();
        html! {
            @if all.is_empty() { (self.t(Word::AllKept)) } @else {
                @for (at, why) in all.iter().enumerate() { @if at > 0 { br; } (self.s(why)) }
            }
        }
    }

    fn p95(&self, spread: Option<&Spread>, broken: bool) -> Markup {
        match spread {
            None => html! { td class="none" { "—" } },
            Some(s) => {
                let tip = self.interval(&s.p95);
                html! {
                    td class=[broken.then_some("broken")] title=(tip) {
                        (number(s.p95.value))
                        span class="ci" { (self.short_interval(&s.p95)) }
                    }
                }
            }
        }
    }

    fn short_interval(&self, e: &Estimate) -> String {
        let bound = |b: Option<f64>| b.map_or_else(|| "∞".to_string(), number);
        match (e.low, e.high) {
            (None, None) => String::new(),
            (low, high) => {
                let low = low.map_or_else(|| "?".to_string(), number);
                format!(" [{low}, {}]", bound(high))
            }
        }
    }

    fn interval(&self, e: &Estimate) -> String {
        let bound = |b: Option<f64>| b.map_or_else(|| self.t(Word::NoBound).to_string(), number);
        let said = say!(Word::IntervalTip, bound(e.low), bound(e.high), e.n);
        self.s(&said).to_string()
    }

    fn value(&self, value: Option<f64>, unit: &str, broken: bool) -> Markup {
        html! {
            @match value {
                Some(v) => td class=[broken.then_some("broken")] { (number(v)) (unit) },
                None => td class="none" { "—" },
            }
        }
    }

    /// The table of a foreign or damaged run: shown as it stands, without a verdict of ours.
    fn bare_ladder(&self) -> Markup {
        html! {
            @match &self.run.ladder_csv {
                Some(rows) if rows.len() > 1 => {
                    p class="warn" { (self.t(Word::BareLadder)) }
                    div class="scroll" { table {
                        @for (at, row) in rows.iter().enumerate() {
                            tr { @for cell in row { @if at == 0 { th { (cell) } } @else { td { (cell) } } } }
                        }
                    } }
                }
                _ => p { (self.t(Word::NoTiers)) },
            }
        }
    }

    fn figure(&mut self, named: Named) -> Markup {
        let svg = named.plot.svg();
        self.plots.push(named);
        html! { figure { (PreEscaped(svg)) } }
    }

    fn curves(&mut self) -> Markup {
        let mut drawn = Vec::new();
        let mut missing = Vec::new();
        for curve in plots::curves(self.run, self.answer, self.lang) {
            match curve {
                Ok(named) => drawn.push(self.figure(named)),
                Err(word) => missing.push(self.t(word)),
            }
        }
        html! {
            section id="curves" {
                h2 { (self.t(Word::Curves)) }
                p class="small" { (self.t(Word::CurvesLead)) }
                div class="plots" { @for plot in drawn { (plot) } }
                @if !missing.is_empty() { p class="small" { (self.t(Word::CurvesMissing)) " " (missing.join(" · ")) } }
            }
        }
    }

    fn diagnoses(&self) -> Markup {
        let all = diagnose(self.run);
        html! {
            section id="diagnosis" {
                h2 { (self.t(Word::Diagnosis)) }
                @if all.is_empty() { p { (self.t(Word::NothingFailed)) } }
                @for one in &all { (self.diagnosis(one)) }
            }
        }
    }

    fn diagnosis(&self, d: &Diagnosis<'_>) -> Markup {
        let grew = d.grew.map(part_name);
        let show = |v: Option<f64>| v.map_or_else(|| "—".to_string(), number);
        html! {
            article {
                h3 { (self.s(&say!(Word::DiagnosisOf, d.step.name.as_str(), d.calm.name.as_str()))) }
                p {
                    @match &grew {
                        Some(part) => strong { (self.s(&say!(Word::GrewMost, part.clone()))) },
                        None => (self.t(Word::NothingGrew)),
                    }
                }
                div class="scroll" { table {
                    thead { tr {
                        th { (self.t(Word::HeadPart)) }
                        th { (d.calm.name) } th { (d.step.name) } th { (self.t(Word::HeadGrowth)) } th { "n" }
                    } }
                    tbody { @for part in &d.parts {
                        tr class=[(Some(part.part) == d.grew).then_some("broken")] {
                            th scope="row" { (self.s(&part_name(part.part))) }
                            td { (show(part.before_s)) } td { (show(part.after_s)) }
                            td { (show(part.grown_s())) } td { (part.n) }
                        }
                    } }
                } }
                p class="small" { (self.t(Word::PartsNote)) }
                h4 { (self.t(Word::EnginesSay)) }
                ul { @for said in &d.counters { li { (self.s(said)) } } }
                h4 { (self.t(Word::Symptoms)) }
                @if d.findings.is_empty() { p { (self.t(Word::NoSymptom)) } }
                @for finding in &d.findings {
                    dl class="facts" {
                        dt { (self.t(Word::Seen)) } dd { (self.s(&finding.seen)) }
                        dt { (self.t(Word::TakeApart)) } dd { (self.s(&finding.look)) }
                        dt { (self.t(Word::NextExperiment)) } dd { strong { (self.s(&finding.next)) } }
                    }
                }
            }
        }
    }

    fn distributions(&mut self) -> Markup {
        let cumulative: Vec<Markup> =
            plots::cumulative(self.run, self.lang).into_iter().map(|n| self.figure(n)).collect();
        let small: Vec<Named> =
            self.run.ladder().into_iter().flat_map(|s| plots::histograms(s, self.lang)).collect();
        let small: Vec<Markup> = small.into_iter().map(|n| self.figure(n)).collect();
        html! {
            section id="distributions" {
                h2 { (self.t(Word::Distributions)) }
                p class="small" { (self.t(Word::DistributionsLead)) }
                div class="plots" { @for plot in cumulative { (plot) } }
                div class="plots small-plots" { @for plot in small { (plot) } }
            }
        }
    }

    fn timelines(&mut self) -> Markup {
        let run = self.run;
        let mut parts = Vec::new();
        for step in plots::timeline_steps(run, self.answer) {
            let plots = plots::timeline(run, step, self.lang);
            let drawn: Vec<Markup> = plots.into_iter().map(|n| self.figure(n)).collect();
            parts.push(html! {
                h3 { (step.name) }
                @if drawn.is_empty() { p { (self.t(Word::NoSeries)) } }
                div class="plots" { @for plot in drawn { (plot) } }
                (self.events(step))
            });
        }
        html! {
            section id="timelines" {
                h2 { (self.t(Word::Timelines)) }
                p class="small" { (self.t(Word::TimelinesLead)) }
                @for part in parts { (part) }
            }
        }
    }

    fn events(&self, step: &Step) -> Markup {
        let all: Vec<_> =
            self.run.events.iter().filter(|e| e.step.as_deref() == Some(&step.name)).take(60).collect();
        html! {
            @if !all.is_empty() {
                div class="scroll" { table {
                    thead { tr { th { (self.t(Word::HeadAt)) } th { (self.t(Word::HeadEvent)) } th { (self.t(Word::HeadNote)) } } }
                    tbody { @for e in all { tr {
                        td { (number(e.at_s)) } td { (e.what) } td class="reason" { (e.detail.as_deref().unwrap_or("")) }
                    } } }
                } }
            }
        }
    }

    fn drain(&mut self) -> Markup {
        let Some(named) = plots::drains(self.run, self.lang) else { return html! {} };
        let figure = self.figure(named);
        html! {
            section id="drain" {
                h2 { (self.t(Word::DrainTitle)) }
                p class="small" { (self.t(Word::DefDrainIs)) }
                div class="plots" { (figure) }
            }
        }
    }

    fn section(&mut self, section: &Section) -> Markup {
        let plots: Vec<Markup> = section.plots.iter().cloned().map(|n| self.figure(n)).collect();
        html! {
            section id=(section.id) {
                h2 { (self.s(&section.title)) }
                @for said in &section.lead { p { (self.s(said)) } }
                div class="plots" { @for plot in plots { (plot) } }
                @for table in section.tables.iter().filter(|t| !t.rows.is_empty()) { (self.table(table)) }
            }
        }
    }

    fn table(&self, table: &Table) -> Markup {
        html! {
            div class="scroll" { table {
                @if let Some(caption) = &table.caption { caption { (self.s(caption)) } }
                thead { tr { @for head in &table.head { th { (self.s(head)) } } } }
                tbody { @for row in &table.rows { tr {
                    @for (at, cell) in row.iter().enumerate() {
                        @let text = self.s(cell);
                        @if at == 0 { th scope="row" { (text) } }
                        @else { td class=[(text.chars().count() > 24).then_some("reason")] { (text) } }
                    }
                } } }
            } }
        }
    }

    fn missing(&self, cases: &[Said]) -> Markup {
        html! {
            section id="missing" {
                h2 { (self.t(Word::MissingCases)) }
                ul { @for said in cases { li { (self.s(said)) } } }
            }
        }
    }

    fn risk_list(&self) -> Markup {
        html! {
            section id="risks" {
                h2 { (self.t(Word::Risks)) }
                ul class="risks" { @for risk in risks(self.run, self.answer) {
                    @let (class, word) = match risk.level {
                        Level::Seen => ("fail", Word::RiskSeen),
                        Level::Unknown => ("open", Word::RiskUnknown),
                        Level::Fine => ("pass", Word::RiskFine),
                    };
                    li { span class={ "tag " (class) } { (self.t(word)) } " " (self.s(&risk.said)) }
                } }
            }
        }
    }

    fn environment(&self) -> Markup {
        let mut rows = Vec::new();
        if let Some(table) = &self.run.environment {
            flatten("", &toml::Value::Table(table.clone()), &mut rows);
        }
        let mut settings = Vec::new();
        if let Some(table) = &self.run.config {
            flatten("", &toml::Value::Table(table.clone()), &mut settings);
        }
        html! {
            section id="environment" {
                h2 { (self.t(Word::Environment)) }
                @if rows.is_empty() { p { (self.t(Word::NoEnvironment)) } } @else { (self.pairs(&rows)) }
                @if !settings.is_empty() {
                    h3 { (self.t(Word::Settings)) }
                    (self.pairs(&settings))
                }
            }
        }
    }

    fn pairs(&self, rows: &[(String, String)]) -> Markup {
        html! {
            div class="scroll" { table class="pairs" { tbody { @for (key, value) in rows {
                tr { th scope="row" { (key) } td class="reason" { (value) } }
            } } } }
        }
    }

    fn transcripts(&self, texts: &[Vec<String>]) -> Markup {
        html! {
            @if !texts.is_empty() {
                section id="transcripts" {
                    h2 { (self.t(Word::Transcripts)) }
                    div class="scroll" { table {
                        thead { tr { @for word in [Word::HeadStep, Word::HeadCall, Word::HeadText] { th { (self.t(word)) } } } }
                        tbody { @for row in texts { tr { @for cell in row { td class="reason" { (cell) } } } } }
                    } }
                }
            }
        }
    }

    fn definitions(&self) -> Markup {
        html! {
            section id="definitions" {
                h2 { (self.t(Word::Definitions)) }
                div class="scroll" { table class="pairs" {
                    thead { tr { th { (self.t(Word::HeadFigure)) } th { (self.t(Word::HeadDefinition)) } th { (self.t(Word::HeadSource)) } } }
                    tbody { @for entry in glossary() { tr {
                        th scope="row" { (self.s(&entry.name)) " (" code { (entry.key) } ")" }
                        td class="reason" { (self.s(&entry.definition)) }
                        td { (entry.source) }
                    } } }
                } }
            }
        }
    }
}

/// Keys and values of a TOML tree as `a.b.c`, arrays in one cell.
pub(crate) fn flatten(prefix: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&path, value, out);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(toml::Value::as_str).map(str::to_owned);
                flatten(&format!("{prefix}.{}", name.unwrap_or_else(|| at.to_string())), item, out);
            }
        }
        toml::Value::String(text) => out.push((prefix.to_string(), text.clone())),
        other => out.push((prefix.to_string(), other.to_string())),
    }
}
