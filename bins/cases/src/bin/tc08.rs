//! `tc08`: play the middle tier again and see whether it drifted.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc08::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
