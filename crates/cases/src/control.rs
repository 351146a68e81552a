//! Hands on the instances: start, stop, kill, freeze, with everything the commands say kept in the run directory.
//!
//! What may be done stands in the config: each `[[instances]]` block has `commands`, and one with `managed = false`
//! is never touched. A case that needs what it may not do says so and leaves it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tapedeck_config::{BALANCER, Commands, Config, InstanceConfig};
use tapedeck_fleet::{
    Action, Control, ControlError, Instance, Output, ShellControl, WaitRules, crash_cause, wait_healthy,
};
use tapedeck_record::{ControlRefusal, CrashCause};
use tapedeck_rundir::{EventDetail, RunDir};

use crate::error::CaseError;
use crate::progress::{Observer, Progress};
use crate::runner::note;
use crate::world::World;

/// The real hands: every command of the config, run in a shell.
#[must_use]
pub fn shell(config: &Config) -> Arc<dyn Control> {
    let mut commands = BTreeMap::new();
    if config.balancer.commands != Commands::default() {
        commands.insert(BALANCER.to_owned(), by_action(&config.balancer.commands));
    }
    let managed = |instances: &[InstanceConfig]| -> Vec<(String, BTreeMap<Action, String>)> {
        let ours = instances.iter().filter(|i| i.managed);
        ours.map(|i| (i.name.clone(), by_action(&i.commands))).collect()
    };
    commands.extend(managed(&config.instances));
    for topology in &config.topologies {
        commands.extend(managed(&topology.instances));
        if topology.balancer != Commands::default() {
            commands.insert(topology.balancer_name(), by_action(&topology.balancer));
        }
    }
    Arc::new(ShellControl { commands, timeout: None })
}

/// Commands of the config by what they do.
fn by_action(commands: &Commands) -> BTreeMap<Action, String> {
    let Commands { start, stop, kill, freeze, thaw, log } = commands.clone();
    let all = [
        (Action::Start, start),
        (Action::Stop, stop),
        (Action::Kill, kill),
        (Action::Freeze, freeze),
        (Action::Thaw, thaw),
        (Action::Log, log),
    ];
    all.into_iter().filter_map(|(action, command)| Some((action, command?))).collect()
}

/// Why something could not be done to the instances.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The config does not allow it, or gives no command for it.
    NotPossible(ControlRefusal),
    /// It was tried and failed.
    Failed(ControlRefusal),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPossible(why) | Self::Failed(why) => why.fmt(f),
        }
    }
}

impl Refusal {
    /// Why, in either case.
    #[must_use]
    pub fn into_reason(self) -> ControlRefusal {
        match self {
            Self::NotPossible(why) | Self::Failed(why) => why,
        }
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let why = ControlRefusal::Error { message: error.to_string() };
        match error {
            ControlError::NotManaged { .. } | ControlError::NoCommand { .. } => Self::NotPossible(why),
            ControlError::TimedOut { .. } | ControlError::Failed { .. } => Self::Failed(why),
        }
    }
}

/// Does one thing to one instance. What the command printed goes to `control/<seconds>-<instance>-<action>.log` in
/// the run directory, and an event says that it was done, or why not.
///
/// # Errors
/// Whatever the run directory refuses; a command that fails is the inner result.
pub async fn act(
    world: &World,
    dir: &mut RunDir,
    step: &str,
    instance: &str,
    action: Action,
) -> Result<Result<Output, Refusal>, CaseError> {
    let done = world.control.run(instance, action).await;
    match done {
        Ok(output) => {
            keep(world, dir, instance, action, &format!("{}{}", output.stdout, output.stderr))?;
            note(world, dir, step, action.name(), Some(instance.into()))?;
            Ok(Ok(output))
        }
        Err(error) => {
            let refusal = Refusal::from(error);
            if let Refusal::Failed(why) = &refusal {
                let why = why.to_string();
                keep(world, dir, instance, action, &why)?;
                note(world, dir, step, "command_failed", Some(EventDetail::Recorded(why)))?;
            }
            Ok(Err(refusal))
        }
    }
}

fn keep(world: &World, dir: &RunDir, instance: &str, action: Action, text: &str) -> Result<(), CaseError> {
    if text.is_empty() {
        return Ok(());
    }
    let name = format!("control/{:09.2}-{instance}-{action}.log", world.now_s());
    Ok(dir.write_file(&name, text.as_bytes())?)
}

