//! What is wrong with a run directory, and what must not be said because of it.

use std::path::PathBuf;

use tapedeck_rundir::RunDirError;
use tapedeck_rundir::tables::notes;
use tapedeck_slo::{Figure, Limit, LimitVerdict, TierReport, Verdict, adjust_by_holm, capacity, ladder_row};
use tapedeck_stats::percentile;

use crate::messages::{LocalizedText, MessageId, message, number};
use crate::newrun::Derived;
use crate::read::{Run, Step};

/// How heavy an integrity warning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not there; the figures that need it are empty.
    Missing,
    /// Something is odd; figures stand.
    Note,
    /// N* is not stated because of it.
    Withhold,
}

/// Something missing, damaged or contradictory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrityWarning {
    /// How heavy it is.
    pub severity: Severity,
    /// What, in both languages.
    pub said: LocalizedText,
}

impl IntegrityWarning {
    pub(crate) const fn note(said: LocalizedText) -> Self {
        Self { severity: Severity::Note, said }
    }

    pub(crate) const fn withhold(said: LocalizedText) -> Self {
        Self { severity: Severity::Withhold, said }
    }

    pub(crate) fn missing(file: &str) -> Self {
        Self { severity: Severity::Missing, said: message!(MessageId::FileMissing, file) }
    }

    /// A file of the run that is there and cannot be read.
    pub(crate) fn of(error: RunDirError) -> Self {
        let (path, why) = match error {
            RunDirError::BadLine { path, why, .. } => (path, why),
            RunDirError::Io { path, source, .. } => (path, source.to_string()),
            other => (PathBuf::new(), other.to_string()),
        };
        Self::unreadable(&path.file_name().unwrap_or_default().to_string_lossy(), why)
    }

    pub(crate) fn unreadable(file: &str, why: impl Into<LocalizedText>) -> Self {
        Self { severity: Severity::Note, said: message!(MessageId::FileUnreadable, file, why.into()) }
    }
}

/// Holds the parts of a run against each other. What was decided must follow from what was recorded; where it does
/// not, somebody changed a file, and nobody can tell which one.
pub(crate) fn cross_check(run: &mut Run) {
    let mut warnings = Vec::new();
    for step in &mut run.steps {
        warnings.extend(contradiction(step));
        match calls_agree(step) {
            Ok(()) => step.calls_agree = true,
            Err(Some(warning)) => warnings.push(warning),
            Err(None) => {}
        }
    }
    let kinds = run.steps.iter().map(|s| s.report.simulated);
    let said = run.info.as_ref().map(|i| i.simulated);
    let kinds: Vec<bool> = kinds.chain(said).collect();
    if kinds.iter().any(|k| *k) && kinds.iter().any(|k| !*k) {
        warnings.push(IntegrityWarning::withhold(message!(MessageId::MixedSimulated)));
    }
    warnings.extend(ladder_edited(run));
    settle_ladder(run);
    warnings.extend(capacity_edited(run));
    warnings.extend(limits_edited(run));
    warnings.extend(derived(run));
    run.warnings.append(&mut warnings);
}

/// That a run was not measured as it stands, and what it was made from.
fn derived(run: &Run) -> Option<IntegrityWarning> {
    Some(IntegrityWarning::note(match run.derived.as_ref()? {
        Derived::Merged { merged_from, .. } => message!(MessageId::MergedFrom, merged_from.join(", ")),
        Derived::Rescored { rescored_from, settings, .. } if settings.is_empty() => {
            message!(MessageId::RescoredAsItWas, rescored_from.as_str())
        }
        Derived::Rescored { rescored_from, settings, .. } => {
            message!(MessageId::RescoredWith, rescored_from.as_str(), settings.join(", "))
        }
    }))
}

/// Corrects the stationarity tests of the ladder together, as the case does when all tiers are known: the journal
/// holds each tier as it was judged alone.
fn settle_ladder(run: &mut Run) {
    let Some(limits) = run.limits.clone() else { return };
    let at: Vec<usize> = (0..run.steps.len())
        .filter(|i| run.steps.get(*i).is_some_and(|s| s.of_ladder() && !s.partial))
        .collect();
    let mut tiers: Vec<TierReport> =
        at.iter().filter_map(|i| run.steps.get(*i)).map(|s| s.report.clone()).collect();
    adjust_by_holm(&mut tiers, &limits);
    for (i, report) in at.into_iter().zip(tiers) {
        if let Some(step) = run.steps.get_mut(i) {
            step.report = report;
        }
    }
}

