//! `tc02`: measure what streams cost in memory.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc02::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
