//! `tc05`: soak for hours, and tell what only hours show.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc05::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
