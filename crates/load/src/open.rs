//! From nothing to a session that may take audio.

use futures_util::{SinkExt, StreamExt};
use http::{Request, StatusCode, header};
use tapedeck_protocol::{Frame, Incoming, Ready, Session, SessionStart, Signal};
use tapedeck_record::{Outcome, OutcomeDetail};
use tapedeck_transport::{ConnectError, ConnectErrorKind, Io};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message,
        error::{CapacityError, ProtocolError},
        handshake::client::generate_key,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{prepared::message, target::Target};

/// An open session.
pub(crate) struct Opened {
    pub(crate) ws: WebSocketStream<Io>,
    pub(crate) session: Box<dyn Session>,
}

/// Connects, upgrades and completes the dialect's ready handshake. Has no time-out of its own.
pub(crate) async fn open(
    target: &Target,
    config: WebSocketConfig,
    start: &SessionStart,
) -> Result<Opened, OutcomeDetail> {
    let io = target.connector.connect(&target.endpoint).await.map_err(|e| not_connected(&e))?;
    let request = upgrade(target)?;
    let (mut ws, _response) =
        client_async_with_config(request, io, Some(config)).await.map_err(not_upgraded)?;
    let mut session = target.dialect.session(start);
    let opening = session.opening();
    if let Err(e) = say(&mut ws, opening).await {
        // A server that refuses says so and hangs up without listening to us: its words count, not ours.
        return Err(match wait_ready(&mut ws, &mut *session).await {
            Err(words) if words.outcome != Outcome::ClosedEarly || words.code.is_some() => words,
            _ => broken(&e),
        });
    }
    if target.dialect.ready() == Ready::OnMessage {
        wait_ready(&mut ws, &mut *session).await?;
    }
    Ok(Opened { ws, session })
}

/// The upgrade request: the usual headers, the dialect's, and the bearer token.
fn upgrade(target: &Target) -> Result<Request<()>, OutcomeDetail> {
    let refuse = |why: String| OutcomeDetail::said(Outcome::Handshake, None, &why);
    let endpoint = &target.endpoint;
    let scheme = if endpoint.tls() { "wss" } else { "ws" };
    let authority = endpoint.authority();
    let extra = target.dialect.upgrade();
    let mut request = Request::get(format!("{scheme}://{authority}{}", endpoint.path_and_query()))
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, generate_key())
        .header(header::USER_AGENT, concat!("tapedeck/", env!("CARGO_PKG_VERSION")));
    if let Some(subprotocol) = &extra.subprotocol {
        request = request.header(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    for (name, value) in &extra.headers {
        request = request.header(name, value);
    }
    if let Some(secret) = &target.bearer {
        let value = secret.bearer().ok_or_else(|| refuse("the token cannot be sent in a header".into()))?;
        request = request.header(header::AUTHORIZATION, value);
    }
    request.body(()).map_err(|e| refuse(format!("the upgrade request cannot be made: {e}")))
}

async fn say(ws: &mut WebSocketStream<Io>, frames: Vec<Frame>) -> Result<(), tungstenite::Error> {
    for frame in frames {
        ws.send(message(frame)).await?;
    }
    Ok(())
}

async fn wait_ready(ws: &mut WebSocketStream<Io>, session: &mut dyn Session) -> Result<(), OutcomeDetail> {
    while let Some(incoming) = ws.next().await {
        let reading = match incoming.map_err(|e| broken(&e))? {
            Message::Text(text) => session.read(Incoming::Text(&text)),
            Message::Binary(bytes) => session.read(Incoming::Binary(&bytes)),
            Message::Close(frame) => return Err(closed(frame.as_ref())),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        match reading.signal {
            Signal::Ready => return say(ws, session.replies()).await.map_err(|e| broken(&e)),
            Signal::None => {
                let _ = say(ws, session.replies()).await; // if that fails, reading will tell why
            }
            Signal::Final => {
                return Err(OutcomeDetail::said(Outcome::ClosedEarly, None, "end marker before any audio"));
            }
            other => return Err(failure(other)),
        }
    }
    Err(OutcomeDetail::said(Outcome::ClosedEarly, None, "connection ended before the session was ready"))
}

/// What a signal that ends a call makes of it; [`Signal::None`] and its like end nothing and are not asked.
pub(crate) fn failure(signal: Signal) -> OutcomeDetail {
    match signal {
        Signal::Busy(words) => OutcomeDetail::said(Outcome::RefusedBusy, None, &words),
        Signal::ServerError(words) => OutcomeDetail::said(Outcome::ServerError, None, &words),
        Signal::Protocol(words) => OutcomeDetail::said(Outcome::Protocol, None, &words),
        Signal::None | Signal::Ready | Signal::Final => OutcomeDetail::plain(Outcome::Protocol),
    }
}

/// The server's close before it was due.
pub(crate) fn closed(frame: Option<&CloseFrame>) -> OutcomeDetail {
    match frame {
        Some(frame) => {
            // "Try again later" is how a full server hangs up.
            let busy = frame.code == CloseCode::Again;
            let outcome = if busy { Outcome::RefusedBusy } else { Outcome::ClosedEarly };
            OutcomeDetail::said(outcome, Some(frame.code.into()), frame.reason.as_str())
        }
        None => OutcomeDetail::said(Outcome::ClosedEarly, None, "closed without a code"),
    }
}

/// A connection that broke, or a peer that broke the WebSocket protocol.
pub(crate) fn broken(error: &tungstenite::Error) -> OutcomeDetail {
    use tungstenite::Error as E;
    match error {
        E::Protocol(ProtocolError::ResetWithoutClosingHandshake)
        | E::ConnectionClosed
        | E::AlreadyClosed
        | E::Protocol(ProtocolError::SendAfterClosing) => {
            OutcomeDetail::said(Outcome::ClosedEarly, None, "connection ended without a close frame")
        }
        E::Io(e) => OutcomeDetail::said(Outcome::ClosedEarly, None, &e.to_string()),
        E::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
            let words = format!("a message of {size} bytes, over the limit of {max_size}");
            OutcomeDetail::said(Outcome::Protocol, None, &words)
        }
        other => OutcomeDetail::said(Outcome::Protocol, None, &other.to_string()),
    }
}

pub(crate) fn not_connected(error: &ConnectError) -> OutcomeDetail {
    let outcome = match error.kind() {
        ConnectErrorKind::TimedOut => Outcome::ConnectTimeout,
        ConnectErrorKind::Tls => Outcome::Tls,
        ConnectErrorKind::Resolve
        | ConnectErrorKind::Refused
        | ConnectErrorKind::Unreachable
        | ConnectErrorKind::Other => Outcome::ConnectRefused,
    };
    OutcomeDetail::said(outcome, None, error.words())
}

fn not_upgraded(error: tungstenite::Error) -> OutcomeDetail {
    use tungstenite::Error as E;
    match error {
        E::Http(response) => {
            let status = response.status();
            let outcome = match status {
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Outcome::RefusedBusy,
                _ => Outcome::Handshake,
            };
            let body = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let words = if body.trim().is_empty() {
                status.canonical_reason().unwrap_or("no reason given").into()
            } else {
                body
            };
            OutcomeDetail::said(outcome, Some(status.as_u16()), &words)
        }
        E::Protocol(ProtocolError::HandshakeIncomplete) => {
            OutcomeDetail::said(Outcome::Handshake, None, "connection ended during the upgrade")
        }
        other => OutcomeDetail::said(Outcome::Handshake, None, &other.to_string()),
    }
}
