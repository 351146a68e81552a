//! `tape-wer`: word and character error rates of transcripts.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_calculators::tape_wer::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
