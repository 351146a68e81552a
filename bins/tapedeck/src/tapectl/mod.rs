//! `tapectl`: from a folder of recordings to a tape that one can trust.

mod args;
mod error;
mod freeze;
mod index;
mod phases;
mod progress;
mod resample;
mod scan;
mod show;
mod verify;

use std::io::Write;

use tapedeck_record::ExitCode;

use crate::commands;
pub use args::{Args, ChannelArg, Command, Completions, Freeze, Man, Phases, Resample, Scan, Show, Verify};
pub use error::Error;

/// Does what the command line asks; what there is to read goes to `out`.
///
/// # Errors
/// [`Error`] names the file, the reason and the way out, and knows its exit code.
pub fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode, Error> {
    match &args.command {
        Command::Scan(args) => scan::run(args, out),
        Command::Resample(args) => resample::run(args, out),
        Command::Freeze(args) => freeze::run(args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Phases(args) => phases::run(args, out),
        Command::Completions(args) => {
            commands::completions(args.shell, out)?;
            Ok(ExitCode::Ok)
        }
        Command::Man(args) => {
            let folder = args.folder.display();
            let pages = commands::manual(&args.folder)
                .map_err(|e| Error::Environment(format!("cannot write manual pages to {folder}: {e}")))?;
            writeln!(out, "{} pages in {folder}; try: man {folder}/tc03.1", pages.len())?;
            Ok(ExitCode::Ok)
        }
    }
}

/// Prints a failure on standard error and turns the result into the process's exit code.
#[must_use]
#[expect(clippy::print_stderr, reason = "the one place where the command says why it gave up")]
pub fn exit(result: Result<ExitCode, Error>) -> std::process::ExitCode {
    match result {
        Ok(code) => code.into(),
        // Whoever reads our output has read enough.
        Err(Error::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::Ok.into(),
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code().into()
        }
    }
}
