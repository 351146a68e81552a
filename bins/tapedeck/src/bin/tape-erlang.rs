//! `tape-erlang`: from traffic to lines and back.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_erlang::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
