//! All streams together.

use std::{pin::pin, sync::Arc};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::{
    assignment::Assignment,
    call::Stage,
    control::{Control, Phase},
    plan::Plan,
    session_driver::since,
    stream::{StepAccumulator, StreamSum, caller},
    target::{CallResult, Target},
};

/// What a run was, as a whole. Instants are nanoseconds from the run's origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// The run began: stream 0 placed its first call.
    pub start_ns: u64,
    /// Start of the first counted call of any stream; none if no call counted.
    pub window_from_ns: Option<u64>,
    /// End of the last counted call of any stream.
    pub window_to_ns: Option<u64>,
    /// The streams were told to finish their calls: the drain began.
    pub stop_ns: Option<u64>,
    /// The last connection was closed.
    pub last_close_ns: u64,
    /// Calls placed, whatever became of them.
    pub calls: u64,
    /// Counted calls that were placed.
    pub counted: u64,
    /// Counted calls that were planned: streams x calls on the tape x loops.
    pub counted_planned: u64,
    /// Whether calls had to be cut, after the drain limit or on demand.
    pub cut: bool,
}

impl Summary {
    /// Whether every counted call was placed, so that a verdict can be given.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.counted == self.counted_planned
    }
}

/// Lets the plan's streams play their parts (one prepared calls for all, as a rule) against the site, and sends each call to `out` as it ends.
///
/// Stream k starts at call k mod C (C = calls on the tape) after `k * ramp`. Its window opens at its own
/// first call boundary after ramp and warm-up (`streams * ramp + warm_up` from the start) and holds exactly
/// `loops * C` calls, C being those of its own part: membership is decided when a call starts and never changed. All streams keep playing
/// until the last counted call of any of them has ended; then each finishes the call it is in, and what
/// still goes on after the plan's drain limit is cut as `cancelled`. A failed call counts as what it is; its
/// stream goes on with the next call of the tape, not before the plan's back-off is over.
///
/// `origin` is the zero of every instant in the traces. Dropping the future ends all streams at once.
///
/// # Panics
/// Only if a stream itself panicked, which is a defect of this crate.
pub async fn run(
    plan: Plan,
    assignment: impl Into<Assignment>,
    target: Target,
    origin: Instant,
    control: Control,
    out: mpsc::UnboundedSender<CallResult>,
) -> Summary {
    let start = Instant::now();
    let assignment = assignment.into();
    let counted_planned = assignment.counted_calls(plan.streams, plan.loops);
    let mut summary = Summary {
        start_ns: since(origin, start),
        last_close_ns: since(origin, start),
        counted_planned,
        ..Summary::default()
    };
    if counted_planned == 0 {
        control.stop(); // nothing to wait for
    }
    let streams = plan.streams;
    let drain = plan.drain;
    let accumulator = Arc::new(StepAccumulator::new(counted_planned, control.clone()));
    let stage = Arc::new(Stage::new(plan, assignment, target, origin));
    let mut callers = JoinSet::new();
    for k in 0..streams {
        let (stage, accumulator) = (Arc::clone(&stage), Arc::clone(&accumulator));
        callers.spawn(caller(stage, k, start, control.clone(), accumulator, out.clone()));
    }
    drop(out);

    let mut stopping = pin!(control.reached(Phase::Stopping));
    let mut drained_by = None;
    loop {
        tokio::select! {
            biased;
            () = &mut stopping, if drained_by.is_none() => {
                let now = Instant::now();
                summary.stop_ns = Some(since(origin, now));
                drained_by = Some(now + drain);
            }
            () = sleep_until(drained_by.unwrap_or(start)), if drained_by.is_some() && !summary.cut => {
                summary.cut = true;
                control.cut();
            }
            ended = callers.join_next() => match ended {
                Some(Ok(sum)) => summary.add(&sum),
                Some(Err(e)) => match e.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => break, // the runtime is going down
                },
                None => break,
            },
        }
    }
    summary.cut |= control.is(Phase::Cut);
    summary
}

impl Summary {
    fn add(&mut self, sum: &StreamSum) {
        self.calls += sum.calls;
        self.counted += sum.counted;
        self.last_close_ns = self.last_close_ns.max(sum.last_close_ns);
        self.window_from_ns = match (self.window_from_ns, sum.window_from_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.window_to_ns = self.window_to_ns.max(sum.window_to_ns);
    }
}
