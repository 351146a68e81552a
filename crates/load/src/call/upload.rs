//! One call by store and forward: the whole of it is posted when it would have ended.
//!
//! Nothing is sent while the call is spoken, so every figure of it counts from the end. The trace says so: it has
//! one entry of lateness and of back-pressure, for the one body, and no answer before it.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use tapedeck_pace::Schedule;
use tapedeck_protocol::{
    Frame, Incoming, Session, SessionStart, Signal, SseError, SseEvents, is_event_stream,
};
use tapedeck_record::{FinalKind, Message as Record, Outcome, OutcomeDetail, Texts, Trace};
use tapedeck_transport::{HttpError, Request, ResponseStream};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;

use super::{CallId, Stage, blank, judge, mark_client_late};
use crate::{
    assignment::Item,
    kept::Kept,
    open::{failure, not_connected},
    prepared::PreparedCall,
    session_driver::{Ending, MAX_MESSAGES, since},
    target::CallResult,
};

/// Bytes of a refusal that are read for its words.
const REFUSAL_BYTES: usize = 64 << 10;

/// Plays one call; `cut` ends it at once.
pub(super) async fn play<C: Future<Output = ()>>(
    stage: &Stage,
    id: CallId,
    item: &Item,
    call: &PreparedCall,
    mut cut: Pin<&mut C>,
) -> CallResult {
    let plan = &stage.plan;
    let c0 = Instant::now();
    let mut trace = blank(stage, id, item, call, c0);
    // Somebody begins to speak; there is no session to wait for.
    trace.c1_ns = Some(since(stage.origin, c0));
    let start = SessionStart { stream: id.stream, seq: id.seq, audio: call.audio() };
    let mut session = stage.target.dialect.session(&start);
    let due = Schedule::new(c0, item.prepared().chunk(), call.audio()).end();

    let call_cut = || Ending::Failed(OutcomeDetail::plain(Outcome::Cancelled));
    let spoken = tokio::select! {
        biased;
        () = cut.as_mut() => false,
        () = sleep_until(due) => true,
    };
    let ending = if spoken {
        let woke = Instant::now();
        trace.wake_late_us.push(micros(woke.saturating_duration_since(due)));
        let body = body(stage, id, call, &mut *session);
        let mut exchange =
            Exchange { stage, session: &mut *session, trace: &mut trace, kept: Kept::default(), woke };
        tokio::select! {
            biased;
            () = cut.as_mut() => call_cut(),
            ended = timeout_at(due + plan.timeouts.final_, exchange.all(body)) => match ended {
                Ok(Ok(final_at)) => Ending::Complete { final_at: Some(final_at), kind: FinalKind::Marker },
                Ok(Err(why)) => Ending::Failed(why),
                Err(_) => Ending::Failed(OutcomeDetail::plain(Outcome::FinalTimeout)),
            },
        }
    } else {
        call_cut()
    };

    let (final_at, kind, outcome) = judge(ending, &*session);
    trace.done_ns = since(stage.origin, Instant::now());
    trace.final_ns = final_at.map(|at| since(stage.origin, at));
    trace.final_kind = kind;
    trace.outcome = outcome;
    trace.violations = session.violations();
    trace.instance = session.instance().map(str::to_owned);
    mark_client_late(&mut trace, plan.timeouts.client_late);
    let texts = if plan.keep_texts { session.texts() } else { Texts::default() };
    CallResult { trace, texts }
}

/// The opening, all chunks and the ending; no audio is copied.
fn body(stage: &Stage, id: CallId, call: &PreparedCall, session: &mut dyn Session) -> Vec<Bytes> {
    let plan = &stage.plan;
    let own = plan.unique_per_session.then(|| {
        let number = u64::from(id.seq) * u64::from(plan.streams) + u64::from(id.stream);
        call.unique_first(&*stage.target.dialect, number)
    });
    let framed = |frame: Frame| match frame {
        Frame::Text(text) => text.into_bytes(),
        Frame::Binary(bytes) => bytes,
    };
    let mut body: Vec<Bytes> = session.opening().into_iter().map(framed).collect();
    let first = body.len();
    body.extend(call.frames().iter().cloned().map(Message::into_data));
    if let (Some(Some(own)), Some(place)) = (own, body.get_mut(first)) {
        *place = own.into_data();
    }
    body.extend(session.ending().into_iter().map(framed));
    body
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Question and answer.
struct Exchange<'a> {
    stage: &'a Stage,
    session: &'a mut dyn Session,
    trace: &'a mut Trace,
    kept: Kept,
    /// When we began.
    woke: Instant,
}

