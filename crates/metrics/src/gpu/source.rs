//! Ways to read GPUs from elsewhere: an exporter's page, a command's output.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tapedeck_shell::{ShellCommand, ShellError};
use tapedeck_transport::{BoxFuture, Connector, Endpoint, HttpLimits, Secret};

use super::{GpuDevice, GpuError, SMI_COMMAND, from_dcgm_page, from_smi_csv};
use crate::scrape::fetch_page;

/// A way to read GPUs.
pub trait GpuSource: Send + Sync + fmt::Debug {
    /// Reads every GPU it knows.
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>>;
}

/// No GPU can be read, and why; what a rehearsal and a machine without a driver have in common.
#[derive(Debug, Clone)]
pub struct NoGpu(pub String);

impl GpuSource for NoGpu {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        let why = self.0.clone();
        Box::pin(async move { Err(GpuError::Absent(why)) })
    }
}

/// An exporter's page.
#[derive(Debug, Clone)]
pub struct Dcgm {
    /// How to get there.
    pub connector: Arc<dyn Connector>,
    /// The page.
    pub endpoint: Endpoint,
    /// Token, if the page wants one.
    pub bearer: Option<Secret>,
    /// Bounds of one reading.
    pub limits: HttpLimits,
}

impl GpuSource for Dcgm {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async move {
            let fetched = fetch_page(&*self.connector, &self.endpoint, self.bearer.as_ref(), self.limits)
                .await
                .map_err(|error| GpuError::Failed(error.to_string()))?;
            from_dcgm_page(&fetched.page).map_err(|error| match error {
                // A page without GPUs may carry them later: exporters start before the driver is asked.
                GpuError::Absent(why) | GpuError::Failed(why) => {
                    GpuError::Failed(format!("{}: {why}", self.endpoint))
                }
            })
        })
    }
}

/// Runs a command and reads its CSV.
#[derive(Debug, Clone)]
pub struct SmiCommand {
    /// The command, run through `sh -c`.
    pub command: String,
    /// After how long it is killed.
    pub timeout: Duration,
}

impl Default for SmiCommand {
    fn default() -> Self {
        Self { command: SMI_COMMAND.to_owned(), timeout: Duration::from_secs(5) }
    }
}

impl GpuSource for SmiCommand {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async move {
            // Many cards in one machine still print far less.
            let shell =
                ShellCommand { limit: self.timeout, kept_bytes: 1 << 20, ..ShellCommand::new(&self.command) };
            let done = shell.run().await.map_err(|error| {
                GpuError::Failed(match error {
                    ShellError::TimedOut(limit) => format!("{:?} took longer than {limit:?}", self.command),
                    error @ ShellError::NotRun(_) => format!("{:?} {error}", self.command),
                })
            })?;
            match from_smi_csv(&done.stdout) {
                Ok(gpus) => Ok(gpus),
                Err(error) if done.status.success() => Err(error),
                Err(_) => {
                    // nvidia-smi says what is wrong first, and on standard output.
                    let lines = done.stdout.lines().chain(done.stderr.lines());
                    let said = lines.map(str::trim).find(|line| !line.is_empty());
                    let said = said.unwrap_or("it said nothing").to_owned();
                    let why = format!("{:?} ended with {}: {said}", self.command, done.status);
                    // 127 is the shell's word for "no such command".
                    Err(if done.status.code() == Some(127) {
                        GpuError::Absent(why)
                    } else {
                        GpuError::Failed(why)
                    })
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_are_run_and_bounded() {
        let run = |command: &str, timeout: Duration| {
            let source = SmiCommand { command: command.to_owned(), timeout };
            async move { source.read().await }
        };
        let long = Duration::from_secs(60);
        let gpus = run("printf 'index, utilization.gpu [%%]\\n0, 12 %%\\n'", long).await.unwrap();
        assert_eq!(gpus[0].reading.utilisation, Some(0.12));
        let missing = run("tapedeck-no-such-command", long).await.unwrap_err();
        assert!(missing.is_final(), "{missing}");
        let failed = run("echo 'No permission' >&2; exit 4", long).await.unwrap_err();
        assert!(!failed.is_final() && failed.to_string().contains("No permission"), "{failed}");
        let slow = run("exec sleep 600", Duration::from_millis(20)).await.unwrap_err();
        assert!(slow.to_string().contains("took longer"), "{slow}");
    }
}
