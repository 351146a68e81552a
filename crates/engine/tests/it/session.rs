//! Whole calls over in-memory pipes under a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, on figures that are exact"
)]

use std::time::Duration;

use crate::common::{WORDS, audio, call, exact, listen, open, pipe, play, settle, spawn, status};
use futures_util::{SinkExt as _, StreamExt as _};
use tapedeck_engine::{Engine, Fixtures, KnownCall, Options, Params, Refusal};
use tapedeck_engine_model::{Degradation, SessionModel};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

#[tokio::test(start_paused = true)]
async fn reference_words_come_back_as_their_time_is_covered() {
    let engine = spawn(exact(), Options::new("inst7", 1));
    let heard = play(open(&engine).await.unwrap(), &call().pcm, 100).await;

    assert_eq!(heard.code, Some(1000));
    assert_eq!(heard.kinds().iter().filter(|k| **k == "final").count(), 1);
    assert_eq!(heard.kinds().last(), Some(&"final"));
    assert_eq!(heard.texts().last(), Some(&WORDS));
    assert!(heard.texts().windows(2).all(|w| w[1].starts_with(w[0])), "{:?}", heard.texts());
    assert!(heard.positions().is_sorted());
    assert_eq!(heard.positions().last(), Some(&7_000));
    assert!(heard.messages.iter().all(|m| m.json["instance"] == "inst7"));
    // The first window is full at 2 s: no sooner can there be text, and an idle engine is not late.
    let first = &heard.messages[0];
    assert_eq!(first.json["text"], "aa");
    assert!((2_000..2_200).contains(&first.at.as_millis()), "{first:?}");
    // Its four words follow, and the position with them.
    let at_2s = heard.messages.iter().find(|m| m.json["audio_ms"] == 2_000).unwrap();
    assert_eq!(at_2s.json["text"], "aa bb cc dd");
}

