//! Every figure there is, of calls and of steps: what limits, tables, plots and comparisons go through.

use std::borrow::Cow;

use tapedeck_record::{CallFigure, CallRecord, FigureSpec, Glossary, figure_spec};

use crate::report::{Estimate, Limit, Summary, TierReport};
use crate::step_figure::{Source, StepFigure};

/// A figure of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Figure {
    /// First text, on the basis of the step's verdict.
    Ttft,
    /// Final, on the basis of the step's verdict.
    Final,
    /// A figure of single calls.
    Call(CallFigure),
    /// A figure of a step.
    Step(StepFigure),
}

const TTFT: &FigureSpec = &figure_spec!(
    "ttft_s"; Seconds, Lower;
    name: "First text (TTFT)", "首字延迟 TTFT";
    is: "first text, counted as the tier's verdict counts it (`slo.ttft_basis`)",
        "首个文本，按本档判定的基准（`slo.ttft_basis`）计";
    floor: 0.05;
    compared: true;
    curve: Some("ttft");
    glossary: Some(Glossary::from("calls.jsonl").says(
        "First non-empty text minus the anchor of the run (wire: planned send time of the first chunk; speech: first speech; window: planned end of the first window with 300 ms of speech), seconds.",
        "首个非空文本减去本次运行的基准（wire：首块计划发送时刻；speech：首次说话；window：首个含 300 ms 语音的窗口的计划结束），秒。",
    ));
);

const FINAL: &FigureSpec = &figure_spec!(
    "final_s"; Seconds, Lower;
    name: "Final", "终稿延迟";
    is: "last text minus the planned end of the audio, or of the last speech where calls carry tail silence",
        "最后文本减去音频的计划结束；通话带尾静音时，减去最后一次说话的计划结束";
    floor: 0.02;
    compared: true;
    curve: Some("final");
    glossary: Some(Glossary::from("calls.jsonl").says(
        "Final minus the planned end of the last chunk (of the last speech where calls carry tail silence), seconds.",
        "终稿时刻减去末块计划结束（带尾静音时为最后说话结束），秒。",
    ));
);

impl Figure {
    /// The three figures of single calls that a step is judged by.
    pub const JUDGED: [Self; 3] = [Self::Ttft, Self::Call(CallFigure::Rtf), Self::Final];

    /// Every figure: the three that a step is judged by, the others of single calls, those of a step.
    pub fn all() -> impl Iterator<Item = Self> {
        let calls = CallFigure::ALL.iter().map(|f| Self::Call(*f)).filter(|f| !Self::JUDGED.contains(f));
        Self::JUDGED.into_iter().chain(calls).chain(StepFigure::ALL.iter().map(|f| Self::Step(*f)))
    }

    /// Every figure that a limit can name, each by its id: of the two finals, that of the record of a call.
    pub fn named() -> impl Iterator<Item = Self> {
        let calls = CallFigure::ALL.iter().map(|f| Self::Call(*f));
        [Self::Ttft].into_iter().chain(calls).chain(StepFigure::ALL.iter().map(|f| Self::Step(*f)))
    }

    /// What is known of it besides its value.
    #[must_use]
    pub const fn spec(self) -> &'static FigureSpec {
        match self {
            Self::Ttft => TTFT,
            Self::Final => FINAL,
            Self::Call(figure) => figure.spec(),
            Self::Step(figure) => figure.spec(),
        }
    }

    /// The limit of a verdict that it is held against.
    #[must_use]
    pub const fn limit(self) -> Option<Limit> {
        match self {
            Self::Ttft => Some(Limit::Ttft),
            Self::Final => Some(Limit::Final),
            Self::Call(CallFigure::Rtf) => Some(Limit::Rtf),
            Self::Step(StepFigure::KvPoolP95) => Some(Limit::KvPool),
            _ => None,
        }
    }

    /// Its name where a step has one value of it: `ttft_p95`, `kv_pool_p95`.
    #[must_use]
    pub fn of_step(self) -> Cow<'static, str> {
        match self {
            Self::Ttft => "ttft_p95".into(),
            Self::Final => "final_p95".into(),
            Self::Call(figure) => format!("{}_p95", figure.spec().id).into(),
            Self::Step(figure) => figure.spec().id.into(),
        }
    }

    /// Its value in a call of a judged step; empty for figures of a step.
    #[must_use]
    pub fn of_call(self, report: &TierReport, call: &CallRecord) -> Option<f64> {
        self.call_figure(report)?.get(call)
    }

    /// Its summary over the calls of a judged step.
    #[must_use]
    pub fn summary(self, report: &TierReport) -> Option<&Summary> {
        report.summary(self.call_figure(report)?)
    }

    /// Its value in a judged step: p95 of a figure of single calls.
    #[must_use]
    pub fn estimate(self, report: &TierReport) -> Option<Estimate> {
        match self {
            Self::Step(figure) => figure.estimate(report),
            _ => self.summary(report).map(|s| s.p95),
        }
    }

    const fn call_figure(self, report: &TierReport) -> Option<CallFigure> {
        match self {
            Self::Ttft => Some(report.ttft_basis.figure()),
            Self::Final => Some(report.final_basis.figure()),
            Self::Call(figure) => Some(figure),
            Self::Step(_) => None,
        }
    }

    /// Whether a limit has to name a statistic, as in `final_s:p95`.
    #[must_use]
    pub const fn of_calls(self) -> bool {
        !matches!(self, Self::Step(_))
    }

    /// Whether it can be asserted `by instance` only, among the parts.
    #[must_use]
    pub const fn only_by_instance(self) -> bool {
        matches!(self, Self::Step(figure) if matches!(figure.source(), Source::Page(..)))
    }

    /// Whether it can be asserted by any part at all.
    #[must_use]
    pub const fn has_parts(self) -> bool {
        !matches!(self, Self::Step(figure) if matches!(figure.source(), Source::Step(_)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_figures_go_by_one_name() {
        let ids: Vec<&str> = Figure::named().map(|f| f.spec().id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
        let keys: Vec<_> = Figure::all().map(Figure::of_step).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
        let curves: Vec<&str> = Figure::all().filter_map(|f| f.spec().curve).collect();
        assert_eq!(curves.iter().collect::<BTreeSet<_>>().len(), curves.len(), "{curves:?}");
    }

    #[test]
    fn texts_are_there_in_both_languages() {
        for figure in Figure::all() {
            let spec = figure.spec();
            for text in [spec.name, spec.definition] {
                assert!(!text.en.trim().is_empty() && !text.zh.trim().is_empty(), "{}", spec.id);
            }
            let chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
            assert!(spec.definition.zh.contains(chinese), "{}: {}", spec.id, spec.definition.zh);
            assert!(!spec.definition.en.contains(chinese), "{}: {}", spec.id, spec.definition.en);
        }
    }

    #[test]
    fn what_is_compared_or_plotted_has_a_value_in_a_step() {
        for figure in Figure::all().filter(|f| f.spec().compared || f.spec().curve.is_some()) {
            let of_set = matches!(figure, Figure::Step(f) if matches!(f.source(), Source::Calls(_)));
            let lost = matches!(figure, Figure::Call(f) if f.spec().summarised.is_none());
            assert!(!of_set && !lost, "{}", figure.spec().id);
        }
    }
}
