//! One load point: what every case does at every number of streams.
//!
//! Preflight, load, drain, judge, write down. A case decides which points there are and what follows from
//! them; [`play`] does the rest in the same way for all of them.

mod tally;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tapedeck_config::LoadConfig;
use tapedeck_fleet::{Drain, DrainRules, Health, WaitRules, drain, health, wait_healthy};
use tapedeck_load::{Cast, Control, Plan, Played, Summary as LoadSummary, Timeouts};
use tapedeck_metrics::{ClientSource, EngineKind, EngineSource, GpuWatch, Sampler};
use tapedeck_record::{DrainReason, Sample, StepId};
use tapedeck_rundir::{Event, EventDetail, RunDir};
use tapedeck_slo::{Alert, Bounds, CutShort, TierReport};
use tapedeck_transport::GetLimits;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::content::Content;
use crate::control::{post_mortem, recover};
use crate::environment;
use crate::error::CaseError;
use crate::progress::{Observer, Phase, Progress};
use crate::world::{World, seconds};

pub(crate) use tally::{About, Tally, facts};

/// What distinguishes one load point from another.
///
/// ```
/// use tapedeck_cases::point::Point;
///
/// use tapedeck_record::{Case, StepId};
///
/// let id = StepId::new(Case::Repeatability, 24);
/// let point = Point { labels: vec!["repeat".into()], ..Point::new(id, 1) };
/// assert_eq!((point.step.as_str(), point.streams), ("tc08-N024", 24));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Which step it is.
    pub id: StepId,
    /// Its name in every file.
    pub step: String,
    /// Concurrent streams.
    pub streams: u32,
    /// Loops of the tape that each stream's window holds.
    pub loops: u32,
    /// Load points that share one error rate in tests of stationarity.
    pub points_planned: u32,
    /// Who plays what.
    pub content: Content,
    /// What kind of point it is, where it is not a plain one; first in the notes of its row.
    pub labels: Vec<String>,
    /// Whether every call counts from the first on: no ramp, no warm-up.
    pub at_once: bool,
    /// Whether whole calls are sent as fast as the server takes them.
    pub offline: bool,
    /// How long a point without streams is watched.
    pub hold: Duration,
    /// Whether memory that grows ends the point at once; not where its growth is what is measured.
    pub watch_vram: bool,
}

impl Point {
    /// A point on Tape-A that stands for itself.
    #[must_use]
    pub fn new(id: StepId, loops: u32) -> Self {
        Self {
            step: id.to_string(),
            streams: id.streams,
            id,
            loops,
            points_planned: 1,
            content: Content::default(),
            labels: Vec::new(),
            at_once: false,
            offline: false,
            hold: Duration::ZERO,
            watch_vram: true,
        }
    }

    /// The loops that the ladder gives a tier of so many streams.
    #[must_use]
    pub const fn loops(load: &LoadConfig, streams: u32) -> u32 {
        if streams <= load.small_up_to { load.loops_small } else { load.loops }
    }
}

/// How a load point ended.
#[derive(Debug)]
pub enum Ending {
    /// It was played, judged and written down.
    Done(Box<TierReport>),
    /// The user stopped it; what was measured is written down and marked partial.
    Interrupted,
    /// An instance went down; what was measured is written down and marked partial.
    InstanceDown(CutShort),
}

