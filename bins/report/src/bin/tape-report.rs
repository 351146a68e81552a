//! `tape-report`: turn a run directory into a report.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_report_bins::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()).map_err(Into::into))
}
