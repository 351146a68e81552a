//! `tape-gpu-exporter`: this machine's GPUs as a metrics page.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_gpu_exporter::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse()))
}
