//! TC-03: the ladder. Climb until a tier fails, look one tier further, refine around the knee, name N*.

use std::path::PathBuf;

use serde::Serialize;
use tapedeck_record::ExitCode;
use tapedeck_rundir::RunDir;
use tapedeck_slo::{
    Capacity, CapacityState, TierReport, capacity, ladder_should_stop, next_refinement,
};

use crate::environment;
use crate::error::CaseError;
use crate::point::{Ending, Point, cool_down, play};
use crate::progress::{Observer, Progress};
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
    let mut ladder = Ladder { world, dir, watch, tiers: Vec::new(), interrupted: false };
    ladder.climb().await?;
    ladder.refine().await?;
    let Ladder { tiers, interrupted, .. } = ladder;
    let answer = Answer {
        capacity: capacity(&tiers, &world.config.slo),
        tiers,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted,
    };
    let mut json = serde_json::to_vec_pretty(&answer.capacity).map_err(CaseError::answer)?;
    json.push(b'\n');
    dir.write_file("capacity.json", &json)?;
    Ok(answer)
}

struct Ladder<'a> {
    world: &'a World,
    dir: &'a mut RunDir,
    watch: &'a dyn Observer,
    tiers: Vec<TierReport>,
    interrupted: bool,
}

impl Ladder<'_> {
    async fn climb(&mut self) -> Result<(), CaseError> {
        let config = &self.world.config;
        let instances = u32::try_from(config.instances.len()).unwrap_or(u32::MAX).max(1);
        for &n in config.ladder.tiers.iter().filter(|n| !n.is_multiple_of(instances)) {
            let text = format!("{n} streams do not divide evenly among {instances} instances");
            self.watch.on(&Progress::Note { text: &text });
        }
        for &n in &config.ladder.tiers {
            self.tier(n, false).await?;
            if self.interrupted {
                return Ok(());
            }
            if let Some(stop) = ladder_should_stop(&self.tiers, &config.slo) {
                self.watch.on(&Progress::Note { text: stop.sentence() });
                return Ok(());
            }
        }
        Ok(())
    }

    async fn refine(&mut self) -> Result<(), CaseError> {
        let config = &self.world.config;
        let instances = u32::try_from(config.instances.len()).unwrap_or(u32::MAX).max(1);
        while config.ladder.refine && !self.interrupted {
            let Some(n) = next_refinement(&self.tiers, instances) else { return Ok(()) };
            self.tier(n, true).await?;
        }
        Ok(())
    }

    async fn tier(&mut self, streams: u32, refinement: bool) -> Result<(), CaseError> {
        let load = &self.world.config.load;
        let point = Point {
            step: format!("N{streams:03}"),
            streams,
            loops: if streams <= load.small_up_to { load.loops_small } else { load.loops },
            refinement,
            points_planned: u32::try_from(self.world.config.ladder.tiers.len()).unwrap_or(u32::MAX),
        };
        if let Some(done) = self.dir.finished(&point.step) {
            self.watch.on(&Progress::StepDone { report: &done.report, resumed: true });
            self.tiers.push(done.report.clone());
            return Ok(());
        }
        if !self.tiers.is_empty() {
            cool_down(self.world, &point.step, self.watch).await;
        }
        if self.world.interrupted() {
            self.interrupted = true;
            return Ok(());
        }
        // An instance that went down spoils the tier; it is played once more when all are back.
        for last_try in [false, true] {
            match play(self.world, self.dir, &point, self.watch).await? {
                Ending::Done(report) => {
                    self.tiers.push(*report);
                    return Ok(());
                }
                Ending::Interrupted => {
                    self.interrupted = true;
                    return Ok(());
                }
                Ending::InstanceDown(why) if last_try => return Err(CaseError::InstanceDown { why }),
                Ending::InstanceDown(why) => {
                    let text = format!("{why}: the tier is played again when all instances are back");
                    self.watch.on(&Progress::Note { text: &text });
                    cool_down(self.world, &point.step, self.watch).await;
                }
            }
        }
        Ok(())
    }
}
