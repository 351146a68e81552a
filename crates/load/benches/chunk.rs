//! What a chunk costs the client.
//!
//! Three measurements, all by default or one by name (`cargo bench -p tapedeck-load -- rehearsed`):
//!
//! - `rehearsed`: wall time per chunk, client and a trivial server together, in memory under a paused clock;
//! - `sockets`: CPU time per chunk of the client's thread over loopback TCP, against a bare loop that sends
//!   and receives the same bytes on the same sockets, paced alike, in the same run;
//! - `many`: wake lateness of 2,000 streams over loopback TCP, the sink on a thread of its own, and how long
//!   the kernel kept the client waiting for a processor: on a busy machine that is what the lateness shows,
//!   and `chrt -f 1` in front of the command takes it out.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::float_cmp, reason = "a bench may fail loudly")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{net::SocketAddr, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tapedeck_load::{CallResult, Control, Plan, PreparedCalls, Target, run};
use tapedeck_protocol::{Dialect, registry};
use tapedeck_record::{CallMeta, SpeechMap};
use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, Io, NetConnector, NetOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_tungstenite::{
    accept_async_with_config, client_async,
    tungstenite::{Message, protocol::WebSocketConfig},
};

const CHUNK: Duration = Duration::from_millis(100);
/// The sink answers every so many chunks, as a recogniser does every half second.
const ANSWER_EVERY: u32 = 5;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
    if wanted("rehearsed") {
        rehearsed();
    }
    if wanted("sockets") {
        sockets();
    }
    if wanted("many") {
        many();
    }
}

fn rehearsed() {
    let prepared = prepared(&[30_000, 60_000]);
    let plan = Plan { streams: 90, warm_up: Duration::from_secs(10), ..Plan::default() };
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (cpu, wall) = (cpu_now(), wall_now());
    let played =
        runtime.block_on(play(plan, prepared, target(Arc::new(Pipes), "ws://memory/".parse().unwrap())));
    let chunks = chunks(&played);
    let (cpu, wall) = (cpu_now() - cpu, wall_now() - wall);
    println!(
        "rehearsed: {:.2} us of CPU per chunk ({:.2} us of wall time), client and trivial server together",
        micros(cpu) / chunks as f64,
        micros(wall) / chunks as f64
    );
    assert!(played.iter().all(|p| p.trace.wake_late_us.iter().all(|&us| us == 0)));
}

fn sockets() {
    const STREAMS: u32 = 200;
    const CALL_MS: u32 = 10_000;
    let prepared = prepared(&[CALL_MS]);
    let address = sink_thread();
    let runtime = real_runtime();

    // Warms caches and the sink before anything is measured.
    runtime.block_on(bare(address, STREAMS, 1_000));
    for round in 1..=2 {
        let cpu = cpu_now();
        let sent = runtime.block_on(bare(address, STREAMS, CALL_MS));
        let bare_us = micros(cpu_now() - cpu) / sent as f64;

        let plan = Plan {
            streams: STREAMS,
            ramp: Duration::from_micros(500),
            warm_up: Duration::ZERO,
            ping_every: Some(Duration::from_secs(5)),
            ..Plan::default()
        };
        let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
        let endpoint = format!("ws://{address}/").parse().unwrap();
        let cpu = cpu_now();
        let played = runtime.block_on(play(plan, prepared.clone(), target(connector, endpoint)));
        let ours_us = micros(cpu_now() - cpu) / chunks(&played) as f64;
        println!(
            "sockets, round {round}: {ours_us:.2} us of CPU per chunk, bare loop {bare_us:.2} us, ratio {:.2}",
            ours_us / bare_us
        );
    }
}

fn many() {
    const STREAMS: u32 = 2_000;
    let prepared = prepared(&[10_000]);
    let address = sink_thread();
    let runtime = real_runtime();
    let plan = Plan {
        streams: STREAMS,
        ramp: Duration::from_millis(2),
        warm_up: Duration::from_secs(1),
        ..Plan::default()
    };
    let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
    let endpoint = format!("ws://{address}/").parse().unwrap();
    let (cpu, waited, started) = (cpu_now(), waited_now(), Instant::now());
    let played = runtime.block_on(play(plan, prepared, target(connector, endpoint)));
    let (cpu, waited) = (cpu_now() - cpu, waited_now() - waited);
    let share = |of: Duration| of.as_secs_f64() / started.elapsed().as_secs_f64();
    let failed = played.iter().filter(|p| p.trace.final_ns.is_none()).count();
    let mut late: Vec<u32> = played.iter().flat_map(|p| p.trace.wake_late_us.iter().copied()).collect();
    late.sort_unstable();
    let at = |per_mille: usize| f64::from(late[(late.len() - 1) * per_mille / 1000]) / 1000.0;
    println!(
        "many: {STREAMS} streams, wake lateness p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.2} ms, \
         {:.2} of a core, {:.2} us of CPU per chunk, {:.2} of the time without a processor, \
         {failed} of {} calls failed",
        at(500),
        at(990),
        at(999),
        at(1000),
        share(cpu),
        micros(cpu) / late.len() as f64,
        share(waited),
        played.len(),
    );
}

fn real_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn play(plan: Plan, prepared: Arc<PreparedCalls>, target: Target) -> Vec<CallResult> {
    let (out, mut calls) = mpsc::unbounded_channel();
    run(plan, prepared, target, Instant::now(), Control::new(), out).await;
    let mut all = Vec::new();
    while let Some(played) = calls.recv().await {
        all.push(played);
    }
    all
}

