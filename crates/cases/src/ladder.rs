//! TC-03: the ladder. Climb until a tier fails, look one tier further, refine around the knee, name N*.

use std::collections::BTreeSet;

use tapedeck_answers::{Ceiling, LadderAnswer, LeftOut, Repeats, files};
use tapedeck_config::{Config, LadderContent, Pace};
use tapedeck_l10n::Localize;
use tapedeck_record::{CallRecord, Case, ContentKind, OutcomeClass, PaceKind, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{
    Figure, StepFigure, TierReport, adjust_by_holm, capacity, ladder_should_stop, next_refinement,
    spread_between,
};
use tapedeck_stats::percentile;

use crate::control::restart;
use crate::environment;
use crate::error::CaseError;
use crate::point::Point;
use crate::prior_results;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::workload::Workload;
use crate::world::{World, seconds};

/// Climbs the ladder of `world.config.ladder`. Steps that `dir` already holds whole are taken over.
///
/// # Errors
/// A failed preflight, an instance that went down twice in the same tier, a run directory that cannot be written.
pub async fn run(world: &World, dir: &mut RunDir, watch: &dyn Observer) -> Result<LadderAnswer, CaseError> {
    environment::record(world, dir).await?;
    let mut ladder = Ladder { steps: Steps::new(world, dir, watch), tiers: Vec::new(), names: Vec::new() };
    ladder.climb().await?;
    ladder.refine().await?;
    let Ladder { mut tiers, names, steps: Steps { interrupted, .. } } = ladder;
    // All tests of stationarity are known by now, so that they can share their error rate as they should.
    adjust_by_holm(&mut tiers, &world.config.slo);
    if !interrupted {
        dir.revise(names.iter().map(String::as_str).zip(&tiers))?;
    }
    let offline = offline(world, dir, &tiers)?;
    let answer = LadderAnswer {
        capacity: capacity(&tiers, &world.config.slo),
        spread: spread(&tiers),
        offline,
        tiers,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted,
    };
    // Only the plain ladder's N* is the run's; what others found stands beside it.
    match (world.config.ladder.pace, world.config.ladder.content) {
        (Pace::Off, _) => prior_results::write(dir, &answer.offline)?,
        (Pace::Real, LadderContent::Pool) => dir.write_json(files::CAPACITY_POOL, &answer.capacity)?,
        (Pace::Real, LadderContent::Tape) => dir.write_json(files::CAPACITY, &answer.capacity)?,
    }
    if !answer.spread.is_empty() {
        prior_results::write(dir, &answer.spread)?;
    }
    Ok(answer)
}

struct Ladder<'a> {
    steps: Steps<'a>,
    tiers: Vec<TierReport>,
    /// The step of each tier.
    names: Vec<String>,
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
            if config.ladder.pace == Pace::Off {
                continue;
            }
            if let Some(stop) = ladder_should_stop(&self.tiers, &config.slo) {
                self.steps.say(&stop.text().en);
                return Ok(());
            }
        }
        Ok(())
    }

    async fn refine(&mut self) -> Result<(), CaseError> {
        let config = &self.steps.world.config;
        let instances = u32::try_from(config.instances.len()).unwrap_or(u32::MAX).max(1);
        while config.ladder.refine && config.ladder.pace == Pace::Real && !self.steps.interrupted {
            let Some(n) = next_refinement(&self.tiers, instances) else { return Ok(()) };
            self.tier(n, true).await?;
        }
        Ok(())
    }

    /// Plays a tier as often as the config asks for.
    async fn tier(&mut self, streams: u32, refinement: bool) -> Result<(), CaseError> {
        for nth in 1..=self.steps.world.config.ladder.repeat {
            self.once(streams, refinement, nth).await?;
        }
        Ok(())
    }

    /// Plays a tier, and again with twice the loops while it is asked to be sure and only an estimate decides.
    async fn once(&mut self, streams: u32, refinement: bool, nth: u32) -> Result<(), CaseError> {
        let Config { load, ladder, pool: draw, .. } = &self.steps.world.config;
        let mut loops = Point::loops(load, streams);
        let mut more = None;
        loop {
            let pool = ladder.content == LadderContent::Pool;
            let offline = ladder.pace == Pace::Off;
            let id = StepId {
                content: if pool { ContentKind::Pool } else { ContentKind::Tape },
                pace: if offline { PaceKind::Off } else { PaceKind::Real },
                loops: more,
                repetition: nth,
                refinement,
                ..StepId::new(Case::Ladder, streams)
            };
            let mut point = Point {
                points_planned: u32::try_from(ladder.tiers.len()).unwrap_or(u32::MAX),
                ..Point::new(id, loops)
            };
            if pool {
                point.workload = Workload::Pool(seconds(draw.draw_s));
                point.labels.push("content pool".into());
            }
            if offline {
                (point.offline, point.at_once, point.loops) = (true, true, load.loops);
                point.labels.push("offline: no pace, no N*".into());
            }
            if more.is_some() {
                point.labels.push(format!("again with {loops} loops"));
            }
            if ladder.restart_each_tier && self.steps.dir.finished(&point.step).is_none() {
                self.restart(&point.step).await?;
            }
            let Some(report) = self.steps.play(&point).await? else { return Ok(()) };
            let unsure = ladder.until_sure && ladder.pace == Pace::Real && report.point_only;
            if !unsure || loops.saturating_mul(2) > ladder.max_loops {
                if unsure {
                    self.steps.say(&format!(
                        "{streams} streams: {loops} loops do not decide it, more are not allowed"
                    ));
                }
                self.tiers.push(report);
                self.names.push(point.step);
                return Ok(());
            }
            loops *= 2;
            more = Some(loops);
            self.steps
                .say(&format!("{streams} streams: only the estimate decides, again with {loops} loops"));
        }
    }

    /// Restarts every instance; a ladder that was asked to and cannot would answer another question.
    async fn restart(&mut self, step: &str) -> Result<(), CaseError> {
        let Steps { world, dir, watch, .. } = &mut self.steps;
        let restarted = restart(world, dir, step, &world.instances, *watch).await?;
        restarted
            .map(|_| ())
            .map_err(|refusal| CaseError::Control { what: LeftOut::Refused { why: refusal.into_reason() } })
    }
}

