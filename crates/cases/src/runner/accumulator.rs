//! What a running step has left so far, and what that comes to.

use std::collections::BTreeMap;

use tapedeck_fleet::Drain;
use tapedeck_load::{CallResult, Summary as LoadSummary};
use tapedeck_metrics::{EngineKind, Summary as SamplerSummary, carries};
use tapedeck_record::{CallRecord, Metric, OutcomeClass, Sample, SampleBody, Trace};
use tapedeck_rundir::StepWriter;
use tapedeck_slo::{
    Alert, CacheSetting, CutShort, Expected, InstanceFacts, LiveWatch, QualityBaseline, StepBounds,
    StepEvidence, TierEvidence, TierReport, judge,
};
use tapedeck_stats::Moments;

use super::{LoadModel, Step};
use crate::error::CaseError;
use crate::live_stats::LiveStats;
use crate::progress::Observer;
use crate::world::World;

/// The calls and samples of a running step: writes them down, watches the live rules, keeps what is judged.
pub(crate) struct StepAccumulator<'a> {
    world: &'a World,
    step: &'a Step<'a>,
    stats: LiveStats<'a>,
    writer: StepWriter,
    calls: Vec<CallRecord>,
    samples: Vec<Sample>,
    /// What one stream alone made of the words, where that was measured.
    baseline: Option<QualityBaseline>,
    live: LiveWatch,
    pub(super) alerts: Vec<Alert>,
}

impl<'a> StepAccumulator<'a> {
    /// Nothing measured yet; `vram` is each GPU's memory in use without streams, bytes.
    pub(super) fn new(
        world: &'a World,
        step: &'a Step<'a>,
        writer: StepWriter,
        vram: BTreeMap<String, u64>,
        baseline: Option<QualityBaseline>,
        watch: &'a dyn Observer,
    ) -> Self {
        Self {
            world,
            step,
            stats: LiveStats::new(world, &step.point.step, step.planned, watch),
            writer,
            calls: Vec::new(),
            samples: Vec::new(),
            baseline,
            live: LiveWatch::new(world.config.slo.clone(), step.point.streams, vram),
            alerts: Vec::new(),
        }
    }

    /// Takes a call that the step is judged by.
    pub(crate) fn judged(&mut self, record: CallRecord, played: &CallResult) -> Result<(), CaseError> {
        self.keep(&record, played)?;
        // With open arrivals an overload is what is measured, not a reason to end the step.
        if self.step.model == LoadModel::Closed
            && let Some(abort) = self.live.push(&record)
        {
            self.alerts.push(Alert::Abort(abort));
        }
        self.stats.call(&record, record.class == OutcomeClass::Error);
        self.calls.push(record);
        Ok(())
    }

    /// Takes a call whose refusal is counted elsewhere: it is no error of the calls that were taken.
    pub(crate) fn refused(&mut self, record: &CallRecord, played: &CallResult) -> Result<(), CaseError> {
        self.keep(record, played)?;
        self.stats.call(record, false);
        Ok(())
    }

    /// Writes down a call that is no part of the load that is judged.
    pub(crate) fn beside(&mut self, record: &CallRecord, trace: &Trace) -> Result<(), CaseError> {
        Ok(self.writer.call(record, trace)?)
    }

    fn keep(&mut self, record: &CallRecord, played: &CallResult) -> Result<(), CaseError> {
        self.writer.call(record, &played.trace)?;
        if self.world.config.run.keep_texts {
            self.writer.texts(record, &played.texts)?;
        }
        Ok(())
    }

    pub(super) fn sample(&mut self, sample: Sample) -> Result<(), CaseError> {
        self.writer.sample(&sample)?;
        let alert = self.live.push_sample(&sample);
        self.alerts.extend(alert.filter(|alert| self.step.model.heeds(alert)));
        self.stats.sample(&sample, &self.writer);
        self.samples.push(sample);
        Ok(())
    }

