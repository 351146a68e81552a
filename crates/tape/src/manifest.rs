//! The frozen list of calls: what was picked, from what, by which rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapedeck_audio::{Channel, MAX_FILE_BYTES};
use tapedeck_record::{CallMeta, SpeechMap};

use crate::digest::md5_hex;
use crate::error::TapeError;
use crate::pool::check_path;
use crate::spec::{MAX_BUCKET_S, MAX_CALLS};

/// The schema that this version writes and reads.
pub const SCHEMA_VERSION: u32 = 1;
/// A larger manifest is refused before it is read.
const MAX_MANIFEST_BYTES: u64 = 256 << 20;
/// A tape lives in memory as 32,000 bytes per second: more than two days of it is no tape.
const MAX_TAPE_S: u64 = 48 * 3600;

/// A frozen tape: which recordings, in which order, and how they were chosen and prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// Version of this file format; see [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the tape, e.g. `tape-a`.
    pub name: String,
    /// Seed of the sampling.
    pub seed: u64,
    /// How many calls of which nominal duration were asked for.
    pub quotas: Vec<Quota>,
    /// Allowed distance from a nominal duration, as a share of it.
    pub tolerance: f64,
    /// Tags that formed strata, in order.
    pub strata: Vec<String>,
    /// Channel that was chosen for stereo recordings; empty when nobody had to choose.
    pub channel: Option<String>,
    /// What turned the recordings into 16 kHz s16, with its version.
    pub resampler: String,
    /// What found the speech, with its version.
    pub speech_method: String,
    /// MD5 of this manifest as it was frozen (with this field empty): tells whether it was edited since.
    pub digest: String,
    /// The calls, in play order.
    pub calls: Vec<ManifestCall>,
}

/// How many calls of one nominal duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Nominal duration, seconds.
    pub bucket_s: u32,
    /// Calls wanted.
    pub calls: u32,
}

/// One call of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ManifestCall {
    /// Path of the recording, relative to the pool, with `/` between its parts.
    pub path: String,
    /// MD5 of the recording's bytes, lower-case hex.
    pub md5: String,
    /// Size of the recording, bytes.
    pub bytes: u64,
    /// Nominal duration, seconds.
    pub bucket_s: u32,
    /// Length of the recording, milliseconds, rounded down.
    pub duration_ms: u32,
    /// Length of the prepared audio, samples at 16 kHz.
    pub samples: u64,
    /// Channel that was taken, where the recording is stereo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Free labels of the recording.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where somebody speaks, milliseconds.
    pub speech: SpeechMap,
}

impl ManifestCall {
    /// The call's name across tapes: its path, and its channel where one was taken.
    #[must_use]
    pub fn id(&self) -> String {
        self.channel.as_ref().map_or_else(|| self.path.clone(), |channel| format!("{}#{channel}", self.path))
    }

    /// What the other rooms need to know of the call.
    #[must_use]
    pub fn meta(&self, index: u32) -> CallMeta {
        CallMeta {
            index,
            id: self.id(),
            duration_ms: self.duration_ms,
            bucket_s: self.bucket_s,
            channel: self.channel.clone(),
            tags: self.tags.clone(),
            speech: self.speech.clone(),
        }
    }

    /// The channel to take, checked.
    pub(crate) fn taken(&self) -> Option<Channel> {
        self.channel.as_deref().and_then(Channel::from_name)
    }
}

impl Manifest {
    /// Reads a manifest and checks everything in it that can be checked without the pool.
    ///
    /// # Errors
    /// [`TapeError`] naming the call or field that is wrong. A manifest is foreign input: paths out of the pool,
    /// absurd sizes and other schemas are refused here.
    pub fn read(path: &Path) -> Result<Self, TapeError> {
        let meta = std::fs::metadata(path).map_err(|e| TapeError::manifest(path, &e))?;
        if !meta.is_file() || meta.len() > MAX_MANIFEST_BYTES {
            return Err(TapeError::Syntax {
                path: path.to_owned(),
                why: format!("not a file of at most {MAX_MANIFEST_BYTES} bytes"),
            });
        }
        let bytes = std::fs::read(path).map_err(|e| TapeError::io(path, &e))?;
        Self::parse(&bytes, path)
    }

