//! A load with a fault in the middle: streams through the balancer, one more straight to each instance, and a script.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use tapedeck_answers::{Fault, Incident, LeftOut, Timeline};
use tapedeck_config::BALANCER;
use tapedeck_fleet::{Action, DrainRules, Instance, drain};
use tapedeck_load::{Control, Played, Site};
use tapedeck_record::{Case, Sample, StepId};
use tapedeck_rundir::{EventDetail, RunDir};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::Bounds;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::actions;
use super::judge::{Seen, judge};
use crate::control::{act, until_well};
use crate::earlier;
use crate::error::CaseError;
use crate::point::{About, Point, Tally, note, plan, preflight, sampler};
use crate::progress::{Observer, Phase, Progress};
use crate::world::{World, seconds};

/// More loops than any fault lasts: the script ends the load, not the tape.
const ENDLESS: u32 = 100_000;

/// One fault at one load.
pub(super) struct Scene<'a> {
    pub(super) fault: Fault,
    pub(super) victim: &'a str,
    pub(super) share: f64,
    pub(super) id: &'a StepId,
    pub(super) file: &'a str,
}

/// Plays the scene and writes it down; nothing where the user stopped it.
pub(super) async fn play(
    world: &World,
    dir: &mut RunDir,
    scene: &Scene<'_>,
    watch: &dyn Observer,
) -> Result<Option<Incident>, CaseError> {
    let pinned: Vec<&Instance> =
        world.instances.iter().filter(|i| world.config.fault.pinned && i.direct.is_some()).collect();
    // The pinned streams are part of the load, not on top of it.
    let balanced = scene.id.streams.saturating_sub(u32::try_from(pinned.len()).unwrap_or(u32::MAX)).max(1);
    let point = Point {
        labels: vec!["fault".into(), scene.fault.name().into()],
        streams: balanced,
        ..Point::new(scene.id.clone(), ENDLESS)
    };
    let step = point.step.as_str();
    let expected = expected(world, scene.id.streams);
    let mean_s =
        world.deck.audio().as_secs_f64() / f64::from(u32::try_from(world.deck.calls().len()).unwrap_or(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a guess at a number of calls"
    )]
    let guess = (expected.as_secs_f64() / mean_s * f64::from(scene.id.streams)) as u64;
    let expected_s = expected.as_secs_f64();
    let at_s = world.now_s();
    watch.on(&Progress::StepBegins {
        step,
        streams: scene.id.streams,
        counted_calls: guess,
        expected_s,
        at_s,
    });
    watch.on(&Progress::Phase { step, phase: Phase::Preflight });
    preflight(world, dir.path(), &point).await?;
    note(world, dir, step, "step_begins", None)?;

    let about = About { world, point: &point, tape: world.tape.manifest.name.clone(), planned: guess };
    let tally = Tally::new(about, dir.begin(scene.id)?, BTreeMap::new(), watch);
    let (stop_sampling, sampling) = watch::channel(false);
    let (sample_out, mut samples) = mpsc::unbounded_channel();
    let sampling = tokio::spawn(sampler(world).run(sampling, sample_out));

    watch.on(&Progress::Phase { step, phase: Phase::Load });
    let ramp_from_s = world.now_s();
    let control = Control::new();
    let (call_out, calls) = mpsc::unbounded_channel();
    let playing = tapedeck_load::run(
        plan(world, &point),
        world.deck.clone(),
        world.site.clone(),
        world.origin,
        control.clone(),
        call_out,
    );
    let (pinned_out, pinned_calls) = mpsc::unbounded_channel();
    let straight = pinned
        .iter()
        .enumerate()
        .map(|(i, instance)| straight(world, i, instance, &control, pinned_out.clone()));
    let straight = join_all(straight);
    drop(pinned_out);

    let mut pump = Pump {
        world,
        tally,
        pinned: &pinned,
        streams: balanced,
        seen: Vec::new(),
        seen_pinned: BTreeMap::new(),
    };
    let (timeline, pumped, load, _) = tokio::join!(
        biased;
        script(world, dir, scene, &control, watch),
        pump.run(calls, pinned_calls, &mut samples),
        playing,
        straight
    );
    pumped?;
    let timeline = timeline?;

    watch.on(&Progress::Phase { step, phase: Phase::Drain });
    let rules = DrainRules { timeout: seconds(world.config.load.drain_s), ..DrainRules::default() };
    let drained = drain(&*world.connector, &world.instances, rules, |_| {}).await;
    let drain_to_s = world.now_s();
    let _ = stop_sampling.send(true);
    while let Some(sample) = samples.recv().await {
        pump.tally.sample(sample)?;
    }
    let sources = sampling.await.unwrap_or_default();
    let s = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let bounds = Bounds {
        ramp_from_s,
        window_from_s: load.window_from_ns.map_or(ramp_from_s, s),
        window_to_s: load.window_to_ns.map_or(drain_to_s, s),
        drain_to_s,
    };
    let Pump { mut tally, seen, seen_pinned, .. } = pump;
    tally.about.planned = load.counted;
    tally.interrupted = timeline.is_none();
    let (report, evidence) = tally.judge(bounds, Some(&drained), &sources);
    let incident = timeline.map(|timeline| {
        let rules = &world.config.fault.recovery;
        judge((scene.id.streams, balanced), scene.share, timeline, &seen, &seen_pinned, rules)
    });
    if let Some(incident) = &incident {
        earlier::write_file(dir, scene.file, incident)?;
    }
    dir.commit(tally.writer, report.clone(), evidence, incident.is_none())?;
    if incident.is_some() {
        watch.on(&Progress::StepDone { step, report: &report, resumed: false });
    }
    Ok(incident)
}

