//! What hours of load answer (TC-05).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::{ExitCode, Schema};
use tapedeck_slo::{Leak, Period, TierReport};

use crate::n_star::NStar;

/// What a soak answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// N*, and where it comes from.
    pub n_star: NStar,
    /// Streams that were played.
    pub streams: u32,
    /// Why this tape.
    pub content: String,
    /// How the instances were restarted first, or why they were not.
    pub restarted: String,
    /// What hours showed; empty where the soak was interrupted.
    pub soak: Option<Soak>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl SoakAnswer {
    /// The exit code: 0 no complaint, 1 something to complain of, 4 something could not be told.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match &self.soak {
            _ if self.interrupted => ExitCode::Interrupted,
            None => ExitCode::Undecidable,
            Some(soak) if !soak.complaints.is_empty() => ExitCode::No,
            Some(soak) if !soak.unknown.is_empty() => ExitCode::Undecidable,
            Some(_) => ExitCode::Ok,
        }
    }
}

/// What a soak showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// Each memory that could be read.
    pub memory: Vec<Memory>,
    /// Errors and latencies over time.
    pub periods: Vec<Period>,
    /// Whether first texts come later and later.
    pub drift: Drift,
    /// Whether everything lived.
    pub liveness: Liveness,
    /// The same load judged as a tier.
    pub tier: TierReport,
    /// What is wrong, in plain sentences; none is a pass.
    pub complaints: Vec<String>,
    /// What could not be told, and why.
    pub unknown: Vec<String>,
}

/// One memory over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// `vram` of a GPU, `host rss` of an instance's process where its page tells, or `rss` of our own client.
    pub what: String,
    /// Which: a GPU's uuid, an instance, or `client`.
    pub of: String,
    /// What there is in all, bytes.
    pub total_bytes: u64,
    /// The verdict with its figures.
    pub leak: Leak,
}

/// Whether first-text p95 rises from period to period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Robust slope of the periods' p95, seconds per hour.
    pub per_h_s: Option<f64>,
    /// Lower bound of its interval.
    pub low_per_h_s: Option<f64>,
    /// Upper bound of its interval.
    pub high_per_h_s: Option<f64>,
    /// Rise over the whole soak, seconds.
    pub rise_s: Option<f64>,
    /// A smaller rise is no drift, however certain, seconds.
    pub floor_s: f64,
    /// The verdict; empty with too few periods.
    pub drifts: Option<bool>,
}

/// Whether every instance answered all along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Liveness {
    /// Longest time without a page that could be read, seconds, by instance; empty where there are no pages to read.
    pub longest_silence_s: BTreeMap<String, f64>,
    /// Restarts seen in the counters, by instance.
    pub restarts: BTreeMap<String, u32>,
    /// Counted calls that ended well / counted calls.
    pub clean_share: f64,
}