/// How far the repetitions of each tier lie apart.
fn spread(tiers: &[TierReport]) -> Vec<Repeats> {
    let streams: BTreeSet<u32> = tiers.iter().map(|t| t.streams).collect();
    let figures = Figure::JUDGED.into_iter().chain([Figure::Step(StepFigure::KvPoolP95)]);
    let mut all = Vec::new();
    for n in streams {
        let same: Vec<TierReport> = tiers.iter().filter(|t| t.streams == n).cloned().collect();
        for figure in figures.clone() {
            if let Some(m) = spread_between(&same, |t| figure.estimate(t).map(|e| e.value)) {
                let (figure, cv) = (figure.of_step().into_owned(), m.cv());
                all.push(Repeats { streams: n, figure, mean: m.mean, cv, n: m.n as u64 });
            }
        }
    }
    all
}

/// What a ladder without pace says of each number of streams.
fn offline(world: &World, dir: &RunDir, tiers: &[TierReport]) -> Result<Vec<Ceiling>, CaseError> {
    if world.config.ladder.pace == Pace::Real {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for step in
        dir.current().filter(|s| !s.partial && s.id.case == Case::Ladder && s.id.pace == PaceKind::Off)
    {
        if !tiers.iter().any(|t| t.streams == step.report.streams) {
            continue;
        }
        let calls = dir.calls_of(&step.step)?;
        all.push(ceiling(step.report.streams, calls.iter().filter(|c| c.counted)));
    }
    Ok(all)
}

fn ceiling<'a>(streams: u32, calls: impl Iterator<Item = &'a CallRecord>) -> Ceiling {
    let (mut audio_s, mut from_s, mut to_s, mut errors) = (0.0, f64::INFINITY, f64::NEG_INFINITY, 0);
    let mut rtf = Vec::new();
    for call in calls {
        if call.class == OutcomeClass::Error {
            errors += 1;
            continue;
        }
        audio_s += call.audio_s;
        from_s = call.start_s.min(from_s);
        to_s = call.done_s.max(to_s);
        // Everything is sent at once, so the time until the final is the processing time.
        rtf.extend(call.pace);
    }
    let n = rtf.len() as u64;
    Ceiling {
        streams,
        audio_s_per_s: (to_s > from_s).then(|| audio_s / (to_s - from_s)),
        rtf_p50: percentile(&mut rtf, 0.5),
        rtf_p95: percentile(&mut rtf, 0.95),
        calls: n,
        errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single_stream::tests::call;

    #[test]
    fn a_ceiling_is_the_audio_that_was_finished_by_the_clock() {
        let played = |start_s, done_s, pace, class| CallRecord {
            start_s,
            done_s,
            pace: Some(pace),
            class,
            audio_s: 30.0,
            ..call()
        };
        let calls = [
            played(5.0, 20.0, 0.5, OutcomeClass::Ok),
            played(0.0, 9.0, 0.3, OutcomeClass::Ok),
            // Neither its audio nor its time counts.
            played(0.0, 100.0, 9.0, OutcomeClass::Error),
        ];
        let found = ceiling(2, calls.iter());
        assert_eq!((found.streams, found.calls, found.errors), (2, 2, 1));
        assert_eq!((found.audio_s_per_s, found.rtf_p50, found.rtf_p95), (Some(3.0), Some(0.3), Some(0.5)));
        let none = ceiling(2, calls[2..].iter());
        assert_eq!((none.audio_s_per_s, none.rtf_p50, none.calls, none.errors), (None, None, 0, 1));
    }
}
