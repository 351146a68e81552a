//! One call's conversation: chunks go out on time, answers come in whenever they do.
//!
//! Sending and receiving share one task and one socket, yet neither waits for the other: both are polled on
//! every wake-up, sending first. A chunk that the socket does not take leaves reading untouched, and a flood
//! of messages is interrupted by every chunk that comes due.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tapedeck_pace::{Lateness, Pacer, Schedule};
use tapedeck_protocol::{Incoming, Session, Signal};
use tapedeck_record::{FinalKind, Message as Record, Outcome, OutcomeDetail};
use tapedeck_transport::Io;
use tokio::time::{Instant, Sleep};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message, protocol::CloseFrame},
};

use crate::{
    kept::Kept,
    open::{broken, closed, failure},
    plan::Timeouts,
    prepared::message,
    watchdog::ResponseWatchdog,
};

/// Messages that are recorded of one call; a server that sends more breaks every protocol there is.
pub(crate) const MAX_MESSAGES: usize = 100_000;

/// How the conversation ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The call is complete.
    Complete {
        /// `f`, where there was a text to be the final.
        final_at: Option<Instant>,
        /// What decided it.
        kind: FinalKind,
    },
    /// It is not.
    Failed(OutcomeDetail),
}

/// What the socket is swallowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flight {
    Nothing,
    Chunk,
    /// The last message of the ending: when it has landed, `e` has come.
    End,
    Ping,
    Other,
}

/// Round trips of pings.
#[derive(Debug)]
struct Pings {
    every: Option<Duration>,
    next: Instant,
    sent: u64,
    /// Only one is under way at a time; none is sent while a server owes us the last one.
    outstanding: bool,
    left_at: Instant,
    rtt_us: Vec<u32>,
}

/// What the caller knows of its call when it begins to speak.
pub(crate) struct CallPlan<'a> {
    pub(crate) frames: &'a [Message],
    /// Replaces the first frame, where the session has one of its own.
    pub(crate) first: Option<Message>,
    pub(crate) schedule: Schedule,
    pub(crate) watchdog: ResponseWatchdog<'a>,
    pub(crate) timeouts: &'a Timeouts,
    pub(crate) no_response: Option<Duration>,
    pub(crate) final_quiet: Option<Duration>,
    pub(crate) ping_every: Option<Duration>,
    pub(crate) origin: Instant,
}

/// The conversation.
pub(crate) struct SessionDriver<'a> {
    ws: WebSocketStream<Io>,
    session: Box<dyn Session>,
    call_plan: CallPlan<'a>,
    pacer: Pacer,
    outbox: VecDeque<(Message, Flight)>,
    flight: Flight,
    pings: Pings,
    /// The session has been told that the audio ended.
    ending: bool,
    /// `e`.
    end_at: Option<Instant>,
    /// Sending failed: why, and since when we only listen for the server's last words.
    dead: Option<(OutcomeDetail, Instant)>,
    messages: Vec<Record>,
    kept: Kept,
    last_heard: Instant,
    seen_text: bool,
    text_after_end: Option<Instant>,
    /// When text became owed.
    owed_from: Option<Instant>,
    armed: Option<Instant>,
}

/// What is left of a conversation.
pub(crate) struct Spoken {
    pub(crate) ws: WebSocketStream<Io>,
    pub(crate) session: Box<dyn Session>,
    pub(crate) lateness: Lateness,
    pub(crate) end_at: Option<Instant>,
    pub(crate) messages: Vec<Record>,
    pub(crate) kept: Kept,
    pub(crate) rtt_us: Vec<u32>,
}

impl<'a> SessionDriver<'a> {
    pub(crate) fn new(ws: WebSocketStream<Io>, session: Box<dyn Session>, call_plan: CallPlan<'a>) -> Self {
        let c1 = call_plan.schedule.start();
        let pings = Pings {
            every: call_plan.ping_every,
            next: c1 + call_plan.ping_every.unwrap_or_default(),
            sent: 0,
            outstanding: false,
            left_at: c1,
            rtt_us: Vec::new(),
        };
        Self {
            ws,
            session,
            pacer: Pacer::new(call_plan.schedule),
            outbox: VecDeque::new(),
            flight: Flight::Nothing,
            pings,
            ending: false,
            end_at: None,
            dead: None,
            messages: Vec::new(),
            kept: Kept::default(),
            last_heard: c1,
            seen_text: false,
            text_after_end: None,
            owed_from: call_plan.watchdog.owed_from(Duration::ZERO).map(|after| c1 + after),
            armed: None,
            call_plan,
        }
    }

    /// Takes the conversation apart when it is over.
    pub(crate) fn into_said(self) -> Spoken {
        Spoken {
            ws: self.ws,
            session: self.session,
            lateness: self.pacer.into_lateness(),
            end_at: self.end_at,
            messages: self.messages,
            kept: self.kept,
            rtt_us: self.pings.rtt_us,
        }
    }

