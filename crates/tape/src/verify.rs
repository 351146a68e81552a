//! Is the tape still the tape?

use std::num::NonZero;
use std::path::Path;

use tapedeck_audio::{Preparer, RESAMPLER, SPEECH_METHOD};
use tapedeck_record::SpeechMap;

use crate::error::TapeError;
use crate::load::unchanged;
use crate::manifest::{Manifest, ManifestCall};
use crate::parallel;
use crate::pool::root_of;

/// How far the edges of a speech map may move between two machines, whose resamplers differ by a unit, ms.
const EDGE_MS: u32 = 20;

/// Compares every recording of the tape with its manifest, and the manifest with itself. Each finding names the
/// file and what changed; no finding means that the tape is what was frozen.
///
/// # Errors
/// [`TapeError`] when the pool cannot be opened at all.
pub fn verify(
    manifest: &Manifest,
    pool: &Path,
    threads: Option<NonZero<usize>>,
) -> Result<Vec<String>, TapeError> {
    let root = root_of(pool)?;
    let mut findings = Vec::new();
    if manifest.expected_digest()? != manifest.digest {
        findings.push("the manifest was edited after it was frozen: its digest does not match".to_owned());
    }
    let same_tools = manifest.resampler == RESAMPLER && manifest.speech_method == SPEECH_METHOD;
    let per_call = parallel::map(
        &manifest.calls,
        parallel::threads(threads),
        Preparer::new,
        |preparer, call| check(&root, call, same_tools, preparer),
        |_, _| (),
    );
    findings.extend(per_call.into_iter().flatten());
    Ok(findings)
}

fn check(root: &Path, call: &ManifestCall, same_tools: bool, preparer: &mut Preparer) -> Vec<String> {
    let bytes = match unchanged(root, call) {
        Ok(bytes) => bytes,
        Err(e) => return vec![e.to_string()],
    };
    let prepared = match preparer.prepare(&bytes, call.taken()) {
        Ok(prepared) => prepared,
        Err(e) => return vec![format!("{}: {e}", call.path)],
    };
    let mut findings = Vec::new();
    let mut differs =
        |what: &str| findings.push(format!("{}: the manifest's {what} is not the recording's", call.path));
    if prepared.pcm.len() as u64 != call.samples {
        differs("number of samples");
    }
    if prepared.info.duration_ms() != u64::from(call.duration_ms) {
        differs("duration");
    }
    if prepared.channel != call.taken() {
        differs("channel");
    }
    if same_tools && !alike(&prepared.speech(), &call.speech) {
        differs("speech map");
    }
    findings
}

fn alike(a: &SpeechMap, b: &SpeechMap) -> bool {
    let (a, b) = (a.intervals(), b.intervals());
    a.len() == b.len()
        && a.iter().zip(b).all(|(x, y)| {
            x.start_ms.abs_diff(y.start_ms) <= EDGE_MS && x.end_ms.abs_diff(y.end_ms) <= EDGE_MS
        })
}
