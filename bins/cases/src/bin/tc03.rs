//! `tc03`: climb a ladder of concurrent calls and find N*.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc03::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