impl Exchange<'_> {
    /// Posts the body and reads the answer; returns when its end marker came.
    async fn all(&mut self, body: Vec<Bytes>) -> Result<Instant, OutcomeDetail> {
        let Stage { target, plan, .. } = self.stage;
        let io = timeout(plan.timeouts.connect, target.connector.connect(&target.endpoint))
            .await
            .map_err(|_| OutcomeDetail::plain(Outcome::ConnectTimeout))?
            .map_err(|e| not_connected(&e))?;
        let request = Request {
            bearer: target.bearer.as_ref(),
            headers: target.dialect.upgrade().headers,
            ..Request::post(&target.endpoint, body)
        };
        let mut response = request.send_over(io).await.map_err(|e| broken(&e))?;
        if let Some(sent) = response.body_sent() {
            self.trace.blocked_us.push(micros(sent.saturating_duration_since(self.woke)));
            self.trace.end_ns = Some(since(self.stage.origin, sent));
        }
        if !response.status.is_success() {
            return Err(self.refused(&mut response).await);
        }
        let stream = is_event_stream(response.content_type.as_deref());
        if stream { self.events(&mut response).await } else { self.whole(&mut response).await }
    }

    async fn events(&mut self, response: &mut ResponseStream) -> Result<Instant, OutcomeDetail> {
        let no_stream = |e: SseError| OutcomeDetail::said(Outcome::Protocol, None, &e.to_string());
        let mut events = SseEvents::bounded(self.stage.plan.max_message_bytes);
        while let Some(piece) = self.next(response).await? {
            for data in events.push(&piece).map_err(no_stream)? {
                if let Some(at) = self.read(Incoming::Text(&String::from_utf8_lossy(&data)))? {
                    return Ok(at);
                }
            }
        }
        if let Some(data) = events.finish().map_err(no_stream)?
            && let Some(at) = self.read(Incoming::Text(&String::from_utf8_lossy(&data)))?
        {
            return Ok(at);
        }
        Err(OutcomeDetail::said(Outcome::ClosedEarly, None, "the answer ended without its end marker"))
    }

    async fn whole(&mut self, response: &mut ResponseStream) -> Result<Instant, OutcomeDetail> {
        let mut all = Vec::new();
        while let Some(piece) = self.next(response).await? {
            all.extend_from_slice(&piece);
            self.bounded(all.len())?;
        }
        self.read(Incoming::Binary(&all))?
            .ok_or_else(|| OutcomeDetail::said(Outcome::Protocol, None, "an answer without a text"))
    }

    async fn next(&mut self, response: &mut ResponseStream) -> Result<Option<Bytes>, OutcomeDetail> {
        timeout(self.stage.plan.timeouts.idle, response.next())
            .await
            .map_err(|_| OutcomeDetail::plain(Outcome::IdleTimeout))?
            .map_err(|e| OutcomeDetail::said(Outcome::ClosedEarly, None, &e.words()))
    }

    fn bounded(&self, bytes: usize) -> Result<(), OutcomeDetail> {
        let most = self.stage.plan.max_message_bytes;
        if bytes <= most {
            return Ok(());
        }
        let words = format!("a message of {bytes} bytes, over the limit of {most}");
        Err(OutcomeDetail::said(Outcome::Protocol, None, &words))
    }

    /// Takes in one message; returns when it came, if it is the end.
    fn read(&mut self, message: Incoming<'_>) -> Result<Option<Instant>, OutcomeDetail> {
        let now = Instant::now();
        let reading = self.session.read(message);
        if self.trace.messages.len() >= MAX_MESSAGES {
            let words = format!("more than {MAX_MESSAGES} messages in one call");
            return Err(OutcomeDetail::said(Outcome::Protocol, None, &words));
        }
        let at_ns = since(self.stage.origin, now);
        if reading.chars > 0 || reading.revised > 0 {
            self.kept.reads(&self.session.texts().finals_and_tail, at_ns);
            self.trace.kept_from_ns = self.kept.since_ns();
        }
        self.trace.messages.push(Record {
            at_ns,
            kind: reading.kind,
            bytes: u32::try_from(message.len()).unwrap_or(u32::MAX),
            chars: reading.chars,
            revised: reading.revised,
            position_ms: reading.position_ms,
            window: reading.window,
        });
        match reading.signal {
            Signal::None | Signal::Ready => Ok(None),
            Signal::Final => Ok(Some(now)),
            other => Err(failure(other)),
        }
    }

    /// What a status other than success makes of the call, in the server's words.
    async fn refused(&mut self, response: &mut ResponseStream) -> OutcomeDetail {
        let status = response.status;
        let mut all = Vec::new();
        while all.len() < REFUSAL_BYTES
            && let Ok(Some(piece)) = self.next(response).await
        {
            all.extend_from_slice(&piece);
        }
        let told = match self.session.read(Incoming::Binary(&all)).signal {
            Signal::ServerError(words) | Signal::Busy(words) => Some(words),
            _ => None,
        };
        let outcome = match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Outcome::RefusedBusy,
            _ if told.is_some() || status.is_server_error() => Outcome::ServerError,
            // Nobody there who speaks the dialect.
            _ => Outcome::Handshake,
        };
        let body = String::from_utf8_lossy(&all);
        let words = told.as_deref().or(Some(body.trim()).filter(|w| !w.is_empty()));
        let words = words.or(status.canonical_reason()).unwrap_or("no reason given");
        OutcomeDetail::said(outcome, Some(status.as_u16()), words)
    }
}

/// No answer at all.
fn broken(error: &HttpError) -> OutcomeDetail {
    let outcome = match error {
        HttpError::Request { .. } => Outcome::Handshake,
        _ => Outcome::ClosedEarly,
    };
    OutcomeDetail::said(outcome, None, &error.words())
}
