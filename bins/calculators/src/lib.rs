//! Answers without a server: traffic, memory, words.
pub mod tape_erlang;
pub mod tape_sizing;
pub mod tape_wer;

use clap::{Command, CommandFactory};

/// Every command of this package.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![tape_erlang::Cli::command(), tape_sizing::Cli::command(), tape_wer::Cli::command()]
}
