//! TC-08: the middle tier once more. Does the same load give the same figures again?

use tapedeck_answers::{Decision, RepeatabilityAnswer};
use tapedeck_l10n::localized;
use tapedeck_record::{Case, Schema, StepId};
use tapedeck_rundir::{CommittedStep, RunDir};
use tapedeck_slo::{Repeatability, TierReport, Verdict, repeatability};

use crate::error::CaseError;
use crate::point::Point;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::world::World;
use crate::{environment, prior_results};

/// Plays the middle tier of the ladder in `dir` again, exactly as the ladder did; `streams` asks for another tier.
///
/// # Errors
/// [`CaseError::Missing`] where the run holds no such tier, and whatever keeps a tier from being played.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    streams: Option<u32>,
) -> Result<RepeatabilityAnswer, CaseError> {
    let CommittedStep { step: first_step, id, report: before, .. } =
        middle(dir, world.config.repeat.middle, streams)?;
    environment::record(world, dir).await?;
    let point = Point {
        points_planned: u32::try_from(world.config.ladder.tiers.len()).unwrap_or(u32::MAX),
        labels: vec!["repeat".into()],
        ..Point::new(
            StepId::new(Case::Repeatability, before.streams),
            id.loops.unwrap_or_else(|| Point::loops(&world.config.load, before.streams)),
        )
    };
    let mut steps = Steps::new(world, dir, watch);
    let after = steps.play(&point).await?;
    let interrupted = steps.interrupted;
    let none = || Repeatability { figures: Vec::new(), drift: None };
    let compared =
        after.as_ref().map_or_else(none, |a| repeatability(&before, a, &world.config.repeat.rules));
    let answer = RepeatabilityAnswer {
        schema: Schema::CURRENT,
        decision: decide(&compared, after.as_ref()),
        streams: before.streams,
        first_step,
        repeatability: compared,
        before,
        after,
        simulated: world.simulated,
        interrupted,
        run: dir.path().to_path_buf(),
    };
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// The tier to repeat: the one asked for, or the largest passing one up to `middle`, else the smallest passing one.
fn middle(dir: &RunDir, middle: u32, asked: Option<u32>) -> Result<CommittedStep, CaseError> {
    // Of repetitions the first stands for its tier.
    let mut tiers = dir.ladder().into_iter().filter(|s| s.id.repetition == 1);
    let found = match asked {
        Some(n) => tiers.find(|s| s.report.streams == n),
        None => {
            let mut passed: Vec<_> = tiers.filter(|s| s.report.verdict == Verdict::Pass).collect();
            passed.sort_by_key(|s| (s.report.streams > middle, s.report.streams.abs_diff(middle)));
            passed.into_iter().next()
        }
    };
    found.cloned().ok_or_else(|| CaseError::Missing {
        what: match asked {
            Some(n) => {
                localized!("the ladder holds no whole tier of {n} streams", "阶梯中没有完整的 {n} 路一档")
            }
            None => localized!("the ladder holds no tier that passed", "阶梯中没有通过的一档"),
        },
        run: dir.path().to_path_buf(),
        hint: localized!(
            "climb the ladder first with `tc03 --into RUN_DIR`, or name a tier it holds with --streams N",
            "请先用 `tc03 --into RUN_DIR` 爬阶梯，或用 --streams N 指定其中一档"
        ),
    })
}

/// A repetition that ended otherwise than the first time says nothing of drift if its figures are not known.
fn decide(compared: &Repeatability, after: Option<&TierReport>) -> Decision {
    let unsound = after.is_none_or(|a| matches!(a.verdict, Verdict::Invalid | Verdict::Unknown));
    match compared.drift {
        _ if unsound => Decision::Undecidable,
        Some(true) => Decision::No,
        Some(false) => Decision::Yes,
        None => Decision::Undecidable,
    }
}

#[cfg(test)]
mod tests {
    use tapedeck_slo::{Limits, StepBounds, TierEvidence, judge};

    use super::*;

    #[test]
    fn a_repetition_that_proves_nothing_says_nothing_of_drift() {
        let bounds =
            StepBounds { ramp_from_s: 0.0, window_from_s: 10.0, window_to_s: 600.0, drain_to_s: 640.0 };
        let report = judge(&TierEvidence::new(3, "Tape-A", &[], bounds), &Limits::default());
        let decided = |drift, verdict: Option<Verdict>| {
            let after = verdict.map(|verdict| TierReport { verdict, ..report.clone() });
            decide(&Repeatability { figures: Vec::new(), drift }, after.as_ref())
        };
        assert_eq!(decided(Some(false), Some(Verdict::Pass)), Decision::Yes);
        assert_eq!(decided(Some(false), Some(Verdict::Fail)), Decision::Yes);
        assert_eq!(decided(Some(true), Some(Verdict::Pass)), Decision::No);
        for (drift, verdict) in [
            (Some(true), Some(Verdict::Invalid)),
            (Some(false), Some(Verdict::Unknown)),
            (None, Some(Verdict::Pass)),
            (Some(true), None),
        ] {
            assert_eq!(decided(drift, verdict), Decision::Undecidable, "{drift:?} {verdict:?}");
        }
    }
}
