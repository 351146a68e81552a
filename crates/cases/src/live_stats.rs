//! The live figures of a running step: what decides it, as far as it is known by now.

use std::collections::BTreeMap;

use tapedeck_record::{CallRecord, Metric, OutcomeClass, Sample, SampleBody};
use tapedeck_rundir::StepWriter;
use tapedeck_slo::{FinalBasis, TtftBasis};
use tapedeck_stats::percentile_sorted;

use crate::progress::{Observer, Progress};
use crate::world::World;

/// Seconds on the run's clock between two live figures.
const EVERY_S: f64 = 0.9;

/// Counts calls and keeps the latest of every page, and tells whoever watches.
pub(crate) struct LiveStats<'a> {
    step: &'a str,
    planned: u64,
    watch: &'a dyn Observer,
    ttft_basis: TtftBasis,
    final_basis: FinalBasis,
    paused: bool,
    counted: u64,
    errors: u64,
    /// First texts of counted calls, sorted.
    ttft: Vec<f64>,
    pages: BTreeMap<String, [Option<f64>; 3]>,
    cpu_share: Option<f64>,
    told_s: f64,
}

impl<'a> LiveStats<'a> {
    pub(crate) fn new(world: &World, step: &'a str, planned: u64, watch: &'a dyn Observer) -> Self {
        let silence = world.config.load.tail_silence_ms > 0;
        Self {
            step,
            planned,
            watch,
            ttft_basis: world.config.slo.ttft_basis,
            final_basis: if silence { FinalBasis::Speech } else { FinalBasis::Audio },
            paused: world.paused,
            counted: 0,
            errors: 0,
            ttft: Vec::new(),
            pages: BTreeMap::new(),
            cpu_share: None,
            told_s: f64::NEG_INFINITY,
        }
    }

    /// A call ended; `error` says whether it counts as one where it was played.
    pub(crate) fn call(&mut self, record: &CallRecord, error: bool) {
        self.errors += u64::from(error);
        self.counted += u64::from(record.counted);
        let figures = record.counted && matches!(record.class, OutcomeClass::Ok | OutcomeClass::Quality);
        let ttft_s = self.ttft_basis.of(record);
        if let Some(ttft_s) = ttft_s.filter(|_| figures) {
            self.ttft.insert(self.ttft.partition_point(|t| *t <= ttft_s), ttft_s);
        }
        self.watch.on(&Progress::Call {
            step: self.step,
            counts: record.counted,
            counted: self.counted,
            of: self.planned,
            errors: self.errors,
            outcome: record.outcome.outcome,
            class: record.class,
            connect_s: record.connect_s,
            ttft_s,
            final_s: self.final_basis.of(record),
            rtf: record.rtf,
        });
    }

    /// A page, a GPU or our own process was read.
    pub(crate) fn sample(&mut self, sample: &Sample, writer: &StepWriter) {
        match &sample.body {
            SampleBody::Engine(scrape) => {
                let value = |metric| scrape.values.get(&metric).copied();
                let now = [Metric::KvPool, Metric::WaitingCapacity, Metric::OpenSessions].map(value);
                self.pages.insert(sample.source.clone(), now);
            }
            SampleBody::Client { cpu_share, .. } => self.cpu_share = *cpu_share,
            _ => return,
        }
        // All sources are read at the same moment; one figure a moment is enough.
        if sample.at_s - self.told_s < EVERY_S {
            return;
        }
        self.told_s = sample.at_s;
        let of = |i: usize| self.pages.values().filter_map(move |page| page.get(i).copied().flatten());
        let late = (!self.paused).then(|| writer.wake_late_p99_us()).flatten();
        self.watch.on(&Progress::Live {
            step: self.step,
            at_s: sample.at_s,
            counted: self.counted,
            of: self.planned,
            errors: self.errors,
            ttft_p95_s: percentile_sorted(&self.ttft, 0.95),
            ttft_n: self.ttft.len() as u64,
            wake_late_p99_ms: late.map(|us| f64::from(us) / 1e3),
            cpu_share: self.cpu_share,
            kv_pool: of(0).reduce(f64::max),
            waiting: of(1).reduce(|a, b| a + b),
            open_sessions: of(2).reduce(|a, b| a + b),
        });
    }
}
