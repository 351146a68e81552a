//! The answer: both N*, what may be published, what limits, how sure.

use tapedeck_record::{Case, StepId};
use tapedeck_sizing::statement::Statement;
use tapedeck_slo::{Capacity, CapacityState, Limit, Limits, TierReport, Verdict, capacity};

use crate::html::verdict_name;
use crate::integrity::Severity;
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::Run;

/// What a run says about capacity, decided anew from its records.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// N* on Tape-A; empty where the run has no ladder or where it must not be stated.
    pub short: Option<Capacity>,
    /// N* with long calls, on Tape-B.
    pub long: Option<Capacity>,
    /// Why N* is not stated although there is a ladder.
    pub withheld: Vec<LocalizedText>,
    /// What may be promised, or why nothing may be; empty without an N*.
    pub statement: Option<Result<Statement, LocalizedText>>,
    /// Whether the case that climbs the ladder never came to its end, or is still at it.
    pub unfinished: bool,
    /// Steps of other cases that did not pass on the ladder's tape with no more streams than N* on Tape-A: name, verdict.
    pub elsewhere: Vec<(String, Verdict)>,
    /// Whether the engines were the built-in ones; empty where nothing says so.
    pub simulated: Option<bool>,
}

impl Answer {
    /// Decides from the records of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let heavy = run.warnings.iter().filter(|d| d.severity == Severity::Withhold);
        let withheld: Vec<LocalizedText> = heavy.map(|d| d.said.clone()).collect();
        let tiers: Vec<TierReport> = run.ladder().into_iter().map(|s| s.report.clone()).collect();
        // Without the run's own limits the safety factor is not known: the case's own file then has to say it.
        let short = match &run.limits {
            _ if tiers.is_empty() || !withheld.is_empty() => None,
            Some(limits) => Some(capacity(&tiers, limits)),
            None => {
                let found = capacity(&tiers, &Limits::default());
                run.answers.capacity.clone().filter(|c| c.n_star == found.n_star && c.state == found.state)
            }
        };
        let long = run.answers.long_calls.as_ref().filter(|_| withheld.is_empty()).and_then(|answer| {
            let written = &answer.capacity;
            let found = capacity(&answer.tiers, run.limits.as_ref()?);
            (found.n_star == written.n_star && found.published == written.published).then_some(found)
        });
        let cap = run.answers.quality.as_ref().and_then(|answer| answer.clean_up_to);
        let capped = |capacity: Option<Capacity>| capacity.map(|c| cap_by_words(c, cap));
        let (short, long) = (capped(short), capped(long));
        let statement = crate::promise::promised(run, short.as_ref(), long.as_ref());
        // A case writes its N* down when the ladder is done.
        let unfinished = !tiers.is_empty() && run.answers.capacity.is_none();
        let elsewhere = short.as_ref().map(|c| elsewhere(run, c)).unwrap_or_default();
        Self { short, long, withheld, statement, unfinished, elsewhere, simulated: run.simulated() }
    }

    /// What stops the ladder, in one sentence.
    #[must_use]
    pub fn limited(capacity: &Capacity) -> LocalizedText {
        let limits: Vec<LocalizedText> = capacity.limited_by.iter().map(|l| limit_name(*l)).collect();
        match (capacity.first_fail, limits.is_empty()) {
            (Some(fail), false) => {
                message!(MessageId::LimitedBy, LocalizedText::join(&limits, " and ", "、"), fail)
            }
            (Some(fail), true) => message!(MessageId::LimitedUnknown, fail),
            (None, _) => message!(MessageId::NothingFailed),
        }
    }

    /// How far the number can be trusted, a sentence a reason.
    #[must_use]
    pub fn sureness(&self, capacity: &Capacity) -> Vec<LocalizedText> {
        let list = |tiers: &[u32]| tiers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut all = vec![match capacity.state {
            CapacityState::Exact => message!(MessageId::SureExact),
            CapacityState::None => message!(MessageId::SureNone),
            CapacityState::AtLeastUnproven => message!(MessageId::SureUnproven),
            CapacityState::Censored => message!(MessageId::SureCensored),
            CapacityState::Undecided => message!(MessageId::SureUndecided),
        }];
        let near = |n: &&u32| Some(**n) == capacity.n_star || Some(**n) == capacity.first_fail;
        let decisive: Vec<u32> = capacity.point_verdict_tiers.iter().filter(near).copied().collect();
        if !decisive.is_empty() {
            all.push(message!(MessageId::SurePoint, list(&decisive)));
        } else if capacity.n_star.is_some() && capacity.first_fail.is_some() {
            all.push(message!(MessageId::SureBoth));
        }
        if !self.elsewhere.is_empty() && self.short.as_ref() == Some(capacity) {
            let step = |(name, verdict): &(String, Verdict)| {
                let verdict = verdict_name(*verdict);
                LocalizedText {
                    en: format!("{name} ({})", verdict.en),
                    zh: format!("{name}（{}）", verdict.zh),
                }
            };
            let steps: Vec<LocalizedText> = self.elsewhere.iter().map(step).collect();
            all.push(message!(MessageId::SureElsewhere, LocalizedText::join(&steps, ", ", "、")));
        }
        if !capacity.undecided.is_empty() {
            let tiers = capacity.undecided.iter().map(|(n, v)| format!("{n} ({})", v.name()));
            all.push(message!(MessageId::SureGap, tiers.collect::<Vec<_>>().join(", ")));
        }
        if !capacity.non_monotonic.is_empty() {
            all.push(message!(MessageId::SureNonMonotonic, list(&capacity.non_monotonic)));
        }
        if let Some(cap) = capacity.quality_cap {
            all.push(message!(MessageId::SureQualityCap, cap));
        }
        all
    }

    /// What may be published, in one sentence.
    #[must_use]
    pub fn published(&self, capacity: &Capacity) -> Option<LocalizedText> {
        let published = capacity.published?;
        let word = match (capacity.quality_cap, self.simulated) {
            (Some(cap), _) if cap <= published => {
                return Some(message!(MessageId::PublishedCapped, published));
            }
            (_, Some(true)) => MessageId::PublishedSimulated,
            _ => MessageId::PublishedIs,
        };
        Some(message!(word, number(capacity.safety_factor), published))
    }

    /// Where the knee lies: what the highest passing and the first failing tier measured on the limit that broke.
    #[must_use]
    pub fn knee(run: &Run, capacity: &Capacity) -> Option<LocalizedText> {
        let limit = *capacity.limited_by.first()?;
        let value = |n: u32| {
            let step = run.ladder().into_iter().find(|s| s.report.streams == n)?;
            let result = step.report.limits.iter().find(|l| l.limit == limit)?;
            Some((result.value?, result.threshold))
        };
        let (pass, fail) = (capacity.n_star?, capacity.first_fail?);
        let ((low, _), (high, threshold)) = (value(pass)?, value(fail)?);
        let said = [number(low), number(high), number(threshold)];
        let [low, high, threshold] = said;
        Some(message!(MessageId::Knee, limit_name(limit), low, pass, high, fail, threshold))
    }
}

