//! `tape-doctor`: what can be seen from here, and what cannot.

use std::io::Write;

use clap::{Parser, Subcommand};
use tapedeck_record::ExitCode;

use crate::common::Failure;

mod metrics;

pub use metrics::{Args as MetricsArgs, Kind};

/// Looks before a run does: what can be seen from here, and what cannot.
#[derive(Debug, Parser)]
#[command(name = "tape-doctor", version)]
pub struct Cli {
    /// What to look at.
    #[command(subcommand)]
    pub command: Command,
}

/// What to look at.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what is understood of metrics pages and GPU read-outs
    ///
    /// Exit codes: 0 all is read and the red lines (KV pool, preemptions) can be watched; 1 a page is read, but they
    /// cannot; 2 a file or a flag is wrong; 3 a server does not answer, or not with metrics.
    Metrics(MetricsArgs),
}

/// Runs the command and writes what it finds to `out`.
///
/// # Errors
/// Wrong flags, files that cannot be read, a system that refuses a runtime.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Metrics(args) => metrics::run(args, out),
    }
}
