//! A session over vLLM's own WebSocket, `/v1/realtime`.
//!
//! The server gathers segments of 5 s, so text comes in bursts; each segment begins with a mark, which is
//! how the gateway knows what a text covers. An engine that sends no marks gives texts without `audio_ms`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, header};
use serde::Deserialize;
use tapedeck_transport::{Connector, Endpoint, Io, Secret};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::caller::{Ended, Heard, Says, hear, say};
use crate::chat::{shorten, words};
use crate::counters::SessionCounters;
use crate::error::UpstreamError;
use crate::options::{BYTES_PER_MS, Options, Realtime, audio_bytes, audio_ms};
use crate::text::Transcript;
use crate::upstream::Model;

/// The last piece of a segment is filled up to this: the engine fails on fewer than some 200 samples.
const LEAST_TAIL_BYTES: usize = 40 * BYTES_PER_MS;
/// How long the engine gets to take our close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const APPEND: &str = "{\"type\":\"input_audio_buffer.append\",\"audio\":\"";
const COMMIT: &str = "{\"type\":\"input_audio_buffer.commit\"}";
const COMMIT_FINAL: &str = "{\"type\":\"input_audio_buffer.commit\",\"final\":true}";

/// What the engine says. Fields are there or not by `type`; what is not known is passed over.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    delta: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    error: serde_json::Value,
    #[serde(default)]
    code: Option<String>,
}

impl Event {
    fn read(text: &str) -> Result<Self, UpstreamError> {
        serde_json::from_str(text).map_err(|_| UpstreamError::Nonsense("a message is not a realtime event"))
    }

    /// The engine's complaint.
    fn complaint(&self) -> UpstreamError {
        let words =
            self.error.as_str().or_else(|| self.error.get("message")?.as_str()).unwrap_or("(no words)");
        UpstreamError::Reported(match &self.code {
            Some(code) => format!("{code}: {}", shorten(words)),
            None => shorten(words),
        })
    }
}

/// Opens a session that may take audio at once.
pub(crate) async fn open(
    connector: &dyn Connector,
    server: &Endpoint,
    bearer: Option<&Secret>,
    model: &str,
) -> Result<WebSocketStream<Io>, UpstreamError> {
    let endpoint = server.with_path("/v1/realtime");
    let scheme = if endpoint.tls() { "wss" } else { "ws" };
    let authority = endpoint.authority();
    let mut request = Request::get(format!("{scheme}://{authority}{}", endpoint.path_and_query()))
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, generate_key());
    if let Some(value) = bearer.and_then(Secret::bearer) {
        request = request.header(header::AUTHORIZATION, value);
    }
    let request = request.body(()).map_err(|error| UpstreamError::Broken(error.to_string()))?;
    let io = connector.connect(&endpoint).await?;
    let config = WebSocketConfig::default().read_buffer_size(8 * 1024).write_buffer_size(0);
    let (mut engine, _) = client_async_with_config(request, io, Some(config)).await.map_err(not_upgraded)?;
    // Three servers that understand each other not at all share this path; the greeting tells them apart.
    match receive(&mut engine).await? {
        Some(event) if event.kind == "session.created" => {}
        Some(event) if event.kind == "error" => return Err(event.complaint()),
        _ => return Err(UpstreamError::Nonsense("it does not greet with session.created")),
    }
    let update = format!("{{\"type\":\"session.update\",\"model\":{}}}", serde_json::Value::from(model));
    for text in [update, COMMIT.to_owned()] {
        engine.send(Message::Text(text.into())).await.map_err(broken)?;
    }
    Ok(engine)
}

fn not_upgraded(error: Error) -> UpstreamError {
    match error {
        Error::Http(response) => match response.status().as_u16() {
            status @ (403..=405) => UpstreamError::NoRealtime(status),
            status => UpstreamError::Refused {
                status,
                words: words(response.body().as_deref().unwrap_or_default()),
            },
        },
        other => broken(other),
    }
}

fn broken(error: Error) -> UpstreamError {
    UpstreamError::Broken(error.to_string())
}

/// The next event; none when the engine closed in peace.
async fn receive<S>(engine: &mut S) -> Result<Option<Event>, UpstreamError>
where
    S: futures_util::Stream<Item = Result<Message, Error>> + Unpin,
{
    loop {
        match engine.next().await {
            Some(Ok(Message::Text(text))) => return Event::read(&text).map(Some),
            Some(Ok(Message::Binary(_))) => {
                return Err(UpstreamError::Nonsense("a message is binary, events are text"));
            }
            Some(Ok(Message::Close(Some(frame)))) => {
                let code = u16::from(frame.code);
                return Err(UpstreamError::Broken(format!("close code {code} {}", shorten(&frame.reason))));
            }
            Some(Ok(Message::Close(None))) | None => return Ok(None),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(broken(error)),
        }
    }
}

/// Leads a call from its first chunk to its final.
pub(crate) async fn converse<IO>(
    caller: &mut WebSocketStream<IO>,
    engine: &mut WebSocketStream<Io>,
    options: &Options,
    realtime: &Realtime,
    (model, instance): (&Model, &str),
    counts: &SessionCounters,
) -> Ended
where
    IO: AsyncRead + AsyncWrite + Unpin + Send,
{
    let heard_bytes = AtomicUsize::new(0);
    let ended = {
        let (mut to_caller, mut from_caller) = caller.split();
        let (mut to_engine, mut from_engine) = engine.split();
        let limit = limit(options, realtime, model);
        let up = upward(&mut from_caller, &mut to_engine, options, realtime, &limit, &heard_bytes, counts);
        let down = downward(&mut from_engine, &mut to_caller, realtime, instance, &heard_bytes, counts);
        tokio::select! {
            biased;
            ended = down => ended,
            ended = up => ended,
        }
    };
    // Whoever left, the engine must not go on working for this call.
    let _ = timeout(CLOSE_TIMEOUT, engine.close(None)).await;
    match ended {
        Ok(()) => Ended::done(),
        Err(ended) => ended,
    }
}