    /// Carries the conversation on as far as it will go now. `sleep` is the stream's one timer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, mut sleep: Pin<&mut Sleep>) -> Poll<Ending> {
        loop {
            let now = self.poll_send(cx, Instant::now());
            if let Poll::Ready(item) = self.ws.poll_next_unpin(cx) {
                if let Some(ending) = self.received(item, Instant::now()) {
                    return Poll::Ready(ending);
                }
                continue; // a chunk may have come due meanwhile
            }
            let wake = match self.next_limit(now) {
                Ok(limit) => self.next_chunk().map_or(limit, |due| due.min(limit)),
                Err(ending) => return Poll::Ready(ending),
            };
            // A timer that fires too early costs one look around; moving it costs something every time.
            if self.armed.is_none_or(|at| at > wake || at <= now) {
                sleep.as_mut().reset(wake);
                self.armed = Some(wake);
            }
            match sleep.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => self.armed = None,
            }
        }
    }

    /// When the sender has something to do next, if it depends on the clock at all.
    fn next_chunk(&self) -> Option<Instant> {
        if self.flight == Flight::Nothing && self.dead.is_none() { self.pacer.due() } else { None }
    }

    /// Sends whatever is due and whatever fits; returns the time of its last look at the clock.
    fn poll_send(&mut self, cx: &mut Context<'_>, mut now: Instant) -> Instant {
        loop {
            if self.dead.is_some() {
                return now;
            }
            if self.flight != Flight::Nothing {
                match self.ws.poll_flush_unpin(cx) {
                    Poll::Pending => return now,
                    Poll::Ready(Ok(())) => {
                        now = Instant::now();
                        self.landed(now);
                    }
                    Poll::Ready(Err(e)) => {
                        self.dead = Some((broken(&e), now));
                        return now;
                    }
                }
            }
            let Some((next, flight)) = self.next_message(now) else { return now };
            self.flight = flight;
            if let Err(e) = self.ws.start_send_unpin(next) {
                self.dead = Some((broken(&e), now));
                return now;
            }
        }
    }

    /// What to send now: replies first, then the chunk that is due, then the end, then a ping.
    fn next_message(&mut self, now: Instant) -> Option<(Message, Flight)> {
        if let Some(queued) = self.outbox.pop_front() {
            return Some(queued);
        }
        if let Some(due) = self.pacer.due() {
            if due > now {
                return self.ping(now);
            }
            let chunk = self.pacer.next();
            let shared = usize::try_from(chunk).ok().and_then(|i| self.call_plan.frames.get(i))?;
            self.pacer.woke(now);
            let own = if chunk == 0 { self.call_plan.first.take() } else { None };
            return Some((own.unwrap_or_else(|| shared.clone()), Flight::Chunk));
        }
        if self.ending {
            return None;
        }
        self.ending = true;
        self.outbox.extend(self.session.ending().into_iter().map(|f| (message(f), Flight::Other)));
        match self.outbox.back_mut() {
            Some(last) => last.1 = Flight::End,
            None => self.end_at = Some(now), // a dialect without an end message: the audio itself ends
        }
        self.outbox.pop_front()
    }

    /// A ping, if it is time. It follows a chunk, so it needs no timer and no wake-up of its own.
    fn ping(&mut self, now: Instant) -> Option<(Message, Flight)> {
        let every = self.pings.every?;
        if self.pings.outstanding || now < self.pings.next {
            return None;
        }
        self.pings.next = now + every;
        self.pings.sent += 1;
        self.pings.outstanding = true;
        Some((Message::Ping(Bytes::copy_from_slice(&self.pings.sent.to_be_bytes())), Flight::Ping))
    }

    fn landed(&mut self, now: Instant) {
        match self.flight {
            Flight::Chunk => self.pacer.sent(now),
            Flight::End => self.end_at = Some(now),
            Flight::Ping => self.pings.left_at = now,
            Flight::Nothing | Flight::Other => {}
        }
        self.flight = Flight::Nothing;
    }

    fn received(
        &mut self,
        item: Option<Result<Message, tungstenite::Error>>,
        now: Instant,
    ) -> Option<Ending> {
        let incoming = match item {
            Some(Ok(incoming)) => incoming,
            // What sending ran into says more than the end of reading that follows it.
            None => {
                return Some(Ending::Failed(self.dead.take().map_or_else(|| closed(None), |(why, _)| why)));
            }
            Some(Err(e)) => return Some(Ending::Failed(broken(&e))),
        };
        self.last_heard = now;
        let reading = match &incoming {
            Message::Text(text) => self.session.read(Incoming::Text(text)),
            Message::Binary(bytes) => self.session.read(Incoming::Binary(bytes)),
            Message::Pong(payload) => {
                if self.pings.outstanding && payload[..] == self.pings.sent.to_be_bytes() {
                    self.pings.outstanding = false;
                    let trip = now.saturating_duration_since(self.pings.left_at);
                    self.pings.rtt_us.push(u32::try_from(trip.as_micros()).unwrap_or(u32::MAX));
                }
                return None;
            }
            Message::Ping(_) | Message::Frame(_) => return None,
            Message::Close(frame) => return Some(self.closed_by_server(frame.as_ref())),
        };
        if self.messages.len() >= MAX_MESSAGES {
            let words = format!("more than {MAX_MESSAGES} messages in one call");
            return Some(Ending::Failed(OutcomeDetail::said(Outcome::Protocol, None, &words)));
        }
        let at_ns = since(self.call_plan.origin, now);
        if reading.chars > 0 || reading.revised > 0 {
            self.kept.reads(&self.session.texts().finals_and_tail, at_ns);
        }
        self.messages.push(Record {
            at_ns,
            kind: reading.kind,
            bytes: u32::try_from(incoming.len()).unwrap_or(u32::MAX),
            chars: reading.chars,
            revised: reading.revised,
            position_ms: reading.position_ms,
            window: reading.window,
        });
        if reading.chars > 0 {
            self.heard_text(now);
        }
        match reading.signal {
            Signal::None | Signal::Ready => {
                self.outbox.extend(self.session.replies().into_iter().map(|f| (message(f), Flight::Other)));
                None
            }
            Signal::Final if self.ending => {
                Some(Ending::Complete { final_at: Some(now), kind: FinalKind::Marker })
            }
            Signal::Final => {
                let words = "end marker before the audio had ended";
                Some(Ending::Failed(OutcomeDetail::said(Outcome::ClosedEarly, None, words)))
            }
            other => Some(Ending::Failed(failure(other))),
        }
    }

    fn heard_text(&mut self, now: Instant) {
        self.seen_text = true;
        if self.ending {
            self.text_after_end = Some(now);
        }
        let c1 = self.call_plan.schedule.start();
        self.owed_from =
            self.call_plan.watchdog.owed_from(now.saturating_duration_since(c1)).map(|after| c1 + after);
    }

    /// After end-of-audio a clean close decides the final; anything else is too early.
    fn closed_by_server(&self, frame: Option<&CloseFrame>) -> Ending {
        let clean = frame.is_none_or(|f| matches!(u16::from(f.code), 1000 | 1005));
        if self.end_at.is_some() && clean {
            Ending::Complete { final_at: self.text_after_end, kind: FinalKind::Close }
        } else {
            Ending::Failed(closed(frame))
        }
    }

    /// The next moment at which waiting would have lasted too long, or what it means that it has.
    fn next_limit(&self, now: Instant) -> Result<Instant, Ending> {
        let timeouts = self.call_plan.timeouts;
        let fail = |outcome, words: &str| Err(Ending::Failed(OutcomeDetail::said(outcome, None, words)));

        let finish = self.call_plan.schedule.end() + timeouts.final_;
        if now >= finish {
            let words = if self.end_at.is_some() { "" } else { "the server did not take all of the audio" };
            return fail(Outcome::FinalTimeout, words);
        }
        let mut next = finish;
        if let Some((why, at)) = &self.dead {
            let patience = *at + timeouts.close;
            if now >= patience {
                return Err(Ending::Failed(why.clone()));
            }
            next = next.min(patience);
        }
        if let (Some(quiet), Some(end_at)) = (self.call_plan.final_quiet, self.end_at) {
            let decided = end_at.max(self.last_heard) + quiet;
            if now >= decided {
                return Err(Ending::Complete { final_at: self.text_after_end, kind: FinalKind::Quiet });
            }
            next = next.min(decided);
        }
        if let (Some(no_response), Some(owed)) = (self.call_plan.no_response, self.owed_from)
            // The end of the call has a limit of its own; a server that never said a word is mute even so.
            && (!self.ending || !self.seen_text)
            // Without a sign of life since, it may be dead instead: that is for the idle limit to say.
            && (self.pings.every.is_none() || self.last_heard >= owed)
        {
            let silent = owed + no_response;
            if now >= silent {
                return fail(Outcome::Mute, "");
            }
            next = next.min(silent);
        }
        let idle = self.last_heard + timeouts.idle;
        if now >= idle {
            return fail(Outcome::IdleTimeout, "");
        }
        Ok(next.min(idle))
    }
}

/// Nanoseconds on the run's clock.
pub(crate) fn since(origin: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(origin).as_nanos()).unwrap_or(u64::MAX)
}
