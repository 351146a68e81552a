//! The cases at the command line, as a library, so that tests and completions know their flags.
mod assertions;
pub mod campaign;
pub mod common;
pub mod console;
mod expose;
pub mod tape_arrivals;
pub mod tape_stream;
pub mod tc01;
pub mod tc02;
pub mod tc03;
pub mod tc03b;
pub mod tc04;
pub mod tc05;
pub mod tc06;
pub mod tc07;
pub mod tc08;

use clap::{Command, CommandFactory};

/// Every command of this package.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![
        tc01::Cli::command(),
        tc02::Cli::command(),
        tc03::Cli::command(),
        tc03b::Cli::command(),
        tc04::Cli::command(),
        tc05::Cli::command(),
        tc06::Cli::command(),
        tc07::Cli::command(),
        tc08::Cli::command(),
        campaign::Cli::command(),
        tape_arrivals::Cli::command(),
        tape_stream::Cli::command(),
    ]
}
