//! One call on a WebSocket: binary s16le 16 kHz in, JSON text out, `{"type":"end"}` ends it.
//!
//! Every message carries the whole text of the call so far and the audio position that it covers:
//! `{"type":"partial","text":"good morning","audio_ms":2000,"instance":"inst1"}`; after the end one `final`
//! and the close code 1000. Errors are `{"type":"error","message":"..."}`, and a full engine may say
//! `{"type":"busy","message":"too many sessions ..."}`.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use tapedeck_engine_model::{Heard, OutputKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::engine::{News, Permit};
use crate::fault_injection::InjectedFault;
use crate::fixtures::BYTES_PER_MS;
use crate::matcher::{Hearing, Matcher};
use crate::options::Options;

/// How long a client may leave a message of ours unread before it is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the client's half of the closing handshake is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a session that stopped reading on purpose is kept.
const SLOW_READER: Duration = Duration::from_secs(600);
/// Bad frames answered before the session is closed.
const PATIENCE: u32 = 8;

/// What a text message from the client says.
#[derive(Deserialize)]
struct ClientMessage {
    #[serde(rename = "type")]
    kind: String,
}

/// What we say about the call.
#[derive(Serialize)]
struct Says<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: &'a str,
    audio_ms: u32,
    instance: &'a str,
}

/// What we say when something is wrong.
#[derive(Serialize)]
struct Complains<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
}

/// Why a conversation goes no further.
enum Over {
    /// Close with this code, and say why.
    Close(CloseCode, &'static str),
    /// Just drop the connection: the client is gone, or shall think that we are.
    Drop,
}

/// What happened next.
enum Event {
    News(News),
    Message(Message),
    Broken(Option<Error>),
}

/// The largest message that we may want to send.
pub(crate) const fn largest_message(options: &Options) -> usize {
    match options.fault_injection {
        Some(fault_injection) => match fault_injection.fault {
            InjectedFault::Giant { bytes, .. } => bytes.saturating_add(4 * 1024),
            _ => 0,
        },
        None => 0,
    }
}

/// Says that there is no room, and closes.
pub(crate) async fn turn_away<IO>(mut socket: WebSocketStream<IO>, why: &str)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let complaint = json(&Complains { kind: "busy", message: why, instance: None });
    if timeout(WRITE_TIMEOUT, socket.send(Message::Text(complaint))).await.is_ok_and(|sent| sent.is_ok()) {
        close(socket, CloseCode::Again, "too many sessions").await;
    }
}

/// Leads a whole call.
pub(crate) async fn converse<IO>(mut socket: WebSocketStream<IO>, permit: Permit)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let over = Conversation::new(&permit).lead(&mut socket).await;
    // The place in the engine is free before the client learns that the call is over.
    drop(permit);
    match over {
        Over::Drop => {}
        Over::Close(code, why) => close(socket, code, why).await,
    }
}