/// How long a scene takes, about.
pub(crate) fn expected(world: &World, streams: u32) -> Duration {
    let (load, fault) = (&world.config.load, &world.config.fault);
    seconds(load.ramp_s * f64::from(streams) + load.warm_up_s + fault.steady_s + fault.down_s + fault.after_s)
}

/// One stream straight to an instance, past the balancer.
async fn straight(
    world: &World,
    number: usize,
    instance: &Instance,
    control: &Control,
    out: mpsc::UnboundedSender<(usize, Played)>,
) {
    let Some(endpoint) = instance.direct.clone() else { return };
    // Its calls stand beside those of the step and in no file of their own.
    let point = Point::new(StepId::new(Case::Fault, 1), ENDLESS);
    let (call_out, mut calls) = mpsc::unbounded_channel();
    let playing = tapedeck_load::run(
        plan(world, &point),
        world.deck.clone(),
        Site { endpoint, ..world.site.clone() },
        world.origin,
        control.clone(),
        call_out,
    );
    let number_them = async {
        while let Some(played) = calls.recv().await {
            // If nobody listens any more, the load still ends as planned.
            let _ = out.send((number, played));
        }
    };
    tokio::join!(biased; playing, number_them);
}

/// Takes in everything that ends while the script runs.
struct Pump<'a> {
    world: &'a World,
    tally: Tally<'a>,
    pinned: &'a [&'a Instance],
    streams: u32,
    seen: Vec<Seen>,
    seen_pinned: BTreeMap<String, Vec<Seen>>,
}

impl Pump<'_> {
    async fn run(
        &mut self,
        mut calls: mpsc::UnboundedReceiver<Played>,
        mut pinned: mpsc::UnboundedReceiver<(usize, Played)>,
        samples: &mut mpsc::UnboundedReceiver<Sample>,
    ) -> Result<(), CaseError> {
        let (mut calls_open, mut pinned_open) = (true, true);
        while calls_open || pinned_open {
            tokio::select! {
                biased;
                played = calls.recv(), if calls_open => match played {
                    Some(played) => self.call(&played)?,
                    None => calls_open = false,
                },
                played = pinned.recv(), if pinned_open => match played {
                    Some((number, played)) => self.pinned(number, played)?,
                    None => pinned_open = false,
                },
                Some(sample) = samples.recv() => self.tally.sample(sample)?,
            }
            // A fault breaks every live rule; the script alone decides when it is enough.
            self.tally.alerts.clear();
        }
        Ok(())
    }

    fn call(&mut self, played: &Played) -> Result<(), CaseError> {
        if let Some(seen) = self.look(&played.trace) {
            self.seen.push(seen);
        }
        self.tally.call(played)
    }

    /// A pinned stream's number follows those of the others; its calls never count.
    fn pinned(&mut self, number: usize, played: Played) -> Result<(), CaseError> {
        let mut trace = played.trace;
        trace.stream = self.streams.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
        trace.counted = false;
        let (Some(instance), Some(seen)) = (self.pinned.get(number), self.look(&trace)) else {
            return Ok(());
        };
        self.tally.writer.call(&seen.record, &trace)?;
        self.seen_pinned.entry(instance.name.clone()).or_default().push(seen);
        Ok(())
    }

    fn look(&self, trace: &tapedeck_record::Trace) -> Option<Seen> {
        let call = self.world.tape.calls.get(usize::try_from(trace.call).ok()?)?;
        let rules = Rules::new(self.world.site.dialect.evidence(), self.world.config.server.window_ms);
        let record = score(trace, &call.meta, &rules, &Words::default());
        Some(Seen::of(record, trace, &call.meta, &rules))
    }
}