/// The most audio that this session may have, and what to say beyond.
struct Limit {
    bytes: usize,
    why: String,
}

fn limit(options: &Options, realtime: &Realtime, model: &Model) -> Limit {
    let ours = audio_bytes(options.max_audio);
    let engines = model.max_model_len.map(|tokens| {
        // The segment that would fill the last tokens is left out.
        let segments = (tokens / realtime.segment_tokens.max(1)).saturating_sub(1);
        audio_bytes(realtime.segment.saturating_mul(segments))
    });
    match (engines, model.max_model_len) {
        (Some(bytes), Some(tokens)) if bytes < ours => Limit {
            bytes,
            why: format!(
                "a session of more than {} s may outgrow the engine's max_model_len of {tokens} tokens and kill it",
                audio_ms(bytes) / 1_000
            ),
        },
        _ => Limit { bytes: ours, why: format!("a call may last {:?} here", options.max_audio) },
    }
}

/// Passes audio on until the caller ends, leaves or errs; then waits for the final with the caller.
async fn upward<C, E>(
    caller: &mut C,
    engine: &mut E,
    options: &Options,
    realtime: &Realtime,
    limit: &Limit,
    heard_bytes: &AtomicUsize,
    counts: &SessionCounters,
) -> Result<(), Ended>
where
    C: futures_util::Stream<Item = Result<Message, Error>> + Unpin,
    E: futures_util::Sink<Message, Error = Error> + Unpin,
{
    loop {
        let chunk = match timeout(options.idle, hear(caller)).await {
            Err(_) => return Err(Ended::silent(options.idle)),
            Ok(heard) => match heard? {
                Heard::Audio(chunk) => chunk,
                Heard::End => break,
            },
        };
        let total = heard_bytes.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        counts.audio(chunk.len());
        if total > limit.bytes {
            return Err(Ended::too_long(limit.why.clone()));
        }
        tell(engine, append(&chunk), options.timeout_after).await?;
    }
    let in_segment = heard_bytes.load(Ordering::Relaxed) % audio_bytes(realtime.segment).max(1);
    if in_segment > 0 && in_segment < LEAST_TAIL_BYTES {
        tell(engine, append(&vec![0; LEAST_TAIL_BYTES - in_segment]), options.timeout_after).await?;
    }
    tell(engine, Message::Text(COMMIT_FINAL.into()), options.timeout_after).await?;
    // From here on the other half ends the session, unless the caller leaves or the engine says nothing more.
    match timeout(options.timeout_after, hear(caller)).await {
        Err(_) => Err(UpstreamError::Silent(options.timeout_after).into()),
        Ok(Err(ended)) => Err(ended),
        Ok(Ok(_)) => Err(Ended::wrong("nothing may follow the end message")),
    }
}

/// A chunk as the engine wants it.
fn append(chunk: &[u8]) -> Message {
    let mut text = String::with_capacity(APPEND.len() + chunk.len().div_ceil(3) * 4 + 2);
    text.push_str(APPEND);
    STANDARD.encode_string(chunk, &mut text);
    text.push_str("\"}");
    Message::Text(text.into())
}

/// An engine that takes nothing more holds the caller up, but not for ever.
async fn tell<E>(engine: &mut E, message: Message, timeout_after: Duration) -> Result<(), Ended>
where
    E: futures_util::Sink<Message, Error = Error> + Unpin,
{
    match timeout(timeout_after, engine.send(message)).await {
        Ok(Ok(())) => Ok(()),
        // The other half reads why.
        Ok(Err(_)) => std::future::pending().await,
        Err(_) => Err(UpstreamError::Silent(timeout_after).into()),
    }
}

/// Passes text on until the final.
async fn downward<E, C>(
    engine: &mut E,
    caller: &mut C,
    realtime: &Realtime,
    instance: &str,
    heard_bytes: &AtomicUsize,
    counts: &SessionCounters,
) -> Result<(), Ended>
where
    E: futures_util::Stream<Item = Result<Message, Error>> + Unpin,
    C: futures_util::Sink<Message, Error = Error> + Unpin,
{
    let mut transcript = Transcript::default();
    let mut shown = (String::new(), None);
    loop {
        let Some(event) = receive(engine).await? else {
            return Err(UpstreamError::Broken("closed before the final".into()).into());
        };
        let heard_ms = || audio_ms(heard_bytes.load(Ordering::Relaxed));
        match event.kind.as_str() {
            "transcription.delta" => {
                transcript.push(event.delta.as_deref().unwrap_or_default());
                let covered_ms = (transcript.marks() > 0).then(|| {
                    let segments = realtime.segment.saturating_mul(transcript.marks());
                    audio_ms(audio_bytes(segments)).min(heard_ms())
                });
                let now = (transcript.words(), covered_ms);
                if now != shown {
                    shown = now;
                    counts.said(&shown.0, transcript.marks());
                    let (text, audio_ms) = (&shown.0, shown.1);
                    say(caller, &Says { kind: "partial", text, audio_ms, instance }).await?;
                }
            }
            "transcription.done" => {
                let whole = event.text.filter(|text| !text.is_empty());
                let text = whole.map_or_else(|| transcript.words(), |raw| Transcript::strip(&raw));
                counts.said(&text, transcript.marks());
                let audio_ms = Some(heard_ms());
                return say(caller, &Says { kind: "final", text: &text, audio_ms, instance }).await;
            }
            "error" => return Err(event.complaint().into()),
            _ => {}
        }
    }
}
