//! TC-05: the soak. Restart, play 0.8 N* for four hours from the whole pool, then look for what only hours show: memory
//! that leaks, latencies that creep, errors that gather, instances that vanish.

pub mod judge;

use tapedeck_answers::{LongCallsAnswer, NStar, NStarSource, SoakAnswer, SoakContent, SoakRestart};
use tapedeck_config::Config;
use tapedeck_record::{Case, Schema, StepId};
use tapedeck_rundir::RunDir;

use crate::control::restart;
use crate::environment;
use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::Point;
use crate::prior_results;
use crate::progress::{Observer, Progress};
use crate::steps::Steps;
use crate::workload::Workload;
use crate::world::{World, seconds};

/// Tapes that a soak needs beside Tape-A, as far as the config names them.
#[must_use]
pub fn needs(config: &Config) -> Vec<Role> {
    let pool = (!config.pool.folder.as_os_str().is_empty()).then_some(Role::Pool);
    let long = (!config.tape_b.manifest.as_os_str().is_empty()).then_some(Role::B);
    pool.into_iter().chain(long).collect()
}

/// Soaks. `n_star` overrides what the ladder of this run found, `n_star_b` the same for long calls.
///
/// # Errors
/// No N*, a failed preflight, an instance that went down twice, a run directory that cannot be written.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    n_star: Option<NStar>,
    n_star_b: Option<u32>,
    watch: &dyn Observer,
) -> Result<SoakAnswer, CaseError> {
    let config = &world.config.soak;
    let n_star = prior_results::n_star(dir, n_star)?;
    environment::record(world, dir).await?;
    let n_star_b = match n_star_b {
        Some(n) => Some(n),
        None => n_star_long(dir)?,
    };
    let audio = seconds(config.hours * 3600.0);
    let (workload, n_star, why) = choose(world, n_star, n_star_b, audio);
    let loops = match &workload {
        Workload::Tape(role) => {
            loops(audio.as_secs_f64(), world.loaded_tape(*role)?.prepared.audio().as_secs_f64())
        }
        _ => 1,
    };
    let point = Point {
        workload,
        labels: vec!["soak".into()],
        watch_vram: false,
        ..Point::new(StepId::new(Case::Soak, n_star.share(config.share, world.instances.len())), loops)
    };
    let step = point.step.as_str();
    let mut restarted = match dir.finished(step) {
        Some(_) => SoakRestart::TakenOver,
        None => SoakRestart::NotWanted,
    };
    if config.restart && dir.finished(step).is_none() {
        restarted = match restart(world, dir, step, &world.instances, watch).await? {
            Ok(seconds) => SoakRestart::Restarted { seconds },
            Err(refusal) => SoakRestart::Refused { why: refusal.into_reason() },
        };
    }
    if dir.finished(step).is_none() && dir.steps().iter().any(|s| s.step == step) {
        let text =
            "the soak that was cut begins anew: growth over hours can only be told from hours in one piece";
        watch.on(&Progress::Note { text });
    }
    let mut steps = Steps::new(world, dir, watch);
    let report = steps.play(&point).await?;
    let interrupted = steps.interrupted;
    let soak = match report {
        Some(report) => {
            let (calls, samples) = (dir.calls_of(step)?, dir.series_of(step)?);
            Some(judge::judge(&report, &calls, &samples, world))
        }
        None => None,
    };
    let answer = SoakAnswer {
        schema: Schema::CURRENT,
        streams: point.streams,
        n_star,
        content: why,
        restarted,
        soak,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted,
    };
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// N* with long calls as TC-03b of this run left it.
fn n_star_long(dir: &RunDir) -> Result<Option<u32>, CaseError> {
    Ok(prior_results::read::<LongCallsAnswer>(dir)?.and_then(|answer| answer.capacity.n_star))
}

/// What is played: long calls where they are what limits, else whatever the pool holds.
fn choose(
    world: &World,
    n_star: NStar,
    n_star_b: Option<u32>,
    audio: std::time::Duration,
) -> (Workload, NStar, SoakContent) {
    match n_star_b.filter(|b| *b < n_star.streams) {
        Some(b) if world.loaded_tape(Role::B).is_ok() => {
            let why = SoakContent::LongCalls { n_star_long: b, n_star: n_star.streams };
            (Workload::Tape(Role::B), NStar::new(b, NStarSource::LongCalls), why)
        }
        _ if world.loaded_tape(Role::Pool).is_ok() => (Workload::Pool(audio), n_star, SoakContent::Pool),
        _ => (Workload::Tape(Role::A), n_star, SoakContent::NoPool),
    }
}

/// Whole loops of a tape that last at least so long.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours of minutes-long tapes")]
fn loops(wanted_s: f64, tape_s: f64) -> u32 {
    if tape_s > 0.0 { (wanted_s / tape_s).ceil().clamp(1.0, 1e6) as u32 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_lasts_at_least_as_long_as_asked() {
        assert_eq!((loops(3600.0, 480.0), loops(960.0, 480.0), loops(961.0, 480.0)), (8, 2, 3));
        assert_eq!((loops(10.0, 480.0), loops(0.0, 480.0), loops(3600.0, 0.0)), (1, 1, 1));
    }
}
