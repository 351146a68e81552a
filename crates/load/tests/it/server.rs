//! Scripted servers, over whatever carries bytes.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tapedeck_load::{Assignment, CallResult, Control, Plan, PreparedCalls, Summary, Target, run};
use tapedeck_protocol::registry;
use tapedeck_record::{CallMeta, SpeechMap};
use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, Io};
use tokio::{
    io::{AsyncRead, AsyncWrite, duplex},
    net::TcpListener,
    sync::mpsc,
    time::Instant,
};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, tungstenite::Message};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

pub(crate) type BoxWire = Box<dyn Wire>;
pub(crate) type Ws = WebSocketStream<BoxWire>;
pub(crate) type Served = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What a server does with its n-th connection.
pub(crate) type Handler = Arc<dyn Fn(usize, BoxWire) -> Served + Send + Sync>;

/// A server that speaks WebSocket and follows a script from there.
pub(crate) fn ws<F, R>(call_plan: F) -> Handler
where
    F: Fn(usize, Ws) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let call_plan = Arc::new(call_plan);
    Arc::new(move |n, io| {
        let call_plan = Arc::clone(&call_plan);
        Box::pin(async move {
            if let Ok(ws) = accept_async_with_config(io, None).await {
                call_plan(n, ws).await;
            }
        })
    })
}

/// A server that gets the bare connection.
pub(crate) fn bare<F, R>(call_plan: F) -> Handler
where
    F: Fn(usize, BoxWire) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |n, io| Box::pin(call_plan(n, io)))
}

pub(crate) async fn say(ws: &mut Ws, json: serde_json::Value) {
    let _ = ws.send(Message::text(json.to_string())).await;
}

/// Reads until end-of-audio or the connection's end; returns the audio's milliseconds, or none.
pub(crate) async fn hear_all(ws: &mut Ws) -> Option<u64> {
    let mut bytes = 0;
    while let Some(Ok(message)) = ws.next().await {
        match message {
            Message::Binary(audio) => bytes += audio.len() as u64,
            Message::Text(_) => return Some(bytes / 32),
            _ => {}
        }
    }
    None
}

/// Reads until the other side is gone.
pub(crate) async fn linger(ws: &mut Ws) {
    while let Some(Ok(_)) = ws.next().await {}
}

/// A recogniser that answers each half second of audio with a growing text and its position, and ends with a
/// final.
pub(crate) fn recogniser() -> Handler {
    ws(|n, mut ws| async move {
        let (mut bytes, mut text) = (0_usize, String::new());
        while let Some(Ok(message)) = ws.next().await {
            match message {
                Message::Binary(audio) => {
                    bytes += audio.len();
                    if bytes.is_multiple_of(16_000) {
                        text.push_str(" word");
                        let instance = format!("inst{}", n % 3);
                        let json = serde_json::json!({ "type": "partial", "text": text,
                            "audio_ms": bytes / 32, "instance": instance });
                        say(&mut ws, json).await;
                    }
                }
                Message::Text(_) => {
                    text.push_str(" end");
                    let json = serde_json::json!({ "type": "final", "text": text, "audio_ms": bytes / 32 });
                    say(&mut ws, json).await;
                    linger(&mut ws).await;
                    return;
                }
                _ => {}
            }
        }
    })
}

/// Connects in memory.
pub(crate) struct Pipes {
    handler: Handler,
    connections: AtomicUsize,
    buffer: usize,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pipes")
    }
}

impl Connector for Pipes {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        let (ours, theirs) = duplex(self.buffer);
        let n = self.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn((self.handler)(n, Box::new(theirs)));
        Box::pin(async move { Ok(Io::Pipe(ours)) })
    }
}

pub(crate) fn pipes(handler: Handler) -> Arc<Pipes> {
    Arc::new(Pipes { handler, connections: AtomicUsize::new(0), buffer: 64 << 10 })
}

/// Serves on a free loopback port.
pub(crate) async fn tcp(handler: Handler) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("ws://{}/asr", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        for n in 0.. {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            tokio::spawn(handler(n, Box::new(socket)));
        }
    });
    endpoint
}

pub(crate) fn target(connector: Arc<dyn Connector>, endpoint: Endpoint) -> Target {
    Target {
        connector,
        endpoint,
        dialect: registry::dialect("pcm-json", serde_json::Value::Null).unwrap(),
        bearer: None,
    }
}

pub(crate) fn in_memory(handler: Handler) -> Target {
    target(pipes(handler), "ws://memory/asr".parse().unwrap())
}

/// Calls of these lengths, somebody speaking from 200 ms on; chunks of 100 ms.
pub(crate) fn prepared(lengths_ms: &[u32]) -> Arc<PreparedCalls> {
    let dialect = registry::dialect("pcm-json", serde_json::Value::Null).unwrap();
    let calls = lengths_ms.iter().enumerate().map(|(i, &ms)| (meta(i, ms), pcm(ms)));
    Arc::new(PreparedCalls::new(&*dialect, 100 * MS, Duration::ZERO, calls).unwrap())
}

pub(crate) fn meta(i: usize, ms: u32) -> CallMeta {
    CallMeta {
        index: u32::try_from(i).unwrap(),
        id: format!("call{i}"),
        duration_ms: ms,
        bucket_s: ms / 1000,
        channel: None,
        tags: Default::default(),
        speech: SpeechMap::new(vec![(200, ms).into()]),
    }
}

pub(crate) fn pcm(ms: u32) -> Bytes {
    (0..ms * 16).flat_map(|i| i16::try_from(i % 2_000).unwrap().to_le_bytes()).collect()
}

/// One stream, no warm-up, every call of the tape counted once.
pub(crate) fn once() -> Plan {
    Plan { streams: 1, ramp: Duration::ZERO, warm_up: Duration::ZERO, keep_texts: true, ..Plan::default() }
}

/// Plays to the end, and returns calls in order of stream and turn.
pub(crate) async fn play(
    plan: Plan,
    prepared: impl Into<Assignment>,
    target: Target,
) -> (Vec<CallResult>, Summary) {
    play_with(plan, prepared, target, Control::new()).await
}

pub(crate) async fn play_with(
    plan: Plan,
    prepared: impl Into<Assignment>,
    target: Target,
    control: Control,
) -> (Vec<CallResult>, Summary) {
    let (out, mut calls) = mpsc::unbounded_channel();
    let summary = run(plan, prepared, target, Instant::now(), control, out).await;
    let mut all = Vec::new();
    while let Some(played) = calls.recv().await {
        all.push(played);
    }
    all.sort_by_key(|p| (p.trace.stream, p.trace.seq));
    (all, summary)
}

/// Plays one call and returns it.
pub(crate) async fn one_call(plan: Plan, ms: u32, handler: Handler) -> CallResult {
    let (mut all, _) = play(plan, prepared(&[ms]), in_memory(handler)).await;
    assert_eq!(all.len(), 1);
    all.remove(0)
}
