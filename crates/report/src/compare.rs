//! Two runs beside each other: what was changed, what came of it, and whether one may be blamed for the other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tapedeck_record::ExitCode;
use tapedeck_slo::{Estimate, TierReport};

use crate::answer::{Answer, n_star};
use crate::read::{Run, Step};
use crate::settings::flatten;
use crate::symptoms::{Finding, symptoms_of_change};
use crate::words::{Said, Word, number, say};

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Key, e.g. `config.load.chunk_ms`.
    pub key: String,
    /// In the first run.
    pub before: Option<String>,
    /// In the second.
    pub after: Option<String>,
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
    /// `ttft_p95`, `rtf_p95`, `final_p95` or `kv_pool_p95`.
    pub figure: &'static str,
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
    pub refused: Vec<Said>,
    /// Settings that differ.
    pub changes: Vec<Change>,
    /// Figures at tiers that both have.
    pub differences: Vec<Difference>,
    /// N* of both, as displayed.
    pub n_star: [Option<Said>; 2],
    /// Whether N* of the second is lower.
    pub n_star_lower: bool,
    /// What the difference may be put down to.
    pub attribution: Said,
    /// Rules about changes that should have helped.
    pub findings: Vec<Finding>,
}

impl Comparison {
    /// 0 nothing got worse, 1 something did, 4 the runs must not be compared or have nothing in common.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let worse = self.differences.iter().any(|d| d.direction == Direction::Worse) || self.n_star_lower;
        match (self.refused.is_empty(), self.differences.is_empty()) {
            (false, _) | (_, true) => ExitCode::Undecidable,
            _ if worse => ExitCode::No,
            _ => ExitCode::Ok,
        }
    }
}

/// Keys that say where files lie or what was drawn, not what was tested.
fn incidental(key: &str) -> bool {
    let tapes = ["tape", "tape_b", "labelled"]
        .iter()
        .any(|t| key == format!("config.{t}.manifest") || key == format!("config.{t}.pool"));
    tapes
        || ["config.run.out", "config.run.seed", "config.run.keep_texts", "config.pool.folder"].contains(&key)
        || key.starts_with("environment.tapes.")
}

fn settings(run: &Run) -> BTreeMap<String, String> {
    let mut rows = Vec::new();
    for (name, table) in [("config", &run.config), ("environment", &run.environment)] {
        if let Some(table) = table {
            flatten(name, &toml::Value::Table(table.clone()), &mut rows);
        }
    }
    if let Some(info) = &run.info {
        rows.extend(info.tapes.iter().map(|(name, md5)| (format!("tapes.{name}"), md5.clone())));
    }
    rows.into_iter().filter(|(key, _)| !incidental(key)).collect()
}

fn changes(a: &Run, b: &Run) -> Vec<Change> {
    let (a, b) = (settings(a), settings(b));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Change { key: key.clone(), before: a.get(key).cloned(), after: b.get(key).cloned() })
        .collect()
}

/// A figure worse when larger; its direction by intervals, or by the rule of repeated tiers where it has none.
fn direction(a: &Estimate, b: &Estimate) -> Direction {
    let apart = match (a.low, a.high, b.low, b.high) {
        (None, None, None, None) => {
            let off = (b.value - a.value).abs();
            off > 0.15 * a.value.abs() && off > 0.02
        }
        _ if b.value > a.value => b.low.zip(a.high).is_some_and(|(low, high)| low > high),
        _ => a.low.zip(b.high).is_some_and(|(low, high)| low > high),
    };
    match apart {
        false => Direction::Same,
        true if b.value > a.value => Direction::Worse,
        true => Direction::Better,
    }
}

fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    type Figure = (&'static str, fn(&TierReport) -> Option<Estimate>);
    let figures: [Figure; 4] = [
        ("ttft_p95", |r| r.ttft.as_ref().map(|s| s.p95)),
        ("rtf_p95", |r| r.rtf.as_ref().map(|s| s.p95)),
        ("final_p95", |r| r.final_latency.as_ref().map(|s| s.p95)),
        ("kv_pool_p95", |r| {
            let n = r.instances.values().map(|i| i.scrapes).sum();
            r.kv_pool_p95.map(|value| Estimate { value, n, low: None, high: None })
        }),
    ];
    let twin = |step: &Step| {
        b.steps.iter().find(|s| s.name == step.name && !s.partial && s.report.tape == step.report.tape)
    };
    let mut all = Vec::new();
    for step in a.steps.iter().filter(|s| !s.partial) {
        let Some(other) = twin(step) else { continue };
        for (figure, get) in figures {
            if let (Some(before), Some(after)) = (get(&step.report), get(&other.report)) {
                let direction = direction(&before, &after);
                all.push(Difference { step: step.name.clone(), figure, before, after, direction });
            }
        }
    }
    all
}

/// Why two runs must not be laid beside each other.
pub(crate) fn refusals(a: &Run, b: &Run) -> Vec<Said> {
    let mut all = Vec::new();
    if a.simulated() != b.simulated() {
        all.push(say!(Word::RefuseSimulated));
    }
    let tapes = |run: &Run| run.info.as_ref().map(|i| i.tapes.clone()).unwrap_or_default();
    let (ta, tb) = (tapes(a), tapes(b));
    for (name, md5) in &ta {
        if tb.get(name).is_some_and(|other| other != md5) {
            all.push(say!(Word::RefuseTape, name.as_str()));
        }
    }
    if !ta.is_empty() && !tb.is_empty() && !ta.keys().any(|name| tb.contains_key(name)) {
        all.push(say!(Word::RefuseNoCommonTape));
    }
    match (&a.limits, &b.limits) {
        (Some(x), Some(y)) if x != y => all.push(say!(Word::RefuseLimits)),
        (None, _) | (_, None) => all.push(say!(Word::RefuseLimitsUnknown)),
        _ => {}
    }
    for run in [a, b] {
        if run.doubts.iter().any(|d| d.weight == crate::doubt::Weight::Withhold) {
            all.push(say!(Word::RefuseDamaged, run.name()));
        }
    }
    all
}

/// Compares two runs.
#[must_use]
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let refused = refusals(a, b);
    let changes = changes(a, b);
    let differences = if refused.is_empty() { differences(a, b) } else { Vec::new() };
    let answers = [Answer::of(a).short, Answer::of(b).short];
    let numbers = [answers[0].as_ref().and_then(|c| c.n_star), answers[1].as_ref().and_then(|c| c.n_star)];
    let n_star_lower = refused.is_empty() && matches!(numbers, [Some(a), Some(b)] if b < a);
    let moved: Vec<&Difference> = differences.iter().filter(|d| d.direction != Direction::Same).collect();
    let attribution = match (moved.is_empty() && numbers[0] == numbers[1], changes.as_slice()) {
        _ if !refused.is_empty() => say!(Word::AttributionRefused),
        _ if differences.is_empty() => say!(Word::NothingCommon),
        (true, _) => say!(Word::NothingMoved),
        (false, []) => say!(Word::NothingChanged),
        (false, [one]) => say!(Word::OneChanged, one.key.as_str()),
        (false, many) => say!(Word::ManyChanged, many.len()),
    };
    let worst = moved.iter().find(|d| d.direction == Direction::Worse);
    let seen = worst.map_or_else(Said::default, |d| {
        say!(Word::SeenSlower, d.step.as_str(), d.figure, number(d.before.value), number(d.after.value))
    });
    let keys: Vec<String> = changes.iter().map(|c| c.key.clone()).collect();
    let findings = symptoms_of_change(&keys, worst.is_some(), &seen);
    Comparison {
        names: [a.name(), b.name()],
        refused,
        changes,
        differences,
        n_star: answers.map(|c| c.map(|c| n_star(&c))),
        n_star_lower,
        attribution,
        findings,
    }
}