/// Plays one load point and writes it down.
///
/// # Errors
/// Preflight failures, and whatever the run directory refuses.
pub async fn play(
    world: &World,
    dir: &mut RunDir,
    point: &Point,
    watch: &dyn Observer,
) -> Result<Ending, CaseError> {
    let step = point.step.as_str();
    let cast = point.content.cast(world, point.streams)?;
    let tape = point.content.name(world)?;
    let planned = cast.counted_calls(point.streams, point.loops);
    watch.on(&Progress::StepBegins {
        step,
        streams: point.streams,
        counted_calls: planned,
        expected_s: expected_s(world, point, &cast),
        at_s: world.now_s(),
    });
    watch.on(&Progress::Phase { step, phase: Phase::Preflight });
    preflight(world, dir.path(), point).await?;
    note(world, dir, step, "step_begins", None)?;
    let vram = world.vram_baseline.get_or_init(|| gpu_memory(world)).await;
    let vram = if point.watch_vram { vram.clone() } else { BTreeMap::new() };

    let about = About { world, point, tape, planned };
    let mut tally = Tally::new(about, dir.begin(&point.id)?, vram.clone(), watch);
    let (stop_sampling, sampling) = watch::channel(false);
    let (sample_out, mut samples) = mpsc::unbounded_channel();
    let sampling = tokio::spawn(sampler(world).run(sampling, sample_out));

    watch.on(&Progress::Phase { step, phase: Phase::Load });
    let ramp_from_s = world.now_s();
    let load = run_load(world, dir, (point, cast), &mut tally, &mut samples).await?;

    watch.on(&Progress::Phase { step, phase: Phase::Drain });
    let drained = if tally.interrupted { None } else { Some(wait_drained(world, &tally, &vram).await) };
    let drain_to_s = world.now_s();
    let _ = stop_sampling.send(true);
    while let Some(sample) = samples.recv().await {
        tally.sample(sample)?;
    }
    let sources = sampling.await.unwrap_or_default();

    let s = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let bounds = Bounds {
        ramp_from_s,
        window_from_s: load.window_from_ns.map_or(ramp_from_s, s),
        window_to_s: load.window_to_ns.map_or(drain_to_s, s),
        drain_to_s,
    };
    let (report, evidence) = tally.judge(bounds, drained.as_ref(), &sources);
    let cut = tally.cut_short();
    let down = tally.down.take();
    let partial = tally.interrupted || down.is_some();
    if let Some(why) = cut {
        note(world, dir, step, "cut_short", Some(why.into()))?;
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
    dir.commit(tally.writer, report.clone(), evidence, partial)?;
    environment::measured(world, dir, step, &report)?;
    if down.is_some() || drained.as_ref().is_some_and(|d| d.drained == Some(false)) {
        recover(world, dir, step, watch).await?;
    }
    if partial {
        return Ok(down.map_or(Ending::Interrupted, Ending::InstanceDown));
    }
    watch.on(&Progress::StepDone { step, report: &report, resumed: false });
    Ok(Ending::Done(Box::new(report)))
}

/// The rest between two load points; ends early when the user wants to stop.
pub async fn cool_down(world: &World, step: &str, watch: &dyn Observer) {
    watch.on(&Progress::Phase { step, phase: Phase::CoolDown });
    tokio::select! {
        biased;
        () = world.until_interrupted() => {}
        () = sleep(seconds(world.config.load.cool_down_s)) => {}
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

/// Whether this machine and these engines can take the point at all.
pub(crate) async fn preflight(world: &World, results: &Path, point: &Point) -> Result<(), CaseError> {
    if let Some(files) = world.machine.max_open_files() {
        // One socket a stream, one more while it changes calls, and the scrapes.
        let needed = u64::from(point.streams) * 2 + 64;
        if files < needed {
            return Err(CaseError::Preflight {
                what: format!(
                    "{} streams need {needed} open files, this process may hold {files}",
                    point.streams
                ),
                mend: "raise the limit with `ulimit -n` (or LimitNOFILE= in a unit file)".into(),
            });
        }
    }
    // The largest tier leaves some tens of megabytes; half a gigabyte keeps the run honest to its end.
    const DISK_BYTES: u64 = 512 << 20;
    if let Some(free) = world.machine.disk_free_bytes(results).filter(|free| *free < DISK_BYTES) {
        return Err(CaseError::Preflight {
            what: format!("only {} MiB are free under {}", free >> 20, results.display()),
            mend: "free some room, or give --out another disk".into(),
        });
    }
    let rules = WaitRules { timeout: Duration::from_secs(30), ..WaitRules::default() };
    wait_healthy(&*world.connector, &world.instances, rules, |_| {}).await.map_err(|e| {
        CaseError::Preflight {
            what: e.to_string(),
            mend: "start the instances, or mend `health` in the config".into(),
        }
    })?;
    Ok(())
}

/// Memory in use on each GPU, bytes by uuid; what cannot be read is left out.
async fn gpu_memory(world: &World) -> BTreeMap<String, u64> {
    let mut used = BTreeMap::new();
    for way in &world.gpus {
        for device in way.read().await.unwrap_or_default() {
            if let Some(bytes) = device.reading.memory_used_bytes {
                used.entry(device.id).or_insert(bytes);
            }
        }
    }
    used
}

/// About how long a point takes, seconds: ramp, warm-up, a call until the window opens, the window, the end.
fn expected_s(world: &World, point: &Point, cast: &Cast) -> f64 {
    let load = &world.config.load;
    let before_s = if point.at_once { 0.0 } else { load.ramp_s * f64::from(point.streams) + load.warm_up_s };
    before_s
        + point.hold.as_secs_f64()
        + cast.longest_call().as_secs_f64()
        + cast.longest_loop(point.streams).as_secs_f64() * f64::from(point.loops)
        + load.cool_down_s
}

pub(crate) fn plan(world: &World, point: &Point) -> Plan {
    let load = &world.config.load;
    let timeouts = &load.timeouts;
    Plan {
        streams: point.streams,
        ramp: if point.at_once { Duration::ZERO } else { seconds(load.ramp_s) },
        warm_up: if point.at_once { Duration::ZERO } else { seconds(load.warm_up_s) },
        loops: point.loops,
        drain: seconds(load.finish_s),
        timeouts: Timeouts {
            connect: seconds(timeouts.connect_s),
            idle: seconds(timeouts.idle_s),
            // Text that is owed by the clock of the call is not owed by ours.
            mute: (!point.offline).then(|| seconds(timeouts.mute_s)),
            final_: seconds(timeouts.final_s),
            ..Timeouts::default()
        },
        ping_every: (load.ping_s > 0.0).then(|| seconds(load.ping_s)),
        keep_texts: world.config.run.keep_texts || has_words(world, point),
        unique_per_session: load.unique_per_session,
        at_once: point.offline,
        ..Plan::default()
    }
}

/// Whether the words of any call of the point can be compared with a reference.
fn has_words(world: &World, point: &Point) -> bool {
    (0..point.streams.min(2))
        .filter(|&k| point.content.scores_words(k))
        .filter_map(|k| world.tape_of(point.content.role(k)))
        .any(|tape| tape.calls.iter().any(|c| c.reference.is_some()))
}

pub(crate) fn sampler(world: &World) -> Sampler {
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
                limits: GetLimits::default(),
            });
        }
    }
    if !world.gpus.is_empty() {
        sampler = sampler.with(GpuWatch { ways: world.gpus.clone() });
    }
    if let Some(probe) = world.client.clone() {
        sampler = sampler.with(ClientSource { probe });
    }
    sampler
}

