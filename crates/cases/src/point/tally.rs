//! What a running point has left so far, and what that comes to.

use std::collections::BTreeMap;

use tapedeck_fleet::Drain;
use tapedeck_load::Played;
use tapedeck_metrics::{EngineKind, Summary as SamplerSummary, carries};
use tapedeck_record::{CallRecord, Metric, OutcomeClass, Sample, SampleBody};
use tapedeck_rundir::StepWriter;
use tapedeck_score::{Rules, score};
use tapedeck_slo::{
    Abort, Alert, Bounds, CacheSetting, CutShort, Expected, InstanceFacts, LiveWatch, StepEvidence,
    TierEvidence, TierReport, judge,
};
use tapedeck_stats::Moments;

use super::Point;
use crate::error::CaseError;
use crate::progress::Observer;
use crate::pulse::Pulse;
use crate::words;
use crate::world::World;

/// What is known of a point before it is played.
pub(crate) struct About<'a> {
    pub(crate) world: &'a World,
    pub(crate) point: &'a Point,
    /// Name of the tape, or of the mixture.
    pub(crate) tape: String,
    /// Calls that will count.
    pub(crate) planned: u64,
}

/// What a running point has left so far.
pub(crate) struct Tally<'a> {
    pub(crate) about: About<'a>,
    pulse: Pulse<'a>,
    pub(crate) writer: StepWriter,
    rules: Rules,
    calls: Vec<CallRecord>,
    samples: Vec<Sample>,
    live: LiveWatch,
    pub(crate) alerts: Vec<Alert>,
    pub(super) abort: Option<Abort>,
    pub(super) down: Option<CutShort>,
    pub(crate) interrupted: bool,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(
        about: About<'a>,
        writer: StepWriter,
        vram: BTreeMap<String, u64>,
        watch: &'a dyn Observer,
    ) -> Self {
        let (world, point) = (about.world, about.point);
        Self {
            pulse: Pulse::new(world, &point.step, about.planned, watch),
            about,
            writer,
            rules: Rules::new(world.site.dialect.evidence(), world.config.server.window_ms),
            calls: Vec::new(),
            samples: Vec::new(),
            live: LiveWatch::new(world.config.slo.clone(), point.streams, vram),
            alerts: Vec::new(),
            abort: None,
            down: None,
            interrupted: false,
        }
    }

    pub(crate) fn call(&mut self, played: &Played) -> Result<(), CaseError> {
        let trace = &played.trace;
        let About { world, point, .. } = self.about;
        let Some(call) = point.content.call(world, trace) else { return Ok(()) };
        // Alignment is the dearest part of scoring, and only counted calls are judged by their words.
        let judged = trace.counted && point.content.scores_words(trace.stream);
        let words = if judged { words::count(call, &played.texts) } else { Default::default() };
        let record = score(trace, &call.meta, &self.rules, &words);
        self.writer.call(&record, trace)?;
        if world.config.run.keep_texts {
            self.writer.texts(&record, &played.texts)?;
        }
        if let Some(abort) = self.live.push(&record) {
            self.alerts.push(Alert::Abort(abort));
        }
        self.pulse.call(&record, record.class == OutcomeClass::Error);
        self.calls.push(record);
        Ok(())
    }

    pub(crate) fn sample(&mut self, sample: Sample) -> Result<(), CaseError> {
        self.writer.sample(&sample)?;
        self.alerts.extend(self.live.push_sample(&sample));
        self.pulse.sample(&sample, &self.writer);
        self.samples.push(sample);
        Ok(())
    }

    pub(super) fn cut_short(&self) -> Option<CutShort> {
        if self.interrupted {
            return Some(CutShort::Interrupted);
        }
        let aborted = self.abort.clone().map(|abort| CutShort::Aborted { abort });
        aborted.or_else(|| self.down.clone())
    }

    pub(crate) fn judge(
        &self,
        bounds: Bounds,
        drained: Option<&Drain>,
        sources: &SamplerSummary,
    ) -> (TierReport, StepEvidence) {
        let About { world, point, tape, planned } = &self.about;
        let instances = facts(world, sources);
        let cpu: Vec<f64> = self
            .samples
            .iter()
            .filter(|s| s.at_s >= bounds.window_from_s && s.at_s <= bounds.window_to_s)
            .filter_map(|s| match s.body {
                SampleBody::Client { cpu_share, .. } => cpu_share,
                _ => None,
            })
            .collect();
        let evidence = TierEvidence {
            calls_expected: Some(*planned),
            samples: &self.samples,
            instances: &instances,
            evidence: world.site.dialect.evidence(),
            window_ms: world.config.server.window_ms,
            tail_silence_ms: world.config.load.tail_silence_ms,
            wake_late_p99_ms: (!world.paused)
                .then(|| self.writer.wake_late_p99_us())
                .flatten()
                .map(|us| f64::from(us) / 1e3),
            client_drift_ppm: (!world.paused).then(|| self.writer.drift_ppm()).flatten(),
            client_cpu_share: Moments::of(&cpu).map(|m| m.mean),
            drain_s: drained.filter(|d| d.drained == Some(true)).map(|d| d.seconds),
            drained: drained.and_then(|d| d.drained),
            simulated: world.simulated,
            paused: world.paused,
            refinement: point.id.refinement,
            tiers_planned: point.points_planned,
            abort: self.abort.clone(),
            cut_short: self.cut_short(),
            seed: world.config.run.seed,
            ..TierEvidence::new(point.streams, tape, &self.calls, bounds)
        };
        let report = judge(&evidence, &world.config.slo);
        (TierReport { labels: point.labels.clone(), ..report }, evidence.kept())
    }
}

/// What the verdict has to know of every instance; whether its prefix cache is on is what its page said.
pub(crate) fn facts(world: &World, sources: &SamplerSummary) -> Vec<InstanceFacts> {
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
