//! The ladder: its table and its curves.

use maud::{Markup, html};
use tapedeck_l10n::Localize;
use tapedeck_slo::{Estimate, Figure, Limit, Verdict};

use super::{Writer, verdict_name};
use crate::messages::{LocalizedText, MessageId, fixed, message, number};
use crate::plots;
use crate::read::Step;

impl Writer<'_> {
    pub(super) fn ladder(&self) -> Markup {
        let ladder = self.run.ladder();
        let cut: Vec<&Step> = self.run.steps.iter().filter(|s| s.of_ladder() && s.partial).collect();
        html! {
            section id="ladder" {
                h2 { (self.t(MessageId::Ladder)) }
                @if ladder.is_empty() && cut.is_empty() { (self.bare_ladder()) } @else {
                    p class="small" { (self.t(MessageId::LadderLead)) }
                }
                @if !ladder.is_empty() { (self.tiers(&ladder)) }
                @if !cut.is_empty() {
                    h3 { (self.t(MessageId::CutTiers)) }
                    (self.tiers(&cut))
                }
            }
        }
    }

    /// Steps of other cases: behind those cases, where they do not stand between the ladder and its curves.
    pub(super) fn other_steps(&self) -> Markup {
        let others: Vec<&Step> = self.run.steps.iter().filter(|s| !s.of_ladder()).collect();
        html! {
            @if !others.is_empty() {
                section id="steps" {
                    h2 { (self.t(MessageId::OtherSteps)) }
                    p class="small" { (self.t(MessageId::LadderLead)) }
                    (self.tiers(&others))
                }
            }
        }
    }

    pub(super) fn curves(&mut self) -> Markup {
        let mut drawn = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for curve in plots::curves(self.run, self.answer, self.lang) {
            match curve {
                Ok(named) => drawn.push(self.figure(named)),
                Err(title) => missing.push(title.text(self.lang).to_owned()),
            }
        }
        html! {
            section id="curves" {
                h2 { (self.t(MessageId::Curves)) }
                p class="small" { (self.t(MessageId::CurvesLead)) }
                div class="plots" { @for plot in drawn { (plot) } }
                @if !missing.is_empty() { p class="small" { (self.t(MessageId::CurvesMissing)) " " (missing.join(" · ")) } }
            }
        }
    }

    fn tiers(&self, steps: &[&Step]) -> Markup {
        html! {
            div class="scroll" { table {
                thead { tr {
                    @for word in [
                        MessageId::HeadStep, MessageId::HeadStreams, MessageId::HeadVerdict, MessageId::HeadTtft, MessageId::HeadRtf, MessageId::HeadFinal,
                        MessageId::HeadKv, MessageId::HeadPreempted, MessageId::HeadErrors, MessageId::HeadCalls, MessageId::HeadGoodput, MessageId::HeadGpu, MessageId::HeadVram,
                    ] { (self.heading(&word.said(), word == MessageId::HeadVerdict)) }
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
        let pages = message!(MessageId::TipPages, r.instances.values().map(|i| i.scrapes).sum::<u64>());
        let calls = message!(MessageId::TipCalls, r.calls_counted);
        let gpus = message!(MessageId::TipGpus, r.gpu.as_ref().map_or(0, |g| g.gpus));
        let at_rest = r.streams == 0 && !step.partial;
        let reasons: Vec<LocalizedText> = if at_rest {
            vec![MessageId::AtRest.said()]
        } else {
            r.reasons.iter().map(Localize::text).collect()
        };
        html! {
            tr class={ (class) @if !reasons.is_empty() { " explained" } } {
                th scope="row" { (step.name) }
                td { (r.streams) }
                td class="verdict" {
                    @if at_rest { "—" } @else { (self.s(&verdict_name(r.verdict))) }
                    @if r.point_only { " *" }
                    @if step.partial { " (" (self.t(MessageId::Partial)) ")" }
                    @if r.refinement { " (" (self.t(MessageId::Refinement)) ")" }
                }
                @for figure in Figure::JUDGED {
                    (self.p95(figure.estimate(r), figure.limit().is_some_and(broken)))
                }
                (self.value(r.kv_pool_p95.map(|k| k * 100.0), " %", broken(Limit::KvPool), &pages))
                (self.value(r.preempt_delta, "", broken(Limit::Preemption), &pages))
                (self.value(Some(f64::from(r.err_streams)), "", broken(Limit::Errors), &calls))
                td { (r.calls_counted) }
                (self.value(r.goodput_per_h, "", false, &calls))
                (self.value(r.gpu.as_ref().and_then(|g| g.utilisation_avg).map(|u| u * 100.0), " %", false, &gpus))
                (self.value(vram, "", false, &gpus))
            }
            @if !reasons.is_empty() {
                tr class="why" { td colspan="13" { div {
                    @for (at, why) in reasons.iter().enumerate() { @if at > 0 { br; } (self.s(why)) }
                } } }
            }
        }
    }

    fn p95(&self, p95: Option<Estimate>, broken: bool) -> Markup {
        match p95 {
            None => html! { td class="none" { "—" } },
            Some(p95) => {
                let tip = self.interval(&p95);
                html! {
                    td class=[broken.then_some("broken")] title=(tip) {
                        (fixed(p95.value))
                        span class="ci" { (self.short_interval(&p95)) }
                    }
                }
            }
        }
    }

    fn short_interval(&self, e: &Estimate) -> String {
        let bound = |b: Option<f64>| b.map_or_else(|| "∞".to_string(), fixed);
        match (e.low, e.high) {
            (None, None) => String::new(),
            (low, high) => {
                let low = low.map_or_else(|| "?".to_string(), fixed);
                format!(" [{low}, {}]", bound(high))
            }
        }
    }

    fn interval(&self, e: &Estimate) -> String {
        let bound = |b: Option<f64>| b.map_or_else(|| self.t(MessageId::NoBound).0.to_string(), number);
        let said = message!(MessageId::IntervalTip, bound(e.low), bound(e.high), e.n);
        self.s(&said).0.to_string()
    }

    /// A figure of a whole tier; `behind` says what it is made of.
    fn value(&self, value: Option<f64>, unit: &str, broken: bool, behind: &LocalizedText) -> Markup {
        html! {
            @match value {
                Some(v) => td class=[broken.then_some("broken")] title=(self.s(behind).0) { (number(v)) (unit) },
                None => td class="none" { "—" },
            }
        }
    }

    /// The table of a foreign or damaged run: shown as it stands, without a verdict of ours.
    fn bare_ladder(&self) -> Markup {
        html! {
            @match &self.run.ladder_csv {
                _ if !self.run.steps.is_empty() => p { (self.t(MessageId::NotMeasured)) },
                Some(rows) if rows.len() > 1 => {
                    p class="warn" { (self.t(MessageId::BareLadder)) }
                    div class="scroll" { table {
                        @for (at, row) in rows.iter().enumerate() {
                            tr { @for cell in row { @if at == 0 { th class="foreign" { (cell) } } @else { td class="foreign" { (cell) } } } }
                        }
                    } }
                }
                _ => p { (self.t(MessageId::NoTiers)) },
            }
        }
    }
}
