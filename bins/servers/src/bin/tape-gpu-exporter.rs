//! `tape-gpu-exporter`: this machine's GPUs as a metrics page.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_servers::tape_gpu_exporter::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
