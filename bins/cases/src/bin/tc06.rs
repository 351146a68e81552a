//! `tc06`: kill an instance under load, and tell what followed.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc06::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
