//! Starting, stopping, killing and freezing instances, through commands from the config.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapedeck_metrics::{PoolInfo, pool_from_log};
use tapedeck_transport::BoxFuture;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

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
            let (status, output) = match timeout(limit, shell(command)).await {
                Ok(Ok(done)) => done,
                Ok(Err(error)) => return Err(failed("it could not be run".to_owned(), error.to_string())),
                Err(_) => {
                    let command = command.clone();
                    return Err(ControlError::TimedOut { instance: name(), action, command, limit });
                }
            };
            if status.success() {
                return Ok(output);
            }
            let said =
                output.stdout.lines().chain(output.stderr.lines()).rfind(|line| !line.trim().is_empty());
            Err(failed(status.to_string(), said.unwrap_or("it said nothing").to_owned()))
        })
    }
}

/// Runs a command to its end, reading what it prints as it prints it.
async fn shell(command: &str) -> std::io::Result<(std::process::ExitStatus, Output)> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C in our terminal is meant for us, not for a server that a command has just started.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(biased; both_ends(stdout), both_ends(stderr), child.wait());
    Ok((status?, Output { stdout: stdout?, stderr: stderr? }))
}

/// Reads to the end and keeps the first and the last part, so that a log of any size costs bounded memory and still has
/// both what the server said at its start and what it said last.
async fn both_ends(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let mut left_out = false;
    loop {
        let read = if first.len() < KEPT_BYTES {
            stream.read_buf(&mut first).await?
        } else {
            stream.read_buf(&mut last).await?
        };
        if read == 0 {
            break;
        }
        if last.len() > 2 * KEPT_BYTES {
            last.drain(..last.len() - KEPT_BYTES);
            left_out = true;
        }
    }
    let mut text = String::from_utf8_lossy(&first).into_owned();
    if left_out {
        text.push_str("\n[...]\n");
    }
    text.push_str(&String::from_utf8_lossy(&last));
    Ok(text)
}
