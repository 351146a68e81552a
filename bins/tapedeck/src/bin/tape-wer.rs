//! `tape-wer`: word and character error rates of transcripts.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_wer::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