/// Closes and waits, for a while, for the client to do the same.
async fn close<IO>(mut socket: WebSocketStream<IO>, code: CloseCode, why: &'static str)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static(why) };
    let _ = timeout(CLOSE_TIMEOUT, async {
        if socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
}

struct Conversation<'a> {
    permit: &'a Permit,
    matcher: Matcher,
    text: String,
    /// End of the next inference window, bytes: the model is told when it is reached.
    border_bytes: usize,
    window_bytes: usize,
    ended: bool,
    complaints: u32,
    /// Trouble that is still to come, and the audio before it.
    fault: Option<(InjectedFault, u32)>,
    muted: bool,
    /// Chance of a wrong word in the window answered last: the best guess for one that has only begun.
    word_error: f64,
}

impl<'a> Conversation<'a> {
    fn new(permit: &'a Permit) -> Self {
        let params = &permit.core.params;
        let window_bytes =
            usize::try_from(params.window_ms).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_MS);
        let fault_injection = permit.core.options.fault_injection.filter(|m| m.strikes(permit.session()));
        Self {
            permit,
            matcher: Matcher::new(params.prefix_cache || params.mm_cache),
            text: String::new(),
            border_bytes: window_bytes,
            window_bytes,
            ended: false,
            complaints: 0,
            fault: fault_injection.map(|m| (m.fault, starts_ms(m.fault))),
            muted: false,
            word_error: params.degradation.base,
        }
    }

    async fn lead<IO>(&mut self, socket: &mut WebSocketStream<IO>) -> Over
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let done = match next(socket, self.permit).await {
                Event::Message(Message::Binary(chunk)) => {
                    // The common case, ten times a second and call: nothing is sent, nothing is allocated.
                    if self.take(&chunk) && self.fault.is_none() {
                        continue;
                    }
                    drop(chunk);
                    self.after_audio(socket).await
                }
                Event::Message(Message::Text(text)) => self.obey(socket, &text).await,
                Event::Message(Message::Close(_)) => Err(Over::Drop),
                Event::Message(_) => Ok(()),
                Event::News(news) => self.pass_on(socket, news).await,
                Event::Broken(Some(Error::Capacity(_))) => {
                    Err(Over::Close(CloseCode::Size, "message too large"))
                }
                Event::Broken(Some(Error::Protocol(_))) => Err(Over::Close(CloseCode::Protocol, "bad frame")),
                Event::Broken(Some(Error::Utf8(_))) => Err(Over::Close(CloseCode::Invalid, "bad UTF-8")),
                Event::Broken(_) => Err(Over::Drop),
            };
            if let Err(over) = done {
                return over;
            }
        }
    }

    /// Takes a chunk; false when it is none.
    fn take(&mut self, chunk: &Bytes) -> bool {
        if self.ended || !chunk.len().is_multiple_of(2) {
            self.complaints += 1;
            return false;
        }
        let fixtures = &self.permit.core.fixtures;
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.border_bytes - self.matcher.heard_bytes()));
            self.matcher.hear(fixtures, now);
            if self.matcher.heard_bytes() == self.border_bytes {
                self.border_bytes = self.border_bytes.saturating_add(self.window_bytes);
                self.permit.audio(self.heard());
            }
            rest = later;
        }
        true
    }

    fn heard(&mut self) -> Heard {
        Heard {
            total_ms: self.matcher.heard_ms(),
            speech_ms: self.matcher.speech_ms(&self.permit.core.fixtures),
            digest: self.matcher.digest(),
        }
    }

    /// What follows a chunk in the uncommon case: an answer to a bad one, or trouble that falls due.
    async fn after_audio<IO>(&mut self, socket: &mut WebSocketStream<IO>) -> Result<(), Over>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        if self.complaints > 0 {
            let why = if self.ended { "audio after the end" } else { "a chunk holds half a sample" };
            self.complain(socket, why).await?;
        }
        let Some((fault, _)) = self.fault.take_if(|(_, at_ms)| self.matcher.heard_ms() >= *at_ms) else {
            return Ok(());
        };
        match fault {
            InjectedFault::Close { code, .. } => Err(Over::Close(CloseCode::from(code), "injected fault")),
            InjectedFault::Reset { .. } => Err(Over::Drop),
            InjectedFault::Mute { .. } => {
                self.muted = true;
                Ok(())
            }
            InjectedFault::Garbage { .. } => {
                self.send(socket, Utf8Bytes::from_static("{\"type\":\"par")).await
            }
            InjectedFault::Giant { bytes, .. } => {
                let text = "x".repeat(bytes.saturating_sub(100));
                let giant = self.says("partial", &text, self.matcher.heard_ms());
                self.send(socket, giant).await
            }
            InjectedFault::Error { .. } => {
                self.send(socket, json(&self.complaint("injected fault"))).await?;
                Err(Over::Close(CloseCode::Error, "injected fault"))
            }
            InjectedFault::SlowReader { .. } => {
                let _ = timeout(SLOW_READER, std::future::pending::<()>()).await;
                Err(Over::Drop)
            }
            InjectedFault::Handshake { .. } | InjectedFault::NeverFinal | InjectedFault::TailLost => {
                self.fault = Some((fault, u32::MAX));
                Ok(())
            }
        }
    }

    /// Does what a text message says.
    async fn obey<IO>(&mut self, socket: &mut WebSocketStream<IO>, text: &str) -> Result<(), Over>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        match serde_json::from_str::<ClientMessage>(text) {
            Ok(said) if said.kind == "end" && !self.ended => {
                self.ended = true;
                let heard = self.heard();
                self.permit.end(heard);
                Ok(())
            }
            Ok(said) => {
                let why = match said.kind.as_str() {
                    "end" => "the call has ended already",
                    _ => "unknown message type; the only one is {\"type\":\"end\"}",
                };
                self.complaints += 1;
                self.complain(socket, why).await
            }
            Err(_) => {
                self.complaints += 1;
                self.complain(socket, "a text message must be JSON with a `type`").await
            }
        }
    }

    /// Says what the engine found.
    async fn pass_on<IO>(&mut self, socket: &mut WebSocketStream<IO>, news: News) -> Result<(), Over>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let output = match news {
            News::Output(output) => output,
            News::Gone => return Err(Over::Drop),
            News::Dead => {
                self.send(socket, json(&self.complaint("the engine is dead"))).await?;
                return Err(Over::Close(CloseCode::Restart, "engine dead"));
            }
        };
        let core = &self.permit.core;
        let of = [core.seed(), self.permit.session()];
        let window_ms = core.params.window_ms;
        let fault = self.fault.map(|(fault, _)| fault);
        let said = match output {
            OutputKind::FirstText { window, covered_ms, .. } => {
                let upto_ms = window.saturating_add(1).saturating_mul(window_ms);
                let hearing = Hearing { word_error: self.word_error, of };
                self.matcher.say_first(&core.fixtures, upto_ms, hearing, &mut self.text);
                self.says("partial", &self.text, covered_ms)
            }
            OutputKind::Window { covered_ms, word_error, .. } => {
                self.word_error = word_error;
                self.matcher.say(&core.fixtures, covered_ms, Hearing { word_error, of }, &mut self.text);
                self.says("partial", &self.text, covered_ms)
            }
            OutputKind::Final { covered_ms, .. } => {
                let hearing = Hearing { word_error: self.word_error, of };
                self.matcher.say(&core.fixtures, covered_ms, hearing, &mut self.text);
                match fault {
                    Some(InjectedFault::NeverFinal) => return Ok(()),
                    Some(InjectedFault::TailLost) => self.says("partial", &self.text, covered_ms),
                    _ => self.says("final", &self.text, covered_ms),
                }
            }
            OutputKind::Failed(failure) => {
                self.send(socket, json(&self.complaint(&failure.to_string()))).await?;
                return Err(Over::Close(CloseCode::Error, "the session failed"));
            }
            _ => return Ok(()),
        };
        self.send(socket, said).await?;
        if matches!(output, OutputKind::Final { .. }) && !self.muted {
            return Err(Over::Close(CloseCode::Normal, ""));
        }
        Ok(())
    }

    async fn complain<IO>(&self, socket: &mut WebSocketStream<IO>, why: &str) -> Result<(), Over>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        self.send(socket, json(&self.complaint(why))).await?;
        if self.complaints >= PATIENCE {
            return Err(Over::Close(CloseCode::Policy, "too many bad frames"));
        }
        Ok(())
    }

    async fn send<IO>(&self, socket: &mut WebSocketStream<IO>, text: Utf8Bytes) -> Result<(), Over>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        if self.muted {
            return Ok(());
        }
        match timeout(WRITE_TIMEOUT, socket.send(Message::Text(text))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Over::Drop),
        }
    }

    fn says(&self, kind: &str, text: &str, audio_ms: u32) -> Utf8Bytes {
        json(&Says { kind, text, audio_ms, instance: &self.permit.core.options.name })
    }

    fn complaint<'t>(&'t self, message: &'t str) -> Complains<'t> {
        Complains { kind: "error", message, instance: Some(&self.permit.core.options.name) }
    }
}

