//! One call, from connecting to the close.

mod upload;

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use futures_util::StreamExt;
use tapedeck_pace::Schedule;
use tapedeck_protocol::{Incoming, Session, SessionStart, Wire};
use tapedeck_record::{FinalKind, Outcome, OutcomeDetail, Texts, Trace};
use tapedeck_transport::Io;
use tokio::time::{Instant, Sleep, timeout, timeout_at};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::WebSocketConfig},
};

use crate::{
    assignment::{Assignment, Item},
    open::{Opened, open},
    plan::Plan,
    prepared::PreparedCall,
    session_driver::{CallPlan, Ending, SessionDriver, since},
    target::{CallResult, Target},
    watchdog::ResponseWatchdog,
};

/// What all calls of a run share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) assignment: Assignment,
    pub(crate) target: Target,
    pub(crate) origin: Instant,
    config: WebSocketConfig,
}

impl Stage {
    pub(crate) fn new(plan: Plan, assignment: Assignment, target: Target, origin: Instant) -> Self {
        let config = WebSocketConfig::default()
            // Answers are short, and the library clears as much of its buffer before every read.
            .read_buffer_size(4 << 10)
            // Each message goes to the socket in one write, as soon as it is made.
            .write_buffer_size(0)
            // Room for one message of ours and for answers to pings that a blocked socket holds up.
            .max_write_buffer_size(assignment.largest_frame() + (1 << 20))
            .max_message_size(Some(plan.max_message_bytes))
            .max_frame_size(Some(plan.max_message_bytes));
        Self { plan, assignment, target, origin, config }
    }
}

/// Which call it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallId {
    pub(crate) stream: u32,
    pub(crate) seq: u32,
    pub(crate) counted: bool,
}

/// Plays one call; `cut` ends it at once, `sleep` is the stream's one timer.
pub(crate) async fn play<C: Future<Output = ()>>(
    stage: &Stage,
    id: CallId,
    item: &Item,
    call: &PreparedCall,
    mut cut: Pin<&mut C>,
    mut sleep: Pin<&mut Sleep>,
) -> CallResult {
    if stage.target.dialect.wire() == Wire::Http {
        return upload::play(stage, id, item, call, cut).await;
    }
    let plan = &stage.plan;
    let c0 = Instant::now();
    let mut trace = blank(stage, id, item, call, c0);
    let done = |mut trace: Trace, texts: Texts| {
        if trace.done_ns == 0 {
            trace.done_ns = since(stage.origin, Instant::now());
        }
        CallResult { trace, texts }
    };

    let start = SessionStart { stream: id.stream, seq: id.seq, audio: call.audio() };
    let opening = timeout_at(c0 + plan.timeouts.connect, open(&stage.target, stage.config, &start));
    let opened = tokio::select! {
        biased;
        () = cut.as_mut() => Err(OutcomeDetail::plain(Outcome::Cancelled)),
        opened = opening => opened.unwrap_or_else(|_| Err(OutcomeDetail::plain(Outcome::ConnectTimeout))),
    };
    let Opened { ws, session } = match opened {
        Ok(opened) => opened,
        Err(outcome) => {
            trace.outcome = outcome;
            return done(trace, Texts::default());
        }
    };

    let c1 = Instant::now();
    trace.c1_ns = Some(since(stage.origin, c1));
    let dialect = &stage.target.dialect;
    let first = plan.unique_per_session.then(|| {
        let session = u64::from(id.seq) * u64::from(plan.streams) + u64::from(id.stream);
        call.unique_first(&**dialect, session)
    });
    let call_plan = CallPlan {
        frames: call.frames(),
        first: first.flatten(),
        schedule: if plan.at_once {
            Schedule::at_once(c1, item.prepared().chunk(), call.audio())
        } else {
            Schedule::new(c1, item.prepared().chunk(), call.audio())
        },
        watchdog: ResponseWatchdog::new(&call.meta().speech),
        timeouts: &plan.timeouts,
        no_response: plan.timeouts.no_response.filter(|_| dialect.answers_during_call()),
        final_quiet: plan.timeouts.final_quiet.or_else(|| dialect.final_quiet()),
        ping_every: plan.ping_every,
        origin: stage.origin,
    };
    let mut session_driver = SessionDriver::new(ws, session, call_plan);
    let ending = poll_fn(|cx| {
        if cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ending::Failed(OutcomeDetail::plain(Outcome::Cancelled)));
        }
        session_driver.poll(cx, sleep.as_mut())
    })
    .await;
    let ended_at = Instant::now();

    let mut said = session_driver.into_said();
    let (final_at, kind, outcome) = judge(ending, &*said.session);
    trace.done_ns =
        since(stage.origin, final_at.filter(|_| kind == Some(FinalKind::Marker)).unwrap_or(ended_at));
    trace.final_ns = final_at.map(|at| since(stage.origin, at));
    trace.final_kind = kind;
    trace.outcome = outcome;
    trace.end_ns = said.end_at.map(|at| since(stage.origin, at));
    trace.messages = said.messages;
    trace.kept_from_ns = said.kept.since_ns();
    trace.rtt_us = said.rtt_us;
    trace.wake_late_us = said.lateness.wake_late_us;
    trace.blocked_us = said.lateness.blocked_us;
    mark_client_late(&mut trace, plan.timeouts.client_late);

    let texts = if plan.keep_texts { said.session.texts() } else { Texts::default() };
    hang_up(said.ws, &mut *said.session, plan.timeouts.close).await;
    // Asked last, because what follows the final is a violation too.
    trace.violations = said.session.violations();
    trace.instance = said.session.instance().map(str::to_owned);
    done(trace, texts)
}

