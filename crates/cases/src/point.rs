//! One load point: what every case does at every number of streams.
//!
//! Preflight, load, drain, judge, write down. A case decides which points there are and what follows from
//! them; [`play`] does the rest in the same way for all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tapedeck_fleet::{Drain, DrainRules, Health, WaitRules, drain, health, wait_healthy};
use tapedeck_load::{Control, Plan, Played, Summary as LoadSummary, Timeouts};
use tapedeck_metrics::{ClientSource, EngineKind, EngineSource, GpuWatch, Sampler, Summary as SamplerSummary};
use tapedeck_record::{CallRecord, Metric, OutcomeClass, Sample, SampleBody};
use tapedeck_rundir::{Event, RunDir, StepWriter};
use tapedeck_score::{Rules, score};
use tapedeck_slo::{
    Alert, Bounds, CacheSetting, Expected, InstanceFacts, LiveWatch, TierEvidence, TierReport, judge,
};
use tapedeck_stats::Moments;
use tapedeck_transport::GetLimits;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::error::CaseError;
use crate::progress::{Observer, Phase, Progress};
use crate::words;
use crate::world::{World, seconds};

/// What distinguishes one load point from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Name in every file, e.g. `N048`.
    pub step: String,
    /// Concurrent streams.
    pub streams: u32,
    /// Loops of the tape that each stream's window holds.
    pub loops: u32,
    /// Whether it refines the ladder rather than climbs it.
    pub refinement: bool,
    /// Load points that share one error rate in tests of stationarity.
    pub points_planned: u32,
}

