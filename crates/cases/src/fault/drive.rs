//! A load with a fault in the middle: streams through the balancer, one more straight to each instance, and a script.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use tapedeck_answers::{Fault, Incident, LeftOut, Timeline};
use tapedeck_config::BALANCER;
use tapedeck_fleet::{Action, Instance};
use tapedeck_load::{CallResult, Control, Summary as LoadSummary, Target};
use tapedeck_record::{StepId, Trace};
use tapedeck_rundir::{EventDetail, RunDir};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::CutShort;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::actions;
use super::judge::{Seen, judge};
use crate::control::{act, until_well};
use crate::error::CaseError;
use crate::point::{self, Point, plan};
use crate::progress::{Observer, Progress};
use crate::runner::{self, Director, LoadModel, Step, StepAccumulator, note};
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

/// Plays the scene and writes it down; what the fault did is missing where the load was cut.
pub(super) async fn play(
    world: &World,
    dir: &mut RunDir,
    scene: &Scene<'_>,
    watch: &dyn Observer,
) -> Result<(Option<CutShort>, Option<Incident>), CaseError> {
    let pinned: Vec<&Instance> =
        world.instances.iter().filter(|i| world.config.fault.pinned && i.direct.is_some()).collect();
    // The pinned streams are part of the load, not on top of it.
    let balanced = scene.id.streams.saturating_sub(u32::try_from(pinned.len()).unwrap_or(u32::MAX)).max(1);
    let point = Point {
        labels: vec!["fault".into(), scene.fault.name().into()],
        streams: balanced,
        watch_vram: false,
        ..Point::new(scene.id.clone(), ENDLESS)
    };
    let expected_s = expected(world, scene.id.streams).as_secs_f64();
    let mean_s = world.prepared.audio().as_secs_f64()
        / f64::from(u32::try_from(world.prepared.calls().len()).unwrap_or(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a guess at a number of calls"
    )]
    let planned = (expected_s / mean_s * f64::from(scene.id.streams)) as u64;
    let step = Step {
        point: &point,
        model: LoadModel::Scripted,
        streams: scene.id.streams,
        tape: world.tape.manifest.name.clone(),
        planned,
        expected_s,
    };
    let mut timeline = None;
    let mut seen = Witness {
        world,
        pinned: &pinned,
        balanced,
        balanced_calls: Vec::new(),
        pinned_calls: BTreeMap::new(),
    };
    let finished = runner::run(
        world,
        dir,
        &step,
        async |control, out| (load(world, &point, &pinned, control, out).await, ()),
        |measured, played| seen.take(&point, measured, played),
        async |director| script(director, scene, &mut timeline, watch).await,
        watch,
    )
    .await?;
    let incident = timeline.map(|timeline| {
        let rules = &world.config.fault.recovery;
        let Witness { balanced_calls, pinned_calls, .. } = &seen;
        judge((scene.id.streams, balanced), scene.share, timeline, balanced_calls, pinned_calls, rules)
    });
    if let Some(incident) = &incident {
        dir.write_json(scene.file, incident)?;
    }
    let (cut, ()) = finished.commit(world, dir, watch).await?;
    Ok((cut, incident))
}

/// How long a scene takes, about.
pub(crate) fn expected(world: &World, streams: u32) -> Duration {
    let (load, fault) = (&world.config.load, &world.config.fault);
    seconds(load.ramp_s * f64::from(streams) + load.warm_up_s + fault.steady_s + fault.down_s + fault.after_s)
}

/// The streams through the balancer, and one straight to each pinned instance, past it.
async fn load(
    world: &World,
    point: &Point,
    pinned: &[&Instance],
    control: Control,
    out: mpsc::UnboundedSender<CallResult>,
) -> LoadSummary {
    let run = |streams, target, out| {
        let plan = plan(world, &Point { streams, ..point.clone() });
        tapedeck_load::run(plan, world.prepared.clone(), target, world.origin, control.clone(), out)
    };
    let straight = (point.streams..).zip(pinned).filter_map(|(number, instance)| {
        let target = Target { endpoint: instance.direct.clone()?, ..world.target.clone() };
        let (call_out, mut calls) = mpsc::unbounded_channel();
        let (playing, out) = (run(1, target, call_out), out.clone());
        // A pinned stream's number follows those of the others; its calls never count.
        let numbered = async move {
            while let Some(mut played) = calls.recv().await {
                (played.trace.stream, played.trace.counted) = (number, false);
                // If nobody listens any more, the load still ends as planned.
                let _ = out.send(played);
            }
        };
        Some(async { tokio::join!(biased; playing, numbered) })
    });
    let straight = join_all(straight);
    tokio::join!(biased; run(point.streams, world.target.clone(), out.clone()), straight).0
}

