//! `tapectl`: from a folder of recordings to a tape.

use clap::Parser as _;
use tapedeck::tapectl::{Args, exit, run};

fn main() -> std::process::ExitCode {
    exit(run(&Args::parse(), &mut std::io::stdout().lock()))
}
