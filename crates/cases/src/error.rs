//! What can go wrong before or during a case, and the exit code it means.

use std::path::{Path, PathBuf};

use tapedeck_answers::LeftOut;
use tapedeck_l10n::Localize;
use tapedeck_load::DeckError;
use tapedeck_record::ExitCode;
use tapedeck_rundir::RunDirError;
use tapedeck_tape::TapeError;
use thiserror::Error;

/// The config file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}; give a config's path, `tape-doctor --init FILE` writes one", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// It is not TOML, or holds a key that is not known.
    #[error("{}:{line}:{column}: {message}{hint}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// The nearest known key, as a question; may be empty.
        hint: String,
    },
    /// A value that cannot work.
    #[error("config key {key}: {why}")]
    Value {
        /// The key, dotted.
        key: String,
        /// What is wrong and what to write instead.
        why: String,
    },
}

impl ConfigError {
    pub(crate) fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        // What a number is called inside says nothing to who writes a config.
        let message = error.message().trim().replace('\n', " ");
        let message = message
            .replace("expected f64", "expected a number (its unit is the end of the key)")
            .replace("expected u32", "expected a whole number (its unit is the end of the key)")
            .replace("expected u64", "expected a whole number (its unit is the end of the key)")
            .replace("expected usize", "expected a whole number");
        let hint = nearest(&message).map(|key| format!(": did you mean `{key}`?")).unwrap_or_default();
        Self::Syntax { path: path.to_path_buf(), line, column, message, hint }
    }
}

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
    #[error("no [{section}] in the config: {mend}")]
    NoTape {
        /// Section that should name it.
        section: &'static str,
        /// How to mend it.
        mend: &'static str,
    },
    /// What an earlier case should have left is not there.
    #[error("{what} in {}; {mend}", run.display())]
    Missing {
        /// What is missing.
        what: String,
        /// The run directory.
        run: PathBuf,
        /// The command that makes it, or the flag that stands in for it.
        mend: String,
    },
    /// The tape's audio cannot be cut for the dialect.
    #[error(transparent)]
    Deck(#[from] DeckError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The environment cannot take the load.
    #[error("preflight: {what}; {mend}")]
    Preflight {
        /// What is missing.
        what: String,
        /// How to mend it.
        mend: String,
    },
    /// An instance went down, and did so again when the tier was repeated.
    #[error(
        "an instance went down twice in the same step: {why}; the earlier steps are kept, go on with --into and the folder of the run"
    )]
    InstanceDown {
        /// Which, and how it showed.
        why: String,
    },
    /// Something has to be done to an instance, and cannot be.
    #[error("{}", what.text().en)]
    Control {
        /// What, to whom, why not, and how to mend it.
        what: LeftOut,
    },
    /// The answer cannot be written down.
    #[error("the answer cannot be written as JSON: {0}")]
    Answer(serde_json::Error),
}

impl CaseError {
    pub(crate) const fn answer(error: serde_json::Error) -> Self {
        Self::Answer(error)
    }

    /// What the command line answers.
    #[must_use]
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_)
            | Self::Tape(_)
            | Self::Deck(_)
            | Self::NoTape { .. }
            | Self::Missing { .. }
            | Self::Control { .. } => ExitCode::Usage,
            Self::RunDir(RunDirError::OtherSettings { .. } | RunDirError::NotARun { .. }) => ExitCode::Usage,
            Self::RunDir(_) | Self::Preflight { .. } | Self::InstanceDown { .. } | Self::Answer(_) => {
                ExitCode::Environment
            }
        }
    }
}

/// Finds, in serde's "unknown field `a`, expected one of `b`, `c`", the expected name nearest to the unknown.
fn nearest(message: &str) -> Option<String> {
    if !message.contains("unknown field") && !message.contains("unknown variant") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest_of(unknown, quoted)
}

/// The name that is nearest to an unknown one, if any is near.
pub(crate) fn nearest_of<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().max(unknown.len()) / 2)
        .map(|(_, known)| known.to_string())
}