impl Point {
    /// Calls that will count: N x C x loops.
    #[must_use]
    pub fn counted_calls(&self, calls_on_tape: usize) -> u64 {
        u64::from(self.streams) * u64::from(self.loops) * calls_on_tape as u64
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
    InstanceDown(String),
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
    watch.on(&Progress::StepBegins {
        step,
        streams: point.streams,
        counted_calls: point.counted_calls(world.tape.calls.len()),
        expected_s: expected_s(world, point),
    });
    watch.on(&Progress::Phase { step, phase: Phase::Preflight });
    preflight(world, dir.path(), point).await?;
    note(world, dir, step, "step_begins", None)?;

    let mut tally = Tally::new(world, dir.begin(step)?, point, watch);
    let (stop_sampling, sampling) = watch::channel(false);
    let (sample_out, mut samples) = mpsc::unbounded_channel();
    let sampling = tokio::spawn(sampler(world).run(sampling, sample_out));

    watch.on(&Progress::Phase { step, phase: Phase::Load });
    let ramp_from_s = world.now_s();
    let load = run_load(world, dir, point, &mut tally, &mut samples).await?;

    watch.on(&Progress::Phase { step, phase: Phase::Drain });
    let drained = if tally.interrupted { None } else { Some(wait_drained(world, &tally).await) };
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
    let report = tally.judge(bounds, drained.as_ref(), &sources);
    let cut = tally.cut_short();
    let down = tally.down.take();
    let partial = tally.interrupted || down.is_some();
    if let Some(why) = &cut {
        note(world, dir, step, "cut_short", Some(why))?;
    }
    if let Some(drain) = &drained {
        let what = match drain.drained {
            Some(true) => "drained",
            Some(false) => "not_drained",
            None => "drain_unknown",
        };
        note(world, dir, step, what, Some(&format!("{:.1} s {}", drain.seconds, drain.why)))?;
    }
    dir.commit(tally.writer, report.clone(), partial)?;
    if partial {
        return Ok(down.map_or(Ending::Interrupted, Ending::InstanceDown));
    }
    watch.on(&Progress::StepDone { report: &report, resumed: false });
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
    detail: Option<&str>,
) -> Result<(), CaseError> {
    let detail = detail.map(|d| d.trim().to_string()).filter(|d| !d.is_empty());
    let event = Event { at_s: world.now_s(), step: Some(step.into()), what: what.into(), detail };
    Ok(dir.event(&event)?)
}

/// Whether this machine and these engines can take the point at all.
async fn preflight(world: &World, results: &Path, point: &Point) -> Result<(), CaseError> {
    if let Some(files) = world.machine.max_open_files() {
        // One socket a stream, one more while it changes calls, and the scrapes.
        let needed = u64::from(point.streams) * 2 + 64;
        if files < needed {
            return Err(CaseError::Preflight {
                what: format!("{} streams need {needed} open files, this process may hold {files}", point.streams),
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
    wait_healthy(&*world.connector, &world.instances, rules, |_| {}).await.map_err(|e| CaseError::Preflight {
        what: e.to_string(),
        mend: "start the instances, or mend `health` in the config".into(),
    })?;
    Ok(())
}

/// About how long a point takes, seconds: ramp, warm-up, half a call until the window opens, the window, the end.
fn expected_s(world: &World, point: &Point) -> f64 {
    let load = &world.config.load;
    let loop_s = world.deck.audio().as_secs_f64();
    let longest_s = world.deck.calls().iter().map(|c| c.audio().as_secs_f64()).fold(0.0, f64::max);
    load.ramp_s * f64::from(point.streams)
        + load.warm_up_s
        + longest_s
        + loop_s * f64::from(point.loops)
        + load.cool_down_s
}

fn plan(world: &World, point: &Point) -> Plan {
    let load = &world.config.load;
    let timeouts = &load.timeouts;
    Plan {
        streams: point.streams,
        ramp: seconds(load.ramp_s),
        warm_up: seconds(load.warm_up_s),
        loops: point.loops,
        drain: seconds(load.finish_s),
        timeouts: Timeouts {
            connect: seconds(timeouts.connect_s),
            idle: seconds(timeouts.idle_s),
            mute: Some(seconds(timeouts.mute_s)),
            final_: seconds(timeouts.final_s),
            ..Timeouts::default()
        },
        ping_every: (load.ping_s > 0.0).then(|| seconds(load.ping_s)),
        keep_texts: world.config.run.keep_texts || world.tape.calls.iter().any(|c| c.reference.is_some()),
        unique_per_session: load.unique_per_session,
        ..Plan::default()
    }
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

/// Plays the load until its last counted call has ended, or something ends it earlier.
async fn run_load(
    world: &World,
    dir: &mut RunDir,
    point: &Point,
    tally: &mut Tally<'_>,
    samples: &mut mpsc::UnboundedReceiver<Sample>,
) -> Result<LoadSummary, CaseError> {
    let control = Control::new();
    let (call_out, mut calls) = mpsc::unbounded_channel();
    let mut playing = pin!(tapedeck_load::run(
        plan(world, point),
        world.deck.clone(),
        world.site.clone(),
        world.origin,
        control.clone(),
        call_out,
    ));
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
                    tally.abort.get_or_insert_with(|| abort.sentence());
                    control.cut();
                }
                Alert::StopClimbing { why } => note(world, dir, &point.step, "red_line", Some(&why))?,
                Alert::PauseForHeat { gpu, celsius } => {
                    note(world, dir, &point.step, "gpu_hot", Some(&format!("{gpu}: {celsius} C")))?;
                }
                Alert::Resume { gpu } => note(world, dir, &point.step, "gpu_cool", Some(&gpu))?,
                Alert::Silent { instance } => {
                    if let Some(why) = why_down(world, &instance).await {
                        note(world, dir, &point.step, "instance_down", Some(&why))?;
                        tally.down.get_or_insert(why);
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
        Health::Down { why } => Some(format!("{name}: {why}")),
        Health::Up | Health::Unknown => None,
    }
}

async fn wait_drained(world: &World, tally: &Tally<'_>) -> Drain {
    let rules =
        DrainRules { timeout: seconds(world.config.load.drain_s), ..DrainRules::default() };
    let rules = if tally.down.is_some() { DrainRules { timeout: Duration::ZERO, ..rules } } else { rules };
    drain(&*world.connector, &world.instances, rules, |_| {}).await
}

/// What a running point has left so far.
struct Tally<'a> {
    world: &'a World,
    point: &'a Point,
    watch: &'a dyn Observer,
    writer: StepWriter,
    rules: Rules,
    calls: Vec<CallRecord>,
    samples: Vec<Sample>,
    live: LiveWatch,
    latest: BTreeMap<String, (Option<f64>, Option<f64>)>,
    alerts: Vec<Alert>,
    counted: u64,
    errors: u64,
    abort: Option<String>,
    down: Option<String>,
    interrupted: bool,
}

impl<'a> Tally<'a> {
    fn new(world: &'a World, writer: StepWriter, point: &'a Point, watch: &'a dyn Observer) -> Self {
        Self {
            world,
            point,
            watch,
            writer,
            rules: Rules::new(world.site.dialect.evidence(), world.config.server.window_ms),
            calls: Vec::new(),
            samples: Vec::new(),
            live: LiveWatch::new(world.config.slo.clone(), point.streams, BTreeMap::new()),
            latest: BTreeMap::new(),
            alerts: Vec::new(),
            counted: 0,
            errors: 0,
            abort: None,
            down: None,
            interrupted: false,
        }
    }

    fn call(&mut self, played: &Played) -> Result<(), CaseError> {
        let trace = &played.trace;
        let Some(call) = usize::try_from(trace.call).ok().and_then(|i| self.world.tape.calls.get(i)) else {
            return Ok(());
        };
        // Alignment is the dearest part of scoring, and only counted calls are judged by their words.
        let words = if trace.counted { words::count(call, &played.texts) } else { Default::default() };
        let record = score(trace, &call.meta, &self.rules, &words);
        self.writer.call(&record, trace)?;
        if self.world.config.run.keep_texts {
            self.writer.texts(&record, &played.texts)?;
        }
        if record.class == OutcomeClass::Error {
            self.errors += 1;
        }
        if let Some(abort) = self.live.push(&record) {
            self.alerts.push(Alert::Abort(abort));
        }
        if record.counted {
            self.counted += 1;
            self.watch.on(&Progress::Call {
                step: &self.point.step,
                counted: self.counted,
                of: self.point.counted_calls(self.world.tape.calls.len()),
                errors: self.errors,
            });
        }
        self.calls.push(record);
        Ok(())
    }

    fn sample(&mut self, sample: Sample) -> Result<(), CaseError> {
        self.writer.sample(&sample)?;
        self.alerts.extend(self.live.push_sample(&sample));
        if let SampleBody::Engine(scrape) = &sample.body {
            let value = |metric| scrape.values.get(&metric).copied();
            let now = (value(Metric::KvPool), value(Metric::WaitingCapacity));
            self.latest.insert(sample.source.clone(), now);
            self.watch.on(&Progress::Live {
                step: &self.point.step,
                kv_pool: self.latest.values().filter_map(|v| v.0).reduce(f64::max),
                waiting: self.latest.values().filter_map(|v| v.1).reduce(|a, b| a + b),
                at_s: sample.at_s,
            });
        }
        self.samples.push(sample);
        Ok(())
    }

    fn cut_short(&self) -> Option<String> {
        if self.interrupted {
            return Some("interrupted".into());
        }
        self.abort.clone().or_else(|| self.down.clone())
    }

    fn judge(&self, bounds: Bounds, drained: Option<&Drain>, sources: &SamplerSummary) -> TierReport {
        let world = self.world;
        let instances: Vec<_> = world
            .instances
            .iter()
            .map(|i| {
                let pool = sources.sources.get(&i.name).and_then(|s| s.pool.as_ref());
                facts(&i.name, i.kind, pool.and_then(|p| p.prefix_caching))
            })
            .collect();
        let cut_short = self.cut_short();
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
            calls_expected: Some(self.point.counted_calls(world.tape.calls.len())),
            samples: &self.samples,
            instances: &instances,
            evidence: world.site.dialect.evidence(),
            window_ms: world.config.server.window_ms,
            tail_silence_ms: world.config.load.tail_silence_ms,
            wake_late_p99_ms: (!world.paused)
                .then(|| self.writer.wake_late_p99_us())
                .flatten()
                .map(|us| f64::from(us) / 1e3),
            client_cpu_share: Moments::of(&cpu).map(|m| m.mean),
            drain_s: drained.filter(|d| d.drained == Some(true)).map(|d| d.seconds),
            drained: drained.and_then(|d| d.drained),
            simulated: world.simulated,
            refinement: self.point.refinement,
            tiers_planned: self.point.points_planned,
            cut_short: cut_short.as_deref(),
            seed: world.config.run.seed,
            ..TierEvidence::new(self.point.streams, &world.tape.manifest.name, &self.calls, bounds)
        };
        judge(&evidence, &world.config.slo)
    }
}

/// What the verdict has to know of an instance of this kind.
fn facts(name: &str, kind: EngineKind, prefix_caching: Option<bool>) -> InstanceFacts {
    let setting = match prefix_caching {
        Some(true) => CacheSetting::On,
        Some(false) => CacheSetting::Off,
        None => CacheSetting::Unknown,
    };
    InstanceFacts {
        name: name.to_string(),
        expected: Expected {
            kv_pool: kind.has(Metric::KvPool),
            preemptions: kind.has(Metric::Preemptions),
            prefix_cache: kind.has(Metric::PrefixQueries),
            mm_cache: kind.has(Metric::MmQueries),
        },
        prefix_cache: setting,
        mm_cache: CacheSetting::Unknown,
    }
}
