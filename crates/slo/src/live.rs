//! The rules that end a tier while it still runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::{CallRecord, OutcomeClass, Sample, SampleBody};

use crate::limits::Limits;
use crate::report::PercentileOrInfinite;

/// Why a running tier is aborted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Abort {
    /// First texts come far too late.
    Ttft {
        /// p95 over the last window, seconds; never reached when that many calls failed.
        p95_s: PercentileOrInfinite,
        /// The rule's threshold, seconds.
        limit_s: f64,
    },
    /// Too many streams error.
    Errors {
        /// Streams that errored within the last window.
        streams: u32,
        /// Streams of the tier.
        of: u32,
    },
    /// VRAM grew too far above the zero-stream baseline.
    VramGrowth {
        /// GPU uuid.
        gpu: String,
        /// Growth, bytes.
        bytes: u64,
    },
    /// Hardly any VRAM is left.
    VramFree {
        /// GPU uuid.
        gpu: String,
        /// Free, bytes.
        bytes: u64,
    },
}

impl Localize for Abort {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Ttft { p95_s: PercentileOrInfinite::At(p95_s), limit_s } => localized!(
                "first-text p95 of the last minute is {p95_s:.1} s and beyond {limit_s:.1} s",
                "最近一分钟首字延迟 p95 为 {p95_s:.1} s，超过 {limit_s:.1} s"
            ),
            Self::Ttft { limit_s, .. } => localized!(
                "so many of the last minute's calls failed that first-text p95 is beyond {limit_s:.1} s",
                "最近一分钟失败的电话太多，首字延迟 p95 超过 {limit_s:.1} s"
            ),
            Self::Errors { streams, of } => localized!(
                "{streams} of {of} streams errored within the last minute",
                "最近一分钟 {of} 路中有 {streams} 路出错"
            ),
            Self::VramGrowth { gpu, bytes } => localized!(
                "GPU {gpu} uses {} MiB more than without load",
                "GPU {gpu} 比空载多用 {} MiB",
                bytes >> 20
            ),
            Self::VramFree { gpu, bytes } => {
                localized!("GPU {gpu} has only {} MiB free", "GPU {gpu} 只剩 {} MiB", bytes >> 20)
            }
        }
    }
}

/// A hard limit that a page showed to be broken while the tier ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HardLimit {
    /// The KV pool is full.
    KvPool {
        /// The instance.
        instance: String,
        /// Use, 0..1.
        share: f64,
    },
    /// A request was preempted.
    Preemption {
        /// The instance.
        instance: String,
    },
}

impl Localize for HardLimit {
    fn text(&self) -> LocalizedText {
        match self {
            Self::KvPool { instance, share } => localized!(
                "the KV pool of {instance} is {:.1} % full",
                "{instance} 的 KV 池占用 {:.1} %",
                share * 100.0
            ),
            Self::Preemption { instance } => {
                localized!("{instance} preempted a request", "{instance} 抢占了一个请求")
            }
        }
    }
}

/// What a sample asks the ladder to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Alert {
    /// End the tier now.
    Abort(Abort),
    /// Finish the tier, keep it as evidence, try nothing higher.
    StopClimbing {
        /// Why.
        why: HardLimit,
    },
    /// End the tier, wait until the GPUs have cooled down, play it again.
    PauseForHeat {
        /// GPU uuid.
        gpu: String,
        /// Temperature, degrees Celsius.
        celsius: f64,
    },
    /// An instance's page could not be read several times in a row: find out whether it is down.
    Silent {
        /// Instance name.
        instance: String,
    },
}

/// Watches a tier while it runs; nothing is decided during the ramp, because only counted calls are looked at.
#[derive(Debug)]
pub struct LiveWatch {
    limits: Limits,
    streams: u32,
    /// (done, stream, first text with failure as +infinity, errored), by time of completion.
    calls: VecDeque<(f64, u32, f64, bool)>,
    vram_baseline_bytes: BTreeMap<String, u64>,
    hot: BTreeSet<String>,
    gaps: BTreeMap<String, u32>,
    preemptions: BTreeMap<String, f64>,
    told_stop: bool,
}

impl LiveWatch {
    /// A watch over a tier of `streams`; `vram_baseline_bytes` is each GPU's use without load, where known.
    #[must_use]
    pub const fn new(limits: Limits, streams: u32, vram_baseline_bytes: BTreeMap<String, u64>) -> Self {
        Self {
            limits,
            streams,
            calls: VecDeque::new(),
            vram_baseline_bytes,
            hot: BTreeSet::new(),
            gaps: BTreeMap::new(),
            preemptions: BTreeMap::new(),
            told_stop: false,
        }
    }