/// Audio before a trouble falls due, milliseconds.
const fn starts_ms(fault: InjectedFault) -> u32 {
    match fault {
        InjectedFault::Close { after_ms, .. }
        | InjectedFault::Reset { after_ms }
        | InjectedFault::Mute { after_ms }
        | InjectedFault::Garbage { after_ms }
        | InjectedFault::Giant { after_ms, .. }
        | InjectedFault::Error { after_ms }
        | InjectedFault::SlowReader { after_ms } => after_ms,
        InjectedFault::Handshake { .. } | InjectedFault::NeverFinal | InjectedFault::TailLost => u32::MAX,
    }
}

/// The next thing that happens; what the engine says goes before what the client says.
async fn next<IO>(socket: &mut WebSocketStream<IO>, permit: &Permit) -> Event
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        if let Poll::Ready(news) = permit.poll_news(cx) {
            return Poll::Ready(Event::News(news));
        }
        socket.poll_next_unpin(cx).map(|message| match message {
            Some(Ok(message)) => Event::Message(message),
            Some(Err(error)) => Event::Broken(Some(error)),
            None => Event::Broken(None),
        })
    })
    .await
}

/// These types hold nothing that cannot be written; an empty message is the honest answer to the impossible.
fn json(value: &impl Serialize) -> Utf8Bytes {
    serde_json::to_string(value).unwrap_or_default().into()
}
