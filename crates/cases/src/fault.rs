//! TC-06: fault injection. Kill one instance under load and watch what the others, the balancer and the callers make
//! of it, until it is back.

mod drive;
pub mod judge;

use tapedeck_answers::{Fault, FaultAnswer, FaultReason, LeftOut, NStar};
use tapedeck_config::BALANCER;
use tapedeck_fleet::Action;
use tapedeck_record::{Case, ControlRefusal, Schema, StepId};
use tapedeck_rundir::RunDir;

use crate::environment;
use crate::error::CaseError;
use crate::prior_results;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::world::World;

/// What begins a fault and what ends it.
const fn actions(fault: Fault) -> (Action, Action) {
    match fault {
        Fault::Kill => (Action::Kill, Action::Start),
        Fault::Freeze => (Action::Freeze, Action::Thaw),
        Fault::BalancerRestart => (Action::Stop, Action::Start),
    }
}

/// Injects `fault` at every load of `world.config.fault.shares`. `n_star` overrides what the ladder of this run found.
///
/// # Errors
/// No N*, an instance that may not be touched, a failed preflight, a command that fails, a run directory that cannot be
/// written.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    n_star: Option<NStar>,
    fault: Fault,
    watch: &dyn Observer,
) -> Result<FaultAnswer, CaseError> {
    let n_star = prior_results::n_star(dir, n_star)?;
    environment::record(world, dir).await?;
    let victim = victim(world, fault)?;
    let mut answer = FaultAnswer {
        schema: Schema::CURRENT,
        n_star,
        incidents: Vec::new(),
        complaints: Vec::new(),
        unknown: Vec::new(),
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted: false,
    };
    let mut steps = Steps::new(world, dir, watch);
    for &share in &world.config.fault.shares {
        let label = format!("{}-{:03.0}", fault.name(), share * 100.0);
        let streams = answer.n_star.share(share, world.instances.len());
        let id = StepId::new(Case::Fault, streams).with_label(label);
        let step = id.to_string();
        let file = format!("tc06/{step}.json");
        if let (Some(_), Some(incident)) = (steps.dir.finished(&step), steps.dir.read_json(&file)?) {
            steps.taken_over();
            answer.incidents.push(incident);
            continue;
        }
        let scene = drive::Scene { fault, victim: &victim, share, id: &id, file: &file };
        let once = async |world: &World, dir: &mut RunDir, watch: &dyn Observer| {
            drive::play(world, dir, &scene, watch).await
        };
        let Some(incident) = steps.until_whole(&step, once).await?.flatten() else {
            answer.interrupted = true;
            return Ok(answer);
        };
        for sentence in incident.sentences() {
            steps.say(&sentence.en);
        }
        answer.incidents.push(incident);
    }
    conclude(&mut answer, world.instances.len());
    prior_results::write(dir, &answer)?;
    Ok(answer)
}

/// Whom the fault hits; refused at once where the config does not allow it, because a load without a fault proves
/// nothing.
fn victim(world: &World, fault: Fault) -> Result<String, CaseError> {
    let name = match (fault, &world.config.fault.instance) {
        (Fault::BalancerRestart, _) => BALANCER.to_owned(),
        (_, Some(name)) => name.clone(),
        (_, None) => {
            let second = world.instances.get(1).or(world.instances.first());
            let none = || CaseError::Control { what: LeftOut::NoInstance };
            second.ok_or_else(none)?.name.clone()
        }
    };
    let (begin, end) = actions(fault);
    for action in [begin, end] {
        if !world.control.can(&name, action) {
            let why = ControlRefusal::NoCommand { instance: name, action: action.to_string() };
            return Err(CaseError::Control { what: LeftOut::Refused { why } });
        }
    }
    Ok(name)
}

/// Turns incidents into complaints. With one of k instances gone the others can carry (k-1)/k of what all carried; above
/// that an overload until the return is arithmetic and no fault of theirs.
fn conclude(answer: &mut FaultAnswer, instances: usize) {
    let carry = f64::from(u32::try_from(instances.saturating_sub(1)).unwrap_or(u32::MAX))
        / f64::from(u32::try_from(instances.max(1)).unwrap_or(u32::MAX));
    for incident in &answer.incidents {
        let streams = incident.streams;
        if incident.share <= carry + 1e-6 {
            match incident.recovered() {
                Some(true) => {}
                Some(false) => answer.complaints.push(FaultReason::NotInTime { streams }),
                None => answer.unknown.push(FaultReason::InTimeUnknown { streams }),
            }
        } else if incident.back_s.is_none() && incident.recovery.overloaded {
            answer.complaints.push(FaultReason::LagStayed { streams });
        }
        if incident.ejected_s.is_none() {
            answer.complaints.push(FaultReason::NewCallsLost { streams });
        }
        if incident.timeline.instance != BALANCER && incident.rejoined_s.is_none() {
            answer.complaints.push(FaultReason::NotServing { streams });
        }
    }
}
