//! Two runs beside each other: what was changed, what came of it, and whether one may be blamed for the other.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tapedeck_record::{Better, ExitCode};
use tapedeck_slo::repeat::SAME_SHARE;
use tapedeck_slo::{Capacity, CapacityState, Estimate, Figure};

use crate::answer::Answer;
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::{Run, Step};
use crate::settings::flatten;
use crate::symptoms::{ChangeFacts, Diagnosed, symptoms_of_change};

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Key, e.g. `config.load.chunk_ms`.
    pub key: String,
    /// In the first run.
    pub before: Option<String>,
    /// In the second.
    pub after: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        write!(f, "{}: {} -> {}", self.key, show(&self.before), show(&self.after))
    }
}

/// Which way a figure went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Intervals overlap: no difference is shown.
    Same,
    /// Better, beyond both intervals.
    Better,
    /// Worse, beyond both intervals.
    Worse,
}

/// A figure at the same tier of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Tier.
    pub step: String,
    /// Its name, e.g. `ttft_p95` or `wer`.
    pub figure: String,
    /// Whether it is one of the three that a step is judged by.
    #[serde(skip)]
    pub judged: bool,
    /// In the first run.
    pub before: Estimate,
    /// In the second.
    pub after: Estimate,
    /// Which way it went.
    pub direction: Direction,
}

/// Two runs compared.
#[derive(Debug)]
pub struct Comparison {
    /// Names of the runs.
    pub names: [String; 2],
    /// Why they must not be compared; empty where they may.
    pub refused: Vec<LocalizedText>,
    /// Settings that differ.
    pub changes: Vec<Change>,
    /// Figures at tiers that both have.
    pub differences: Vec<Difference>,
    /// N* of both, as displayed.
    pub n_star: [Option<LocalizedText>; 2],
    /// Whether N* of the second is lower; empty where a ladder leaves that open.
    pub n_star_lower: Option<bool>,
    /// What the difference may be put down to.
    pub attribution: LocalizedText,
    /// Rules about changes that should have helped.
    pub findings: Vec<Diagnosed>,
}

impl Comparison {
    /// 0 nothing got worse, 1 something did, 4 the runs must not be compared, have nothing in common, or leave open
    /// whether N* fell.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let worse = self.differences.iter().any(|d| d.direction == Direction::Worse);
        match (self.refused.is_empty(), self.differences.is_empty()) {
            (false, _) | (_, true) => ExitCode::Undecidable,
            _ if worse || self.n_star_lower == Some(true) => ExitCode::No,
            _ if self.n_star_lower.is_none() => ExitCode::Undecidable,
            _ => ExitCode::Ok,
        }
    }
}

/// Keys that say where files lie, what was drawn, which loads were tried or what was measured: not what was tested.
fn incidental(key: &str) -> bool {
    let tapes = ["tape", "tape_b", "labelled"]
        .iter()
        .any(|t| key == format!("config.{t}.manifest") || key == format!("config.{t}.pool"));
    tapes
        || ["config.run.out", "config.run.seed", "config.run.keep_texts", "config.pool.folder"].contains(&key)
        || ["config.ladder.tiers", "config.ladder.refine"].contains(&key)
        || ["environment.tapes.", "environment.measured."].iter().any(|start| key.starts_with(start))
}

fn settings(run: &Run) -> BTreeMap<String, String> {
    let mut rows = Vec::new();
    for (name, table) in
        [("config", run.config.as_ref().map(|c| &c.tree)), ("environment", run.environment.as_ref())]
    {
        if let Some(table) = table {
            flatten(name, &toml::Value::Table(table.clone()), &mut rows);
        }
    }
    if let Some(info) = &run.info {
        rows.extend(info.tapes.iter().map(|(name, md5)| (format!("tapes.{name}"), md5.clone())));
    }
    rows.into_iter().filter(|(key, _)| !incidental(key)).collect()
}

/// Settings that differ between two runs.
pub(crate) fn changes(a: &Run, b: &Run) -> Vec<Change> {
    let (a, b) = (settings(a), settings(b));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Change { key: key.clone(), before: a.get(key).cloned(), after: b.get(key).cloned() })
        .collect()
}

