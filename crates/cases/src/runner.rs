//! The one runner of a step's load: preflight, sampling, load, live rules, drain, judge, commit.
//!
//! What is played, what becomes of each call, and what happens meanwhile is the case's; all the rest is done here in the
//! same way for the ladder, fault injection and open arrivals.

mod accumulator;
mod director;
mod idle;

use std::collections::BTreeMap;
use std::time::Duration;

use tapedeck_fleet::Drain;
use tapedeck_load::{CallResult, Control, Summary as LoadSummary};
use tapedeck_metrics::{ClientSource, EngineKind, EngineSource, GpuWatch, Sampler};
use tapedeck_record::Sample;
use tapedeck_rundir::{Event, EventDetail, RunDir};
use tapedeck_slo::{Alert, CutShort, StepBounds, StepEvidence, TierReport};
use tapedeck_transport::HttpLimits;
use tokio::sync::{mpsc, watch};

use crate::control::recover;
use crate::environment;
use crate::error::CaseError;
use crate::point::Point;
use crate::prior_results;
use crate::progress::{Observer, Phase, Progress};
use crate::world::{World, seconds};

pub(crate) use accumulator::StepAccumulator;
pub(crate) use director::Director;
pub(crate) use idle::hot_gpus;

/// How callers come, which decides what the step must hold to be whole and which live rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadModel {
    /// Every stream plays the calls that were planned for it.
    Closed,
    /// Streams play until a script ends the load.
    Scripted,
    /// Calls arrive at random, however many are under way.
    Open,
}

/// What is known of a step before it is played.
pub(crate) struct Step<'a> {
    pub(crate) point: &'a Point,
    pub(crate) model: LoadModel,
    /// Streams in all, as they are announced.
    pub(crate) streams: u32,
    /// Name of the tape, or of the mixture.
    pub(crate) tape: String,
    /// Calls that will count; a guess where a script ends the load.
    pub(crate) planned: u64,
    /// About how long the step takes, seconds.
    pub(crate) expected_s: f64,
}

/// A step that was played and judged, and is not yet committed.
pub(crate) struct Finished<'a, T> {
    /// What the load left beside its calls.
    pub(crate) left: T,
    /// Why it ended before its load, where it did.
    pub(crate) cut: Option<CutShort>,
    pub(crate) report: TierReport,
    evidence: StepEvidence,
    /// Counted calls that errored.
    pub(crate) errors: u64,
    step: &'a str,
    measured: StepAccumulator<'a>,
    drained: Option<Drain>,
}

/// Plays a step and judges it.
///
/// `play` is the load; it sends each call as it ends, until its own end or until the control ends it. `take` scores a
/// call and gives it to the accumulator. `direct` decides what happens meanwhile, and how the load ends.
///
/// # Errors
/// Preflight failures, and whatever the run directory refuses.
pub(crate) async fn run<'a, T>(
    world: &'a World,
    dir: &mut RunDir,
    step: &'a Step<'a>,
    play: impl AsyncFnOnce(Control, mpsc::UnboundedSender<CallResult>) -> (LoadSummary, T),
    mut take: impl FnMut(&mut StepAccumulator<'a>, &CallResult) -> Result<(), CaseError>,
    direct: impl AsyncFnOnce(&mut Director<'_>) -> Result<Option<CutShort>, CaseError>,
    watch: &'a dyn Observer,
) -> Result<Finished<'a, T>, CaseError> {
    let Step { point, streams, planned, expected_s, .. } = *step;
    let name = point.step.as_str();
    if let Some(prepare) = &world.prepare {
        prepare.step_begins(name);
    }
    watch.on(&Progress::StepBegins {
        step: name,
        streams,
        counted_calls: planned,
        expected_s,
        at_s: world.now_s(),
    });
    watch.on(&Progress::Phase { step: name, phase: Phase::Preflight });
    idle::preflight(world, dir.path(), point.streams).await?;
    note(world, dir, name, "step_begins", None)?;
    let vram = world.vram_baseline.get_or_init(|| idle::gpu_memory(world)).await;
    let vram = if point.watch_vram { vram.clone() } else { BTreeMap::new() };

    let baseline = prior_results::quality_baseline(dir, &point.workload.scored_tape(world)?)?;
    let mut measured =
        StepAccumulator::new(world, step, dir.begin(&point.id)?, vram.clone(), baseline, watch);
    let (stop_sampling, sampling) = watch::channel(false);
    let (sample_out, mut samples) = mpsc::unbounded_channel();
    let sampling = tokio::spawn(sampler(world).run(sampling, sample_out));

    watch.on(&Progress::Phase { step: name, phase: Phase::Load });
    let ramp_from_s = world.now_s();
    let control = Control::new();
    let (call_out, calls) = mpsc::unbounded_channel();
    let (alert_out, alerts) = mpsc::unbounded_channel();
    let mut director = Director { world, dir, step: name, control: control.clone(), alerts };
    let (cut, taken, (load, left)) = tokio::join!(
        biased;
        direct(&mut director),
        take_in(&mut measured, &mut take, calls, &mut samples, alert_out, &control),
        play(control.clone(), call_out),
    );
    taken?;
    let cut = cut?;

    watch.on(&Progress::Phase { step: name, phase: Phase::Drain });
    let drained = match &cut {
        Some(CutShort::Interrupted) => None,
        cut => Some(idle::wait_drained(world, cut.as_ref(), &vram).await),
    };
    let drain_to_s = world.now_s();
    let _ = stop_sampling.send(true);
    while let Some(sample) = samples.recv().await {
        measured.sample(sample)?;
    }
    let sources = sampling.await.unwrap_or_default();

    let s = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let bounds = StepBounds {
        ramp_from_s,
        window_from_s: load.window_from_ns.map_or(ramp_from_s, s),
        window_to_s: load.window_to_ns.map_or(drain_to_s, s),
        drain_to_s,
    };
    let (report, evidence) = measured.judge(bounds, &load, cut.as_ref(), drained.as_ref(), &sources);
    Ok(Finished { left, cut, report, evidence, errors: measured.errors(), step: name, measured, drained })
}

