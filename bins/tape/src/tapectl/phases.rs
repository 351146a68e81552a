//! `tapectl phases`: who starts where.

use std::io::Write;

use serde_json::json;
use tapedeck_record::ExitCode;
use tapedeck_tape::Manifest;

use super::args::Phases;
use super::error::Error;

pub(super) fn run(args: &Phases, out: &mut impl Write) -> Result<ExitCode, Error> {
    let manifest = Manifest::read(&args.tape)?;
    super::show::check_ramp(args.ramp)?;
    let count = manifest.calls.len();
    if !args.json {
        writeln!(out, "Stream k starts with call k mod {count}, {} s after the one before it.", args.ramp)?;
        writeln!(out, "{:>6}  {:>8}  {:>4}  {:>8}  call", "stream", "start", "call", "length")?;
    }
    for stream in 0..args.streams {
        let start_s = f64::from(stream) * args.ramp;
        let index = usize::try_from(stream).unwrap_or(usize::MAX) % count.max(1);
        let Some(call) = manifest.calls.get(index) else { continue };
        if args.json {
            let line = json!({ "stream": stream, "start_s": start_s, "call": index, "id": call.id() });
            writeln!(out, "{line}")?;
        } else {
            let length_s = f64::from(call.duration_ms) / 1000.0;
            writeln!(out, "{stream:>6}  {start_s:>6.1} s  {index:>4}  {length_s:>6.1} s  {}", call.id())?;
        }
    }
    Ok(ExitCode::Ok)
}
