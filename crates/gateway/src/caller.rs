//! The caller's side of a session: pcm-json over a WebSocket.
//!
//! In: binary messages of 16 kHz mono s16le, and `{"type":"end"}`. Out: `{"type":"partial","text":"good
//! morning","audio_ms":2000,"instance":"inst1"}`, one `final` and the close code 1000, or
//! `{"type":"error","message":"..."}` and a close code that says whose fault it is.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::error::UpstreamError;
use crate::log::Outcome;

/// How long a caller may leave a message unread before it is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the caller's half of the closing handshake is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a session ended, and why if not well.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) why: Option<String>,
}

impl Ended {
    pub(crate) const fn done() -> Self {
        Self { outcome: Outcome::Done, why: None }
    }

    pub(crate) const fn left() -> Self {
        Self { outcome: Outcome::CallerLeft, why: None }
    }

    pub(crate) fn silent(idle: Duration) -> Self {
        Self { outcome: Outcome::CallerSilent, why: Some(format!("no audio for {idle:?}")) }
    }

    pub(crate) fn wrong(why: &str) -> Self {
        Self { outcome: Outcome::CallerWrong, why: Some(why.to_owned()) }
    }

    pub(crate) fn too_long(why: String) -> Self {
        Self { outcome: Outcome::TooLong, why: Some(why) }
    }

    /// The close code that goes with it, if the caller is still there to hear it.
    const fn close_code(&self) -> Option<CloseCode> {
        match self.outcome {
            Outcome::Done => Some(CloseCode::Normal),
            Outcome::CallerLeft => None,
            Outcome::CallerSilent | Outcome::TooLong => Some(CloseCode::Policy),
            Outcome::CallerWrong => Some(CloseCode::Invalid),
            Outcome::UpstreamFailed | Outcome::UpstreamSilent => Some(CloseCode::Error),
        }
    }
}

impl From<UpstreamError> for Ended {
    fn from(error: UpstreamError) -> Self {
        let outcome = match error {
            UpstreamError::Silent(_) => Outcome::UpstreamSilent,
            _ => Outcome::UpstreamFailed,
        };
        Self { outcome, why: Some(error.to_string()) }
    }
}

/// What a caller says.
pub(crate) enum Heard {
    Audio(Bytes),
    End,
}

#[derive(Deserialize)]
struct ClientMessage<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

/// The next thing a caller says; pings are answered on the way. Can be dropped and called again.
pub(crate) async fn hear<S>(caller: &mut S) -> Result<Heard, Ended>
where
    S: Stream<Item = Result<Message, Error>> + Unpin,
{
    loop {
        match caller.next().await {
            Some(Ok(Message::Binary(chunk))) if chunk.len().is_multiple_of(2) => {
                return Ok(Heard::Audio(chunk));
            }
            Some(Ok(Message::Binary(_))) => return Err(Ended::wrong("a chunk holds half a sample")),
            Some(Ok(Message::Text(text))) => {
                return match serde_json::from_str::<ClientMessage<'_>>(&text) {
                    Ok(ClientMessage { kind: "end" }) => Ok(Heard::End),
                    _ => Err(Ended::wrong(
                        "the only text message taken is {\"type\":\"end\"}; audio is binary",
                    )),
                };
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Err(Error::Capacity(_))) => return Err(Ended::wrong("a message is too large")),
            Some(Err(Error::Protocol(error))) if !gone(&error) => {
                return Err(Ended::wrong(&error.to_string()));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Ended::left()),
        }
    }
}

const fn gone(error: &tokio_tungstenite::tungstenite::error::ProtocolError) -> bool {
    use tokio_tungstenite::tungstenite::error::ProtocolError as P;
    matches!(error, P::ResetWithoutClosingHandshake | P::SendAfterClosing | P::ReceivedAfterClosing)
}

/// What we say about a call.
#[derive(Debug, Serialize)]
pub(crate) struct Says<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audio_ms: Option<u32>,
    pub(crate) instance: &'a str,
}

#[derive(Serialize)]
struct Complains<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a str,
    instance: &'a str,
}

/// Tells the caller; one that does not listen counts as gone.
pub(crate) async fn say<S>(caller: &mut S, message: &impl Serialize) -> Result<(), Ended>
where
    S: Sink<Message, Error = Error> + Unpin,
{
    // These types hold nothing that JSON cannot carry.
    let text: Utf8Bytes = serde_json::to_string(message).unwrap_or_default().into();
    match timeout(WRITE_TIMEOUT, caller.send(Message::Text(text))).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Ended::left()),
    }
}

/// Says what went wrong, if anything did, and closes.
pub(crate) async fn part<S>(caller: &mut S, ended: &Ended, instance: &str)
where
    S: Sink<Message, Error = Error> + Stream<Item = Result<Message, Error>> + Unpin,
{
    let Some(code) = ended.close_code() else { return };
    if let Some(why) = &ended.why {
        let complaint = Complains { kind: "error", message: why, instance };
        if say(caller, &complaint).await.is_err() {
            return;
        }
    }
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static(ended.outcome.name()) };
    let _ = timeout(CLOSE_TIMEOUT, async {
        if caller.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = caller.next().await {}
        }
    })
    .await;
}