fn chunks(played: &[CallResult]) -> u64 {
    played.iter().map(|p| p.trace.wake_late_us.len() as u64).sum()
}

fn dialect() -> Arc<dyn Dialect> {
    registry::dialect("pcm-json", serde_json::Value::Null).unwrap()
}

fn target(connector: Arc<dyn Connector>, endpoint: Endpoint) -> Target {
    Target { connector, endpoint, dialect: dialect(), bearer: None }
}

fn prepared(lengths_ms: &[u32]) -> Arc<PreparedCalls> {
    let calls = lengths_ms.iter().zip(0..).map(|(&duration_ms, index)| {
        let meta = CallMeta {
            index,
            id: format!("call{index}"),
            duration_ms,
            bucket_s: duration_ms / 1000,
            channel: None,
            tags: Default::default(),
            speech: SpeechMap::new(vec![(0, duration_ms).into()]),
        };
        (meta, Bytes::from(vec![7; duration_ms as usize * 32]))
    });
    Arc::new(PreparedCalls::new(&*dialect(), CHUNK, Duration::ZERO, calls).unwrap())
}

/// Takes audio, answers now and then, ends the call: the least that a server can do.
async fn sink<S: AsyncRead + AsyncWrite + Unpin>(io: S) {
    let config = WebSocketConfig::default().read_buffer_size(8 << 10).write_buffer_size(0);
    let Ok(mut ws) = accept_async_with_config(io, Some(config)).await else { return };
    let mut chunks = 0;
    while let Some(Ok(message)) = ws.next().await {
        match message {
            Message::Binary(_) => {
                chunks += 1;
                if chunks % ANSWER_EVERY == 0 {
                    let position = chunks * 100;
                    let text = format!(r#"{{"type":"partial","text":"a few words","audio_ms":{position}}}"#);
                    if ws.send(Message::text(text)).await.is_err() {
                        return;
                    }
                }
            }
            Message::Text(_) => {
                let text = r#"{"type":"final","text":"a few words"}"#;
                let _ = ws.send(Message::text(text)).await;
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Pipes;

impl Connector for Pipes {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        let (ours, theirs) = duplex(64 << 10);
        tokio::spawn(sink(theirs));
        Box::pin(async move { Ok(Io::Pipe(ours)) })
    }
}

/// A sink on a thread of its own, so that its CPU time is not the client's.
fn sink_thread() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        real_runtime().block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                socket.set_nodelay(true).unwrap();
                tokio::spawn(sink(socket));
            }
        });
    });
    told.recv().unwrap()
}

/// The same traffic without anything around it: per stream one task, one timer, bytes that were masked
/// beforehand, answers read and thrown away. Returns how many chunks were sent.
async fn bare(address: SocketAddr, streams: u32, call_ms: u32) -> u64 {
    let chunk: Arc<[u8]> = masked(0x82, &[7; 3_200]).into();
    let end: Arc<[u8]> = masked(0x81, br#"{"type":"end"}"#).into();
    let start = Instant::now();
    let callers: Vec<_> = (0..streams)
        .map(|k| {
            let (chunk, end) = (Arc::clone(&chunk), Arc::clone(&end));
            tokio::spawn(async move {
                sleep_until(start + Duration::from_micros(500) * k).await;
                let socket = TcpStream::connect(address).await.unwrap();
                socket.set_nodelay(true).unwrap();
                let (ws, _) = client_async(format!("ws://{address}/"), socket).await.unwrap();
                let mut socket = ws.into_inner();
                let c1 = Instant::now();
                let chunks = call_ms / 100;
                let mut sent = 0;
                let mut answers = [0; 4_096];
                let mut timer = std::pin::pin!(sleep_until(c1 + CHUNK));
                loop {
                    tokio::select! {
                        biased;
                        () = &mut timer, if sent < chunks => {
                            socket.write_all(&chunk).await.unwrap();
                            sent += 1;
                            timer.as_mut().reset(c1 + CHUNK * (sent + 1));
                            if sent == chunks {
                                socket.write_all(&end).await.unwrap();
                            }
                        }
                        n = socket.read(&mut answers) => {
                            let n = n.unwrap();
                            let over = answers[..n].windows(7).any(|w| w == b"\"final\"");
                            if over || n == 0 {
                                break;
                            }
                        }
                    }
                }
                u64::from(sent)
            })
        })
        .collect();
    let mut sent = 0;
    for caller in callers {
        sent += caller.await.unwrap();
    }
    sent
}

/// A masked client frame.
fn masked(first_byte: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x12, 0x34, 0x56, 0x78];
    let mut frame = vec![first_byte];
    match u8::try_from(payload.len()).ok().filter(|&n| n < 126) {
        Some(n) => frame.push(0x80 | n),
        None => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
    frame
}

/// CPU time of this thread so far, by the kernel's own account.
fn cpu_now() -> Duration {
    sched_account(0)
}

/// Time for which this thread was ready to run and had no processor.
fn waited_now() -> Duration {
    sched_account(1)
}

fn sched_account(field: usize) -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(account.split_whitespace().nth(field).unwrap().parse().unwrap())
}

/// Wall time, which a paused clock cannot tell.
fn wall_now() -> Duration {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    Duration::from_secs_f64(uptime.split_whitespace().next().unwrap().parse().unwrap())
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
