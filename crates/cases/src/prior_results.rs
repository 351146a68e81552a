//! What earlier cases left in the run directory.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tapedeck_answers::{AnswerError, AnswerFile, NStar, files};
use tapedeck_record::{Case, StepId};
use tapedeck_rundir::{RunDir, RunDirError};
use tapedeck_slo::{Capacity, CapacityState, QualityBaseline};

use crate::error::CaseError;

/// A JSON file that an earlier case left in the run directory; nothing where there is none.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn read_file<T: DeserializeOwned>(dir: &RunDir, file: &str) -> Result<Option<T>, CaseError> {
    let bad = |e: AnswerError| RunDirError::BadLine {
        path: dir.path().join(file),
        line: e.line.max(1),
        why: e.why,
    };
    Ok(files::read_file(dir.path(), file).map_err(bad)?)
}

/// The answer that an earlier case left in the run directory; nothing where there is none.
///
/// # Errors
/// As [`read_file`].
pub fn read<T: AnswerFile>(dir: &RunDir) -> Result<Option<T>, CaseError> {
    read_file(dir, T::FILE)
}

/// Writes a case's answer into the run directory as pretty JSON.
///
/// # Errors
/// What the run directory refuses.
pub fn write<T: AnswerFile>(dir: &RunDir, answer: &T) -> Result<(), CaseError> {
    write_file(dir, T::FILE, answer)
}

/// Writes anything else into the run directory as pretty JSON.
///
/// # Errors
/// What the run directory refuses.
pub fn write_file<T: Serialize>(dir: &RunDir, file: &str, answer: &T) -> Result<(), CaseError> {
    let mut json = serde_json::to_vec_pretty(answer).map_err(CaseError::answer)?;
    json.push(b'\n');
    Ok(dir.write_file(file, &json)?)
}

/// N* as the ladder of this run left it, unless another was given.
///
/// # Errors
/// [`CaseError::Missing`] where there is neither, or where the ladder found none.
pub fn n_star(dir: &RunDir, given: Option<NStar>) -> Result<NStar, CaseError> {
    if let Some(given) = given {
        return Ok(given);
    }
    let missing = |what: String| CaseError::Missing {
        what,
        run: dir.path().to_path_buf(),
        hint: "climb the ladder first with `tc03 --into RUN_DIR`, or give --n-star N".into(),
    };
    let capacity: Capacity = read_file(dir, files::CAPACITY)?
        .ok_or_else(|| missing("N* is not known: there is no capacity.json".into()))?;
    match (capacity.n_star, capacity.state) {
        (Some(streams), state) if state != CapacityState::Undecided => {
            Ok(NStar { streams, source: format!("capacity.json ({})", capacity.state_name()) })
        }
        _ => Err(missing(format!("the ladder of this run found no N* ({})", capacity.display()))),
    }
}

/// Error rates of one stream on a tape, as TC-04 or TC-01 of this run left them; TC-04 plays more words.
///
/// # Errors
/// Calls that cannot be read.
pub fn quality_baseline(dir: &RunDir, tape: &str) -> Result<Option<QualityBaseline>, CaseError> {
    for case in [Case::Quality, Case::SingleStream] {
        let step = StepId::new(case, 1).to_string();
        if dir.finished(&step).is_some_and(|done| done.report.tape == tape)
            && let Some(baseline) = QualityBaseline::of(&dir.calls_of(&step)?)
        {
            return Ok(Some(baseline));
        }
    }
    Ok(None)
}
