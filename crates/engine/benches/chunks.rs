//! What one chunk costs, both ends of an in-memory pipe counted, under a paused clock: a bare WebSocket that
//! throws the audio away, then the engine. Run with `cargo bench -p tapedeck-engine`.

use std::future::Future;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tapedeck_engine::{Engine, Fixtures, KnownCall, Options, Params};
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes as Payload, Message};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

const STREAMS: usize = 60;
const CHUNK: Duration = Duration::from_millis(100);
const CHUNK_BYTES: usize = 3_200;
const CHUNKS: usize = 1_800;

fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(4_096).write_buffer_size(0)
}

/// Loud, different for every call.
fn audio(seed: u32) -> Bytes {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..CHUNKS * CHUNK_BYTES)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .collect::<Vec<u8>>()
        .into()
}

/// One caller: sends at the pace of speech, reads whatever comes.
async fn call(pipe: DuplexStream, pcm: Bytes) -> usize {
    let Ok((socket, _)) = client_async_with_config("ws://engine/asr", pipe, Some(config())).await else {
        return 0;
    };
    let (mut sink, mut stream) = socket.split();
    let reader = tokio::spawn(async move {
        let mut read = 0;
        while let Some(Ok(message)) = stream.next().await {
            read += usize::from(message.is_text());
        }
        read
    });
    let start = Instant::now();
    for n in 0..CHUNKS {
        sleep_until(start + CHUNK * u32::try_from(n + 1).unwrap_or(u32::MAX)).await;
        let chunk: Payload = pcm.slice(n * CHUNK_BYTES..(n + 1) * CHUNK_BYTES);
        if sink.send(Message::Binary(chunk)).await.is_err() {
            break;
        }
    }
    let _ = sink.send(Message::text("{\"type\":\"end\"}")).await;
    reader.await.unwrap_or(0)
}

/// Wall time per chunk, microseconds, and messages read.
#[expect(clippy::disallowed_types, reason = "a bench measures the wall clock that a paused runtime hides")]
fn measure<F>(
    tapes: &[Bytes],
    serve: impl FnOnce() -> Box<dyn FnMut(DuplexStream) -> F>,
) -> Option<(f64, usize)>
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().ok()?;
    let begin = std::time::Instant::now();
    let read = runtime.block_on(async {
        let mut serve = serve();
        let mut calls = Vec::new();
        for n in 0..STREAMS {
            let (client, server) = tokio::io::duplex(64 * 1024);
            tokio::spawn(serve(server));
            calls.push(tokio::spawn(call(client, tapes[n % tapes.len()].clone())));
            tokio::time::sleep(Duration::from_millis(37)).await;
        }
        let mut read = 0;
        for call in calls {
            read += call.await.unwrap_or(0);
        }
        read
    });
    let chunks = f64::from(u32::try_from(STREAMS * CHUNKS).ok()?);
    Some((begin.elapsed().as_secs_f64() * 1e6 / chunks, read))
}

/// A WebSocket that throws everything away.
async fn discard(pipe: DuplexStream) {
    let Ok(mut socket): Result<WebSocketStream<_>, _> = accept_async_with_config(pipe, Some(config())).await
    else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() {
            let _ = socket.close(None).await;
        }
    }
}

fn main() {
    let tapes: Vec<_> = (0..9).map(audio).collect();
    let fixtures = Arc::new(Fixtures::new(
        tapes
            .iter()
            .map(|pcm| KnownCall {
                pcm: pcm.clone(),
                segments: (0..18)
                    .map(|n| {
                        (
                            n * 10_000,
                            n * 10_000 + 9_000,
                            "a segment of ten words in nine seconds or so".into(),
                        )
                    })
                    .collect(),
                speech: vec![(0, 180_000)],
            })
            .collect(),
    ));
    let mut out = std::io::stdout();
    for _ in 0..3 {
        let bare = measure(&tapes, || Box::new(discard));
        let engine = |fixtures: Arc<Fixtures>| {
            measure(&tapes, move || {
                // Roomy and fast, so that the figure is the face's and not a crowded model's.
                let mut params = Params { kv_blocks: 50_000, ..Params::default() };
                params.step.base_ns /= 5;
                params.step.per_stream_ns /= 5;
                params.step.per_context_token_ns /= 5;
                let engine = Engine::spawn(params, fixtures, Options::new("inst1", 1));
                Box::new(move |pipe| {
                    let served = engine.as_ref().ok().map(|engine| engine.serve(pipe));
                    async move {
                        if let Some(served) = served {
                            served.await;
                        }
                    }
                })
            })
        };
        let (known, unknown) = (engine(fixtures.clone()), engine(Arc::default()));
        for (what, figure) in
            [("bare", bare), ("engine, known calls", known), ("engine, unknown calls", unknown)]
        {
            if let Some((us, read)) = figure {
                let _ = writeln!(out, "{what}: {us:.2} us per chunk, {read} messages read");
            }
        }
    }
}
