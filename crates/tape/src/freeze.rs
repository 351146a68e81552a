//! From a pool to a manifest.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

use tapedeck_audio::{Channel, Preparer, RESAMPLER, SPEECH_METHOD, read_bytes};

use crate::digest::md5_hex;
use crate::error::TapeError;
use crate::manifest::{Manifest, ManifestCall, SCHEMA_VERSION};
use crate::parallel;
use crate::pick::{Candidate, bucket_of, collapse, interleave, pick};
use crate::scan::FileReport;
use crate::spec::Spec;

/// How to freeze.
#[derive(Debug, Clone)]
pub struct FreezeOptions {
    /// What the tape should hold.
    pub spec: Spec,
    /// Seed of the sampling.
    pub seed: u64,
    /// Allowed distance from a nominal duration, as a share of it. 0.1 unless there is a reason.
    pub tolerance: f64,
    /// Tags whose values form strata within a bucket.
    pub strata: Vec<String>,
    /// Channel of stereo recordings.
    pub channel: Option<Channel>,
    /// Threads; one per core when empty.
    pub threads: Option<NonZero<usize>>,
}

/// Picks calls from the scanned pool and prepares them for their speech maps. `reports` must carry MD5s.
///
/// The same recordings, seed and options give the same manifest, whatever the files are called where and in
/// whatever order they are listed. Calls are never cut or padded.
///
/// # Errors
/// [`TapeError::TooFew`] when a bucket cannot be filled, [`TapeError::ChannelNotChosen`] when stereo recordings
/// could be picked and nobody chose a channel, [`TapeError::Audio`] when a pick cannot be decoded after all.
pub fn freeze(pool: &Path, reports: &[FileReport], options: &FreezeOptions) -> Result<Manifest, TapeError> {
    let buckets = || options.spec.quotas.iter().map(|q| q.bucket_s);
    let mut by_bucket: BTreeMap<u32, Vec<Candidate<'_>>> = BTreeMap::new();
    let mut stereo = Vec::new();
    for report in reports.iter().filter(|r| r.ok) {
        let (Some(ms), Some(md5)) = (report.duration_ms(), report.md5.as_deref()) else { continue };
        let Some(bucket) = bucket_of(ms, buckets(), options.tolerance) else { continue };
        if report.channels == Some(2) {
            stereo.push(report.path.as_str());
        }
        let stratum =
            options.strata.iter().map(|tag| report.tags.get(tag).map_or("", String::as_str)).collect();
        by_bucket.entry(bucket).or_default().push(Candidate { path: &report.path, md5, stratum });
    }
    if let (None, Some(first)) = (options.channel, stereo.first()) {
        return Err(TapeError::ChannelNotChosen { files: stereo.len(), first: (*first).to_owned() });
    }
    let mut picks = Vec::new();
    for quota in &options.spec.quotas {
        let distinct = collapse(by_bucket.remove(&quota.bucket_s).unwrap_or_default());
        let wanted = usize::try_from(quota.calls).unwrap_or(usize::MAX);
        if distinct.len() < wanted {
            return Err(TapeError::TooFew {
                bucket_s: quota.bucket_s,
                wanted: quota.calls,
                found: distinct.len(),
                tolerance_percent: options.tolerance * 100.0,
            });
        }
        picks.push((quota.bucket_s, pick(options.seed, &distinct, wanted)));
    }
    let tags: BTreeMap<&str, &FileReport> = reports.iter().map(|r| (r.path.as_str(), r)).collect();
    let counts: Vec<usize> = picks.iter().map(|(_, p)| p.len()).collect();
    let ordered: Vec<(u32, &Candidate<'_>)> = interleave(&counts)
        .into_iter()
        .filter_map(|(bucket, call)| picks.get(bucket).and_then(|(s, p)| p.get(call).map(|c| (*s, c))))
        .collect();
    let calls = parallel::map(
        &ordered,
        parallel::threads(options.threads),
        Preparer::new,
        |preparer, (bucket_s, candidate)| {
            let tags = tags.get(candidate.path).map(|r| r.tags.clone()).unwrap_or_default();
            describe(pool, candidate, *bucket_s, tags, options.channel, preparer)
        },
        |_, _| (),
    )
    .into_iter()
    .collect::<Result<Vec<_>, _>>()?;
    let mut manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        name: options.spec.name.clone(),
        seed: options.seed,
        quotas: options.spec.quotas.clone(),
        tolerance: options.tolerance,
        strata: options.strata.clone(),
        channel: calls.iter().find_map(|c| c.channel.clone()),
        resampler: RESAMPLER.to_owned(),
        speech_method: SPEECH_METHOD.to_owned(),
        digest: String::new(),
        calls,
    };
    manifest.digest = manifest.expected_digest()?;
    Ok(manifest)
}

fn describe(
    pool: &Path,
    candidate: &Candidate<'_>,
    bucket_s: u32,
    tags: BTreeMap<String, String>,
    channel: Option<Channel>,
    preparer: &mut Preparer,
) -> Result<ManifestCall, TapeError> {
    let at = pool.join(candidate.path);
    let bytes = read_bytes(&at)?;
    if md5_hex(&bytes) != candidate.md5 {
        return Err(TapeError::Changed { path: at, change: "it changed while the pool was read".to_owned() });
    }
    let prepared = preparer.prepare(&bytes, channel).map_err(|e| TapeError::audio(&at, e))?;
    Ok(ManifestCall {
        path: candidate.path.to_owned(),
        md5: candidate.md5.to_owned(),
        bytes: bytes.len() as u64,
        bucket_s,
        duration_ms: u32::try_from(prepared.info.duration_ms()).unwrap_or(u32::MAX),
        samples: prepared.pcm.len() as u64,
        channel: prepared.channel.map(|c| c.name().to_owned()),
        tags,
        speech: prepared.speech(),
    })
}
