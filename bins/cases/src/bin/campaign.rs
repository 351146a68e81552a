//! `campaign`: play the whole plan, unattended.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::campaign::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
