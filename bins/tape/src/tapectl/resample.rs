//! `tapectl resample`: a whole pool as 16 kHz s16 WAV.

use std::io::Write;
use std::path::{Path, PathBuf};

use tapedeck_audio::{Channel, Preparer, RATE_HZ, read_bytes, wav_bytes};
use tapedeck_record::ExitCode;
use tapedeck_tape::{FileReport, Pool, ScanOptions, TapeError, for_each, scan, write_atomic};

use super::args::Resample;
use super::error::Error;
use super::progress;

/// Bytes of a WAV header as we write it.
const HEADER_BYTES: u64 = 44;
/// Room that must stay free on the disk, bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// One recording to convert.
#[derive(Debug)]
struct Job {
    from: PathBuf,
    /// Channel to take and file to write.
    to: Vec<(Option<Channel>, PathBuf)>,
    bytes_each: u64,
}

pub(super) fn run(args: &Resample, out: &mut impl Write) -> Result<ExitCode, Error> {
    let pool = Pool::list(&args.pool)?;
    std::fs::create_dir_all(&args.out)
        .map_err(|e| Error::Environment(format!("{}: {e}", args.out.display())))?;
    let (from, to) = (args.pool.canonicalize(), args.out.canonicalize());
    if let (Ok(from), Ok(to)) = (from, to)
        && to.starts_with(&from)
    {
        return Err(Error::Usage(format!(
            "{}: lies within the pool, where its files would count as recordings; give a folder outside",
            args.out.display()
        )));
    }
    let reports = scan(&pool, ScanOptions { threads: args.jobs, hash: false }, &[].into(), |_| ());
    let mut failed: Vec<(String, String)> = Vec::new();
    let mut jobs = Vec::new();
    let mut done = 0;
    for report in &reports {
        match plan(args, report) {
            Ok(job) if job.to.is_empty() => done += 1,
            Ok(job) => jobs.push(job),
            Err(why) => failed.push((report.path.clone(), why)),
        }
    }
    room(&args.out, jobs.iter().map(|job| job.bytes_each * job.to.len() as u64).sum())?;
    let bar = progress::bar(jobs.len(), "resampling");
    let results = for_each(&jobs, args.jobs, Preparer::new, |preparer, job| {
        let result = convert(preparer, job);
        bar.inc(1);
        result
    });
    bar.finish_and_clear();
    let mut written = 0;
    for (job, result) in jobs.iter().zip(results) {
        match result {
            Ok(files) => written += files,
            Err(e) if e.is_environment() => return Err(e.into()),
            Err(e) => failed.push((job.from.display().to_string(), e.to_string())),
        }
    }
    writeln!(
        out,
        "{}: {written} files written, {done} recordings were done already, {} refused",
        args.out.display(),
        failed.len()
    )?;
    for (path, why) in &failed {
        writeln!(out, "  {path}: {why}")?;
    }
    Ok(if failed.is_empty() { ExitCode::Ok } else { ExitCode::No })
}

/// What is to be written for one recording; nothing when it is there already, newer than its source and of the
/// right size.
fn plan(args: &Resample, report: &FileReport) -> Result<Job, String> {
    let (true, Some(frames), Some(rate)) = (report.ok, report.frames, report.sample_rate_hz) else {
        return Err(report.error.clone().unwrap_or_default());
    };
    let channels: Vec<Option<Channel>> = match (report.channels, args.channel) {
        (Some(2), None) => return Err("stereo, and no channel was chosen: give --channel".to_owned()),
        (Some(2), Some(choice)) => choice.channels().iter().copied().map(Some).collect(),
        _ => vec![None],
    };
    let samples = (u128::from(frames) * u128::from(RATE_HZ)).div_ceil(u128::from(rate));
    let bytes_each = HEADER_BYTES + 2 * u64::try_from(samples).unwrap_or(u64::MAX / 4);
    let from = args.pool.join(&report.path);
    let sides = channels.len() > 1;
    let to = channels
        .into_iter()
        .map(|channel| (channel, args.out.join(target(&report.path, channel.filter(|_| sides)))))
        .filter(|(_, to)| args.force || !is_done(&from, to, bytes_each))
        .collect();
    Ok(Job { from, to, bytes_each })
}

/// `a/b.wav` stays, `a/b.mp3` becomes `a/b.mp3.wav`, and a side of both becomes `a/b.left.wav`.
fn target(path: &str, side: Option<Channel>) -> String {
    let stem = path.strip_suffix(".wav").unwrap_or(path);
    side.map_or_else(|| format!("{stem}.wav"), |side| format!("{stem}.{side}.wav"))
}

fn is_done(from: &Path, to: &Path, bytes: u64) -> bool {
    let (Ok(from), Ok(to)) = (from.metadata(), to.metadata()) else { return false };
    to.len() == bytes && matches!((from.modified(), to.modified()), (Ok(old), Ok(new)) if new >= old)
}

/// Refuses before the first byte what the disk cannot hold.
fn room(folder: &Path, needed: u64) -> Result<(), Error> {
    // Where the system does not tell, the disk itself will.
    let Ok(stat) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if needed.saturating_add(SPARE_BYTES) <= free {
        return Ok(());
    }
    Err(Error::Environment(format!(
        "{}: {} MB are needed and {} MB are free; make room or choose another disk",
        folder.display(),
        needed / 1_000_000,
        free / 1_000_000
    )))
}

fn convert(preparer: &mut Preparer, job: &Job) -> Result<usize, TapeError> {
    let bytes = read_bytes(&job.from)?;
    for (channel, to) in &job.to {
        let named = |source| TapeError::Audio(tapedeck_audio::FileError { path: job.from.clone(), source });
        let prepared = preparer.prepare(&bytes, *channel).map_err(named)?;
        write_atomic(to, &wav_bytes(&prepared.pcm).map_err(named)?)?;
    }
    Ok(job.to.len())
}

#[cfg(test)]
mod tests {
    use tapedeck_record::HasExitCode;

    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_before_the_first_byte() {
        let dir = tempfile::tempdir().unwrap();
        let refused = room(dir.path(), 1 << 60).unwrap_err();
        assert_eq!(refused.exit_code(), ExitCode::Environment);
        assert!(refused.to_string().contains("1152921504606 MB are needed"), "{refused}");
    }

    #[test]
    fn targets_never_collide() {
        assert_eq!(target("a/b.wav", None), "a/b.wav");
        assert_eq!(target("a/b.mp3", None), "a/b.mp3.wav");
        assert_eq!(target("b.wav", Some(Channel::Left)), "b.left.wav");
        assert_eq!(target("b.WAV", None), "b.WAV.wav");
    }
}
