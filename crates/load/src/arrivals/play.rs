//! Callers come as the schedule says; lines take them, lose them or let them wait.

use std::{collections::VecDeque, pin::pin, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tapedeck_record::Outcome;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::schedule::{Arrival, ArrivalSchedule};
use crate::{
    assignment::{Assignment, Item},
    call::{CallId, Stage, play},
    control::{Control, Phase},
    plan::Plan,
    prepared::PreparedCalls,
    run::Summary,
    session_driver::since,
    target::{CallResult, Target},
};

/// How many calls there may be at once, and what becomes of the next caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trunks {
    /// The server's own: every call is placed, and one that is refused as busy is blocked.
    Server,
    /// So many of ours; a caller who finds all busy is lost (Erlang B).
    Lose(u32),
    /// So many of ours; a caller who finds all busy waits for the first that is free, in order of arrival
    /// (Erlang C).
    Wait(u32),
}

/// What became of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// The call was placed and taken; how it ended is in its trace.
    Carried,
    /// All lines were busy and the caller was lost.
    Blocked,
    /// The server refused the call as busy.
    Refused,
    /// The run ended while the caller was waiting, or before the call had ended.
    Cut,
}

/// One caller. Instants are nanoseconds from the run's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Ordinal, which is the stream number in the trace.
    pub n: u32,
    /// Whether it counts.
    pub counted: bool,
    /// When the caller was to come.
    pub planned_ns: u64,
    /// When the caller came: later than planned only if we were late.
    pub arrived_ns: u64,
    /// When the call was placed: later than the arrival only if it waited for a line.
    pub start_ns: Option<u64>,
    /// When its line was free again.
    pub freed_ns: Option<u64>,
    /// What became of it.
    #[serde(rename = "fate")]
    pub disposition: Disposition,
}

/// Who comes, what they play, and how many lines there are for them.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Everybody who will come.
    pub table: ArrivalSchedule,
    /// The calls that they play.
    pub prepared: Arc<PreparedCalls>,
    /// The lines.
    pub lines: Trunks,
}

/// A run of open arrivals as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrived {
    /// What it has in common with a closed loop.
    pub summary: Summary,
    /// Everybody who came, in order of arrival.
    pub callers: Vec<Caller>,
}

/// A call that has ended.
struct Ended {
    n: u32,
    counted: bool,
    disposition: Disposition,
}

/// What the run has come to so far.
struct TrunkGroup {
    stage: Arc<Stage>,
    item: Item,
    prepared: Arc<PreparedCalls>,
    control: Control,
    out: mpsc::UnboundedSender<CallResult>,
    calls: JoinSet<Ended>,
    callers: Vec<Caller>,
    waiting: VecDeque<(u32, Arrival)>,
    busy: u32,
    /// Counted callers whose disposition is open.
    left: usize,
    summary: Summary,
}

/// Places the calls of a schedule against a site, and sends each to `out` as it ends (blocked callers leave no
/// trace there, only a [`Caller`]). Of the plan, `streams`, `ramp`, `warm_up`, `loops` and `back_off` do not apply.
///
/// Once the disposition of every counted caller is known, no other call is placed; those under way are finished, and
/// what still goes on after the plan's drain limit is cut. The trace's stream is the caller's ordinal and its
/// call the index on the prepared calls; a shortened call's trace says how much of it was played.
///
/// # Panics
/// Only if a call itself panicked, which is a defect of this crate.
pub async fn arrive(
    plan: Plan,
    offer: &Offer,
    target: Target,
    origin: Instant,
    control: Control,
    out: mpsc::UnboundedSender<CallResult>,
) -> Arrived {
    let start = Instant::now();
    let drain = plan.drain;
    let Offer { table, prepared, lines } = offer;
    let (prepared, lines) = (Arc::clone(prepared), *lines);
    let left = table.arrivals.iter().filter(|a| a.counted).count();
    let mut hall = TrunkGroup {
        stage: Arc::new(Stage::new(plan, Assignment::All(Arc::clone(&prepared)), target, origin)),
        item: Item::new(Arc::clone(&prepared), 0),
        prepared,
        control: control.clone(),
        out,
        calls: JoinSet::new(),
        callers: Vec::with_capacity(table.arrivals.len()),
        waiting: VecDeque::new(),
        busy: 0,
        left,
        summary: Summary {
            start_ns: since(origin, start),
            last_close_ns: since(origin, start),
            counted_planned: u64::try_from(left).unwrap_or(u64::MAX),
            ..Summary::default()
        },
    };
    if left == 0 {
        control.stop();
    }
    let mut stopping = pin!(control.reached(Phase::Stopping));
    let mut to_come = table.arrivals.iter();
    let mut next = to_come.next();
    let mut drained_by = None;
    loop {
        // Calls that have ended are looked at before callers that come, so that a free line is seen as one.
        tokio::select! {
            biased;
            () = &mut stopping, if drained_by.is_none() => {
                let now = Instant::now();
                hall.summary.stop_ns = Some(since(origin, now));
                drained_by = Some(now + drain);
                next = None;
                hall.waiting.clear();
            }
            () = sleep_until(drained_by.unwrap_or(start)), if drained_by.is_some() && !hall.summary.cut => {
                hall.summary.cut = true;
                control.cut();
            }
            Some(over) = hall.calls.join_next() => match over {
                Ok(over) => hall.over(&over, lines, origin),
                Err(e) => match e.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => break, // the runtime is going down
                },
            },
            () = sleep_until(next.map_or(start, |a| start + a.at)), if next.is_some() => {
                if let Some(arrival) = next.take() {
                    hall.comes(arrival, start + arrival.at, lines, origin);
                }
                next = to_come.next();
            }
            else => break,
        }
        if drained_by.is_some() && hall.calls.is_empty() {
            break;
        }
    }
    hall.summary.cut |= control.is(Phase::Cut);
    Arrived { summary: hall.summary, callers: hall.callers }
}

