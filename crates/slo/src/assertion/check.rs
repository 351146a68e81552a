//! Holding a limit against a judged step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, Case, ExitCode, Outcome, OutcomeClass, PaceKind, StepId};
use tapedeck_stats::{ConfidenceInterval, Moments, percentile_sorted, quantile_interval, sort};

use super::{Assertion, Part, Statistic};
use crate::figure::Figure;
use crate::report::{LimitVerdict, PercentileOrInfinite, TierReport};
use crate::step_figure::{Source, StepFigure, pooled, scrapes};

/// Two-sided confidence of the interval beside a percentile.
const CONFIDENCE: f64 = 0.95;
/// Part of the calls that no instance answered for.
const NOBODY: &str = "(none)";

/// How one limit fared on one step, or on one part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssertionResult {
    /// The limit, as it is understood.
    pub limit: String,
    /// The step; empty where no step was judged at all.
    pub step: String,
    /// The part, where the limit is `by` one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Pass, fail, or unknown; by the interval, or by the estimate alone.
    pub verdict: LimitVerdict,
    /// The figure; `never` where so many calls failed that it is none. Empty where it is not known.
    pub value: Option<PercentileOrInfinite>,
    /// Lower bound of a percentile's 95 % interval (order statistics).
    pub low: Option<f64>,
    /// Upper bound of it.
    pub high: Option<f64>,
    /// How many values stand behind it: calls, scrapes, GPUs.
    pub n: u64,
    /// Judged calls of the step or part, errored ones included.
    pub calls: u64,
    /// Errored ones among them.
    pub errors: u64,
}

impl AssertionResult {
    /// A limit that met no judged step: unknown, which is no pass.
    #[must_use]
    pub fn nothing_judged(limit: &Assertion) -> Self {
        Self {
            limit: limit.to_string(),
            step: String::new(),
            part: None,
            verdict: LimitVerdict::Unknown,
            value: None,
            low: None,
            high: None,
            n: 0,
            calls: 0,
            errors: 0,
        }
    }

    /// The result in one line: verdict, where, the figure with its interval and n.
    #[must_use]
    pub fn sentence(&self) -> String {
        let number = |v: f64| if v.abs() >= 1000.0 { format!("{v:.0}") } else { format!("{v:.3}") };
        let mut line = format!("{:<10}", self.verdict.name());
        if self.step.is_empty() {
            return format!("{line} {}: no step was judged", self.limit);
        }
        line += &format!(" {} {}", self.step, self.limit);
        if let Some(part) = &self.part {
            line += &format!(" [{part}]");
        }
        line += &match self.value {
            Some(PercentileOrInfinite::At(v)) => format!(": {}", number(v)),
            Some(PercentileOrInfinite::Never) => ": never, so many calls failed".into(),
            None => ": not known".into(),
        };
        if self.low.is_some() || self.high.is_some() {
            let bound = |b: Option<f64>| b.map_or_else(|| "no bound".into(), number);
            line += &format!(" ({} to {})", bound(self.low), bound(self.high));
        }
        line += &format!(", n = {}", self.n);
        if self.errors > 0 {
            line += &format!(", {} of {} calls errored", self.errors, self.calls);
        } else if self.n < self.calls {
            line += &format!(" of {} calls", self.calls);
        }
        line
    }
}

/// The exit code of a command that answered `answer` and had limits to keep: a broken limit is a no, an unknown one
/// leaves a yes undecided, and an interrupted command stays interrupted.
#[must_use]
pub fn answered(answer: ExitCode, grounds: &[AssertionResult]) -> ExitCode {
    let broken = grounds.iter().any(|f| f.verdict.failed());
    let unknown = grounds.iter().any(|f| f.verdict == LimitVerdict::Unknown);
    match answer {
        ExitCode::Ok | ExitCode::Undecidable if broken => ExitCode::No,
        ExitCode::Ok if unknown => ExitCode::Undecidable,
        other => other,
    }
}

/// Findings that are printed one by one; of more, only what is broken or not known, and the worst of the rest.
const FEW: usize = 12;

