//! Every kind of trouble does to the client what it promises.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, on figures that are exact"
)]

use std::time::Duration;

use crate::common::{Heard, WORDS, call, exact, listen, open, play, spawn, status};
use futures_util::{SinkExt as _, StreamExt as _};
use tapedeck_engine::{EngineHandle, FaultInjection, Options};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

fn naughty(fault_injection: &str) -> EngineHandle {
    let fault_injection: FaultInjection = fault_injection.parse().unwrap();
    spawn(exact(), Options { fault_injection: Some(fault_injection), ..Options::new("inst1", 1) })
}

async fn played(fault_injection: &str) -> Heard {
    play(open(&naughty(fault_injection)).await.unwrap(), &call().pcm, 100).await
}

#[tokio::test(start_paused = true)]
async fn handshake_errors() {
    for code in [404, 500, 503] {
        let engine = naughty(&format!("handshake:{code}"));
        assert_eq!(status(open(&engine).await), Some(code));
        assert_eq!(engine.counters().open_sessions, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn only_every_nth_call_is_struck() {
    let engine = naughty("handshake:500/3");
    let mut struck = Vec::new();
    for _ in 0..6 {
        struck.push(status(open(&engine).await).is_some());
    }
    assert_eq!(struck, [true, false, false, true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn close_in_mid_call() {
    let heard = played("close:3000:1011").await;
    assert_eq!(heard.code, Some(1011));
    assert_eq!(heard.positions().last(), Some(&2_000));
    assert!(heard.kinds().iter().all(|k| *k == "partial"));
}

#[tokio::test(start_paused = true)]
async fn reset_in_mid_call() {
    let heard = played("reset:3000").await;
    assert_eq!((heard.code, heard.positions().last()), (None, Some(&2_000)));
}

#[tokio::test(start_paused = true)]
async fn mute_keeps_the_socket_and_answers_pings() {
    let engine = naughty("mute:3000");
    let mut socket = open(&engine).await.unwrap();
    for chunk in call().pcm.chunks(3_200) {
        socket.send(Message::binary(chunk.to_vec())).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    socket.send(Message::text("{\"type\":\"end\"}")).await.unwrap();
    socket.send(Message::Ping(vec![1].into())).await.unwrap();
    let mut texts = 0;
    let mut pongs = 0;
    while let Ok(Some(Ok(message))) = timeout(Duration::from_secs(60), socket.next()).await {
        texts += u32::from(message.is_text());
        pongs += u32::from(message.is_pong());
    }
    assert_eq!((texts, pongs), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn garbage_among_good_messages() {
    let heard = played("garbage:3000").await;
    assert_eq!(heard.messages.iter().filter(|m| m.json.is_string()).count(), 1);
    assert_eq!(heard.messages.last().unwrap().json["text"], WORDS);
}

#[tokio::test(start_paused = true)]
async fn a_giant_is_as_large_as_asked() {
    let engine = naughty("giant:100:3000000");
    let (mut sink, stream) = open(&engine).await.unwrap().split();
    sink.send(Message::binary(call().pcm.slice(..3_200))).await.unwrap();
    let reader = listen(stream.take(1), Instant::now());
    let heard = reader.await;
    let bytes = heard.messages[0].json.to_string().len();
    assert!((2_999_900..=3_000_100).contains(&bytes), "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_servers_own_words() {
    let heard = played("error:3000").await;
    assert_eq!((heard.kinds().last(), heard.code), (Some(&"error"), Some(1011)));
}

#[tokio::test(start_paused = true)]
async fn a_final_that_never_comes() {
    let engine = naughty("never-final");
    let socket = open(&engine).await.unwrap();
    let pcm = call().pcm;
    let playing =
        tokio::spawn(async move { timeout(Duration::from_secs(300), play(socket, &pcm, 100)).await });
    assert!(playing.await.unwrap().is_err(), "the socket must stay open");
    assert_eq!(engine.counters().open_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_tail_that_is_lost() {
    let heard = played("tail-lost").await;
    assert_eq!((heard.texts().last(), heard.code), (Some(&WORDS), Some(1000)));
    assert!(heard.kinds().iter().all(|k| *k == "partial"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_blocks_the_writer() {
    let engine = naughty("slow-reader:3000");
    let mut socket = open(&engine).await.unwrap();
    let mut sent = 0;
    while let Ok(Ok(())) =
        timeout(Duration::from_secs(10), socket.send(Message::binary(vec![1; 3_200]))).await
    {
        sent += 1;
    }
    // Thirty chunks were read, and the pipe between us holds about twenty more.
    assert!((45..60).contains(&sent), "{sent}");
}
