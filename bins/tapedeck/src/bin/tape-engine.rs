//! `tape-engine`: the built-in engine as a real process on real sockets.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_engine::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse()))
}
