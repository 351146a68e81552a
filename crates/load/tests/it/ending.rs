//! What decides the final.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tapedeck_load::{Plan, Timeouts};
use tapedeck_record::{FinalKind, Outcome};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::server::*;

fn close(code: u16, reason: &'static str) -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::from(code), reason: reason.into() }))
}

#[tokio::test(start_paused = true)]
async fn a_clean_close_makes_the_last_text_the_final() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        sleep(4 * SECOND).await;
        say(&mut ws, json!({ "type": "partial", "text": "late but" })).await;
        sleep(SECOND).await;
        let _ = ws.send(close(1000, "")).await;
        linger(&mut ws).await;
    });
    let played = one_call(once(), 1_000, handler).await;
    let t = &played.trace;
    assert_eq!((t.final_kind, t.final_ns), (Some(FinalKind::Close), Some(5_000_000_000)));
    assert_eq!(t.done_ns, 6_000_000_000);
    assert_eq!(t.outcome.outcome, Outcome::TailLost, "it was never made final");
    assert_eq!((played.texts.finals.as_str(), played.texts.finals_and_tail.as_str()), ("", "late but"));
}

#[tokio::test(start_paused = true)]
async fn a_close_without_text_after_the_end_leaves_the_final_empty() {
    let handler = ws(|_, mut ws| async move {
        say(&mut ws, json!({ "type": "final", "text": "early bird" })).await;
        hear_all(&mut ws).await;
        let _ = ws.close(None).await;
        linger(&mut ws).await;
    });
    let played = one_call(once(), 1_000, handler).await;
    let t = &played.trace;
    assert_eq!((t.final_kind, t.final_ns), (Some(FinalKind::Close), None));
    assert_eq!(t.outcome.outcome, Outcome::Ok);
    assert_eq!(played.texts.finals, "early bird");
}

#[tokio::test(start_paused = true)]
async fn silence_decides_where_the_plan_says_so() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        sleep(500 * MS).await;
        say(&mut ws, json!({ "type": "status" })).await;
        say(&mut ws, json!({ "type": "partial", "text": "so" })).await;
        linger(&mut ws).await;
    });
    let timeouts = Timeouts { final_quiet: Some(2 * SECOND), ..Timeouts::default() };
    let played = one_call(Plan { timeouts, ..once() }, 1_000, handler).await;
    let t = &played.trace;
    assert_eq!((t.final_kind, t.final_ns), (Some(FinalKind::Quiet), Some(1_500_000_000)));
    assert_eq!(t.done_ns, 3_500_000_000);
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_final_is_a_violation() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        say(&mut ws, json!({ "type": "final", "text": "done" })).await;
        say(&mut ws, json!({ "type": "partial", "text": "done?" })).await;
        linger(&mut ws).await;
    });
    let played = one_call(once(), 1_000, handler).await;
    assert_eq!((played.trace.outcome.outcome, played.trace.violations), (Outcome::Ok, 1));
    assert_eq!(played.trace.messages.len(), 1, "the trace ends with the final");
    assert_eq!(played.texts.finals, "done");
}

#[tokio::test(start_paused = true)]
async fn a_final_without_words_is_an_empty_final() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        say(&mut ws, json!({ "type": "final", "text": "" })).await;
        linger(&mut ws).await;
    });
    let t = one_call(once(), 1_000, handler).await.trace;
    assert_eq!((t.outcome.outcome, t.final_kind), (Outcome::EmptyFinal, Some(FinalKind::Marker)));
}

#[tokio::test(start_paused = true)]
async fn binary_json_is_text_and_a_second_connection_is_a_new_call() {
    let handler = ws(|n, mut ws| async move {
        hear_all(&mut ws).await;
        let _ = ws.send(Message::binary(format!(r#"{{"text":"ok {n}"}}"#))).await;
        linger(&mut ws).await;
    });
    let (all, _) = play(once(), prepared(&[300, 300]), in_memory(handler)).await;
    let words: Vec<_> = all.iter().map(|p| p.texts.finals.as_str()).collect();
    assert_eq!(words, ["ok 0", "ok 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_our_close_holds_the_stream_only_briefly() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        say(&mut ws, json!({ "type": "final", "text": "bye" })).await;
        sleep(100 * SECOND).await; // reads nothing more
        drop(ws);
    });
    let (all, _) = play(once(), prepared(&[1_000, 1_000]), in_memory(handler)).await;
    assert_eq!(all[0].trace.done_ns, 1_000_000_000, "the call was over with its final");
    assert_eq!(all[1].trace.c0_ns, 1_250_000_000);
}

#[tokio::test(start_paused = true)]
async fn pings_measure_round_trips_and_only_one_is_under_way() {
    // Holds every ping's answer back for 40 ms by not reading meanwhile.
    let handler = ws(|_, mut ws| async move {
        while let Some(Ok(message)) = ws.next().await {
            match message {
                Message::Ping(payload) => {
                    assert_eq!(payload.len(), 8);
                    sleep(40 * MS).await;
                    let _ = ws.flush().await;
                }
                Message::Text(_) => {
                    say(&mut ws, json!({ "type": "final", "text": "x" })).await;
                    linger(&mut ws).await;
                }
                _ => {}
            }
        }
    });
    let plan = Plan { ping_every: Some(500 * MS), ..once() };
    let t = one_call(plan, 2_200, handler).await.trace;
    assert_eq!(t.rtt_us, [40_000; 4]);
    let mute_to_pings = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        linger(&mut ws).await;
    });
    let plan = Plan { ping_every: None, ..once() };
    let t = one_call(plan, 500, mute_to_pings).await.trace;
    assert_eq!(t.rtt_us, [0_u32; 0]);
}
