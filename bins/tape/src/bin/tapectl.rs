//! `tapectl`: from a folder of recordings to a tape.

use clap::Parser as _;
use tapedeck_tape_bins::tapectl::{Args, run};

fn main() -> std::process::ExitCode {
    tapedeck_cli::exit(run(&Args::parse(), &mut std::io::stdout().lock()).map_err(Into::into))
}