#[tokio::test(start_paused = true)]
async fn chunks_that_cross_window_borders_give_the_same_answers() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let even = play(open(&engine).await.unwrap(), &call().pcm, 100).await;
    for chunk_ms in [70, 160, 800, 7_000] {
        let odd = play(open(&engine).await.unwrap(), &call().pcm, chunk_ms).await;
        assert_eq!((odd.texts().last(), odd.positions().last()), (Some(&WORDS), Some(&7_000)));
        if chunk_ms < 800 {
            assert_eq!((odd.texts(), odd.positions()), (even.texts(), even.positions()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_speech_is_answered_and_silence_is_not() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let strange = play(open(&engine).await.unwrap(), &audio(6_000, 77), 100).await;
    let words = strange.texts().last().unwrap().split(' ').count();
    assert!((13..=16).contains(&words), "{words}");

    let silent = play(open(&engine).await.unwrap(), &vec![0; 192_000].into(), 100).await;
    assert!(silent.texts().iter().all(|t| t.is_empty()), "{:?}", silent.texts());
    assert_eq!((silent.kinds().last(), silent.code), (Some(&"final"), Some(1000)));
}

#[tokio::test(start_paused = true)]
async fn speech_without_words_still_gets_a_first_text() {
    let call = KnownCall { segments: vec![(6_500, 7_000, "late".into())], ..call() };
    let engine =
        Engine::spawn(exact(), Fixtures::new(vec![call.clone()]).into(), Options::new("inst1", 1)).unwrap();
    let heard = play(open(&engine).await.unwrap(), &call.pcm, 100).await;
    let first = &heard.messages[0];
    assert!(first.at < Duration::from_millis(2_200) && first.json["text"] != "", "{first:?}");
    assert_eq!(heard.texts().last(), Some(&"late"));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_says_the_same_at_the_same_instants() {
    async fn run(seed: u64) -> Vec<crate::common::Heard> {
        let engine = spawn(Params::default(), Options::new("inst1", seed));
        let mut calls = Vec::new();
        for _ in 0..12 {
            let socket = open(&engine).await.unwrap();
            calls.push(tokio::spawn(async move { play(socket, &call().pcm, 100).await }));
            sleep(Duration::from_millis(130)).await;
        }
        let mut heard = Vec::new();
        for call in calls {
            heard.push(call.await.unwrap());
        }
        heard
    }
    assert_eq!(run(1).await, run(1).await);
    assert_ne!(run(1).await, run(2).await);
}

#[tokio::test(start_paused = true)]
async fn a_full_engine_refuses_at_the_handshake() {
    let params = Params { max_sessions: Some(1), ..exact() };
    let engine = spawn(params, Options::new("inst1", 1));
    let first = open(&engine).await.unwrap();
    assert_eq!(status(open(&engine).await), Some(503));
    assert_eq!(engine.counters().refused, 1);
    drop(first);
    settle().await;
    assert!(open(&engine).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_full_engine_can_refuse_in_words() {
    let params = Params { max_sessions: Some(1), ..exact() };
    let engine = spawn(params, Options { refusal: Refusal::Message, ..Options::new("inst1", 1) });
    let _first = open(&engine).await.unwrap();
    let second = open(&engine).await.unwrap();
    let heard = listen(second, Instant::now()).await;
    assert_eq!((heard.kinds(), heard.code), (vec!["busy"], Some(1013)));
    assert!(heard.messages[0].json["message"].as_str().unwrap().contains("too many sessions"));
    assert_eq!(engine.counters().open_sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outgrows_the_engine_is_told_so() {
    let engine = spawn(Params { max_model_len: 100, ..exact() }, Options::new("inst1", 1));
    let heard = play(open(&engine).await.unwrap(), &call().pcm, 100).await;
    assert_eq!((heard.kinds().last(), heard.code), (Some(&"error"), Some(1011)));
    assert!(heard.messages.last().unwrap().json["message"].as_str().unwrap().contains("100"));
    assert_eq!(engine.counters().open_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_send_everything_again_are_served_alike() {
    let params = Params { session: SessionModel::Rolling, ..exact() };
    let engine = spawn(params, Options::new("inst1", 1));
    let heard = play(open(&engine).await.unwrap(), &call().pcm, 100).await;
    assert_eq!((heard.texts().last(), heard.code), (Some(&WORDS), Some(1000)));
    assert!(heard.positions().is_sorted());
}

#[tokio::test(start_paused = true)]
async fn words_suffer_when_the_engine_is_late() {
    async fn right(per_stream_ms: u64) -> usize {
        let degradation = Degradation { base: 0.0, worst: 0.5, from_lag_ms: 500, full_lag_ms: 5_000 };
        let mut params = Params { degradation, ..Params::default() };
        params.step.per_stream_ns = per_stream_ms * 1_000_000;
        let engine = spawn(params, Options::new("inst1", 1));
        let mut calls = Vec::new();
        for _ in 0..20 {
            let socket = open(&engine).await.unwrap();
            calls.push(tokio::spawn(async move { play(socket, &call().pcm, 100).await }));
        }
        let mut right = 0;
        for call in calls {
            let heard = call.await.unwrap();
            let said = heard.texts().last().unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>();
            right += WORDS.split(' ').filter(|word| said.iter().any(|w| w == word)).count();
        }
        right
    }
    assert_eq!(right(1).await, 20 * 14);
    let late = right(30).await;
    assert!((120..260).contains(&late), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_vanished_client_frees_its_place_at_once() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let mut socket = open(&engine).await.unwrap();
    socket.send(Message::binary(call().pcm)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!((engine.counters().open_sessions, engine.open_sockets()), (1, 1));
    assert!(engine.counters().kv_blocks_used > 0);
    drop(socket);
    settle().await;
    let counters = engine.counters();
    assert_eq!((counters.open_sessions, counters.kv_blocks_used, engine.open_sockets()), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn bad_frames_are_answered_and_the_call_goes_on() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let mut socket = open(&engine).await.unwrap();
    for bad in [Message::text("hello"), Message::text("{\"type\":\"sing\"}"), Message::binary(vec![1, 2, 3])]
    {
        socket.send(bad).await.unwrap();
    }
    let heard = play(socket, &call().pcm, 100).await;
    assert_eq!(heard.kinds().iter().filter(|k| **k == "error").count(), 3);
    let last = heard.messages.last().unwrap();
    assert_eq!((last.json["text"].as_str(), heard.code), (Some(WORDS), Some(1000)));
}

#[tokio::test(start_paused = true)]
async fn patience_with_bad_frames_ends() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let mut socket = open(&engine).await.unwrap();
    for _ in 0..100 {
        if socket.feed(Message::text("?")).await.is_err() {
            break;
        }
    }
    let _ = socket.flush().await;
    let heard = listen(socket, Instant::now()).await;
    assert_eq!((heard.messages.len(), heard.code), (8, Some(1008)));
}

#[tokio::test(start_paused = true)]
async fn a_message_above_the_limit_closes_the_socket() {
    let options = Options { max_message_bytes: 10_000, ..Options::new("inst1", 1) };
    let engine = spawn(exact(), options);
    let mut socket = open(&engine).await.unwrap();
    let _ = socket.send(Message::binary(vec![0; 10_002])).await;
    assert_eq!(listen(socket, Instant::now()).await.code, Some(1009));
    settle().await;
    assert_eq!(engine.counters().open_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_given_up() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let (client, server) = tokio::io::duplex(8_192);
    tokio::spawn(engine.serve(server));
    let (socket, _) = client_async("ws://engine/asr", client).await.unwrap();
    let (mut sink, _unread) = socket.split();
    let call = audio(60_000, 3);
    let sender = tokio::spawn(async move {
        for n in 0..10_000 {
            let at = (n % 600) * 3_200;
            if sink.send(Message::binary(call.slice(at..at + 3_200))).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    });
    sleep(Duration::from_secs(700)).await;
    assert_eq!(engine.counters().open_sessions, 0);
    sender.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_in_mid_call() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let mut socket = open(&engine).await.unwrap();
    socket.send(Message::Ping(vec![4, 2].into())).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    assert_eq!(answer, Message::Pong(vec![4, 2].into()));
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_takes_the_engine_with_it() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let io = pipe(&engine);
    drop(engine);
    // The open connection keeps it alive: the call is still served to its end.
    let (socket, _) = client_async("ws://engine/asr", io).await.unwrap();
    assert_eq!(play(socket, &call().pcm, 100).await.texts().last(), Some(&WORDS));
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}
