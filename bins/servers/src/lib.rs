//! What serves: an engine that is built in, a gateway in front of vLLM, the GPUs of a machine.
pub mod tape_engine;
pub mod tape_gateway;
pub mod tape_gpu_exporter;

use clap::{Command, CommandFactory};

/// Every command of this package.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![tape_engine::Cli::command(), tape_gateway::Cli::command(), tape_gpu_exporter::Cli::command()]
}