/// Which way a figure went: by intervals, or by the rule of repeated tiers where it has none.
fn direction(figure: Figure, a: &Estimate, b: &Estimate) -> Direction {
    let apart = match (a.low, a.high, b.low, b.high) {
        (None, None, None, None) => {
            let off = (b.value - a.value).abs();
            off > SAME_SHARE * a.value.abs() && off > figure.spec().floor
        }
        _ if b.value > a.value => b.low.zip(a.high).is_some_and(|(low, high)| low > high),
        _ => a.low.zip(b.high).is_some_and(|(low, high)| low > high),
    };
    match apart {
        false => Direction::Same,
        true if (b.value > a.value) == (figure.spec().better == Better::Higher) => Direction::Better,
        true => Direction::Worse,
    }
}

fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let twin = |step: &Step| {
        b.steps.iter().find(|s| s.name == step.name && !s.partial && s.report.tape == step.report.tape)
    };
    let mut all = Vec::new();
    for step in a.steps.iter().filter(|s| !s.partial) {
        let Some(other) = twin(step) else { continue };
        for figure in Figure::all().filter(|f| f.spec().compared) {
            if let (Some(before), Some(after)) =
                (figure.estimate(&step.report), figure.estimate(&other.report))
            {
                all.push(Difference {
                    step: step.name.clone(),
                    figure: figure.of_step().into_owned(),
                    judged: Figure::JUDGED.contains(&figure),
                    before,
                    after,
                    direction: direction(figure, &before, &after),
                });
            }
        }
    }
    all
}

/// Names of two runs, or their folders where they go by the same name, as rehearsals of one seed do.
pub(crate) fn labels(a: &Run, b: &Run) -> [String; 2] {
    let names = [a.name(), b.name()];
    match names[0] == names[1] {
        true => [a, b].map(|run| run.path.display().to_string()),
        false => names,
    }
}

/// Why two runs must not be laid beside each other.
pub(crate) fn refusals(a: &Run, b: &Run) -> Vec<LocalizedText> {
    let mut all = Vec::new();
    if a.simulated() != b.simulated() {
        all.push(message!(MessageId::RefuseSimulated));
    }
    let tapes = |run: &Run| run.info.as_ref().map(|i| i.tapes.clone()).unwrap_or_default();
    let (ta, tb) = (tapes(a), tapes(b));
    for (name, md5) in &ta {
        if tb.get(name).is_some_and(|other| other != md5) {
            all.push(message!(MessageId::RefuseTape, name.as_str()));
        }
    }
    if !ta.is_empty() && !tb.is_empty() && !ta.keys().any(|name| tb.contains_key(name)) {
        all.push(message!(MessageId::RefuseNoCommonTape));
    }
    match (&a.limits, &b.limits) {
        (Some(x), Some(y)) if x != y => all.push(message!(MessageId::RefuseLimits)),
        (None, _) | (_, None) => all.push(message!(MessageId::RefuseLimitsUnknown)),
        _ => {}
    }
    for run in [a, b] {
        if run.steps_unread == 0 && run.steps.is_empty() {
            all.push(message!(MessageId::RefuseNoSteps, run.name()));
        }
        if run.warnings.iter().any(|d| d.severity == crate::integrity::Severity::Withhold) {
            all.push(message!(MessageId::RefuseDamaged, run.name()));
        }
    }
    all
}

/// Whether N* fell, as far as both ladders bound it; a run without a ladder has no N* to lose.
fn fell(before: Option<&Capacity>, after: Option<&Capacity>) -> Option<bool> {
    let (before, after) = match (before, after) {
        (None, None) => return Some(false),
        (Some(before), Some(after)) => (before, after),
        _ => return None,
    };
    // At least so many before; where even the lowest tier failed, none.
    let least = |c: &Capacity| match c.state {
        CapacityState::None => Some(0),
        CapacityState::Undecided => None,
        _ => c.n_star,
    };
    // No more than so many after.
    let exact = matches!(after.state, CapacityState::Exact | CapacityState::None);
    match (least(before), least(after)) {
        (Some(before), Some(after)) if exact && after < before => Some(true),
        (Some(before), Some(after)) if after >= before => Some(false),
        _ => None,
    }
}