/// Whether the instances can be restarted, and if not, why.
///
/// # Errors
/// [`Refusal::NotPossible`] naming the first instance that cannot, and the key that would change it.
pub fn can_restart(world: &World, instances: &[Instance]) -> Result<(), Refusal> {
    let can = |name: &str, action| world.control.can(name, action);
    for Instance { name, .. } in instances {
        let lacks = if !can(name, Action::Start) {
            Action::Start
        } else if !can(name, Action::Stop) && !can(name, Action::Kill) {
            Action::Stop
        } else {
            continue;
        };
        return Err(Refusal::NotPossible(ControlRefusal::NoRestart {
            instance: name.clone(),
            action: lacks.to_string(),
        }));
    }
    Ok(())
}

/// Stops and starts instances, all at once, and waits until every one of them is well. Returns the seconds it took.
///
/// # Errors
/// Whatever the run directory refuses; a restart that is not possible or fails is the inner result.
pub async fn restart(
    world: &World,
    dir: &mut RunDir,
    step: &str,
    instances: &[Instance],
    watch: &dyn Observer,
) -> Result<Result<f64, Refusal>, CaseError> {
    if let Err(refusal) = can_restart(world, instances) {
        return Ok(Err(refusal));
    }
    let from_s = world.now_s();
    watch.on(&Progress::Note { text: &format!("restarting {}", names(instances)) });
    for Instance { name, .. } in instances {
        let mut stopped = false;
        for action in [Action::Stop, Action::Kill] {
            if !stopped && world.control.can(name, action) {
                stopped = act(world, dir, step, name, action).await?.is_ok();
            }
        }
        // An instance that is down already cannot be stopped; starting it is what matters.
        if let Err(refusal) = act(world, dir, step, name, Action::Start).await? {
            return Ok(Err(refusal));
        }
    }
    match wait_healthy(&*world.connector, instances, WaitRules::default(), |_| {}).await {
        Ok(_) => {
            let seconds = world.now_s() - from_s;
            let instances = instances.iter().map(|i| i.name.clone()).collect();
            note(world, dir, step, "restarted", Some(EventDetail::Restarted { instances, seconds }))?;
            Ok(Ok(seconds))
        }
        Err(e) => {
            note(world, dir, step, "restart_failed", Some(EventDetail::Recorded(e.to_string())))?;
            Ok(Err(Refusal::Failed(ControlRefusal::Error { message: e.to_string() })))
        }
    }
}

/// What a step does after a drain that failed, or an instance that went down: a restart where the config allows it,
/// else a sentence about what that means.
///
/// # Errors
/// Whatever the run directory refuses.
pub(crate) async fn recover(
    world: &World,
    dir: &mut RunDir,
    step: &str,
    watch: &dyn Observer,
) -> Result<(), CaseError> {
    if let Err(refusal) = restart(world, dir, step, &world.instances, watch).await? {
        let detail = EventDetail::NoRestart { why: refusal.into_reason() };
        watch.on(&Progress::Note { text: &detail.to_string() });
        note(world, dir, step, "restart_not_possible", Some(detail))?;
    }
    Ok(())
}

/// What the log of an instance that went down says of its death, where the config gives a command for the log; all of it
/// is kept in the run directory.
///
/// # Errors
/// Whatever the run directory refuses.
pub(crate) async fn post_mortem(
    world: &World,
    dir: &mut RunDir,
    step: &str,
    instance: &str,
) -> Result<Option<CrashCause>, CaseError> {
    if !world.control.can(instance, Action::Log) {
        return Ok(None);
    }
    let Ok(Output { stdout, stderr }) = act(world, dir, step, instance, Action::Log).await? else {
        return Ok(None);
    };
    Ok(crash_cause(&format!("{stdout}\n{stderr}")))
}

fn names(instances: &[Instance]) -> String {
    instances.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Waits until one instance is well, at most so long. Returns when that was, seconds on the run's clock.
pub(crate) async fn until_well(world: &World, instance: &Instance, timeout: Duration) -> Option<f64> {
    let rules = WaitRules { timeout, ..WaitRules::default() };
    let one = std::slice::from_ref(instance);
    wait_healthy(&*world.connector, one, rules, |_| {}).await.ok().map(|_| world.now_s())
}
