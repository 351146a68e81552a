//! Drives a load of one's own: two streams play three calls against a recogniser, and every call is scored.
//!
//! The recogniser is a few lines at the end of this file, reached through a pipe under a paused clock, so that the
//! example runs anywhere and in no time. For a real server leave `Memory` out: `NetConnector` in its place, and a
//! runtime whose clock goes on.
//!
//! `cargo run -p tapedeck-load --example drive`

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tapedeck_load::{Control, Plan, PreparedCalls, Target, run};
use tapedeck_protocol::registry;
use tapedeck_record::{CallMeta, CallRecord, SpeechMap};
use tapedeck_score::{Rules, Words, score};
use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, Io};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    for call in runtime.block_on(drive())? {
        println!(
            "stream {} call {}: {:?}, TTFT {:.3} s from speech, final {:.3} s, counted: {}",
            call.stream,
            call.call,
            call.outcome.outcome,
            call.ttft_speech_s.unwrap_or(f64::NAN),
            call.final_s.unwrap_or(f64::NAN),
            call.counted
        );
    }
    Ok(())
}

/// Plays and scores; a test runs this too.
pub(crate) async fn drive() -> Result<Vec<CallRecord>, Box<dyn Error>> {
    // What is spoken on the wire, and the calls, cut and framed once for all streams.
    let dialect = registry::dialect("pcm-json", serde_json::Value::Null)?;
    let metas: Vec<CallMeta> =
        [4_000, 7_000, 3_000].into_iter().zip(0..).map(|(ms, i)| call(i, ms)).collect();
    let calls = metas.iter().map(|meta| (meta.clone(), watchdog(meta.duration_ms)));
    let prepared =
        Arc::new(PreparedCalls::new(&*dialect, Duration::from_millis(100), Duration::ZERO, calls)?);

    // Two streams; each one's window holds the three calls once, after half a minute of warm-up.
    let plan = Plan { streams: 2, warm_up: Duration::from_secs(30), ..Plan::default() };
    let evidence = dialect.evidence();
    let target =
        Target { connector: Arc::new(Memory), endpoint: "ws://memory/asr".parse()?, dialect, bearer: None };
    let (out, mut played) = mpsc::unbounded_channel();
    let load = tokio::spawn(run(plan, prepared, target, Instant::now(), Control::new(), out));

    // Each call comes as it ends: a raw trace, from which the figures follow without a clock.
    let rules = Rules::new(evidence, None);
    let mut records = Vec::new();
    while let Some(call) = played.recv().await {
        let index = usize::try_from(call.trace.call)?;
        let meta = metas.get(index).ok_or("a call that is not on the tape")?;
        records.push(score(&call.trace, meta, &rules, &Words::default()));
    }
    let summary = load.await?;
    assert!(summary.is_complete(), "every counted call was placed: {summary:?}");
    Ok(records)
}

/// A call in which somebody speaks from half a second on.
fn call(index: u32, duration_ms: u32) -> CallMeta {
    CallMeta {
        index,
        id: format!("call-{index}"),
        duration_ms,
        bucket_s: duration_ms / 1000,
        channel: None,
        tags: Default::default(),
        speech: SpeechMap::new(vec![(500, duration_ms).into()]),
    }
}

/// 16 kHz mono s16le.
fn watchdog(ms: u32) -> Bytes {
    Bytes::from(vec![0; ms as usize * 32])
}

/// Connects to the recogniser below through a pipe.
#[derive(Debug)]
struct Memory;

impl Connector for Memory {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(recognise(theirs));
            Ok(Io::Pipe(ours))
        })
    }
}

/// A recogniser that says "ja" for every second of audio, 80 ms after it has heard it.
async fn recognise(pipe: DuplexStream) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(pipe).await else { return };
    let (mut heard_ms, mut said) = (0, 0);
    while let Some(Ok(message)) = socket.next().await {
        let answer = match message {
            Message::Binary(audio) => {
                heard_ms += audio.len() / 32;
                if heard_ms / 1000 <= said {
                    continue;
                }
                said = heard_ms / 1000;
                serde_json::json!({ "type": "partial", "text": "ja ".repeat(said), "position_ms": heard_ms })
            }
            Message::Text(_) => serde_json::json!({ "type": "final", "text": "ja ".repeat(said) }),
            _ => continue,
        };
        sleep(Duration::from_millis(80)).await;
        if socket.send(Message::text(answer.to_string())).await.is_err() {
            return;
        }
    }
}
