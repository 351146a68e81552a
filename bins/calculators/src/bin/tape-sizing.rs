//! `tape-sizing`: memory per call, instances per card, what to promise, and what if.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_calculators::tape_sizing::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
