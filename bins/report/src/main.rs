//! `tape-report`: turn a run directory into a report.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_report_bins::{Cli, run};

#[expect(clippy::print_stderr, reason = "the one place where the command says why it gave up")]
fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code().into()
        }
    }
}
