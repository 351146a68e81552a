//! The command `tape-report` as a library, so that tests can call it.

use std::path::PathBuf;

use clap::Parser;
use tapedeck_report::{Answer, Lang, Run, Wanted, write_report};

/// arguments
#[derive(Debug, Parser)]
pub struct Cli {
    /// run
    pub run: PathBuf,
}

/// run
///
/// # Errors
/// io
pub fn run(cli: &Cli) -> Result<(), Box<dyn std::error::Error>> {
    let run = Run::read(&cli.run)?;
    let answer = Answer::of(&run);
    for lang in Lang::ALL {
        write_report(&run, &answer, Wanted { lang, texts: false, plots: lang == Lang::En }, &cli.run)?;
    }
    Ok(())
}
