//! A client for the engine's tests: raw HTTP and tungstenite, nothing of the product's own client side.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "every test file uses a part of it"
)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tapedeck_engine::{Engine, EngineHandle, Fixtures, KnownCall, Options, Params};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

pub const CHUNK: Duration = Duration::from_millis(100);

/// Parameters of an engine that makes no mistakes.
pub fn exact() -> Params {
    let mut params = Params::default();
    params.degradation.base = 0.0;
    params.degradation.worst = 0.0;
    params
}

/// Audio that is loud everywhere and different for every `seed`.
pub fn audio(ms: usize, seed: u32) -> Bytes {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..ms * 16)
        .flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [_, _, low, high] = state.to_le_bytes();
            [low, high]
        })
        .collect::<Vec<u8>>()
        .into()
}

/// A call of seven seconds, one word every half second.
pub const WORDS: &str = "aa bb cc dd ee ff gg hh ii jj kk ll mm nn";

pub fn call() -> KnownCall {
    KnownCall { pcm: audio(7_000, 1), segments: vec![(0, 7_000, WORDS.into())], speech: vec![(0, 7_000)] }
}

pub fn fixtures() -> Arc<Fixtures> {
    Arc::new(Fixtures::new(vec![KnownCall { pcm: audio(7_000, 9), ..call() }, call()]))
}

pub fn spawn(params: Params, options: Options) -> EngineHandle {
    Engine::spawn(params, fixtures(), options).unwrap()
}

pub fn pipe(engine: &EngineHandle) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 * 1024);
    tokio::spawn(engine.serve(server));
    client
}

pub async fn open(engine: &EngineHandle) -> Result<WebSocketStream<DuplexStream>, Error> {
    client_async("ws://engine/asr", pipe(engine)).await.map(|(socket, _)| socket)
}

/// The HTTP status with which an upgrade was refused.
pub fn status<T>(refused: Result<T, Error>) -> Option<u16> {
    match refused {
        Err(Error::Http(response)) => Some(response.status().as_u16()),
        _ => None,
    }
}

/// Whole response to a GET.
pub async fn get<IO: AsyncRead + AsyncWrite + Unpin>(mut io: IO, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: engine\r\nconnection: close\r\n\r\n");
    io.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    io.read_to_string(&mut answer).await.unwrap();
    answer
}

/// What came back, and when since the call began.
#[derive(Debug, Clone, PartialEq)]
pub struct Got {
    pub at: Duration,
    pub json: Value,
}

/// How a call went.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    pub messages: Vec<Got>,
    /// Close code; none where the connection just broke.
    pub code: Option<u16>,
}

impl Heard {
    pub fn texts(&self) -> Vec<&str> {
        self.messages.iter().map(|m| m.json["text"].as_str().unwrap()).collect()
    }

    pub fn positions(&self) -> Vec<u64> {
        self.messages.iter().map(|m| m.json["audio_ms"].as_u64().unwrap()).collect()
    }

    pub fn kinds(&self) -> Vec<&str> {
        self.messages.iter().map(|m| m.json["type"].as_str().unwrap()).collect()
    }
}

/// Plays a whole call at the pace of speech and reads until the server closes.
pub async fn play<IO>(socket: WebSocketStream<IO>, pcm: &Bytes, chunk_ms: u32) -> Heard
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let start = Instant::now();
    let (mut sink, stream) = socket.split();
    let reader = tokio::spawn(listen(stream, start));
    for (n, chunk) in pcm.chunks(chunk_ms as usize * 32).enumerate() {
        let at = (n as u32 + 1) * chunk_ms;
        sleep_until(start + Duration::from_millis(u64::from(at).min(pcm.len() as u64 / 32))).await;
        if sink.send(Message::binary(pcm.slice_ref(chunk))).await.is_err() {
            break;
        }
    }
    let _ = sink.send(Message::text("{\"type\":\"end\"}")).await;
    reader.await.unwrap()
}

pub async fn listen<S>(mut stream: S, start: Instant) -> Heard
where
    S: futures_util::Stream<Item = Result<Message, Error>> + Unpin,
{
    let mut heard = Heard { messages: Vec::new(), code: None };
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Text(text) => {
                let json = serde_json::from_str(&text).unwrap_or(Value::String(text.to_string()));
                heard.messages.push(Got { at: start.elapsed(), json });
            }
            Message::Close(frame) => heard.code = frame.map(|f| f.code.into()),
            _ => {}
        }
    }
    heard
}

/// Sends a whole call as fast as the pipe takes it and reads until the server closes.
pub async fn pour<IO>(socket: WebSocketStream<IO>, pcm: &Bytes) -> Heard
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sink, stream) = socket.split();
    let reader = tokio::spawn(listen(stream, Instant::now()));
    for chunk in pcm.chunks(3_200) {
        sink.send(Message::binary(pcm.slice_ref(chunk))).await.unwrap();
    }
    sink.send(Message::text("{\"type\":\"end\"}")).await.unwrap();
    reader.await.unwrap()
}

/// Lets the engine's tasks run until they have nothing left to do at this instant.
pub async fn settle() {
    sleep(Duration::from_millis(1)).await;
}