/// What is done, and when. Whatever happens, the instance is told to come back before the script ends.
async fn script(
    world: &World,
    dir: &mut RunDir,
    scene: &Scene<'_>,
    control: &Control,
    watch: &dyn Observer,
) -> Result<Option<Timeline>, CaseError> {
    let told = tell(world, dir, scene, watch).await;
    match &told {
        Ok(Some(_)) => control.stop(),
        Ok(None) | Err(_) => control.cut(),
    }
    told
}

async fn tell(
    world: &World,
    dir: &mut RunDir,
    scene: &Scene<'_>,
    watch: &dyn Observer,
) -> Result<Option<Timeline>, CaseError> {
    let (load, config) = (&world.config.load, &world.config.fault);
    let (begin, end) = actions(scene.fault);
    let steady_s = load.ramp_s * f64::from(scene.id.streams) + load.warm_up_s + config.steady_s;
    if !pause(world, steady_s).await {
        return Ok(None);
    }
    let fault_s = world.now_s();
    command(world, dir, scene, begin).await?;
    let down_s = if scene.fault == Fault::BalancerRestart { 0.0 } else { config.down_s };
    let mut stay = pause(world, down_s).await;
    let start_s = world.now_s();
    command(world, dir, scene, end).await?;
    if !stay {
        return Ok(None);
    }
    let well_s = match world.instances.iter().find(|i| i.name == scene.victim) {
        Some(instance) => {
            let text = format!("waiting for {} to be well again, {} s at most", scene.victim, config.well_s);
            watch.on(&Progress::Note { text: &text });
            let mut interrupted = pin!(world.until_interrupted());
            tokio::select! {
                biased;
                () = &mut interrupted => None,
                well_s = until_well(world, instance, seconds(config.well_s)) => well_s,
            }
        }
        None => Some(world.now_s()),
    };
    if let Some(well_s) = well_s {
        note(
            world,
            dir,
            &scene.id.to_string(),
            "well_again",
            Some(EventDetail::WellAgain { after_s: well_s - start_s }),
        )?;
    }
    stay = pause(world, config.after_s).await;
    let instance = if scene.fault == Fault::BalancerRestart { BALANCER } else { scene.victim };
    Ok(stay.then(|| Timeline {
        fault: scene.fault,
        instance: instance.to_owned(),
        fault_s,
        start_s: Some(start_s),
        well_s,
        until_s: world.now_s(),
    }))
}

async fn command(
    world: &World,
    dir: &mut RunDir,
    scene: &Scene<'_>,
    action: Action,
) -> Result<(), CaseError> {
    let done = act(world, dir, &scene.id.to_string(), scene.victim, action).await?;
    done.map(|_| ())
        .map_err(|refusal| CaseError::Control { what: LeftOut::Refused { why: refusal.into_reason() } })
}

/// Waits; false where the user wants to stop.
async fn pause(world: &World, for_s: f64) -> bool {
    let mut interrupted = pin!(world.until_interrupted());
    tokio::select! {
        biased;
        () = &mut interrupted => false,
        () = sleep(seconds(for_s)) => true,
    }
}
