//! `tape-doctor`: what can be seen from here, and what cannot.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::doctor::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
