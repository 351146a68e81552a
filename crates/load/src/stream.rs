//! One stream: a virtual caller who places call after call.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tapedeck_record::OutcomeClass;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    call::{CallId, Stage, play},
    control::{Control, Phase},
    session_driver::since,
    target::CallResult,
};

/// Counts down the calls that count; the last one stops the run.
#[derive(Debug)]
pub(crate) struct StepAccumulator {
    left: AtomicU64,
    control: Control,
}

impl StepAccumulator {
    pub(crate) fn new(calls: u64, control: Control) -> Self {
        Self { left: AtomicU64::new(calls), control }
    }

    fn counted_one(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.control.stop();
        }
    }
}

/// What one stream did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct StreamSum {
    pub(crate) calls: u64,
    pub(crate) counted: u64,
    pub(crate) window_from_ns: Option<u64>,
    pub(crate) window_to_ns: Option<u64>,
    pub(crate) last_close_ns: u64,
}

/// Plays stream `k` until the run stops.
pub(crate) async fn caller(
    stage: Arc<Stage>,
    k: u32,
    start: Instant,
    control: Control,
    accumulator: Arc<StepAccumulator>,
    out: mpsc::UnboundedSender<CallResult>,
) -> StreamSum {
    let plan = &stage.plan;
    let mut sum = StreamSum::default();
    let Some(item) = stage.assignment.item(k) else { return sum };
    let mut stop = pin!(control.reached(Phase::Stopping));
    let mut cut = pin!(control.reached(Phase::Cut));
    let mut timer = pin!(sleep(std::time::Duration::ZERO));
    let opens = start + plan.opens_after();
    let mut window = u64::from(plan.loops) * u64::try_from(item.len()).unwrap_or(u64::MAX);
    let mut begin = start + plan.ramp.saturating_mul(k);

    for seq in 0_u32.. {
        if Instant::now() < begin {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = sleep_until(begin) => {}
            }
        }
        if control.is(Phase::Stopping) {
            break;
        }
        let Some(call) = item.call(seq) else { break };
        // Fixed here, before anything is known of the outcome. The window opens once and then holds the
        // whole tape, call after call.
        let c0 = Instant::now();
        let counted = window > 0 && c0 >= opens;
        window -= u64::from(counted);

        let id = CallId { stream: k, seq, counted };
        let played = play(&stage, id, &item, call, cut.as_mut(), timer.as_mut()).await;
        let errored =
            played.trace.outcome.outcome.class(!call.meta().speech.is_silent()) == OutcomeClass::Error;
        sum.calls += 1;
        sum.last_close_ns = since(stage.origin, Instant::now());
        if counted {
            sum.counted += 1;
            sum.window_from_ns.get_or_insert(played.trace.c0_ns);
            sum.window_to_ns = Some(played.trace.done_ns);
        }
        // If nobody listens any more, the run still ends as planned.
        let _ = out.send(played);
        if counted {
            accumulator.counted_one();
        }
        if errored {
            begin = c0 + plan.back_off;
        }
    }
    sum
}