    /// Counted calls so far that errored.
    pub(super) fn errors(&self) -> u64 {
        self.calls.iter().filter(|c| c.counted && c.class == OutcomeClass::Error).count() as u64
    }

    pub(super) fn judge(
        &self,
        bounds: StepBounds,
        load: &LoadSummary,
        cut: Option<&CutShort>,
        drained: Option<&Drain>,
        sources: &SamplerSummary,
    ) -> (TierReport, StepEvidence) {
        let Self { world, step: Step { point, tape, planned, model, .. }, .. } = self;
        let instances = facts(world, sources);
        let evidence = TierEvidence {
            calls_expected: match model {
                LoadModel::Closed => Some(*planned),
                LoadModel::Scripted => Some(load.counted),
                LoadModel::Open => None,
            },
            samples: &self.samples,
            instances: &instances,
            evidence: world.target.dialect.evidence(),
            window_ms: world.config.server.window_ms,
            tail_silence_ms: world.config.load.tail_silence_ms,
            wake_late_p99_ms: (!world.paused)
                .then(|| self.writer.wake_late_p99_us())
                .flatten()
                .map(|us| f64::from(us) / 1e3),
            client_drift_ppm: (!world.paused).then(|| self.writer.drift_ppm()).flatten(),
            client_cpu_share: self.client_cpu_share(&bounds),
            drain_s: drained.filter(|d| d.drained == Some(true)).map(|d| d.seconds),
            drained: drained.and_then(|d| d.drained),
            simulated: world.simulated,
            paused: world.paused,
            refinement: point.id.refinement,
            open_arrivals: *model == LoadModel::Open,
            tiers_planned: point.points_planned,
            abort: match cut {
                Some(CutShort::Aborted { abort }) => Some(abort.clone()),
                _ => None,
            },
            server_sums: world.target.dialect.requests_are_work(),
            cut_short: cut.cloned(),
            baseline: self.baseline.clone(),
            seed: world.config.run.seed,
            ..TierEvidence::new(point.streams, tape, &self.calls, bounds)
        };
        let report = judge(&evidence, &world.config.slo);
        (TierReport { labels: point.labels.clone(), ..report }, evidence.kept())
    }

    /// Mean CPU of our own process / cores of this machine during the window, 0..1; empty where it is not read.
    fn client_cpu_share(&self, bounds: &StepBounds) -> Option<f64> {
        let cpu: Vec<f64> = self
            .samples
            .iter()
            .filter(|s| s.at_s >= bounds.window_from_s && s.at_s <= bounds.window_to_s)
            .filter_map(|s| match s.body {
                SampleBody::Client { cpu_share, .. } => cpu_share,
                _ => None,
            })
            .collect();
        Moments::of(&cpu).map(|m| m.mean)
    }

    pub(super) fn into_writer(self) -> StepWriter {
        self.writer
    }
}

/// What the verdict has to know of every instance; whether its prefix cache is on is what its page said.
fn facts(world: &World, sources: &SamplerSummary) -> Vec<InstanceFacts> {
    let of = |name: &String| sources.sources.get(name)?.pool.as_ref()?.prefix_caching;
    world.instances.iter().map(|i| facts_of(&i.name, i.kind, of(&i.name))).collect()
}

fn facts_of(name: &str, kind: EngineKind, prefix_caching: Option<bool>) -> InstanceFacts {
    let setting = match prefix_caching {
        Some(true) => CacheSetting::On,
        Some(false) => CacheSetting::Off,
        None => CacheSetting::Unknown,
    };
    InstanceFacts {
        name: name.to_string(),
        expected: Expected {
            kv_pool: carries(kind, Metric::KvPool),
            preemptions: carries(kind, Metric::Preemptions),
            prefix_cache: carries(kind, Metric::PrefixQueries),
            mm_cache: carries(kind, Metric::MmQueries),
        },
        prefix_cache: setting,
        mm_cache: CacheSetting::Unknown,
    }
}
