//! `tapectl scan`: what lies in a pool.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use tapedeck_record::ExitCode;
use tapedeck_tape::{FileReport, Pool, PoolFile, ScanOptions, TapeError, nominal_bucket, read_tags, scan};

use super::args::Scan;
use super::error::Error;
use super::index::Index;
use super::progress;

/// Files listed by name before the rest is only counted.
const LISTED: usize = 200;

pub(super) fn run(args: &Scan, out: &mut impl Write) -> Result<ExitCode, Error> {
    if !(0.0..=1.0).contains(&args.tolerance) {
        return Err(Error::Usage(format!(
            "--tolerance {}: give a share between 0 and 1, e.g. 0.1",
            args.tolerance
        )));
    }
    let pool = list(&args.pool)?;
    let opened = if args.no_index { None } else { Index::open(args.index.as_deref(), &args.pool) };
    let (mut index, known) = opened.map_or((None, BTreeMap::new()), |(index, known)| (Some(index), known));
    let bar = progress::bar(pool.files.len(), "scanning");
    let options = ScanOptions { threads: args.jobs, hash: args.md5 };
    let mut reports = scan(&pool, options, &known, |report| {
        bar.inc(1);
        if let Some(index) = &mut index {
            index.note(report);
        }
    });
    bar.finish_and_clear();
    if let Some(index) = index {
        // Without an index the next scan only takes longer.
        let _ = index.finish(&reports);
    }
    if let Some(path) = &args.tags {
        let mut tags = read_tags(path)?;
        for report in &mut reports {
            report.tags = tags.remove(&report.path).unwrap_or_default();
        }
    }
    if args.json {
        for report in &reports {
            writeln!(out, "{}", line(report))?;
        }
    } else {
        summary(args, &pool, &reports, out)?;
    }
    let usable = reports.iter().filter(|r| r.ok).count();
    let good = usable > 0 && !(args.strict && usable < reports.len());
    Ok(if good { ExitCode::Ok } else { ExitCode::No })
}

/// A folder as a pool, a file as a pool of one.
fn list(path: &Path) -> Result<Pool, Error> {
    let meta = path.metadata().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => TapeError::NotAPool { path: path.to_owned() },
        _ => TapeError::Io { path: path.to_owned(), why: e.to_string() },
    })?;
    if meta.is_dir() {
        return Ok(Pool::list(path)?);
    }
    if !meta.is_file() {
        return Err(TapeError::NotAPool { path: path.to_owned() }.into());
    }
    let file = PoolFile {
        path: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        at: path.to_owned(),
        bytes: meta.len(),
        modified_ns: 0,
    };
    Ok(Pool { files: vec![file], ..Pool::default() })
}

/// One file for another program.
fn line(report: &FileReport) -> serde_json::Value {
    json!({
        "path": report.path,
        "ok": report.ok,
        "encoding": report.encoding,
        "sample_rate_hz": report.sample_rate_hz,
        "channels": report.channels,
        "frames": report.frames,
        "duration_s": report.duration_s,
        "warnings": report.warnings,
        "error": report.error,
        "bytes": report.bytes,
        "md5": report.md5,
        "tags": report.tags,
    })
}

fn summary(args: &Scan, pool: &Pool, reports: &[FileReport], out: &mut impl Write) -> Result<(), Error> {
    let usable: Vec<&FileReport> = reports.iter().filter(|r| r.ok).collect();
    // The sum of nothing is -0.
    let hours = usable.iter().filter_map(|r| r.duration_s).sum::<f64>() / 3600.0 + 0.0;
    writeln!(
        out,
        "{}: {} recordings, {} usable ({hours:.2} h), {} refused, {} other files not looked at",
        args.pool.display(),
        reports.len(),
        usable.len(),
        reports.len() - usable.len(),
        pool.others,
    )?;
    let mut per_bucket: BTreeMap<Option<u32>, (usize, f64)> =
        args.buckets.iter().map(|&b| (Some(b), (0, 0.0))).collect();
    for report in &usable {
        let bucket = report.duration_ms().and_then(|ms| nominal_bucket(ms, &args.buckets, args.tolerance));
        let slot = per_bucket.entry(bucket).or_default();
        slot.0 += 1;
        slot.1 += report.duration_s.unwrap_or(0.0);
    }
    writeln!(out, "\nbucket (+-{:.0} %)    calls      hours", args.tolerance * 100.0)?;
    for (bucket, (calls, seconds)) in
        per_bucket.iter().filter(|(b, _)| b.is_some()).chain(per_bucket.iter().filter(|(b, _)| b.is_none()))
    {
        let name = bucket.map_or_else(|| "none of them".to_owned(), |b| format!("{b} s"));
        writeln!(out, "{name:>14}  {calls:>9}  {:>9.2}", seconds / 3600.0)?;
    }
    let format = |r: &&FileReport| {
        let channels = if r.channels == Some(2) { "stereo" } else { "mono" };
        format!("{} {} Hz {channels}", r.encoding.as_deref().unwrap_or("?"), r.sample_rate_hz.unwrap_or(0))
    };
    count("format", usable.iter().map(format), out)?;
    let tags = usable.iter().flat_map(|r| r.tags.iter().map(|(tag, value)| format!("{tag} = {value}")));
    count("tag", tags, out)?;
    twins(&usable, out)?;
    let odd = usable.iter().flat_map(|r| r.warnings.iter().map(|w| (r.path.as_str(), w.as_str())));
    named("Usable, but odd:", odd, out)?;
    let bad = reports.iter().filter_map(|r| r.error.as_deref().map(|why| (r.path.as_str(), why)));
    named("Refused:", bad, out)
}

fn count(what: &str, names: impl Iterator<Item = String>, out: &mut impl Write) -> Result<(), Error> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    if !counts.is_empty() {
        writeln!(out, "\n{what}")?;
    }
    for (name, n) in counts {
        writeln!(out, "{n:>9}  {name}")?;
    }
    Ok(())
}

fn twins(usable: &[&FileReport], out: &mut impl Write) -> Result<(), Error> {
    let mut by_content: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for report in usable {
        if let Some(md5) = &report.md5 {
            by_content.entry(md5).or_default().push(&report.path);
        }
    }
    let same = by_content.values().filter(|paths| paths.len() > 1);
    named(
        "The same bytes twice (a tape takes the first):",
        same.filter_map(|p| Some((*p.first()?, *p.get(1)?))),
        out,
    )
}

fn named<'a>(
    title: &str,
    lines: impl Iterator<Item = (&'a str, &'a str)>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let lines: Vec<_> = lines.collect();
    if !lines.is_empty() {
        writeln!(out, "\n{title}")?;
    }
    for (path, why) in lines.iter().take(LISTED) {
        writeln!(out, "  {path}: {why}")?;
    }
    if lines.len() > LISTED {
        writeln!(out, "  and {} more; `--json` lists them all", lines.len() - LISTED)?;
    }
    Ok(())
}
