//! What engines and GPUs said, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A scalar that an engine's page carries, under our name; `metrics` maps every engine's names to these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Share of the KV pool in use, 0..1 (gauge; the worst of several series).
    KvPool,
    /// Preempted requests (counter).
    Preemptions,
    /// Requests being computed (gauge).
    Running,
    /// Requests waiting for any reason (gauge); idle realtime sessions are among them.
    Waiting,
    /// Requests waiting for room (gauge); the sign of saturation.
    WaitingCapacity,
    /// Open sessions or sockets (gauge).
    OpenSessions,
    /// Prefix-cache look-ups, tokens (counter).
    PrefixQueries,
    /// Prefix-cache hits, tokens (counter).
    PrefixHits,
    /// Share of prefix-cache look-ups that hit, 0..1, where an engine keeps no counters for it (gauge; the worst of
    /// several series, which is the largest).
    PrefixHitRate,
    /// Multimodal-cache look-ups, items (counter).
    MmQueries,
    /// Multimodal-cache hits, items (counter).
    MmHits,
    /// Prompt tokens computed (counter).
    PromptTokens,
    /// Tokens generated (counter).
    GenerationTokens,
    /// Requests finished for whatever reason (counter).
    Finished,
    /// Requests refused at the door (counter).
    Refused,
    /// Resident memory of the process that serves the page, on its host, bytes (gauge).
    ResidentBytes,
}

impl Metric {
    /// Every metric, in the order in which reports list them.
    pub const ALL: [Self; 16] = [
        Self::KvPool,
        Self::Preemptions,
        Self::Running,
        Self::Waiting,
        Self::WaitingCapacity,
        Self::OpenSessions,
        Self::PrefixQueries,
        Self::PrefixHits,
        Self::PrefixHitRate,
        Self::MmQueries,
        Self::MmHits,
        Self::PromptTokens,
        Self::GenerationTokens,
        Self::Finished,
        Self::Refused,
        Self::ResidentBytes,
    ];

    /// The word used in files and reports, e.g. `kv_pool`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KvPool => "kv_pool",
            Self::Preemptions => "preemptions",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::WaitingCapacity => "waiting_capacity",
            Self::OpenSessions => "open_sessions",
            Self::PrefixQueries => "prefix_queries",
            Self::PrefixHits => "prefix_hits",
            Self::PrefixHitRate => "prefix_hit_rate",
            Self::MmQueries => "mm_queries",
            Self::MmHits => "mm_hits",
            Self::PromptTokens => "prompt_tokens",
            Self::GenerationTokens => "generation_tokens",
            Self::Finished => "finished",
            Self::Refused => "refused",
            Self::ResidentBytes => "resident_bytes",
        }
    }

    /// Whether it only grows (until a restart), so that differences and not values mean something.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        !matches!(
            self,
            Self::KvPool
                | Self::Running
                | Self::Waiting
                | Self::WaitingCapacity
                | Self::OpenSessions
                | Self::PrefixHitRate
                | Self::ResidentBytes
        )
    }
}

/// A cumulative histogram as scraped: `(upper bound, count at or below it)`, bounds ascending, the last +Inf.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Finite upper bounds, ascending.
    pub bounds: Vec<f64>,
    /// Cumulative counts, one per bound and a last one for +Inf.
    pub counts: Vec<f64>,
    /// Sum of the observations; empty where a known engine bug makes it useless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
}

/// One page of one instance, understood.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scrape {
    /// Scalars under our names; a name that the page does not carry is missing here.
    pub values: BTreeMap<Metric, f64>,
    /// Latency histograms under our names: `ttft`, `e2e`, `queue`, `inference`, `prefill`, `decode`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, Histogram>,
}

/// One read-out of one GPU. An empty value means that the GPU or the driver does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReading {
    /// Utilisation, 0..1.
    pub utilisation: Option<f64>,
    /// Memory in use, bytes.
    pub memory_used_bytes: Option<u64>,
    /// Memory in all, bytes.
    pub memory_total_bytes: Option<u64>,
    /// Power, watts.
    pub power_w: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Option<f64>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Reasons for which the GPU holds its clocks down, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}

/// What a sample holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SampleBody {
    /// A page that was read.
    Engine(Scrape),
    /// A page that was not: a gap, never a zero.
    Gap {
        /// Why, in one line.
        why: String,
    },
    /// A GPU that was read.
    Gpu(GpuReading),
    /// What our own process used since the previous sample.
    Client {
        /// CPU time / (wall time x cores of this machine), 0..1.
        cpu_share: Option<f64>,
        /// Resident memory, bytes.
        rss_bytes: Option<u64>,
    },
}

/// One sample of one source; one line of `series.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Middle of the read-out, seconds from the run's origin.
    pub at_s: f64,
    /// Instance name, GPU uuid, or `client`.
    pub source: String,
    /// What was read.
    #[serde(flatten)]
    pub body: SampleBody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_name_is_the_serialised_name() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_string(&metric).unwrap(), format!("\"{}\"", metric.name()));
        }
    }

    #[test]
    fn samples_survive_a_round_trip() {
        let samples = [
            Sample {
                at_s: 1.5,
                source: "inst1".into(),
                body: SampleBody::Engine(Scrape {
                    values: [(Metric::KvPool, 0.25)].into(),
                    histograms: BTreeMap::new(),
                }),
            },
            Sample { at_s: 2.5, source: "inst1".into(), body: SampleBody::Gap { why: "refused".into() } },
        ];
        for sample in samples {
            let json = serde_json::to_string(&sample).unwrap();
            assert_eq!(serde_json::from_str::<Sample>(&json).unwrap(), sample);
        }
    }
}
