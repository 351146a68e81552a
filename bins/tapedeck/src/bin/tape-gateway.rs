//! `tape-gateway`: calls in over a WebSocket, recognised by stock vLLM.

use std::process::ExitCode;

use clap::Parser;
use tapedeck::tape_gateway::{Cli, run};

fn main() -> ExitCode {
    tapedeck::common::exit(run(&Cli::parse()))
}