/// What to print of the results: all where they are few; otherwise, for each limit, what is broken or not known, or the
/// result that came nearest to its bound.
#[must_use]
pub fn told(assertions: &[Assertion], grounds: &[AssertionResult]) -> Vec<String> {
    if grounds.len() <= FEW {
        return grounds.iter().map(AssertionResult::sentence).collect();
    }
    let mut lines = Vec::new();
    for assertion in assertions {
        let name = assertion.to_string();
        let own: Vec<&AssertionResult> = grounds.iter().filter(|f| f.limit == name).collect();
        let (bad, good): (Vec<&AssertionResult>, Vec<&AssertionResult>) =
            own.into_iter().partition(|f| f.verdict.failed() || f.verdict == LimitVerdict::Unknown);
        lines.extend(bad.iter().take(FEW).map(|f| f.sentence()));
        if bad.len() > FEW {
            lines.push(format!("           {} more that are broken or not known", bad.len() - FEW));
        }
        let value = |f: &AssertionResult| match f.value {
            Some(PercentileOrInfinite::At(value)) => value,
            _ => assertion.comparison.worst(),
        };
        let upper = assertion.comparison.worst() > 0.0;
        let near = |a: &&AssertionResult, b: &&AssertionResult| {
            if upper { value(a).total_cmp(&value(b)) } else { value(b).total_cmp(&value(a)) }
        };
        if let Some(nearest) = good.iter().copied().max_by(near) {
            lines.push(match good.len() {
                1 => nearest.sentence(),
                n => format!("{} (the nearest of {n})", nearest.sentence()),
            });
        }
    }
    lines
}

/// Whether a step is a tier of a ladder above its N*: it was played in order to fail, and limits are not held against it.
#[must_use]
pub fn meant_to_fail(step: &StepId, streams: u32, n_star: Option<u32>) -> bool {
    let tier = step.case == Case::Ladder && step.pace == PaceKind::Real;
    tier && n_star.is_some_and(|n| streams > n)
}

/// A figure with what stands behind it.
#[derive(Default)]
struct Value {
    value: Option<f64>,
    bounds: ConfidenceInterval,
    n: u64,
}

impl Assertion {
    /// Holds the limit against one judged step: one result, or one for each part.
    ///
    /// Judged calls are those that count and take part in verdicts. An errored call has no figure; it stands beyond
    /// every value on the side that is not well, so that failing never helps.
    #[must_use]
    pub fn check(&self, step: &str, report: &TierReport, calls: &[CallRecord]) -> Vec<AssertionResult> {
        // Where callers come when they come, a refusal is what is being counted and no error of a call.
        let open = report.labels.iter().any(|label| label == "open");
        let refused = |c: &CallRecord| open && c.outcome.outcome == Outcome::RefusedBusy;
        let takes_part = |c: &CallRecord| c.counted && c.class != OutcomeClass::Excluded && !refused(c);
        let judged: Vec<&CallRecord> = calls.iter().filter(|c| takes_part(c)).collect();
        let Some(by) = self.by else {
            // What a step or a page tells is no figure of its calls.
            let told = matches!(self.source(), Some(Source::Step(_) | Source::Page(..)));
            let own: &[&CallRecord] = if told { &[] } else { &judged };
            return vec![self.result(step, None, self.value(report, &judged), own)];
        };
        if let Some(Source::Page(_, of)) = self.source() {
            let pages = report.instances.iter().map(|(name, page)| {
                let value = Value { value: of(page), n: page.scrapes, ..Value::default() };
                self.result(step, Some(name.clone()), value, &[])
            });
            let all: Vec<AssertionResult> = pages.collect();
            // Nobody told anything of any instance.
            return if all.is_empty() { vec![self.result(step, None, Value::default(), &[])] } else { all };
        }
        let mut parts: BTreeMap<Key, Vec<&CallRecord>> = BTreeMap::new();
        for call in &judged {
            parts.entry(key(by, call, report)).or_default().push(call);
        }
        let told = parts.keys().any(|key| *key != Key::Nobody);
        if !told {
            // The dialect names no instance: which one is meant cannot be known.
            return vec![self.result(step, None, Value::default(), &judged)];
        }
        parts
            .into_iter()
            .map(|(key, calls)| self.result(step, Some(key.text()), self.value(report, &calls), &calls))
            .collect()
    }

