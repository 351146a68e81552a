//! `tapectl freeze`: a manifest out of a pool.

use std::io::Write;
use std::path::{Path, PathBuf};

use tapedeck_audio::Channel;
use tapedeck_record::ExitCode;
use tapedeck_tape::{
    FreezeOptions, Manifest, Pool, ScanOptions, Spec, TapeError, copy_pool, freeze, read_tags, scan,
    write_atomic,
};

use super::args::Freeze;
use super::error::Error;
use super::progress;

pub(super) fn run(args: &Freeze, out: &mut impl Write) -> Result<ExitCode, Error> {
    let mut spec = Spec::parse(&args.spec)?;
    if let Some(name) = &args.name {
        spec.name.clone_from(name);
    }
    if !(0.0..=1.0).contains(&args.tolerance) {
        return Err(Error::Usage(format!(
            "--tolerance {}: give a share between 0 and 1, e.g. 0.1",
            args.tolerance
        )));
    }
    let pool = Pool::list(&args.pool)?;
    let bar = progress::bar(pool.files.len(), "reading");
    let options = ScanOptions { threads: args.jobs, hash: true };
    let mut reports = scan(&pool, options, &[].into(), |_| bar.inc(1));
    bar.finish_and_clear();
    if let Some(path) = &args.tags {
        let mut tags = read_tags(path)?;
        let known: Vec<&String> = tags.values().flat_map(|t| t.keys()).collect();
        if let Some(unknown) = args.by.iter().find(|tag| !known.contains(tag)) {
            return Err(Error::Usage(format!("--by {unknown}: {} has no such tag", path.display())));
        }
        for report in &mut reports {
            report.tags = tags.remove(&report.path).unwrap_or_default();
        }
    }
    let refused = reports.iter().filter(|r| !r.ok).count();
    if refused > 0 {
        writeln!(
            out,
            "{refused} of {} files cannot be used; `tapectl scan` lists them with reasons",
            reports.len()
        )?;
    }
    let default = PathBuf::from(format!("{}.json", spec.name));
    let file = args.out.as_deref().unwrap_or(&default);
    let channels: Vec<Option<Channel>> =
        args.channel.map_or(vec![None], |choice| choice.channels().iter().copied().map(Some).collect());
    for &channel in &channels {
        let options = FreezeOptions {
            spec: spec.clone(),
            seed: args.seed,
            tolerance: args.tolerance,
            strata: args.by.clone(),
            channel,
            threads: args.jobs,
        };
        let manifest = freeze(&args.pool, &reports, &options)?;
        let file = if channels.len() > 1 { with_channel(file, channel) } else { file.to_owned() };
        write(&manifest, &file, args.force)?;
        if let Some(to) = &args.with_pool {
            copy_pool(&manifest, &args.pool, to)?;
        }
        report(&manifest, &file, out)?;
    }
    Ok(ExitCode::Ok)
}

/// `tape.json` becomes `tape-left.json`.
fn with_channel(file: &Path, channel: Option<Channel>) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}-{}.json", channel.map_or("mono", Channel::name)))
}

/// Writes the manifest; one that says something else is not replaced unasked, because runs refer to it.
fn write(manifest: &Manifest, file: &Path, force: bool) -> Result<(), Error> {
    let text = manifest.to_text()?;
    match std::fs::read(file) {
        Ok(old) if old == text.as_bytes() => return Ok(()),
        Ok(_) if !force => {
            return Err(Error::Usage(format!(
                "{}: is there already and says something else; give --force to replace it, or another --out",
                file.display()
            )));
        }
        _ => {}
    }
    write_atomic(file, text.as_bytes()).map_err(|e| match e {
        TapeError::Io { path, why } => Error::Environment(format!("{}: {why}", path.display())),
        other => other.into(),
    })
}

fn report(manifest: &Manifest, file: &Path, out: &mut impl Write) -> Result<(), Error> {
    let seconds = manifest.duration_ms() / 1000;
    writeln!(out, "{}: {} calls, {seconds} s, seed {}", file.display(), manifest.calls.len(), manifest.seed)?;
    for call in manifest.calls.iter().filter(|c| c.speech.is_silent()) {
        writeln!(
            out,
            "  warning: {}: no speech was found in it, so it will never have a first text",
            call.id()
        )?;
    }
    Ok(())
}
