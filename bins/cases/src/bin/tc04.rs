//! `tc04`: see whether more streams cost accuracy.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc04::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