impl TrunkGroup {
    /// Somebody comes.
    fn comes(&mut self, arrival: &Arrival, planned: Instant, lines: Trunks, origin: Instant) {
        let Ok(n) = u32::try_from(self.callers.len()) else { return };
        self.callers.push(Caller {
            n,
            counted: arrival.counted,
            planned_ns: since(origin, planned),
            arrived_ns: since(origin, Instant::now()),
            start_ns: None,
            freed_ns: None,
            disposition: Disposition::Cut,
        });
        match lines {
            Trunks::Lose(most) if self.busy >= most => self.decided(n, Disposition::Blocked),
            Trunks::Wait(most) if self.busy >= most => self.waiting.push_back((n, *arrival)),
            _ => self.place(n, arrival, origin),
        }
    }

    /// A call is placed.
    fn place(&mut self, n: u32, arrival: &Arrival, origin: Instant) {
        let Some(call) = self.prepared.cut(arrival.call, arrival.audio) else { return };
        self.busy += 1;
        self.summary.calls += 1;
        if let Some(caller) = self.caller(n) {
            caller.start_ns = Some(since(origin, Instant::now()));
        }
        let (stage, item, control) = (Arc::clone(&self.stage), self.item.clone(), self.control.clone());
        let (out, counted) = (self.out.clone(), arrival.counted);
        self.calls.spawn(async move {
            let mut cut = pin!(control.reached(Phase::Cut));
            let mut timer = pin!(sleep(Duration::ZERO));
            let id = CallId { stream: n, seq: 0, counted };
            let played = play(&stage, id, &item, &call, cut.as_mut(), timer.as_mut()).await;
            let disposition = match played.trace.outcome.outcome {
                Outcome::RefusedBusy => Disposition::Refused,
                Outcome::Cancelled => Disposition::Cut,
                _ => Disposition::Carried,
            };
            // If nobody listens any more, the run still ends as planned.
            let _ = out.send(played);
            Ended { n, counted, disposition }
        });
    }

    /// A call has ended and its line is free.
    fn over(&mut self, over: &Ended, lines: Trunks, origin: Instant) {
        let now_ns = since(origin, Instant::now());
        self.busy = self.busy.saturating_sub(1);
        self.summary.last_close_ns = now_ns;
        if let Some(caller) = self.caller(over.n) {
            caller.freed_ns = Some(now_ns);
            let start_ns = caller.start_ns;
            if over.counted {
                self.summary.counted += 1;
                self.summary.window_from_ns = self.summary.window_from_ns.or(start_ns);
                self.summary.window_to_ns = Some(now_ns);
            }
        }
        self.decided(over.n, over.disposition);
        if matches!(lines, Trunks::Wait(_))
            && let Some((n, arrival)) = self.waiting.pop_front()
        {
            self.place(n, &arrival, origin);
        }
    }

    fn decided(&mut self, n: u32, disposition: Disposition) {
        let Some(caller) = self.caller(n) else { return };
        caller.disposition = disposition;
        if caller.counted {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.control.stop();
            }
        }
    }

    fn caller(&mut self, n: u32) -> Option<&mut Caller> {
        self.callers.get_mut(usize::try_from(n).ok()?)
    }
}
