//! `tape-stream`: chat completions, measured piece by piece.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_stream::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
