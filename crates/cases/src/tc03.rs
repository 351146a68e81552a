//! TC-03: the ladder. Climb until a tier fails, look one tier further, refine around the knee, name N*.

use std::path::PathBuf;

use serde::Serialize;
use tapedeck_record::ExitCode;
use tapedeck_rundir::RunDir;
use tapedeck_slo::{
    Capacity, CapacityState, TierReport, capacity, ladder_should_stop, next_refinement, settle,
};

use crate::config::Config;
use crate::earlier;
use crate::environment;
use crate::control::restart;
use crate::error::CaseError;
use crate::point::Point;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::world::World;

/// What a ladder answers.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// N* with its state.
    pub capacity: Capacity,
    /// The tiers it follows from, in the order in which they were played.
    pub tiers: Vec<TierReport>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl Answer {
    /// The exit code: was the question answered, and is the answer good enough for `require` streams?
    #[must_use]
    pub fn exit_code(&self, require: Option<u32>) -> ExitCode {
        if self.interrupted {
            return ExitCode::Interrupted;
        }
        let reached = self.capacity.n_star;
        match (self.capacity.state, require) {
            (CapacityState::None, _) => ExitCode::No,
            (CapacityState::Undecided, _) => ExitCode::Undecidable,
            (_, Some(require)) if reached.is_some_and(|n| n >= require) => ExitCode::Ok,
            (CapacityState::AtLeastUnproven, _) => ExitCode::Undecidable,
            // A ladder that never failed has not shown that `require` is out of reach.
            (CapacityState::Censored, Some(_)) => ExitCode::Undecidable,
            (CapacityState::Exact, Some(_)) => ExitCode::No,
            (CapacityState::Exact | CapacityState::Censored, None) => ExitCode::Ok,
        }
    }
}

/// Climbs the ladder of `world.config.ladder`. Steps that `dir` already holds whole are taken over.
///
/// # Errors
/// A failed preflight, an instance that went down twice in the same tier, a run directory that cannot be written.
pub async fn run(world: &World, dir: &mut RunDir, watch: &dyn Observer) -> Result<Answer, CaseError> {
    environment::record(world, dir).await?;
    let mut ladder = Ladder { steps: Steps::new(world, dir, watch), tiers: Vec::new() };
    ladder.climb().await?;
    ladder.refine().await?;
    let Ladder { mut tiers, steps: Steps { interrupted, .. } } = ladder;
    // All tests of stationarity are known by now, so that they can share their error rate as they should.
    settle(&mut tiers, &world.config.slo);
    let answer = Answer {
        capacity: capacity(&tiers, &world.config.slo),
        tiers,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted,
    };
    earlier::write(dir, "capacity.json", &answer.capacity)?;
    Ok(answer)
}

struct Ladder<'a> {
    steps: Steps<'a>,
    tiers: Vec<TierReport>,
}

impl Ladder<'_> {
    async fn climb(&mut self) -> Result<(), CaseError> {
        let config = &self.steps.world.config;
        let instances = u32::try_from(config.instances.len()).unwrap_or(u32::MAX).max(1);
        for &n in config.ladder.tiers.iter().filter(|n| !n.is_multiple_of(instances)) {
            let text = format!("{n} streams do not divide evenly among {instances} instances");
            self.steps.say(&text);
        }
        for &n in &config.ladder.tiers {
            self.tier(n, false).await?;
            if self.steps.interrupted {
                return Ok(());
            }
            if let Some(stop) = ladder_should_stop(&self.tiers, &config.slo) {
                self.steps.say(stop.sentence());
                return Ok(());
            }
        }
        Ok(())
    }

    async fn refine(&mut self) -> Result<(), CaseError> {
        let config = &self.steps.world.config;
        let instances = u32::try_from(config.instances.len()).unwrap_or(u32::MAX).max(1);
        while config.ladder.refine && !self.steps.interrupted {
            let Some(n) = next_refinement(&self.tiers, instances) else { return Ok(()) };
            self.tier(n, true).await?;
        }
        Ok(())
    }

    async fn tier(&mut self, streams: u32, refinement: bool) -> Result<(), CaseError> {
        let Config { load, ladder, .. } = &self.steps.world.config;
        let point = Point {
            refinement,
            points_planned: u32::try_from(ladder.tiers.len()).unwrap_or(u32::MAX),
            ..Point::new(format!("N{streams:03}"), streams, Point::loops(load, streams))
        };
        if ladder.restart_each_tier && self.steps.dir.finished(&point.step).is_none() {
            self.restart(&point.step).await?;
        }
        self.tiers.extend(self.steps.play(&point).await?);
        Ok(())
    }

    /// Restarts every instance; a ladder that was asked to and cannot would answer another question.
    async fn restart(&mut self, step: &str) -> Result<(), CaseError> {
        let Steps { world, dir, watch, .. } = &mut self.steps;
        let restarted = restart(world, dir, step, &world.instances, *watch).await?;
        restarted.map(|_| ()).map_err(|refusal| CaseError::Control { what: refusal.to_string() })
    }
}
