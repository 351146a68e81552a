//! `tape-commands`: completions for shells, and manual pages, of all commands.

use clap::Parser;
use tapedeck_commands::{Cli, run};

fn main() -> std::process::ExitCode {
    tapedeck_cli::exit(run(&Cli::parse(), &mut std::io::stdout().lock()))
}