    fn value(&self, report: &TierReport, judged: &[&CallRecord]) -> Value {
        let n = judged.len() as u64;
        let of_step = |figure: StepFigure| {
            let found = figure.estimate(report);
            Value { value: found.map(|e| e.value), n: found.map_or(0, |e| e.n), ..Value::default() }
        };
        match self.figure {
            Figure::Step(figure) => match figure.source() {
                Source::Calls(of) => Value { value: of(judged), n, ..Value::default() },
                Source::Words(of, _) => Value { value: pooled(judged, of), n, ..Value::default() },
                Source::Step(_) => of_step(figure),
                Source::Page(..) => Value { n: scrapes(report), ..of_step(figure) },
            },
            of => {
                let fine = judged.iter().filter(|c| c.class != OutcomeClass::Error);
                let known: Vec<f64> =
                    fine.filter_map(|c| of.of_call(report, c)).filter(|v| v.is_finite()).collect();
                self.statistic(known, judged.iter().filter(|c| c.class == OutcomeClass::Error).count())
            }
        }
    }

    /// Where the value of a figure of a step comes from; empty for figures of single calls.
    const fn source(&self) -> Option<Source> {
        match self.figure {
            Figure::Step(figure) => Some(figure.source()),
            _ => None,
        }
    }

    fn statistic(&self, mut values: Vec<f64>, failed: usize) -> Value {
        // Without one known value it is unknown, unless calls failed: those are known to be beyond every bound.
        let n = (values.len() + failed) as u64;
        values.extend(std::iter::repeat_n(self.comparison.worst(), failed));
        sort(&mut values);
        let (value, bounds) = match self.statistic {
            Some(Statistic::Quantile(q)) => {
                (percentile_sorted(&values, q), quantile_interval(&values, q, CONFIDENCE))
            }
            Some(Statistic::Min) => (values.first().copied(), ConfidenceInterval::default()),
            Some(Statistic::Max) => (values.last().copied(), ConfidenceInterval::default()),
            Some(Statistic::Mean) | None if failed > 0 => {
                (Some(self.comparison.worst()), ConfidenceInterval::default())
            }
            Some(Statistic::Mean) | None => {
                (Moments::of(&values).map(|m| m.mean), ConfidenceInterval::default())
            }
        };
        Value { value, bounds, n }
    }

    fn result(
        &self,
        step: &str,
        part: Option<String>,
        found: Value,
        judged: &[&CallRecord],
    ) -> AssertionResult {
        let Value { value, bounds, n } = found;
        let holds = |v: f64| self.comparison.holds(v, self.bound);
        let interval = matches!(self.statistic, Some(Statistic::Quantile(_)));
        let sure = !interval || {
            let worst = if self.comparison.worst() > 0.0 { bounds.high } else { bounds.low };
            let best = if self.comparison.worst() > 0.0 { bounds.low } else { bounds.high };
            let decides = if value.is_some_and(holds) { worst } else { best };
            decides.is_some_and(|d| holds(d) == value.is_some_and(holds))
        };
        let verdict = match value.map(holds) {
            None => LimitVerdict::Unknown,
            Some(true) if sure => LimitVerdict::Pass,
            Some(true) => LimitVerdict::PointPass,
            Some(false) if sure => LimitVerdict::Fail,
            Some(false) => LimitVerdict::PointFail,
        };
        let reached =
            |v: f64| if v.is_finite() { PercentileOrInfinite::At(v) } else { PercentileOrInfinite::Never };
        AssertionResult {
            limit: self.to_string(),
            step: step.into(),
            part,
            verdict,
            value: value.map(reached),
            low: bounds.low.filter(|b| b.is_finite()),
            high: bounds.high.filter(|b| b.is_finite()),
            n,
            calls: judged.len() as u64,
            errors: judged.iter().filter(|c| c.class == OutcomeClass::Error).count() as u64,
        }
    }
}

/// What tells the parts of a step apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(u32, &'static str),
    Name(String),
    Nobody,
}

impl Key {
    fn text(&self) -> String {
        match self {
            Self::Number(n, unit) => format!("{n}{unit}"),
            Self::Name(name) => name.clone(),
            Self::Nobody => NOBODY.into(),
        }
    }
}

fn key(by: Part, call: &CallRecord, report: &TierReport) -> Key {
    match by {
        Part::Instance => call.instance.clone().map_or(Key::Nobody, Key::Name),
        Part::Bucket => Key::Number(call.bucket_s, " s"),
        Part::Stream => Key::Number(call.stream, ""),
        Part::Call => Key::Number(call.call, ""),
        Part::Tape => Key::Name(call.tape.clone().unwrap_or_else(|| report.tape.clone())),
    }
}
