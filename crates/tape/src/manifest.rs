//! The frozen list of calls: what was picked, from what, by which rule.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::SpeechMap;

/// The schema that this version writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// A frozen tape: which recordings, in which order, and how they were chosen and prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default)]
    pub strata: Vec<String>,
    /// Channel that was taken of stereo recordings; empty when every recording is mono.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What turned the recordings into 16 kHz s16.
    pub resampler: String,
    /// What found the speech.
    pub speech_method: String,
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
pub struct ManifestCall {
    /// Path of the recording, relative to the pool, with `/` between its parts.
    pub path: String,
    /// MD5 of the recording's bytes, lower-case hex.
    pub md5: String,
    /// Size of the recording, bytes.
    pub bytes: u64,
    /// Nominal duration, seconds.
    pub bucket_s: u32,
    /// Length of the prepared audio, samples at 16 kHz.
    pub samples: u64,
    /// Length of the recording, milliseconds, rounded down.
    pub duration_ms: u32,
    /// Channel that was taken, where the recording is stereo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Free labels of the recording.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where somebody speaks.
    pub speech: SpeechMap,
}
