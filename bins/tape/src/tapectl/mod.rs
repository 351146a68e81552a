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

pub use args::{Args, ChannelArg, Command, Freeze, Moved, Phases, Resample, Scan, Show, Verify};
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
        Command::Completions(moved) => Err(Error::moved("completions", moved)),
        Command::Man(moved) => Err(Error::moved("man", moved)),
    }
}
