//! `tape-erlang`: from traffic to lines and back.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_calculators::tape_erlang::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