/// A trace in which nothing has happened yet.
fn blank(stage: &Stage, id: CallId, item: &Item, call: &PreparedCall, c0: Instant) -> Trace {
    let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    Trace {
        stream: id.stream,
        seq: id.seq,
        call: call.meta().index,
        tape: item.tape().map(str::to_owned),
        counted: id.counted,
        c0_ns: since(stage.origin, c0),
        c1_ns: None,
        chunk_ns: if stage.plan.at_once { 0 } else { ns(item.prepared().chunk()) },
        audio_ns: ns(call.audio()),
        tail_silence_ns: ns(item.prepared().tail_silence()),
        wake_late_us: Vec::new(),
        blocked_us: Vec::new(),
        end_ns: None,
        messages: Vec::new(),
        final_ns: None,
        final_kind: None,
        kept_from_ns: None,
        done_ns: 0,
        rtt_us: Vec::new(),
        instance: None,
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Cancelled),
    }
}

/// A call that we were late for proves nothing about the server. An error stays one: our lateness excuses no
/// close and no refusal.
fn mark_client_late(trace: &mut Trace, client_late: Duration) {
    let late_us = trace.wake_late_us.iter().copied().max().unwrap_or(0);
    let proves_something =
        matches!(trace.outcome.outcome, Outcome::Ok | Outcome::TailLost | Outcome::EmptyFinal);
    if proves_something && Duration::from_micros(late_us.into()) > client_late {
        let words = format!("our sender woke {} ms late", late_us / 1000);
        trace.outcome = OutcomeDetail::said(Outcome::ClientLate, None, &words);
    }
}

/// What a call's ending makes of it.
fn judge(ending: Ending, session: &dyn Session) -> (Option<Instant>, Option<FinalKind>, OutcomeDetail) {
    match ending {
        Ending::Failed(outcome) => (None, None, outcome),
        Ending::Complete { final_at, kind } => {
            let outcome = if session.texts().finals_and_tail.is_empty() {
                Outcome::EmptyFinal
            } else if session.tail_open() {
                Outcome::TailLost
            } else {
                Outcome::Ok
            };
            (final_at, Some(kind), OutcomeDetail::plain(outcome))
        }
    }
}

/// Says goodbye and waits for the server's side of it, but not for long: a slot that it has not given up yet
/// would be missing for the stream's next call.
async fn hang_up(mut ws: WebSocketStream<Io>, session: &mut dyn Session, limit: Duration) {
    let goodbye = async {
        if ws.close(None).await.is_err() {
            return;
        }
        while let Some(Ok(incoming)) = ws.next().await {
            match incoming {
                Message::Close(_) => return,
                Message::Text(text) => drop(session.read(Incoming::Text(&text))),
                Message::Binary(bytes) => drop(session.read(Incoming::Binary(&bytes))),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    };
    // Whether it answered in time makes no difference to the call.
    let _ = timeout(limit, goodbye).await;
}
