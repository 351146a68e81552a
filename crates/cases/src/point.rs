//! One load point: streams that each play the calls planned for them.
//!
//! A case decides which points there are and what follows from them; [`Steps`](crate::Steps) plays them.

use std::time::Duration;

use tapedeck_config::LoadConfig;
use tapedeck_load::{Assignment, CallResult, Control, Plan, Summary as LoadSummary, Timeouts};
use tapedeck_record::StepId;
use tapedeck_rundir::RunDir;
use tapedeck_score::{Rules, score};
use tapedeck_slo::{CutShort, TierReport};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::error::CaseError;
use crate::progress::Observer;
use crate::runner::{self, Director, LoadModel, Step, StepAccumulator};
use crate::words;
use crate::workload::Workload;
use crate::world::{World, seconds};

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
    pub workload: Workload,
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
            workload: Workload::default(),
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

/// Plays one load point and writes it down.
///
/// # Errors
/// Preflight failures, and whatever the run directory refuses.
pub(crate) async fn play(
    world: &World,
    dir: &mut RunDir,
    point: &Point,
    watch: &dyn Observer,
) -> Result<(Option<CutShort>, TierReport), CaseError> {
    let assignment = point.workload.assignment(world, point.streams)?;
    let step = Step {
        point,
        model: LoadModel::Closed,
        streams: point.streams,
        tape: point.workload.name(world)?,
        planned: assignment.counted_calls(point.streams, point.loops),
        expected_s: expected_s(world, point, &assignment),
    };
    let rules = Rules::new(world.target.dialect.evidence(), world.config.server.window_ms);
    let load = async |control, out| (load(world, point, assignment, control, out).await, ());
    let take = |measured: &mut StepAccumulator<'_>, played: &CallResult| {
        take(world, point, &rules, measured, played)
    };
    let direct = async |director: &mut Director<'_>| director.until_end().await;
    let finished = runner::run(world, dir, &step, load, take, direct, watch).await?;
    let report = finished.report.clone();
    let (cut, ()) = finished.commit(world, dir, watch).await?;
    Ok((cut, report))
}

/// Scores a call of a point and has the point judged by it.
pub(crate) fn take(
    world: &World,
    point: &Point,
    rules: &Rules,
    measured: &mut StepAccumulator<'_>,
    played: &CallResult,
) -> Result<(), CaseError> {
    let trace = &played.trace;
    let Some(call) = point.workload.call(world, trace) else { return Ok(()) };
    // Alignment is the dearest part of scoring, and only counted calls are judged by their words.
    let judged = trace.counted && point.workload.scores_words(trace.stream);
    let words = if judged { words::count(call, &played.texts) } else { Default::default() };
    measured.judged(score(trace, &call.meta, rules, &words), played)
}

/// About how long a point takes, seconds: ramp, warm-up, a call until the window opens, the window, the end.
fn expected_s(world: &World, point: &Point, assignment: &Assignment) -> f64 {
    let load = &world.config.load;
    let before_s = if point.at_once { 0.0 } else { load.ramp_s * f64::from(point.streams) + load.warm_up_s };
    before_s
        + point.hold.as_secs_f64()
        + assignment.longest_call().as_secs_f64()
        + assignment.longest_loop(point.streams).as_secs_f64() * f64::from(point.loops)
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
            no_response: (!point.offline).then(|| seconds(timeouts.mute_s)),
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
        .filter(|&k| point.workload.scores_words(k))
        .filter_map(|k| world.tape_of(point.workload.role(k)))
        .any(|tape| tape.calls.iter().any(|c| c.reference.is_some()))
}

/// The load itself; a point without streams is only watched for a while.
async fn load(
    world: &World,
    point: &Point,
    assignment: Assignment,
    control: Control,
    out: mpsc::UnboundedSender<CallResult>,
) -> LoadSummary {
    if point.streams > 0 {
        let (plan, target) = (plan(world, point), world.target.clone());
        return tapedeck_load::run(plan, assignment, target, world.origin, control, out).await;
    }
    let now_ns = || u64::try_from(world.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let start_ns = now_ns();
    tokio::select! {
        biased;
        () = control.until_cut() => {}
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