impl<T> Finished<'_, T> {
    /// Whether what was measured is a part only, and no answer.
    pub(crate) fn partial(&self) -> bool {
        self.cut.as_ref().is_some_and(CutShort::is_partial)
    }

    /// Writes the step down, and restarts the engines where they did not become idle or one is down.
    ///
    /// # Errors
    /// Whatever the run directory refuses.
    pub(crate) async fn commit(
        self,
        world: &World,
        dir: &mut RunDir,
        watch: &dyn Observer,
    ) -> Result<(Option<CutShort>, T), CaseError> {
        let partial = self.partial();
        let Self { left, cut, report, evidence, step, measured, drained, .. } = self;
        if let Some(why) = &cut {
            note(world, dir, step, "cut_short", Some(why.clone().into()))?;
        }
        if let Some(drain) = &drained {
            let what = match drain.drained {
                Some(true) => "drained",
                Some(false) => "not_drained",
                None => "drain_unknown",
            };
            let detail = EventDetail::Drain { seconds: drain.seconds, why: drain.why.clone() };
            note(world, dir, step, what, Some(detail))?;
        }
        dir.commit(measured.into_writer(), report.clone(), evidence, partial)?;
        environment::measured(world, dir, step, &report)?;
        let busy = drained.as_ref().is_some_and(|d| d.drained == Some(false));
        if busy || matches!(cut, Some(CutShort::InstanceDown { .. })) {
            recover(world, dir, step, watch).await?;
        }
        if !partial {
            watch.on(&Progress::StepDone { step, report: &report, resumed: false });
        }
        Ok((cut, left))
    }
}

/// Takes in calls and samples until the load has ended and the last of its calls was taken.
async fn take_in<'a>(
    measured: &mut StepAccumulator<'a>,
    take: &mut impl FnMut(&mut StepAccumulator<'a>, &CallResult) -> Result<(), CaseError>,
    mut calls: mpsc::UnboundedReceiver<CallResult>,
    samples: &mut mpsc::UnboundedReceiver<Sample>,
    alerts: mpsc::UnboundedSender<Alert>,
    control: &Control,
) -> Result<(), CaseError> {
    loop {
        let taken = tokio::select! {
            biased;
            played = calls.recv() => match played {
                Some(played) => take(measured, &played),
                None => return Ok(()),
            },
            Some(sample) = samples.recv() => measured.sample(sample),
        };
        if taken.is_err() {
            control.cut();
            return taken;
        }
        for alert in measured.alerts.drain(..) {
            // Once the director has ended the load, nothing more has to be decided.
            let _ = alerts.send(alert);
        }
    }
}

/// Appends an event at this instant.
pub(crate) fn note(
    world: &World,
    dir: &mut RunDir,
    step: &str,
    what: &str,
    detail: Option<EventDetail>,
) -> Result<(), CaseError> {
    let event = Event { at_s: world.now_s(), step: Some(step.into()), what: what.into(), detail };
    Ok(dir.event(&event)?)
}

fn sampler(world: &World) -> Sampler {
    let mut sampler = Sampler::new(world.origin);
    sampler.interval = seconds(world.config.load.sample_s);
    for instance in &world.instances {
        if let Some(endpoint) = instance.metrics.clone().filter(|_| instance.kind != EngineKind::None) {
            sampler = sampler.with(EngineSource {
                name: instance.name.clone(),
                connector: world.connector.clone(),
                endpoint,
                bearer: instance.bearer.clone(),
                kind: instance.kind,
                limits: HttpLimits::default(),
            });
        }
    }
    if !world.gpus.is_empty() {
        sampler = sampler.with(GpuWatch { sources: world.gpus.clone() });
    }
    if let Some(probe) = world.client.clone() {
        sampler = sampler.with(ClientSource { probe });
    }
    sampler
}
