//! Starting, stopping, killing and freezing instances, through commands from the config.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_metrics::{PoolInfo, pool_from_log};
use tapedeck_shell::{ShellCommand, ShellError};
use tapedeck_transport::BoxFuture;
use thiserror::Error;

/// What can be done to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start it; health is waited for apart.
    Start,
    /// Stop it in good order.
    Stop,
    /// End it at once.
    Kill,
    /// Freeze it: alive, and silent (SIGSTOP).
    Freeze,
    /// Let it go on (SIGCONT).
    Thaw,
    /// Print its log.
    Log,
}

impl Action {
    /// The key in the config.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::Log => "log",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a command printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output; of a long one the beginning and the end.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
}

/// Why an action could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The config says to keep hands off.
    #[error(
        "{instance} is not managed, so it cannot be told to {action}; set managed = true and give the command"
    )]
    NotManaged {
        /// Which instance.
        instance: String,
        /// What was to be done.
        action: Action,
    },
    /// No such command in the config.
    #[error("{instance} has no {action} command; add `{action} = \"...\"` to its commands in the config")]
    NoCommand {
        /// Which instance.
        instance: String,
        /// What was to be done.
        action: Action,
    },
    /// It took too long and its shell was ended.
    #[error(
        "{action} of {instance} was not done within {limit:?}: {command}; does what it starts hold on to the terminal?"
    )]
    TimedOut {
        /// Which instance.
        instance: String,
        /// What was to be done.
        action: Action,
        /// The command.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// It failed.
    #[error("{action} of {instance} failed ({how}): {command}: {said}")]
    Failed {
        /// Which instance.
        instance: String,
        /// What was to be done.
        action: Action,
        /// The command.
        command: String,
        /// How it ended.
        how: String,
        /// The last it said.
        said: String,
    },
}

/// Does things to instances. A rehearsal replaces it by one that talks to the built-in engine.
pub trait Control: Send + Sync + fmt::Debug {
    /// Whether an action is possible at all, so that a case can say beforehand what it cannot do.
    fn can(&self, instance: &str, action: Action) -> bool;
    /// Does it.
    fn run<'a>(&'a self, instance: &'a str, action: Action) -> BoxFuture<'a, Result<Output, ControlError>>;
}

/// The KV pool as an instance's log tells it; empty if the log says nothing of one.
///
/// # Errors
/// When the log cannot be had.
pub async fn pool_from(control: &dyn Control, instance: &str) -> Result<Option<PoolInfo>, ControlError> {
    let log = control.run(instance, Action::Log).await?;
    // Python's logging goes to standard error unless somebody redirects it.
    Ok(pool_from_log(&log.stdout).or_else(|| pool_from_log(&log.stderr)))
}

/// Runs the config's commands in a shell.
#[derive(Debug, Clone, Default)]
pub struct ShellControl {
    /// Commands by instance and action, each run through `sh -c` on the client's machine; an instance that is not here is
    /// not managed.
    pub commands: BTreeMap<String, BTreeMap<Action, String>>,
    /// Limit of one command.
    pub timeout: Option<Duration>,
}

/// Limit of one command unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How much of a command's output is kept at least, bytes, of its beginning and of its end.
const KEPT_BYTES: usize = 4 << 20;

impl Control for ShellControl {
    fn can(&self, instance: &str, action: Action) -> bool {
        self.commands.get(instance).is_some_and(|commands| commands.contains_key(&action))
    }

    fn run<'a>(&'a self, instance: &'a str, action: Action) -> BoxFuture<'a, Result<Output, ControlError>> {
        Box::pin(async move {
            let name = || instance.to_owned();
            let commands = self
                .commands
                .get(instance)
                .ok_or_else(|| ControlError::NotManaged { instance: name(), action })?;
            let command =
                commands.get(&action).ok_or_else(|| ControlError::NoCommand { instance: name(), action })?;
            let limit = self.timeout.unwrap_or(TIMEOUT);
            let failed = |how: String, said: String| ControlError::Failed {
                instance: name(),
                action,
                command: command.clone(),
                how,
                said,
            };
            // What it starts must outlive a Ctrl-C that is meant for us.
            let shell = ShellCommand {
                limit,
                kept_bytes: KEPT_BYTES,
                keep_end: true,
                own_group: true,
                ..ShellCommand::new(command)
            };
            match shell.run().await {
                Ok(done) if done.status.success() => Ok(Output { stdout: done.stdout, stderr: done.stderr }),
                Ok(done) => Err(failed(done.status.to_string(), done.last_words().to_owned())),
                Err(ShellError::NotRun(error)) => {
                    Err(failed("it could not be run".to_owned(), error.to_string()))
                }
                Err(ShellError::TimedOut(limit)) => {
                    let command = command.clone();
                    Err(ControlError::TimedOut { instance: name(), action, command, limit })
                }
            }
        })
    }
}
