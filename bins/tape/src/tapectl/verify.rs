//! `tapectl verify`: is the tape still the tape?

use std::io::Write;

use tapedeck_record::ExitCode;
use tapedeck_tape::{Manifest, verify};

use super::args::Verify;
use super::error::Error;

pub(super) fn run(args: &Verify, out: &mut impl Write) -> Result<ExitCode, Error> {
    let manifest = Manifest::read(&args.tape)?;
    let findings = verify(&manifest, &args.pool, args.jobs)?;
    if findings.is_empty() {
        writeln!(out, "{}: all {} calls are what was frozen", args.tape.display(), manifest.calls.len())?;
        return Ok(ExitCode::Ok);
    }
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let count = match findings.len() {
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    writeln!(out, "{}: {count}; this is not the tape that was frozen", args.tape.display())?;
    Ok(ExitCode::No)
}
