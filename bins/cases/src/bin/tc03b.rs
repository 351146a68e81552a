//! `tc03b`: see whether N* holds with long calls.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc03b::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
