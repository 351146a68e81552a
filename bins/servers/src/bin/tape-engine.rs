//! `tape-engine`: the built-in engine as a real process on real sockets.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_servers::tape_engine::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