    /// [`Manifest::read`] from memory; `path` only names it in errors.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, TapeError> {
        #[derive(Deserialize)]
        struct Head {
            schema_version: u64,
        }
        let syntax = |e: serde_json::Error| TapeError::Syntax { path: path.to_owned(), why: e.to_string() };
        let head: Head = serde_json::from_slice(bytes).map_err(syntax)?;
        if head.schema_version != u64::from(SCHEMA_VERSION) {
            return Err(TapeError::Schema {
                path: path.to_owned(),
                found: head.schema_version,
                expected: SCHEMA_VERSION,
            });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(syntax)?;
        manifest.check().map_err(|(what, why)| TapeError::Manifest { path: path.to_owned(), what, why })?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let wrong = |what: &str, why: String| Err((what.to_owned(), why));
        if !(0.0..=1.0).contains(&self.tolerance) {
            return wrong("tolerance", format!("{} is no share between 0 and 1", self.tolerance));
        }
        if self.channel.as_deref().is_some_and(|c| Channel::from_name(c).is_none()) {
            return wrong("channel", "must be left, right or mix".to_owned());
        }
        let count = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        if !(1..=MAX_CALLS).contains(&count) {
            return wrong("calls", format!("{count} calls; a tape holds 1 to {MAX_CALLS}"));
        }
        let mut listed: BTreeMap<u32, u32> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut samples = 0_u64;
        for (at, call) in self.calls.iter().enumerate() {
            let what = || format!("call {at} ({})", call.path.escape_debug());
            call.check(self.tolerance).map_err(|why| (what(), why))?;
            if !ids.insert(call.id()) {
                return Err((what(), "is on the tape twice".to_owned()));
            }
            *listed.entry(call.bucket_s).or_default() += 1;
            samples = samples.saturating_add(call.samples);
        }
        if samples / 16_000 > MAX_TAPE_S {
            return wrong(
                "calls",
                format!("{} s of audio; a tape holds at most {MAX_TAPE_S} s", samples / 16_000),
            );
        }
        let wanted: BTreeMap<u32, u32> = self.quotas.iter().map(|q| (q.bucket_s, q.calls)).collect();
        if wanted != listed {
            return wrong("quotas", format!("{wanted:?} do not match the calls listed, {listed:?}"));
        }
        Ok(())
    }

    /// The manifest as text: settings first, then one call per line, so that a version control system shows a
    /// changed call as one changed line.
    ///
    /// # Errors
    /// [`TapeError::Syntax`] when a value cannot be written as JSON (a tolerance that is no number).
    pub fn to_text(&self) -> Result<String, TapeError> {
        let failed =
            |e: serde_json::Error| TapeError::Syntax { path: self.name.clone().into(), why: e.to_string() };
        let mut bare = self.clone();
        bare.calls = Vec::new();
        let mut text = serde_json::to_string_pretty(&bare).map_err(failed)?;
        // The empty list of calls stands last: it is opened again and filled line by line.
        text.truncate(text.rfind("[]").unwrap_or(text.len()));
        text.push('[');
        for (at, call) in self.calls.iter().enumerate() {
            let line = serde_json::to_string(call).map_err(failed)?;
            let _ = write!(text, "{}\n    {line}", if at == 0 { "" } else { "," });
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }

    /// The digest that this manifest should carry.
    ///
    /// # Errors
    /// As [`Manifest::to_text`].
    pub fn expected_digest(&self) -> Result<String, TapeError> {
        let bare = Self { digest: String::new(), ..self.clone() };
        Ok(md5_hex(bare.to_text()?.as_bytes()))
    }

    /// Audio of one pass over the tape, milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.calls.iter().map(|c| u64::from(c.duration_ms)).sum()
    }
}

impl ManifestCall {
    fn check(&self, tolerance: f64) -> Result<(), String> {
        check_path(&self.path)?;
        if self.md5.len() != 32 || !self.md5.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err("md5 is not 32 lower-case hex digits".to_owned());
        }
        if self.bytes > MAX_FILE_BYTES {
            return Err(format!("{} bytes are more than the {MAX_FILE_BYTES} of one recording", self.bytes));
        }
        if !(1..=MAX_BUCKET_S).contains(&self.bucket_s) {
            return Err(format!("bucket_s {} is outside 1..={MAX_BUCKET_S}", self.bucket_s));
        }
        if self.channel.is_some() && self.taken().is_none() {
            return Err("channel must be left, right or mix".to_owned());
        }
        let nominal_ms = f64::from(self.bucket_s) * 1000.0;
        if (f64::from(self.duration_ms) - nominal_ms).abs() > nominal_ms * tolerance + 1.0 {
            return Err(format!(
                "{} ms are not within the tolerance of bucket {} s",
                self.duration_ms, self.bucket_s
            ));
        }
        if (self.samples / 16).abs_diff(u64::from(self.duration_ms)) > 1 {
            return Err(format!("{} samples at 16 kHz are not {} ms", self.samples, self.duration_ms));
        }
        if self.speech.end_ms().is_some_and(|end| end > self.duration_ms.saturating_add(10)) {
            return Err("the speech map goes on after the call's end".to_owned());
        }
        Ok(())
    }
}