    /// Takes a finished call; calls that do not count or are excluded are ignored.
    pub fn push(&mut self, call: &CallRecord) -> Option<Abort> {
        if !call.counted || call.class == OutcomeClass::Excluded {
            return None;
        }
        let errored = call.class == OutcomeClass::Error;
        let ttft = if errored { Some(f64::INFINITY) } else { self.limits.ttft_basis.of(call) };
        let entry = (call.done_s, call.stream, ttft.unwrap_or(f64::NAN), errored);
        let at = self.calls.partition_point(|c| c.0 <= call.done_s);
        self.calls.insert(at, entry);
        let newest = self.calls.back().map_or(call.done_s, |c| c.0);
        while self.calls.front().is_some_and(|c| c.0 <= newest - self.limits.live.window_s) {
            self.calls.pop_front();
        }
        if self.calls.len() < self.limits.live.min_calls as usize {
            return None;
        }
        let failed: BTreeSet<u32> = self.calls.iter().filter(|c| c.3).map(|c| c.1).collect();
        let failed = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        if f64::from(failed) > self.limits.live.error_share * f64::from(self.streams) {
            return Some(Abort::Errors { streams: failed, of: self.streams });
        }
        let mut texts: Vec<f64> = self.calls.iter().map(|c| c.2).filter(|t| !t.is_nan()).collect();
        if texts.len() < self.limits.live.min_calls as usize {
            return None;
        }
        let p95_s = tapedeck_stats::percentile(&mut texts, 0.95)?;
        let limit_s = self.limits.live.ttft_p95_s;
        let reached =
            if p95_s.is_finite() { PercentileOrInfinite::At(p95_s) } else { PercentileOrInfinite::Never };
        (p95_s > limit_s).then_some(Abort::Ttft { p95_s: reached, limit_s })
    }

    /// Takes a sample of an engine or a GPU; what a source does not tell is not judged.
    pub fn push_sample(&mut self, sample: &Sample) -> Option<Alert> {
        match &sample.body {
            SampleBody::Engine(scrape) => {
                self.gaps.remove(&sample.source);
                self.engine(&sample.source, &scrape.values)
            }
            SampleBody::Gap { .. } => {
                let gaps = self.gaps.entry(sample.source.clone()).or_insert(0);
                *gaps += 1;
                (*gaps == self.limits.live.silent_scrapes)
                    .then(|| Alert::Silent { instance: sample.source.clone() })
            }
            SampleBody::Gpu(reading) => self.gpu(&sample.source, reading),
            SampleBody::Client { .. } => None,
        }
    }

    fn engine(&mut self, source: &str, values: &BTreeMap<tapedeck_record::Metric, f64>) -> Option<Alert> {
        use tapedeck_record::Metric;
        let full = values.get(&Metric::KvPool).copied().filter(|&kv| kv >= self.limits.kv_pool_p95);
        let preempted = values.get(&Metric::Preemptions).is_some_and(|&now| {
            self.preemptions.insert(source.to_owned(), now).is_some_and(|before| now > before)
        });
        if self.told_stop || !(full.is_some() || preempted) {
            return None;
        }
        self.told_stop = true;
        let instance = source.to_owned();
        let why = match full {
            Some(share) => HardLimit::KvPool { instance, share },
            None => HardLimit::Preemption { instance },
        };
        Some(Alert::StopClimbing { why })
    }

    fn gpu(&mut self, uuid: &str, reading: &tapedeck_record::GpuReading) -> Option<Alert> {
        let live = &self.limits.live;
        if let Some(used) = reading.memory_used_bytes {
            if let Some(base) = self.vram_baseline_bytes.get(uuid) {
                let bytes = used.saturating_sub(*base);
                if bytes > live.vram_over_baseline_bytes {
                    return Some(Alert::Abort(Abort::VramGrowth { gpu: uuid.into(), bytes }));
                }
            }
            if let Some(bytes) = reading.memory_total_bytes.map(|total| total.saturating_sub(used))
                && bytes < live.vram_free_bytes
            {
                return Some(Alert::Abort(Abort::VramFree { gpu: uuid.into(), bytes }));
            }
        }
        let celsius = reading.temperature_c?;
        (celsius > live.gpu_pause_c && self.hot.insert(uuid.to_owned()))
            .then(|| Alert::PauseForHeat { gpu: uuid.into(), celsius })
    }
}
