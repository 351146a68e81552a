//! What streams cost in memory (TC-02).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::Schema;
use tapedeck_sizing::CalibrationNote;
use tapedeck_slo::Verdict;

use crate::decision::Decision;
use crate::pools::InstancePool;

/// What the levels answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FootprintAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Yes: the cost of a stream was measured. Undecidable: it could not be.
    pub decision: Decision,
    /// The pools of the instances.
    pub pools: Vec<InstancePool>,
    /// Every level, the one without streams first.
    pub levels: Vec<Level>,
    /// Theory beside measurement, a figure a row.
    pub table: Vec<TableRow>,
    /// Bytes of a token, from `[sizing]`.
    pub token_bytes: u64,
    /// Streams that all pools hold together by the measured cost of one, mean over time; what they promise, not what
    /// meets the limits.
    pub streams_by_memory: Option<f64>,
    /// The plain difference of memory used between the highest level and none, bytes a stream. An engine that takes its
    /// pool at the start hardly moves, so this is not what a stream costs. Empty without a GPU.
    pub plain_difference_bytes: Option<f64>,
    /// Why memory is empty, where no GPU was read.
    pub no_gpu: Option<NoGpu>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Streams on all instances.
    pub streams: u32,
    /// Verdict on its tier; empty for the level without streams.
    pub verdict: Option<Verdict>,
    /// Mean use of the pools over instances and time, 0..1.
    pub kv_mean: Option<f64>,
    /// Samples behind it.
    pub n: u64,
    /// Requests preempted: a level with any says nothing of what streams want.
    pub preempt_delta: Option<f64>,
    /// Streams that errored, which were missing from the load.
    pub err_streams: u32,
    /// Mean memory used, summed over the GPUs, each counted once, bytes.
    pub vram_used_bytes: Option<f64>,
    /// Whether the level takes part in the line; the one without streams does not, so that the line can be held
    /// against it.
    pub fit: bool,
}

/// One figure, by theory and by measurement. What cannot be known is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// Which figure.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// What theory says.
    pub theory: Option<f64>,
    /// What was measured.
    pub measured: Option<f64>,
    /// Lower bound of the 95 % interval of the measurement.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Observations behind the measurement.
    pub n: Option<u64>,
    /// Where the measurement comes from, or why there is none.
    pub note: CalibrationNote,
}

impl FootprintAnswer {
    /// A row of the table by its name.
    #[must_use]
    pub fn row(&self, figure: &str) -> Option<&TableRow> {
        self.table.iter().find(|row| row.figure == figure)
    }

    /// Tokens of a stream as measured / as theory says.
    #[must_use]
    pub fn measured_over_theory(&self) -> Option<f64> {
        let row = self.row("stream_tokens")?;
        row.measured.zip(row.theory).filter(|(m, t)| *m > 0.0 && *t > 0.0).map(|(m, t)| m / t)
    }
}

/// Why memory is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum NoGpu {
    /// The config names no source and none was found.
    NoSource,
    /// There is a source, and it told no memory.
    NotTold,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(NoGpu);

impl Localize for NoGpu {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NoSource => localized!("no GPU source is known", "没有已知的 GPU 数据来源"),
            Self::NotTold => localized!("no GPU told its memory", "没有 GPU 报告显存"),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
