//! What a reader who wants to rely on the number should worry about.

use tapedeck_answers::Soak;
use tapedeck_record::Case;
use tapedeck_slo::{CapacityState, LeakVerdict, Verdict};

use crate::answer::Answer;
use crate::integrity::Severity;
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::Run;

/// How serious a risk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Seen in this run.
    Seen,
    /// Not known, because nothing in this run looked at it.
    Unknown,
    /// Looked at and fine.
    Fine,
}

/// One risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Risk {
    /// How serious.
    pub level: Level,
    /// What.
    pub said: LocalizedText,
}

/// The list: temperature, leak and failover first, then whatever else this run gives reason for.
#[must_use]
pub fn risks(run: &Run, answer: &Answer) -> Vec<Risk> {
    let mut all = Vec::new();
    let mut add = |level, said| all.push(Risk { level, said });
    temperature(run, &mut add);
    leak(run, &mut add);
    soak(run, &mut add);
    failover(run, &mut add);
    repeatability(run, &mut add);
    if answer.simulated == Some(true) {
        add(Level::Seen, message!(MessageId::RiskSimulated));
    }
    if answer.simulated.is_none() {
        add(Level::Unknown, message!(MessageId::RiskSimulatedUnknown));
    }
    if let Some(capacity) = &answer.short {
        if capacity.state != CapacityState::Exact {
            add(Level::Seen, message!(MessageId::RiskNotExact));
        }
        if answer.long.is_none() {
            add(Level::Unknown, message!(MessageId::RiskNoLongCalls));
        }
        if capacity.quality_cap.is_some() {
            add(Level::Seen, message!(MessageId::RiskQuality));
        } else if run.answers.quality.is_none() {
            add(Level::Unknown, message!(MessageId::RiskNoQuality));
        } else if words_alarm(run) == Some(false) {
            add(Level::Fine, message!(MessageId::RiskWordsFine));
        }
    }
    // What a fault was meant to break stands in its own section.
    let unforced = run.steps.iter().filter(|s| s.id.case != Case::Fault);
    let errors: u64 = unforced.map(|s| s.report.err_calls).sum();
    if errors > 0 {
        add(Level::Seen, message!(MessageId::RiskErrors, errors));
    }
    let undecided =
        run.steps.iter().filter(|s| s.report.verdict.undecided() && !s.partial && s.report.streams > 0);
    let names: Vec<String> =
        undecided.map(|s| format!("{} ({})", s.name, verdict_word(s.report.verdict))).collect();
    if !names.is_empty() {
        add(Level::Seen, message!(MessageId::RiskUndecided, names.join(", ")));
    }
    let unchecked = run
        .environment
        .as_ref()
        .and_then(|e| e.get("server")?.get("certificate_checked")?.as_bool())
        .is_some_and(|checked| !checked);
    if unchecked {
        add(Level::Seen, message!(MessageId::RiskCertificate));
    }
    let damaged = run.warnings.iter().filter(|d| d.severity != Severity::Missing).count();
    if damaged > 0 {
        add(Level::Seen, message!(MessageId::RiskDamaged, damaged));
    }
    all.sort_by_key(|r| r.level);
    all
}

/// Whether words got worse at any load that was played; empty where none was.
fn words_alarm(run: &Run) -> Option<bool> {
    let points = run.answers.quality.as_ref().map(|a| &a.points).filter(|points| !points.is_empty())?;
    Some(points.iter().any(|p| p.alarm))
}

const fn verdict_word(verdict: Verdict) -> &'static str {
    verdict.name()
}

fn temperature(run: &Run, add: &mut dyn FnMut(Level, LocalizedText)) {
    let hottest = run.steps.iter().filter_map(|s| s.report.gpu.as_ref()?.temperature_max_c).reduce(f64::max);
    let throttled = run.steps.iter().any(|s| s.report.gpu.as_ref().is_some_and(|g| !g.throttle.is_empty()));
    match hottest {
        Some(c) if c >= 85.0 || throttled => add(Level::Seen, message!(MessageId::RiskHot, number(c))),
        Some(c) => add(Level::Fine, message!(MessageId::RiskCool, number(c))),
        None => add(Level::Unknown, message!(MessageId::RiskNoTemperature)),
    }
}

fn soaked(run: &Run) -> Option<&Soak> {
    run.answers.soak.as_ref()?.soak.as_ref()
}

fn leak(run: &Run, add: &mut dyn FnMut(Level, LocalizedText)) {
    let memory = soaked(run).map(|soak| soak.memory.iter());
    let verdicts: Vec<LeakVerdict> = memory.into_iter().flatten().map(|m| m.leak.verdict).collect();
    if verdicts.contains(&LeakVerdict::Leak) {
        add(Level::Seen, message!(MessageId::RiskLeak));
    } else if verdicts.is_empty() || verdicts.contains(&LeakVerdict::Unknown) {
        add(Level::Unknown, message!(MessageId::RiskNoSoak));
    } else {
        add(Level::Fine, message!(MessageId::RiskNoLeak));
    }
}

fn soak(run: &Run, add: &mut dyn FnMut(Level, LocalizedText)) {
    if let Some(soak) = soaked(run).filter(|soak| !soak.complaints.is_empty()) {
        add(Level::Seen, message!(MessageId::RiskSoak, soak.complaints.len()));
    }
}

fn failover(run: &Run, add: &mut dyn FnMut(Level, LocalizedText)) {
    let Some(answer) = &run.answers.fault else {
        add(Level::Unknown, message!(MessageId::RiskNoFault));
        return;
    };
    let complaints = answer.complaints.len();
    let retries = answer.incidents.iter().any(|i| i.retries_needed);
    if complaints > 0 {
        add(Level::Seen, message!(MessageId::RiskFault, complaints));
    } else {
        add(Level::Fine, message!(MessageId::RiskFaultFine));
    }
    if retries {
        add(Level::Seen, message!(MessageId::RiskRetries));
    }
}

fn repeatability(run: &Run, add: &mut dyn FnMut(Level, LocalizedText)) {
    let drift = run.answers.repeatability.as_ref().and_then(|a| a.repeatability.drift);
    match drift {
        Some(true) => add(Level::Seen, message!(MessageId::RiskDrift)),
        Some(false) => add(Level::Fine, message!(MessageId::RiskNoDrift)),
        None => add(Level::Unknown, message!(MessageId::RiskNoRepeat)),
    }
}
