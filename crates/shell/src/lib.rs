//! Commands of the config, run through `sh -c`: bounded in time and in what is kept of their output.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use tapedeck_shell::ShellCommand;
//!
//! let done = ShellCommand::new("echo three; exit 3").run().await?;
//! assert_eq!((done.stdout.as_str(), done.status.code()), ("three\n", Some(3)));
//! # Ok::<(), tapedeck_shell::ShellError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A command inherits the environment and reads nothing. When its time is up, or nobody waits for it any more, its shell
//! is killed; what the shell has started in the background is not.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

/// What to run, and its bounds.
#[derive(Debug, Clone, Copy)]
pub struct ShellCommand<'a> {
    /// The command.
    pub command: &'a str,
    /// After how long it is killed; 2 min by default.
    pub limit: Duration,
    /// How much of its output is kept, bytes of its beginning; 64 KiB by default.
    pub kept_bytes: usize,
    /// Keep as much of the end of the output, too: a log says what matters at its start and at its end.
    pub keep_end: bool,
    /// Run it in a process group of its own: Ctrl-C in our terminal is then not sent to a server that it has started.
    pub own_group: bool,
}

/// A command that came to its end, well or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output, as far as it was kept.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
}

/// A command that did not come to its end.
#[derive(Debug, Error)]
pub enum ShellError {
    /// It could not be started, or its output not be read.
    #[error("could not be run: {0}")]
    NotRun(#[from] std::io::Error),
    /// It took too long.
    #[error("took longer than {0:?} and was ended")]
    TimedOut(Duration),
}

impl<'a> ShellCommand<'a> {
    /// A command with the usual bounds.
    #[must_use]
    pub const fn new(command: &'a str) -> Self {
        Self {
            command,
            limit: Duration::from_secs(120),
            kept_bytes: 64 << 10,
            keep_end: false,
            own_group: false,
        }
    }

    /// Runs it to its end. All of its output is read as it is printed, whatever is kept of it.
    ///
    /// # Errors
    /// When it could not be run, or not within the limit. A status that is not 0 is no error here.
    pub async fn run(&self) -> Result<Finished, ShellError> {
        let finished =
            timeout(self.limit, self.finish()).await.map_err(|_| ShellError::TimedOut(self.limit))?;
        Ok(finished?)
    }

    async fn finish(&self) -> std::io::Result<Finished> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(self.command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.own_group {
            command.process_group(0);
        }
        let mut child = command.kill_on_drop(true).spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr, status) =
            tokio::join!(biased; self.read(stdout), self.read(stderr), child.wait());
        Ok(Finished { status: status?, stdout: stdout?, stderr: stderr? })
    }

    /// Reads to the end and keeps the first part, and the last where it is wanted: output of any size costs bounded
    /// memory.
    async fn read(&self, stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
        let Some(mut stream) = stream else { return Ok(String::new()) };
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let mut left_out = false;
        loop {
            let into = if first.len() < self.kept_bytes { &mut first } else { &mut last };
            if stream.read_buf(into).await? == 0 {
                break;
            }
            let spare = first.len().saturating_sub(self.kept_bytes);
            if spare > 0 {
                let over = first.split_off(first.len() - spare);
                last.splice(..0, over);
            }
            if last.len() > 2 * self.kept_bytes {
                last.drain(..last.len() - self.kept_bytes);
                left_out = true;
            }
        }
        if !self.keep_end {
            return Ok(String::from_utf8_lossy(&first).into_owned());
        }
        let between: &[u8] = if left_out { b"\n[...]\n" } else { b"" };
        Ok(String::from_utf8_lossy(&[&first, between, &last].concat()).into_owned())
    }
}

impl Finished {
    /// The last line that says anything: on standard error, else on standard output.
    #[must_use]
    pub fn last_words(&self) -> &str {
        let lines = self.stdout.lines().chain(self.stderr.lines());
        lines.map(str::trim_end).rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_kept_and_failures_have_their_last_words() {
        let done = ShellCommand::new("printf 'vllm 0.11.0\\n\\n'").run().await.unwrap();
        assert_eq!((done.stdout.as_str(), done.status.success()), ("vllm 0.11.0\n\n", true));
        let failed = ShellCommand::new("echo so far; echo no such host >&2; exit 3").run().await.unwrap();
        assert_eq!((failed.last_words(), failed.status.code()), ("no such host", Some(3)));
        let silent = ShellCommand::new("exit 1").run().await.unwrap();
        assert_eq!(silent.last_words(), "it said nothing");
        let slow = ShellCommand { limit: Duration::from_millis(20), ..ShellCommand::new("exec sleep 600") };
        let error = slow.run().await.unwrap_err();
        assert!(matches!(error, ShellError::TimedOut(_)) && error.to_string().contains("took longer"));
    }

    #[tokio::test]
    async fn a_flood_is_read_to_its_end_and_cut() {
        let flood = "head -c 300000 /dev/zero | tr '\\0' x; echo end";
        let kept = ShellCommand::new(flood).run().await.unwrap().stdout;
        assert_eq!(kept.len(), 64 << 10);
        let both = ShellCommand { keep_end: true, ..ShellCommand::new(flood) }.run().await.unwrap().stdout;
        assert!(both.starts_with("xxx") && both.contains("\n[...]\n") && both.ends_with("xend\n"));
        assert!(both.len() < 200_000, "{}", both.len());
        let short = ShellCommand { kept_bytes: 4, keep_end: true, ..ShellCommand::new("printf 12345678") };
        assert_eq!(short.run().await.unwrap().stdout, "12345678");
    }
}
