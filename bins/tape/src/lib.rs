//! `tapectl` and `tape-doctor`: what comes before a run.
pub mod doctor;
pub mod tapectl;

use clap::{Command, CommandFactory};

/// Every command of this package.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![doctor::Cli::command(), tapectl::Args::command()]
}
