//! Holding the limits of the command line against what was played.

use tapedeck_answers::files;
use tapedeck_cases::CaseError;
use tapedeck_record::ContentKind;
use tapedeck_rundir::RunDir;
use tapedeck_slo::{Assertion, AssertionResult, Capacity, meant_to_fail};

/// Holds every limit against every whole step among `steps`; of a ladder, only against the tiers up to its N*.
///
/// # Errors
/// Calls that cannot be read back.
pub(crate) fn check(
    assertions: &[Assertion],
    steps: &[String],
    dir: &RunDir,
) -> Result<Vec<AssertionResult>, CaseError> {
    let mut findings = Vec::new();
    if assertions.is_empty() {
        return Ok(findings);
    }
    let n_star =
        |file: &str| Ok::<_, CaseError>(dir.read_json::<Capacity>(file)?.and_then(|found| found.n_star));
    let (of_tape, of_pool) = (n_star(files::CAPACITY)?, n_star(files::CAPACITY_POOL)?);
    for step in steps {
        let Some(done) = dir.finished(step) else { continue };
        let n_star = match done.id.content {
            ContentKind::Pool => of_pool,
            ContentKind::Tape => of_tape,
        };
        if meant_to_fail(&done.id, done.report.streams, n_star) {
            continue;
        }
        let calls = dir.calls_of(step)?;
        findings.extend(assertions.iter().flat_map(|assertion| assertion.check(step, &done.report, &calls)));
    }
    if findings.is_empty() {
        findings.extend(assertions.iter().map(AssertionResult::nothing_judged));
    }
    Ok(findings)
}
