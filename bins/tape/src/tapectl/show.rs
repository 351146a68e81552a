//! `tapectl show`: what a tape holds and what it will ask of a server.

use std::collections::BTreeMap;
use std::io::Write;

use tapedeck_record::ExitCode;
use tapedeck_tape::{Manifest, ManifestCall};

use super::args::Show;
use super::error::Error;

/// Bytes of KV cache per token of Qwen3-ASR-0.6B: 2 x 28 layers x 8 heads x 128 x 2 bytes.
const KV_BYTES_PER_TOKEN: f64 = 114_688.0;
/// Tokens per second of a call: 12.5 of audio and about 5 of text.
const TOKENS_PER_S: f64 = 17.5;
/// Tokens of the prompt's template.
const TEMPLATE_TOKENS: f64 = 30.0;
/// Width of the sketch of a call.
const SKETCH: u32 = 40;
/// Step at which voices are counted, milliseconds.
const STEP_MS: u64 = 100;

pub(super) fn run(args: &Show, out: &mut impl Write) -> Result<ExitCode, Error> {
    check_ramp(args.ramp)?;
    let manifest = Manifest::read(&args.tape)?;
    let total_ms = manifest.duration_ms();
    let speech_ms: u64 = manifest.calls.iter().map(|c| u64::from(c.speech.total_ms())).sum();
    writeln!(
        out,
        "{}: {} calls, {:.1} s, speech {:.0} %, seed {}{}",
        manifest.name,
        manifest.calls.len(),
        seconds(total_ms),
        share(speech_ms, total_ms),
        manifest.seed,
        manifest.channel.as_ref().map_or_else(String::new, |c| format!(", channel {c}")),
    )?;
    timeline(&manifest, out)?;
    buckets(&manifest, out)?;
    voices(&manifest, args, out)?;
    memory(&manifest, out)?;
    duplicates(&manifest, out)?;
    Ok(ExitCode::Ok)
}

/// A ramp that makes sense.
pub(super) fn check_ramp(ramp: f64) -> Result<(), Error> {
    if (0.0..=3600.0).contains(&ramp) {
        return Ok(());
    }
    Err(Error::Usage(format!("--ramp-s {ramp}: give seconds between 0 and 3600")))
}

fn timeline(manifest: &Manifest, out: &mut impl Write) -> Result<(), Error> {
    writeln!(out, "\nIn play order (# is speech):")?;
    let mut at_ms = 0_u64;
    for (index, call) in manifest.calls.iter().enumerate() {
        let speech = share(u64::from(call.speech.total_ms()), u64::from(call.duration_ms));
        writeln!(
            out,
            "{index:>4}  {:>7.1} s  {:>6.1} s  {speech:>3.0} %  |{}|  {}",
            seconds(at_ms),
            seconds(u64::from(call.duration_ms)),
            sketch(call),
            call.id(),
        )?;
        at_ms += u64::from(call.duration_ms);
    }
    Ok(())
}

/// A call as a row of characters: `#` where more than half is speech, `.` where some is.
fn sketch(call: &ManifestCall) -> String {
    let edge =
        |i: u32| u32::try_from(u64::from(call.duration_ms) * u64::from(i) / u64::from(SKETCH)).unwrap_or(0);
    (0..SKETCH)
        .map(|i| {
            let (from, to) = (edge(i), edge(i + 1));
            match call.speech.within_ms(from, to) {
                0 => ' ',
                spoken if 2 * spoken > to - from => '#',
                _ => '.',
            }
        })
        .collect()
}

fn buckets(manifest: &Manifest, out: &mut impl Write) -> Result<(), Error> {
    writeln!(out, "\nbucket  calls    audio  speech")?;
    for quota in &manifest.quotas {
        let calls = || manifest.calls.iter().filter(|c| c.bucket_s == quota.bucket_s);
        let audio: u64 = calls().map(|c| u64::from(c.duration_ms)).sum();
        let spoken: u64 = calls().map(|c| u64::from(c.speech.total_ms())).sum();
        let (audio_s, percent) = (seconds(audio), share(spoken, audio));
        writeln!(out, "{:>4} s  {:>5}  {audio_s:>5.0} s  {percent:>4.0} %", quota.bucket_s, quota.calls)?;
    }
    Ok(())
}