/// The calls of a scene, as far as the fault is judged by them.
struct Witness<'a> {
    world: &'a World,
    pinned: &'a [&'a Instance],
    balanced: u32,
    balanced_calls: Vec<Seen>,
    pinned_calls: BTreeMap<String, Vec<Seen>>,
}

impl Witness<'_> {
    fn take(
        &mut self,
        point: &Point,
        measured: &mut StepAccumulator<'_>,
        played: &CallResult,
    ) -> Result<(), CaseError> {
        let (trace, rules) = (&played.trace, self.rules());
        let Some(seen) = self.look(trace, &rules) else { return Ok(()) };
        let Some(number) = trace.stream.checked_sub(self.balanced) else {
            self.balanced_calls.push(seen);
            return point::take(self.world, point, &rules, measured, played);
        };
        measured.beside(&seen.record, trace)?;
        if let Some(instance) = usize::try_from(number).ok().and_then(|n| self.pinned.get(n)) {
            self.pinned_calls.entry(instance.name.clone()).or_default().push(seen);
        }
        Ok(())
    }

    fn look(&self, trace: &Trace, rules: &Rules) -> Option<Seen> {
        let call = self.world.tape.calls.get(usize::try_from(trace.call).ok()?)?;
        let record = score(trace, &call.meta, rules, &Words::default());
        Some(Seen::of(record, trace, &call.meta, rules))
    }

    fn rules(&self) -> Rules {
        Rules::new(self.world.target.dialect.evidence(), self.world.config.server.window_ms)
    }
}

/// What is done, and when. Whatever happens, the instance is told to come back before the script ends.
async fn script(
    director: &mut Director<'_>,
    scene: &Scene<'_>,
    timeline: &mut Option<Timeline>,
    watch: &dyn Observer,
) -> Result<Option<CutShort>, CaseError> {
    match tell(director, scene, watch).await {
        Ok(told) => {
            *timeline = Some(told);
            director.stop();
            Ok(None)
        }
        Err(why) => {
            director.cut();
            match why {
                Unfinished::Cut(cut) => Ok(cut),
                Unfinished::Failed(error) => Err(error),
            }
        }
    }
}

/// Why a script did not come to its end.
enum Unfinished {
    Cut(Option<CutShort>),
    Failed(CaseError),
}

impl From<CaseError> for Unfinished {
    fn from(error: CaseError) -> Self {
        Self::Failed(error)
    }
}

async fn tell(
    director: &mut Director<'_>,
    scene: &Scene<'_>,
    watch: &dyn Observer,
) -> Result<Timeline, Unfinished> {
    let world = director.world;
    let (load, config) = (&world.config.load, &world.config.fault);
    let (begin, end) = actions(scene.fault);
    let steady_s = load.ramp_s * f64::from(scene.id.streams) + load.warm_up_s + config.steady_s;
    pause(director, steady_s).await?;
    let fault_s = world.now_s();
    command(director, scene, begin).await?;
    let down_s = if scene.fault == Fault::BalancerRestart { 0.0 } else { config.down_s };
    let stayed = pause(director, down_s).await;
    let start_s = world.now_s();
    command(director, scene, end).await?;
    stayed?;
    let well_s = match world.instances.iter().find(|i| i.name == scene.victim) {
        Some(instance) => {
            let text = format!("waiting for {} to be well again, {} s at most", scene.victim, config.well_s);
            watch.on(&Progress::Note { text: &text });
            until(director, until_well(world, instance, seconds(config.well_s))).await?
        }
        None => Some(world.now_s()),
    };
    if let Some(well_s) = well_s {
        let detail = EventDetail::WellAgain { after_s: well_s - start_s };
        note(world, director.dir, director.step, "well_again", Some(detail))?;
    }
    pause(director, config.after_s).await?;
    let instance = if scene.fault == Fault::BalancerRestart { BALANCER } else { scene.victim };
    Ok(Timeline {
        fault: scene.fault,
        instance: instance.to_owned(),
        fault_s,
        start_s: Some(start_s),
        well_s,
        until_s: world.now_s(),
    })
}

async fn command(director: &mut Director<'_>, scene: &Scene<'_>, action: Action) -> Result<(), CaseError> {
    let done = act(director.world, director.dir, director.step, scene.victim, action).await?;
    done.map(|_| ())
        .map_err(|refusal| CaseError::Control { what: LeftOut::Refused { why: refusal.into_reason() } })
}

/// Lets the load run for so many seconds.
async fn pause(director: &mut Director<'_>, for_s: f64) -> Result<(), Unfinished> {
    until(director, sleep(seconds(for_s))).await
}

/// Waits for something while the load runs; unfinished where something ends the load meanwhile.
async fn until<T>(director: &mut Director<'_>, what: impl Future<Output = T>) -> Result<T, Unfinished> {
    tokio::select! {
        biased;
        cut = director.until_cut() => Err(Unfinished::Cut(cut?)),
        done = what => Ok(done),
    }
}
