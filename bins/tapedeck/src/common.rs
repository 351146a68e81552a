//! The flags that every case shares, and what they come to.

use std::path::{Path, PathBuf};

use clap::Args;
use tapedeck_cases::{CaseError, Config, ConfigError};
use tapedeck_record::ExitCode;
use tapedeck_rundir::{RunDir, RunDirError, RunInfo, read_run};
use thiserror::Error;

/// The demo config, used by `--rehearse` when no other is given.
const DEMO: &str = include_str!("../../../fixtures/plans/demo.toml");
/// Where the demo config stands in a checkout; its paths are relative to it.
const DEMO_PATH: &str = "fixtures/plans/demo.toml";

/// Flags that every case shares.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Config file (TOML); see docs/config.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder under which the run makes its own [default: results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Play against the built-in engine under a paused clock; everything is then simulated
    #[arg(long)]
    pub rehearse: bool,
    /// Seed of everything random [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Go on with an interrupted run; without a folder, with the newest one of this case
    #[arg(long, value_name = "RUN_DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "clap's form of a flag with an optional value")]
    pub resume: Option<Option<PathBuf>>,
    /// Exit with 0 only if the capacity reaches N streams
    #[arg(long, value_name = "N")]
    pub require: Option<u32>,
    /// Print the answer only
    #[arg(long)]
    pub quiet: bool,
    /// Print one JSON object per event instead of a table
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}

/// Why a command gave up, with the exit code that says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A case could not be carried out.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// Flags that do not go together, or lack something.
    #[error("{0}")]
    Usage(String),
    /// The runtime or the signal handler could not be set up.
    #[error("the system refused to {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
}

impl Failure {
    /// What the command answers.
    #[must_use]
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Case(error) => error.exit_code(),
            Self::Usage(_) => ExitCode::Usage,
            Self::System { .. } => ExitCode::Environment,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Case(error.into())
    }
}

impl From<RunDirError> for Failure {
    fn from(error: RunDirError) -> Self {
        Self::Case(error.into())
    }
}

impl Common {
    /// The config that the flags name, with single keys overridden.
    ///
    /// # Errors
    /// A config that cannot be read, or none where one is needed.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None if self.rehearse => demo()?,
            None => {
                return Err(Failure::Usage(
                    "nothing to speak to: give --config FILE, or --rehearse to use the built-in engine".into(),
                ));
            }
        };
        if let Some(out) = &self.out {
            config.run.out.clone_from(out);
        }
        if let Some(seed) = self.seed {
            config.run.seed = seed;
        }
        Ok(config)
    }

    /// The run directory: a new one, or the one to go on with.
    ///
    /// # Errors
    /// A folder that cannot be made or is no run of this case.
    pub fn run_dir(&self, info: &RunInfo, config: &Config) -> Result<RunDir, Failure> {
        let text = config.to_toml()?;
        let Some(resume) = &self.resume else {
            return Ok(RunDir::create(&config.run.out, info, &text)?);
        };
        let path = match resume {
            Some(path) => path.clone(),
            None => newest(&config.run.out, &info.case)?,
        };
        let (was, _) = read_run(&path)?;
        if was.case != info.case || was.tapes != info.tapes {
            let what = format!("case {} on tapes {:?}", was.case, was.tapes);
            return Err(RunDirError::OtherSettings { path, what }.into());
        }
        Ok(RunDir::resume(&path, &text)?)
    }
}

/// The demo config with its paths where the fixtures are: in the checkout around the working directory, or
/// around the program itself.
fn demo() -> Result<Config, Failure> {
    let from_here = std::env::current_dir().ok();
    let from_program = std::env::current_exe().ok();
    let found = [from_here, from_program]
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(DEMO_PATH))
        .find(|path| path.is_file());
    match found {
        Some(path) => Ok(Config::read(&path)?),
        None => Ok(Config::parse(DEMO, Path::new(DEMO_PATH))?),
    }
}

/// The newest run of a case under a folder, by the name's own order of time.
fn newest(root: &Path, case: &str) -> Result<PathBuf, Failure> {
    let runs = std::fs::read_dir(root).into_iter().flatten().flatten().filter_map(|entry| {
        let changed = entry.metadata().ok()?.modified().ok()?;
        let (info, _) = read_run(&entry.path()).ok()?;
        (info.case == case).then(|| (changed, entry.path()))
    });
    runs.max().map(|(_, path)| path).ok_or_else(|| {
        Failure::Usage(format!("there is no run of {case} under {} to resume", root.display()))
    })
}

/// Prints a failure on standard error and turns the result into the process's exit code.
#[must_use]
#[expect(clippy::print_stderr, reason = "the one place where a command says why it gave up")]
pub fn exit(result: Result<ExitCode, Failure>) -> std::process::ExitCode {
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code().into()
        }
    }
}
