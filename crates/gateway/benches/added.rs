//! Latency that the gateway adds, real time, over TCP on loopback with scripted engines and callers in the same
//! process: from the caller's write to the engine's read, and from the engine's write to the caller's read. The
//! ends' own work is in the figures, so they are upper bounds. Run with `cargo bench -p tapedeck-gateway`.
//!
//! Fails when a target is missed: p99 below 5 ms with `realtime`; below 5 ms and 1 ms per MB of audio with
//! `rolling`, which sends all audio again with every window. Behind `TAPEDECK_BENCH_REPORT_ONLY=1` it only tells.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by panicking")]

use std::io::Write as _;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tapedeck_gateway::{Backend, Gateway, Options, Rolling, Upstream};
use tapedeck_transport::{NetConnector, NetOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

/// Sessions at a time with `realtime`, and chunks of each.
const SESSIONS: u32 = 50;
const CHUNKS: u32 = 100;
/// Length of the rolling session, windows of 2 s.
const WINDOWS: usize = 150;
const CHUNK_BYTES: usize = 3_200;
const WINDOW_BYTES: usize = 64_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let well = runtime.block_on(async { realtime().await & rolling().await });
    if !well && std::env::var_os("TAPEDECK_BENCH_REPORT_ONLY").is_none() {
        std::process::exit(1);
    }
}

/// Tells p50, p99 and maximum of some latencies in milliseconds; whether p99 is below the target.
fn tell(what: &str, mut ms: Vec<f64>, target_ms: f64) -> bool {
    ms.sort_by(f64::total_cmp);
    // Nearest rank, as everywhere in this project.
    let (p50, p99) = (ms[ms.len().div_ceil(2) - 1], ms[(ms.len() * 99).div_ceil(100) - 1]);
    let max = ms[ms.len() - 1];
    let ok = p99 < target_ms;
    let verdict = if ok { "ok" } else { "MISSED" };
    let line = format!(
        "{what:<42} n {:>5}  p50 {p50:6.2}  p99 {p99:6.2}  max {max:6.2} ms  target {target_ms:5.1}  {verdict}\n",
        ms.len()
    );
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    ok
}

fn ms(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1e3
}

/// A gateway on a port of its own, in front of one engine.
async fn gateway(engine: &str, backend: Backend) -> String {
    let upstreams = vec![Upstream::new("inst1", format!("http://{engine}").parse().unwrap())];
    let options = Options {
        backend,
        model: Some("toy".into()),
        max_audio: Duration::from_secs(3_600),
        ..Options::new(upstreams)
    };
    let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
    let gateway = Gateway::new(options, connector, |_| {}).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(gateway.serve(stream));
        }
    });
    address
}

async fn call(gateway: &str) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(gateway).await.unwrap();
    stream.set_nodelay(true).unwrap();
    client_async(format!("ws://{gateway}/asr"), stream).await.unwrap().0
}

/// Every chunk is answered with a word at once; the engine's instants go through a channel of each session, in
/// order. A session is known to the engine by nothing, so the first sample of each chunk carries its number.
async fn realtime() -> bool {
    let (read_at, mut reads) = mpsc::unbounded_channel::<(u32, Instant)>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let engine = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(realtime_engine(stream, read_at.clone()));
        }
    });
    let gateway = gateway(&engine, Backend::Realtime(tapedeck_gateway::Realtime::default())).await;
    let (sent_at, mut sends) = mpsc::unbounded_channel::<(u32, Instant)>();
    let (back, mut backs) = mpsc::unbounded_channel::<f64>();
    for session in 0..SESSIONS {
        let (gateway, sent_at, back) = (gateway.clone(), sent_at.clone(), back.clone());
        tokio::spawn(async move {
            let mut caller = call(&gateway).await;
            sleep(Duration::from_millis(u64::from(session) * 2)).await;
            for chunk in 0..CHUNKS {
                sleep(Duration::from_millis(100)).await;
                let id = session * CHUNKS + chunk;
                let mut audio = vec![0; CHUNK_BYTES];
                audio[..4].copy_from_slice(&id.to_le_bytes());
                let at = Instant::now();
                caller.send(Message::Binary(audio.into())).await.unwrap();
                sent_at.send((id, at)).unwrap();
                // There and back again: what is left of the round trip after the way there is the way back.
                while let Some(Ok(message)) = caller.next().await {
                    if message.is_text() {
                        back.send(ms(at)).unwrap();
                        break;
                    }
                }
            }
        });
    }
    drop((sent_at, back));
    let mut sent = std::collections::BTreeMap::new();
    while let Some((id, at)) = sends.recv().await {
        sent.insert(id, at);
    }
    let mut there = Vec::new();
    while let Ok((id, at)) = reads.try_recv() {
        there.push(at.duration_since(sent[&id]).as_secs_f64() * 1e3);
    }
    let mut round = Vec::new();
    while let Some(ms) = backs.recv().await {
        round.push(ms);
    }
    assert_eq!((there.len(), round.len()), ((SESSIONS * CHUNKS) as usize, (SESSIONS * CHUNKS) as usize));
    tell("realtime, chunk to the engine", there, 5.0)
        & tell("realtime, chunk there and text back", round, 5.0)
}

