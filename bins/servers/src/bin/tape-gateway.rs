//! `tape-gateway`: calls in over a WebSocket, recognised by stock vLLM.

use std::process::ExitCode;

use clap::Parser;
use tapedeck_servers::tape_gateway::{Cli, run};

fn main() -> ExitCode {
    tapedeck_cli::exit(run(&Cli::parse()))
}