/// Words that get worse cap what may be published, whatever the latencies allow.
fn cap_by_words(mut capacity: Capacity, cap: Option<u32>) -> Capacity {
    let lowest = [cap, capacity.quality_cap].into_iter().flatten().min();
    capacity.published = capacity.published.map(|n| lowest.map_or(n, |cap| n.min(cap)));
    capacity.quality_cap = lowest;
    capacity
}

/// Steps of other cases that speak against an N*: they did not pass on its tape with no more streams. A case that breaks
/// something on purpose, or plays to other instances, says nothing of it.
fn elsewhere(run: &Run, capacity: &Capacity) -> Vec<(String, Verdict)> {
    let tape = run.ladder().first().map(|s| s.report.tape.clone());
    let other = |id: &StepId| matches!(id.case, Case::Fault | Case::Topology);
    let failed = |verdict| matches!(verdict, Verdict::Fail | Verdict::Unstable);
    run.steps
        .iter()
        .filter(|s| !s.partial && !s.of_ladder() && !other(&s.id) && failed(s.report.verdict))
        .filter(|s| Some(&s.report.tape) == tape.as_ref() && Some(s.report.streams) <= capacity.n_star)
        .map(|s| (s.name.clone(), s.report.verdict))
        .collect()
}

/// A limit by its name for people.
#[must_use]
pub fn limit_name(limit: Limit) -> LocalizedText {
    match limit {
        Limit::Preemption => message!(MessageId::LimitPreemption),
        Limit::KvPool => message!(MessageId::LimitKv),
        Limit::Errors => message!(MessageId::LimitErrors),
        Limit::Ttft => message!(MessageId::LimitTtft),
        Limit::Rtf => message!(MessageId::LimitRtf),
        Limit::Final => message!(MessageId::LimitFinal),
        Limit::Vram => message!(MessageId::LimitVram),
    }
}