/// GPUs that stood under the engines, as far as the run tells.
fn gpus(run: &Run) -> Option<usize> {
    run.environment.as_ref()?.get("gpus")?.as_table().map(toml::Table::len).filter(|n| *n > 0)
}

/// Compares two runs.
#[must_use]
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let refused = refusals(a, b);
    let changes = changes(a, b);
    let differences = if refused.is_empty() { differences(a, b) } else { Vec::new() };
    let answers = [Answer::of(a).short, Answer::of(b).short];
    let numbers = [answers[0].as_ref().and_then(|c| c.n_star), answers[1].as_ref().and_then(|c| c.n_star)];
    let n_star_lower = match refused.is_empty() {
        true => fell(answers[0].as_ref(), answers[1].as_ref()),
        false => None,
    };
    let moved: Vec<&Difference> = differences.iter().filter(|d| d.direction != Direction::Same).collect();
    let attribution = match (moved.is_empty() && numbers[0] == numbers[1], changes.as_slice()) {
        _ if !refused.is_empty() => message!(MessageId::AttributionRefused),
        _ if differences.is_empty() => message!(MessageId::NothingCommon),
        (true, _) if n_star_lower.is_none() => message!(MessageId::NStarOpen),
        (true, _) => message!(MessageId::NothingMoved),
        (false, []) => message!(MessageId::NothingChanged),
        (false, [one]) => message!(MessageId::OneChanged, one.key.as_str()),
        (false, many) => message!(MessageId::ManyChanged, many.len()),
    };
    // Slower is what takes longer; words, errors and a full pool are another matter.
    let slower = |d: &&&Difference| d.direction == Direction::Worse && d.judged;
    let worst = moved.iter().find(slower);
    let seen = worst.map_or_else(LocalizedText::default, |d| {
        message!(
            MessageId::SeenSlower,
            d.step.as_str(),
            d.figure.as_str(),
            number(d.before.value),
            number(d.after.value)
        )
    });
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let facts = ChangeFacts {
        changed: changes.iter().map(|c| (text(&c.before), text(&c.after))).collect(),
        gpus_before: gpus(a),
        gpus_after: gpus(b),
        slower: worst.is_some(),
    };
    let findings = symptoms_of_change(&facts, &seen);
    Comparison {
        names: labels(a, b),
        refused,
        changes,
        differences,
        n_star: answers.map(|c| c.map(|c| c.state.n_star(c.n_star))),
        n_star_lower,
        attribution,
        findings,
    }
}

#[cfg(test)]
mod tests {
    use tapedeck_slo::TierReport;

    use super::*;

    fn capacity(state: CapacityState, n_star: Option<u32>) -> Capacity {
        let tiers: &[TierReport] = &[];
        Capacity { n_star, state, ..tapedeck_slo::capacity(tiers, &tapedeck_slo::Limits::default()) }
    }

    #[test]
    fn n_star_falls_only_where_both_ladders_bound_it() {
        use CapacityState::{AtLeastUnproven, Censored, Exact, None as NoTier, Undecided};
        let of = |(before, n): (CapacityState, u32), (after, m): (CapacityState, u32)| {
            let some = |state, n| capacity(state, (n > 0).then_some(n));
            fell(Some(&some(before, n)), Some(&some(after, m)))
        };
        assert_eq!(of((Exact, 45), (Exact, 42)), Some(true));
        assert_eq!(of((Censored, 45), (Exact, 42)), Some(true));
        // The lowest tier fails now: no N* at all is lower than any.
        assert_eq!(of((Exact, 45), (NoTier, 0)), Some(true));
        assert_eq!(of((Exact, 45), (Exact, 45)), Some(false));
        assert_eq!(of((Exact, 45), (AtLeastUnproven, 48)), Some(false));
        assert_eq!(of((NoTier, 0), (NoTier, 0)), Some(false));
        // At least 30 after 45: it may be 45 still.
        assert_eq!(of((Exact, 45), (AtLeastUnproven, 30)), None);
        assert_eq!(of((Exact, 45), (Undecided, 0)), None);
        assert_eq!(of((Undecided, 0), (Exact, 45)), None);
        assert_eq!(fell(None, None), Some(false));
        assert_eq!(fell(Some(&capacity(Exact, Some(45))), None), None);
    }
}