async fn realtime_engine(stream: TcpStream, read_at: mpsc::UnboundedSender<(u32, Instant)>) {
    let mut head = [0; 16];
    stream.peek(&mut head).await.unwrap();
    if !head.starts_with(b"GET /v1/realtime") {
        return; // asked for its models: the name is given, so none are needed
    }
    let mut socket = accept_async(stream).await.unwrap();
    socket.send(Message::Text(json!({"type": "session.created"}).to_string().into())).await.unwrap();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let at = Instant::now();
        let Some(audio) = text.split_once("\"audio\":\"").and_then(|(_, audio)| audio.get(..8)) else {
            continue;
        };
        let first = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, audio).unwrap();
        read_at.send((u32::from_le_bytes(first[..4].try_into().unwrap()), at)).unwrap();
        let delta = json!({"type": "transcription.delta", "delta": " word"}).to_string();
        socket.send(Message::Text(delta.into())).await.unwrap();
    }
}

/// One long session; each window is completed when the one before has been answered.
async fn rolling() -> bool {
    let (read_at, mut reads) = mpsc::unbounded_channel::<Instant>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let engine = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(chat_engine(stream, read_at.clone()));
        }
    });
    let gateway = gateway(&engine, Backend::Rolling(Rolling::default())).await;
    let mut caller = call(&gateway).await;
    let mut excess: [Vec<f64>; 2] = Default::default();
    let mut there: [Vec<f64>; 3] = Default::default();
    for window in 1..=WINDOWS {
        let chunks = WINDOW_BYTES / CHUNK_BYTES;
        let mut at = Instant::now();
        for _ in 0..chunks {
            at = Instant::now();
            caller.send(Message::Binary(vec![3; CHUNK_BYTES].into())).await.unwrap();
        }
        let read = reads.recv().await.unwrap();
        let took = read.duration_since(at).as_secs_f64() * 1e3;
        while let Some(Ok(message)) = caller.next().await {
            if message.is_text() {
                break;
            }
        }
        let round = ms(at);
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let megabytes = (window * WINDOW_BYTES) as f64 / 1e6;
        there[(window - 1) * 3 / WINDOWS].push(took);
        excess[0].push(took - megabytes);
        excess[1].push(round - megabytes);
    }
    let [first, second, third] = there;
    let [there, round] = excess;
    tell("rolling, window to the engine, to 3.2 MB", first, 5.0 + 3.2)
        & tell("rolling, the same, to 6.4 MB", second, 5.0 + 6.4)
        & tell("rolling, the same, to 9.6 MB", third, 5.0 + 9.6)
        & tell("rolling, there, less 1 ms per MB", there, 5.0)
        & tell("rolling, there and back, less 1 ms per MB", round, 5.0)
}

async fn chat_engine(mut stream: TcpStream, read_at: mpsc::UnboundedSender<Instant>) {
    let mut buffer = vec![0; 1 << 20];
    let mut head = Vec::new();
    let mut left = loop {
        let got = stream.read(&mut buffer).await.unwrap_or(0);
        head.extend_from_slice(&buffer[..got]);
        if got == 0 {
            return;
        }
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&head[..end]).to_lowercase();
            let length = text.lines().find_map(|l| l.strip_prefix("content-length: ").map(str::to_owned));
            let Some(length) = length else { return }; // asked for its models; the name is given
            break length.parse::<usize>().unwrap() - (head.len() - end - 4);
        }
    };
    while left > 0 {
        left -= stream.read(&mut buffer).await.unwrap();
    }
    read_at.send(Instant::now()).unwrap();
    let body = json!({"choices": [{"message": {"content": "word"}}]}).to_string();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}