/// The load itself; a point without streams is only watched for a while.
async fn load(
    world: &World,
    point: &Point,
    cast: Cast,
    control: Control,
    out: mpsc::UnboundedSender<Played>,
) -> LoadSummary {
    if point.streams > 0 {
        let (plan, site) = (plan(world, point), world.site.clone());
        return tapedeck_load::run(plan, cast, site, world.origin, control, out).await;
    }
    let now_ns = || u64::try_from(world.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let start_ns = now_ns();
    tokio::select! {
        biased;
        () = world.until_interrupted() => {}
        () = sleep(point.hold) => {}
    }
    let to_ns = now_ns();
    LoadSummary {
        start_ns,
        window_from_ns: Some(start_ns),
        window_to_ns: Some(to_ns),
        last_close_ns: to_ns,
        ..LoadSummary::default()
    }
}

/// Plays the load until its last counted call has ended, or something ends it earlier.
async fn run_load(
    world: &World,
    dir: &mut RunDir,
    (point, cast): (&Point, Cast),
    tally: &mut Tally<'_>,
    samples: &mut mpsc::UnboundedReceiver<Sample>,
) -> Result<LoadSummary, CaseError> {
    let control = Control::new();
    let (call_out, mut calls) = mpsc::unbounded_channel();
    let mut playing = pin!(load(world, point, cast, control.clone(), call_out));
    let mut interrupt = pin!(world.until_interrupted());
    let summary = loop {
        tokio::select! {
            biased;
            () = &mut interrupt, if !tally.interrupted => {
                tally.interrupted = true;
                control.cut();
            }
            Some(played) = calls.recv() => tally.call(&played)?,
            Some(sample) = samples.recv() => tally.sample(sample)?,
            summary = &mut playing => break summary,
        }
        for alert in std::mem::take(&mut tally.alerts) {
            match alert {
                Alert::Abort(abort) => {
                    tally.abort.get_or_insert(abort);
                    control.cut();
                }
                Alert::StopClimbing { why } => {
                    let detail = EventDetail::HardLimit { limit: why };
                    note(world, dir, &point.step, "red_line", Some(detail))?;
                }
                Alert::PauseForHeat { gpu, celsius } => {
                    note(
                        world,
                        dir,
                        &point.step,
                        "gpu_hot",
                        Some(EventDetail::Temperature { gpu, celsius }),
                    )?;
                }
                Alert::Resume { gpu } => {
                    note(world, dir, &point.step, "gpu_cool", Some(EventDetail::Recorded(gpu)))?
                }
                Alert::Silent { instance } => {
                    if let Some(why) = why_down(world, &instance).await {
                        let cause = post_mortem(world, dir, &point.step, &instance).await?;
                        let down = CutShort::InstanceDown { instance, why, cause };
                        note(world, dir, &point.step, "instance_down", Some(down.clone().into()))?;
                        tally.down.get_or_insert(down);
                        control.cut();
                    }
                }
            }
        }
    };
    // What ended in the last instant is still in the channel.
    while let Ok(played) = calls.try_recv() {
        tally.call(&played)?;
    }
    Ok(summary)
}

async fn why_down(world: &World, name: &str) -> Option<String> {
    let instance = world.instances.iter().find(|i| i.name == name)?;
    match health(&*world.connector, instance, GetLimits::default()).await {
        Health::Down { why } => Some(why),
        Health::Up | Health::Unknown => None,
    }
}

/// Waits until the engines have nothing left to do, and until the memory in use on each GPU is back where it was without
/// streams, as far as that is known.
async fn wait_drained(world: &World, tally: &Tally<'_>, vram: &BTreeMap<String, u64>) -> Drain {
    let rules = DrainRules { timeout: seconds(world.config.load.drain_s), ..DrainRules::default() };
    let rules = if tally.down.is_some() { DrainRules { timeout: Duration::ZERO, ..rules } } else { rules };
    let mut drained = drain(&*world.connector, &world.instances, rules, |_| {}).await;
    while drained.drained == Some(true) {
        let Some(held) = held(world, vram).await else { break };
        if drained.seconds >= rules.timeout.as_secs_f64() {
            (drained.drained, drained.why) = (Some(false), vec![held]);
            break;
        }
        sleep(rules.interval).await;
        drained.seconds += rules.interval.as_secs_f64();
    }
    drained
}

/// Which GPU holds more memory than without streams, by more than is let pass; nothing where none does or none is known.
async fn held(world: &World, vram: &BTreeMap<String, u64>) -> Option<DrainReason> {
    if vram.is_empty() {
        return None;
    }
    let tolerance = world.config.slo.live.vram_over_baseline_bytes;
    let now = gpu_memory(world).await;
    now.into_iter().find_map(|(gpu, used)| {
        let bytes = used.checked_sub(*vram.get(&gpu)?).filter(|over| *over > tolerance)?;
        Some(DrainReason::GpuMemory { gpu, bytes })
    })
}
