//! What goes over the wire.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use tapedeck_load::{Plan, PrepareError, PreparedCalls};
use tapedeck_protocol::registry;
use tokio_tungstenite::tungstenite::Message;

use crate::server::*;

/// Keeps the audio of every connection and ends each call properly.
fn recorder() -> (Handler, Arc<Mutex<Vec<Vec<Bytes>>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shelf = Arc::clone(&heard);
    let handler = ws(move |_, mut ws| {
        let shelf = Arc::clone(&shelf);
        async move {
            let mut chunks = Vec::new();
            while let Some(Ok(message)) = ws.next().await {
                match message {
                    Message::Binary(audio) => chunks.push(audio),
                    Message::Text(text) => {
                        assert_eq!(text.as_str(), r#"{"type":"end"}"#);
                        shelf.lock().unwrap().push(std::mem::take(&mut chunks));
                        say(&mut ws, serde_json::json!({ "type": "final", "text": "x" })).await;
                    }
                    _ => {}
                }
            }
        }
    });
    (handler, heard)
}

#[tokio::test(start_paused = true)]
async fn the_audio_arrives_as_it_is_on_the_tape() {
    let (handler, heard) = recorder();
    play(once(), prepared(&[1_050, 300]), in_memory(handler)).await;
    let heard = heard.lock().unwrap();
    assert_eq!(heard[0].iter().map(Bytes::len).collect::<Vec<_>>(), [vec![3_200; 10], vec![1_600]].concat());
    assert_eq!(heard[0].concat(), pcm(1_050));
    assert_eq!(heard[1].concat(), pcm(300));
}

#[tokio::test(start_paused = true)]
async fn tail_silence_is_part_of_the_call() {
    let (handler, heard) = recorder();
    let dialect = registry::dialect("pcm-json", serde_json::Value::Null).unwrap();
    let prepared = PreparedCalls::new(&*dialect, 100 * MS, 250 * MS, [(meta(0, 500), pcm(500))]).unwrap();
    assert_eq!(prepared.audio(), 750 * MS);
    let (all, _) = play(once(), Arc::new(prepared), in_memory(handler)).await;
    assert_eq!((all[0].trace.audio_ns, all[0].trace.tail_silence_ns), (750_000_000, 250_000_000));
    assert_eq!(all[0].trace.end_ns, Some(750_000_000));
    let audio = heard.lock().unwrap()[0].concat();
    assert_eq!(audio[..16_000], pcm(500));
    assert!(audio[16_000..].iter().all(|&b| b == 0) && audio.len() == 24_000);
}

#[tokio::test(start_paused = true)]
async fn unique_sessions_differ_by_one_small_step_in_the_first_chunk() {
    let (handler, heard) = recorder();
    let plan = Plan { streams: 3, ramp: 50 * MS, loops: 4, unique_per_session: true, ..once() };
    play(plan, prepared(&[300]), in_memory(handler)).await;
    let heard = heard.lock().unwrap();
    assert!(heard.len() >= 12);
    let original = pcm(300);
    let mut seen = std::collections::BTreeSet::new();
    for call in heard.iter() {
        let audio = call.concat();
        assert!(seen.insert(audio.clone()), "two sessions with the same audio");
        let samples = |bytes: &[u8]| -> Vec<i32> {
            bytes.chunks(2).map(|b| i32::from(i16::from_le_bytes([b[0], b[1]]))).collect()
        };
        let changed: Vec<_> = samples(&original)
            .iter()
            .zip(samples(&audio))
            .enumerate()
            .filter_map(|(at, (a, b))| (*a != b).then_some((at, (a - b).abs())))
            .collect();
        assert_eq!(changed.len(), 1);
        assert!(changed[0].0 < 1_600 && changed[0].1 <= 16, "{changed:?}");
    }
}

#[test]
fn decks_that_cannot_be_played_say_why() {
    let dialect = registry::dialect("pcm-json", serde_json::Value::Null).unwrap();
    let make = |chunk, calls: Vec<_>| PreparedCalls::new(&*dialect, chunk, Duration::ZERO, calls).map(|_| ());
    assert_eq!(make(100 * MS, vec![]), Err(PrepareError::Empty));
    let empty =
        PreparedCalls::new(&*dialect, 100 * MS, Duration::ZERO, [(meta(3, 0), Bytes::from_static(b"x"))]);
    assert_eq!(empty.unwrap_err(), PrepareError::NoAudio { id: "call3".into() });
    for odd in [Duration::ZERO, Duration::from_nanos(31_250), Duration::from_micros(100)] {
        assert_eq!(make(odd, vec![(meta(0, 100), pcm(100))]), Err(PrepareError::Chunk(odd)));
    }
    assert_eq!(make(160 * MS, vec![(meta(0, 100), pcm(100))]), Ok(()));
}
