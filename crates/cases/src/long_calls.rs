//! TC-03b: long calls. Does N* hold when calls go on for minutes, and if not, what does?

use tapedeck_answers::{Decision, LongCallsAnswer, NStar};
use tapedeck_l10n::Localize;
use tapedeck_record::{Case, Schema, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{Capacity, CapacityState, LadderStop, TierReport, Verdict, capacity, next_refinement};

use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::Point;
use crate::pools::occupation;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::workload::Workload;
use crate::world::World;
use crate::{environment, prior_results};

/// Plays Tape-B at shares of N*; where all of N* is too much, bisects for what is not.
///
/// # Errors
/// [`CaseError::Missing`] where N* is not known, and whatever keeps a point from being played.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    n_star: Option<NStar>,
) -> Result<LongCallsAnswer, CaseError> {
    let n_star = prior_results::n_star(dir, n_star)?;
    environment::record(world, dir).await?;
    let instances = world.instances.len();
    let mut loads: Vec<u32> =
        world.config.long_calls.shares.iter().map(|&s| n_star.share(s, instances)).collect();
    loads.dedup();
    let predicted = occupation(world, dir, Role::B, &loads).await?;

    let mut steps = Steps::new(world, dir, watch);
    for expected in &predicted {
        steps.say(&expected.text().en);
    }
    let mut tiers: Vec<TierReport> = Vec::new();
    for &streams in &loads {
        tiers.extend(steps.play(&point(world, streams, false)).await?);
        if tiers.last().is_some_and(TierReport::hard_limit) {
            steps.say(&LadderStop::HardLimit.text().en);
            break;
        }
    }
    let step = u32::try_from(instances).unwrap_or(u32::MAX).max(1);
    while !steps.interrupted && tiers.iter().any(|t| t.verdict == Verdict::Fail) {
        let Some(streams) = next_refinement(&tiers, step) else { break };
        match steps.play(&point(world, streams, true)).await? {
            Some(report) => tiers.push(report),
            None => break,
        }
    }
    let interrupted = steps.interrupted;
    let capacity = capacity(&tiers, &world.config.slo);
    let answer = LongCallsAnswer {
        schema: Schema::CURRENT,
        decision: decide(&capacity, n_star.streams),
        correction: correction(&capacity, n_star.streams),
        n_star,
        capacity,
        predicted,
        tiers,
        simulated: world.simulated,
        interrupted,
        run: dir.path().to_path_buf(),
    };
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

fn point(world: &World, streams: u32, refinement: bool) -> Point {
    Point {
        points_planned: u32::try_from(world.config.long_calls.shares.len()).unwrap_or(u32::MAX),
        workload: Workload::Tape(Role::B),
        labels: vec!["long calls".into()],
        ..Point::new(
            StepId { refinement, ..StepId::new(Case::LongCalls, streams) },
            Point::loops(&world.config.load, streams),
        )
    }
}

/// Whether the whole of N* passed: nothing above it is asked, so a capacity that is censored there is an answer.
fn decide(capacity: &Capacity, n_star: u32) -> Decision {
    match (capacity.n_star, capacity.state) {
        (Some(n), CapacityState::Censored | CapacityState::Exact) if n >= n_star => Decision::Yes,
        (_, CapacityState::Exact | CapacityState::None) => Decision::No,
        _ => Decision::Undecidable,
    }
}

/// Long calls / short calls: below 1 where the pool fills up with length.
fn correction(capacity: &Capacity, n_star: u32) -> Option<f64> {
    match (capacity.n_star, capacity.state) {
        (Some(n), CapacityState::Exact | CapacityState::Censored) => {
            Some((f64::from(n) / f64::from(n_star)).min(1.0))
        }
        (None, CapacityState::None) => Some(0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tapedeck_slo::Limits;

    use super::*;

    fn found(n_star: Option<u32>, state: CapacityState) -> Capacity {
        Capacity { n_star, state, ..capacity(&[], &Limits::default()) }
    }

    #[test]
    fn long_calls_are_answered_by_all_of_n_star_or_by_a_failure() {
        for (n_star, state, decision, factor) in [
            (Some(30), CapacityState::Censored, Decision::Yes, Some(1.0)),
            (Some(36), CapacityState::Exact, Decision::Yes, Some(1.0)),
            (Some(24), CapacityState::Exact, Decision::No, Some(0.8)),
            (None, CapacityState::None, Decision::No, Some(0.0)),
            // Passed below N*, and nothing failed above.
            (Some(24), CapacityState::Censored, Decision::Undecidable, Some(0.8)),
            (Some(24), CapacityState::AtLeastUnproven, Decision::Undecidable, None),
            (None, CapacityState::Undecided, Decision::Undecidable, None),
        ] {
            let capacity = found(n_star, state);
            assert_eq!(decide(&capacity, 30), decision, "{capacity:?}");
            let said = correction(&capacity, 30);
            assert_eq!(said.is_some(), factor.is_some(), "{capacity:?}");
            assert!(said.zip(factor).is_none_or(|(a, b)| (a - b).abs() < 1e-12), "{said:?}: {capacity:?}");
        }
    }
}
