//! What can go wrong before or during a case, and the exit code it means.

use std::path::PathBuf;

use tapedeck_answers::LeftOut;
use tapedeck_config::ConfigError;
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_load::PrepareError;
use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_rundir::RunDirError;
use tapedeck_tape::TapeError;
use thiserror::Error;

/// A case that could not be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tape cannot be used.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// A tape that the case plays is not in the config.
    #[error("{}", self.text())]
    NoTape {
        /// Section that should name it.
        section: &'static str,
        /// How to mend it.
        hint: LocalizedText,
    },
    /// What an earlier case should have left is not there.
    #[error("{}", self.text())]
    Missing {
        /// What is missing.
        what: LocalizedText,
        /// The run directory.
        run: PathBuf,
        /// The command that makes it, or the flag that stands in for it.
        hint: LocalizedText,
    },
    /// The tape's audio cannot be cut for the dialect.
    #[error(transparent)]
    PreparedCalls(#[from] PrepareError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The environment cannot take the load.
    #[error("preflight: {what}; {hint}")]
    Preflight {
        /// What is missing.
        what: String,
        /// How to mend it.
        hint: String,
    },
    /// An instance went down, and did so again when the tier was repeated.
    #[error(
        "an instance went down twice in the same step: {why}; the earlier steps are kept, go on with --into and the folder of the run"
    )]
    InstanceDown {
        /// Which, and how it showed.
        why: String,
    },
    /// A GPU was too hot again and again in the same step.
    #[error(
        "GPU {gpu} reached {celsius} C, and the step was cut {times} times; see to its cooling, or raise \
         slo.live.gpu_pause_c; the earlier steps are kept, go on with --into and the folder of the run"
    )]
    TooHot {
        /// Which GPU.
        gpu: String,
        /// Its temperature when the step was cut for the last time, degrees Celsius.
        celsius: f64,
        /// How often the step was cut.
        times: u32,
    },
    /// Something has to be done to an instance, and cannot be.
    #[error("{}", what.text().en)]
    Control {
        /// What, to whom, why not, and how to mend it.
        what: LeftOut,
    },
}

/// What leaves a part of a campaign out has its Chinese; of the others, those who measured know their servers' words.
impl Localize for CaseError {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Config(error) => error.text(),
            Self::Control { what } => what.text(),
            Self::NoTape { section, hint } => {
                localized!("no [{section}] in the config: {}", "配置里没有 [{section}]：{}"; hint)
            }
            Self::Missing { what, run, hint } => {
                let run = run.display();
                localized!("{} in {run}; {}", "{run} 中：{}；{}"; what, hint)
            }
            other => LocalizedText::same(other.to_string()),
        }
    }
}

impl HasExitCode for CaseError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::RunDir(error) => error.exit_code(),
            Self::Config(_)
            | Self::Tape(_)
            | Self::PreparedCalls(_)
            | Self::NoTape { .. }
            | Self::Missing { .. }
            | Self::Control { .. } => ExitCode::Usage,
            Self::Preflight { .. } | Self::InstanceDown { .. } | Self::TooHot { .. } => ExitCode::Environment,
        }
    }
}
