//! `tc01`: play one stream and see what a call costs when nobody else is there.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc01::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