/// A verdict that its own limits do not give.
fn contradiction(step: &Step) -> Option<IntegrityWarning> {
    let report = &step.report;
    let broken = !report.broken().is_empty();
    let passes_broken = report.verdict == Verdict::Pass && broken;
    let fails_whole = report.verdict == Verdict::Fail && !broken;
    let wrong_side = report.limits.iter().any(|l| {
        let Some(value) = l.value else { return false };
        // The pool's red line is reached at the threshold itself, all others beyond it; an aborted tier may break a
        // limit without its figure.
        let over = if l.limit == Limit::KvPool { value >= l.threshold } else { value > l.threshold };
        match l.verdict {
            LimitVerdict::Pass | LimitVerdict::PointPass => over,
            LimitVerdict::Fail | LimitVerdict::PointFail => !over && report.abort.is_none(),
            _ => false,
        }
    });
    (passes_broken || fails_whole || wrong_side)
        .then(|| IntegrityWarning::withhold(message!(MessageId::Contradiction, step.name.as_str())))
}

/// Whether the calls give the figures that the journal has.
fn calls_agree(step: &Step) -> Result<(), Option<IntegrityWarning>> {
    let report = &step.report;
    let counted = step.calls.iter().filter(|c| c.counted).count() as u64;
    if counted == 0 && report.calls_counted > 0 {
        return Err(Some(IntegrityWarning::note(message!(MessageId::CallsMissing, step.name.as_str()))));
    }
    if counted != report.calls_counted {
        let n = report.calls_counted;
        return Err(Some(IntegrityWarning::note(message!(
            MessageId::CallsFewer,
            step.name.as_str(),
            counted,
            n
        ))));
    }
    for figure in Figure::JUDGED {
        let said = figure.estimate(report).map(|e| e.value);
        let mut values: Vec<f64> = step.figures().filter_map(|c| figure.of_call(report, c)).collect();
        let found = percentile(&mut values, 0.95);
        let differ = match (said, found) {
            (Some(a), Some(b)) => (a - b).abs() > 1e-9 * a.abs().max(1.0),
            (None, None) => false,
            _ => true,
        };
        if differ {
            let show = |v: Option<f64>| v.map_or_else(|| "-".to_string(), number);
            let said = message!(
                MessageId::FiguresDisagree,
                step.name.as_str(),
                figure.of_step().as_ref(),
                show(said),
                show(found)
            );
            return Err(Some(IntegrityWarning::withhold(said)));
        }
    }
    Ok(())
}

/// Cells in which signs that version 0.1.0 replaced count as the same: it had no commas and quotation marks.
fn plain(row: &[String]) -> Vec<String> {
    row.iter().map(|cell| cell.replace(',', ";").replace('"', "'")).collect()
}

/// `ladder.csv` is made from the journal; a row that differs was changed by somebody.
fn ladder_edited(run: &Run) -> Option<IntegrityWarning> {
    let rows = run.ladder_csv.as_ref()?;
    if run.steps.is_empty() {
        return None;
    }
    // Version 0.1.0 did not mark what was played again with more loops.
    let expected: Vec<[Vec<String>; 2]> = run
        .steps
        .iter()
        .map(|s| {
            [s.superseded, false]
                .map(|superseded| plain(&ladder_row(&s.report, notes(s.partial, superseded))))
        })
        .collect();
    let rows: Vec<Vec<String>> = rows.iter().skip(1).map(|row| plain(row)).collect();
    let odd = rows.iter().filter(|row| !expected.iter().flatten().any(|e| e == *row)).count()
        + expected.iter().filter(|either| !rows.iter().any(|row| either.contains(row))).count();
    (odd > 0).then(|| IntegrityWarning::note(message!(MessageId::LadderEdited)))
}

/// `capacity.json` must be what the tiers give.
fn capacity_edited(run: &Run) -> Option<IntegrityWarning> {
    let written = run.answers.capacity.as_ref()?;
    let limits = run.limits.as_ref()?;
    let tiers: Vec<_> = run.ladder().into_iter().map(|s| s.report.clone()).collect();
    if tiers.is_empty() || run.steps_unread > 0 {
        return None;
    }
    let found = capacity(&tiers, limits);
    (found.n_star != written.n_star || found.published != written.published || found.state != written.state)
        .then(|| {
            IntegrityWarning::note(message!(MessageId::CapacityEdited, written.display(), found.display()))
        })
}

/// The limits that the tiers were judged by must be those of the config.
fn limits_edited(run: &Run) -> Option<IntegrityWarning> {
    let limits = run.limits.as_ref()?;
    let differs = |step: &&Step| {
        step.report.limits.iter().any(|l| {
            let now = match l.limit {
                Limit::Ttft => limits.ttft_p95_s,
                Limit::Rtf => limits.rtf_p95,
                Limit::Final => limits.final_p95_s,
                Limit::KvPool => limits.kv_pool_p95,
                _ => l.threshold,
            };
            (now - l.threshold).abs() > 1e-12
        }) || step.report.ttft_basis != limits.ttft_basis
    };
    let step = run.steps.iter().find(differs)?;
    Some(IntegrityWarning::withhold(message!(MessageId::LimitsEdited, step.name.as_str())))
}
