//! `tape-arrivals`: callers who come when they come, beside Erlang B and C.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_arrivals::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
