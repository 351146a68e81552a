//! `tc07`: compare ways to cut the GPUs into instances.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tc07::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
