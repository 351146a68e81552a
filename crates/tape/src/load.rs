//! Manifest and pool in, audio in memory out.

use std::path::Path;

use bytes::Bytes;
use tapedeck_audio::{Preparer, read_bytes};

use crate::call::{Tape, TapeCall};
use crate::digest::md5_hex;
use crate::error::TapeError;
use crate::manifest::{Manifest, ManifestCall};
use crate::pool::{resolve, root_of};
use crate::reference::References;

impl Tape {
    /// Loads every call of `manifest` from the recordings under `pool`, checking each against its MD5.
    ///
    /// Reads, decodes and resamples; an hour of telephone audio takes about a second and 115 MB. References come
    /// from `transcripts.tsv` and `segments.tsv` in the pool, where they are there.
    ///
    /// # Errors
    /// [`TapeError`] names the file, what is wrong with it and what to do.
    pub fn load(manifest: &Path, pool: &Path) -> Result<Self, TapeError> {
        let bytes = std::fs::metadata(manifest)
            .and_then(|_| std::fs::read(manifest))
            .map_err(|e| TapeError::manifest(manifest, &e))?;
        let parsed = Manifest::parse(&bytes, manifest)?;
        Self::of(parsed, md5_hex(&bytes), pool)
    }

    /// [`Tape::load`] with a manifest that was made just now and is in no file; its own digest stands for the file's.
    ///
    /// # Errors
    /// As [`Tape::load`].
    pub fn of_manifest(manifest: Manifest, pool: &Path) -> Result<Self, TapeError> {
        let digest = manifest.digest.clone();
        Self::of(manifest, digest, pool)
    }

    fn of(manifest: Manifest, md5: String, pool: &Path) -> Result<Self, TapeError> {
        let root = root_of(pool)?;
        let references = References::read(&root)?;
        let mut preparer = Preparer::new();
        let mut calls = Vec::with_capacity(manifest.calls.len());
        for (index, call) in manifest.calls.iter().enumerate() {
            let pcm = prepare(&root, call, &mut preparer)?;
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            calls.push(TapeCall { meta: call.meta(index), pcm, reference: references.of(call) });
        }
        Ok(Self { manifest, md5, calls })
    }
}

/// The audio of one call, if its recording is still what was frozen.
fn prepare(root: &Path, call: &ManifestCall, preparer: &mut Preparer) -> Result<Bytes, TapeError> {
    let bytes = unchanged(root, call)?;
    let at = root.join(&call.path);
    let prepared = preparer.prepare(&bytes, call.taken()).map_err(|e| TapeError::audio(&at, e))?;
    if prepared.pcm.len() as u64 != call.samples {
        let change = format!("{} samples at 16 kHz, the manifest says {}", prepared.pcm.len(), call.samples);
        return Err(TapeError::Changed { path: at, change });
    }
    Ok(Bytes::from(prepared.bytes()))
}

/// The bytes of a recording, if they are still those that were frozen. The size is compared before anything is
/// read, so that a swapped-in giant costs nothing.
pub(crate) fn unchanged(root: &Path, call: &ManifestCall) -> Result<Vec<u8>, TapeError> {
    let named = root.join(&call.path);
    let changed = |change: String| TapeError::Changed { path: named.clone(), change };
    let at = resolve(root, &call.path).map_err(&changed)?;
    let meta = at.metadata().map_err(|e| TapeError::io(&named, &e))?;
    if meta.len() != call.bytes {
        return Err(changed(format!("{} bytes, the manifest says {}", meta.len(), call.bytes)));
    }
    let bytes = read_bytes(&at)?;
    let md5 = md5_hex(&bytes);
    if md5 != call.md5 {
        return Err(changed(format!("its content changed: MD5 {md5}, the manifest says {}", call.md5)));
    }
    Ok(bytes)
}
