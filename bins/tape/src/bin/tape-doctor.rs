//! `tape-doctor`: what can be seen from here, and what cannot.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_tape_bins::doctor::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
