//! What earlier cases left in the run directory.

use tapedeck_answers::{AnswerFile, NStar, NStarSource, files};
use tapedeck_l10n::{LocalizedText, localized};
use tapedeck_record::{Case, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{Capacity, CapacityState, QualityBaseline};

use crate::error::CaseError;

/// The answer that an earlier case left in the run directory; nothing where there is none.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn read<T: AnswerFile>(dir: &RunDir) -> Result<Option<T>, CaseError> {
    Ok(dir.read_json(T::FILE)?)
}

/// Writes a case's answer into the run directory.
///
/// # Errors
/// What the run directory refuses.
pub fn write<T: AnswerFile>(dir: &RunDir, answer: &T) -> Result<(), CaseError> {
    Ok(dir.write_json(T::FILE, answer)?)
}

/// N* as the ladder of this run left it, unless another was given.
///
/// # Errors
/// [`CaseError::Missing`] where there is neither, or where the ladder found none.
pub fn n_star(dir: &RunDir, given: Option<NStar>) -> Result<NStar, CaseError> {
    if let Some(given) = given {
        return Ok(given);
    }
    let missing = |what: LocalizedText| CaseError::Missing {
        what,
        run: dir.path().to_path_buf(),
        hint: localized!(
            "climb the ladder first with `tc03 --into RUN_DIR`, or give --n-star N",
            "请先用 `tc03 --into RUN_DIR` 爬阶梯，或给出 --n-star N"
        ),
    };
    let capacity: Capacity = dir.read_json(files::CAPACITY)?.ok_or_else(|| {
        missing(localized!("N* is not known: there is no capacity.json", "N* 未知：没有 capacity.json"))
    })?;
    match (capacity.n_star, capacity.state) {
        (Some(streams), state) if state != CapacityState::Undecided => {
            Ok(NStar::new(streams, NStarSource::Ladder { state }))
        }
        _ => Err(missing(localized!(
            "the ladder of this run found no N* ({})",
            "本次运行的阶梯没有得到 N*（{}）"; capacity.state.n_star(capacity.n_star)
        ))),
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