/// How many streams speak at once, once all play: each goes round the tape from its own phase.
fn voices(manifest: &Manifest, args: &Show, out: &mut impl Write) -> Result<(), Error> {
    let mut starts = Vec::new();
    let mut spoken = Vec::new();
    for call in &manifest.calls {
        starts.push(spoken.len() as u64);
        let steps = u64::from(call.duration_ms).div_ceil(STEP_MS);
        spoken.extend((0..steps).map(|step| {
            let from = u32::try_from(step * STEP_MS).unwrap_or(u32::MAX);
            2 * u64::from(call.speech.within_ms(from, from.saturating_add(100))) > STEP_MS
        }));
    }
    let period = spoken.len() as u64;
    if period == 0 {
        return Ok(());
    }
    writeln!(out, "\nHow many speak at once, {} s between starts:\nstreams   mean    p95    max", args.ramp)?;
    for &streams in &args.streams {
        let offsets: Vec<u64> = (0..streams)
            .map(|k| {
                let start = starts.get(usize::try_from(k).unwrap_or(0) % starts.len()).copied().unwrap_or(0);
                (start + period - delay_steps(k, args.ramp) % period) % period
            })
            .collect();
        let mut counts: Vec<u32> = (0..period)
            .map(|t| {
                let speaks = |offset: &&u64| {
                    usize::try_from((**offset + t) % period)
                        .ok()
                        .and_then(|i| spoken.get(i))
                        .is_some_and(|s| *s)
                };
                u32::try_from(offsets.iter().filter(speaks).count()).unwrap_or(u32::MAX)
            })
            .collect();
        counts.sort_unstable();
        let sum: u64 = counts.iter().map(|&c| u64::from(c)).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts of a tape's steps are small")]
        let mean = sum as f64 / period as f64;
        let p95 = counts.get(counts.len() * 95 / 100).copied().unwrap_or(0);
        let max = counts.last().copied().unwrap_or(0);
        writeln!(out, "{streams:>7}  {mean:>5.1}  {p95:>5}  {max:>5}")?;
    }
    Ok(())
}

/// Steps by which stream `k` starts later than the first.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ramp is between 0 and 3600 s"
)]
fn delay_steps(k: u32, ramp: f64) -> u64 {
    (f64::from(k) * ramp * 1000.0 / f64::from(100_u32)).round() as u64
}

/// KV cache that a call holds at its end, MB of 1,000 KiB.
fn kv_peak_mb(duration_ms: u32) -> f64 {
    let tokens = TOKENS_PER_S * f64::from(duration_ms) / 1000.0 + TEMPLATE_TOKENS;
    tokens * KV_BYTES_PER_TOKEN / 1024.0 / 1000.0
}

fn memory(manifest: &Manifest, out: &mut impl Write) -> Result<(), Error> {
    writeln!(out, "\nKV cache (Qwen3-ASR-0.6B, 112 KiB a token, the whole session kept; 1 MB = 1,000 KiB):")?;
    let mut weighted = 0.0;
    let mut total_s = 0.0;
    let mut longest: BTreeMap<u32, f64> = BTreeMap::new();
    for call in &manifest.calls {
        let length_s = f64::from(call.duration_ms) / 1000.0;
        let peak = kv_peak_mb(call.duration_ms);
        weighted += peak * length_s;
        total_s += length_s;
        let most = longest.entry(call.bucket_s).or_default();
        *most = most.max(peak);
    }
    for (bucket, peak) in longest {
        writeln!(
            out,
            "{bucket:>4} s  {peak:>6.0} MB at a call's end, about half of it on average over the call"
        )?;
    }
    let mean = weighted / f64::max(total_s, 0.001);
    writeln!(
        out,
        "  tape  {mean:>6.0} MB per stream if every call held its peak throughout, about {:.0} MB as they grow",
        mean / 2.0
    )?;
    Ok(())
}

fn duplicates(manifest: &Manifest, out: &mut impl Write) -> Result<(), Error> {
    let mut by_content: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for call in &manifest.calls {
        by_content.entry(&call.md5).or_default().push(call.id());
    }
    by_content.retain(|_, ids| ids.len() > 1);
    if by_content.is_empty() {
        writeln!(out, "\nNo recording is on it twice.")?;
    }
    for ids in by_content.values() {
        writeln!(out, "\nThe same bytes: {}", ids.join(", "))?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a tape are far below 2^53")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * seconds(part) / seconds(whole.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that the capacity arithmetic of this model is known by.
    #[test]
    fn kv_of_nominal_calls() {
        for (seconds, mb) in [(30, 62.0), (60, 121.0), (180, 356.0), (300, 591.0)] {
            assert!(
                (kv_peak_mb(seconds * 1000) - mb).abs() < 1.0,
                "{seconds} s: {}",
                kv_peak_mb(seconds * 1000)
            );
        }
    }
}
