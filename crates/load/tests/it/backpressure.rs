//! A slow server delays nothing but itself.

use tapedeck_load::{Plan, Timeouts};
use tapedeck_record::Outcome;
use tokio::time::sleep;

use crate::server::*;

#[tokio::test(start_paused = true)]
async fn a_server_that_never_reads_is_blocked_time_and_not_ours() {
    let handler = ws(|_, ws| async move {
        sleep(1_000 * SECOND).await;
        drop(ws);
    });
    let plan = Plan { timeouts: Timeouts { no_response: None, ..Timeouts::default() }, ..once() };
    let played = one_call(plan, 10_000, handler).await;
    let t = &played.trace;
    assert_eq!(t.outcome.outcome, Outcome::FinalTimeout);
    assert!(t.outcome.words.as_deref().unwrap().contains("did not take"), "{:?}", t.outcome);
    assert_eq!(t.done_ns, 40_000_000_000, "10 s of audio and 30 s of patience");
    // The pipe holds 64 KiB: twenty chunks of 3,208 bytes and a piece of the next.
    assert_eq!(t.blocked_us.len(), 20);
    assert!(t.wake_late_us.iter().all(|&us| us == 0));
    assert_eq!(t.end_ns, None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_shows_as_blocked_time_of_the_chunks_it_held() {
    // Reads nothing between 1 s and 6 s. The pipe takes about 2 s of audio, then chunks wait.
    let handler = ws(|_, mut ws| async move {
        use futures_util::StreamExt;
        for _ in 0..10 {
            let _ = ws.next().await;
        }
        sleep(5 * SECOND).await;
        if hear_all(&mut ws).await.is_some() {
            say(&mut ws, serde_json::json!({ "type": "final", "text": "there" })).await;
            linger(&mut ws).await;
        }
    });
    let played = one_call(once(), 10_000, handler).await;
    let t = &played.trace;
    assert_eq!(t.outcome.outcome, Outcome::Ok);
    assert_eq!(t.wake_late_us, [0; 100], "our sender was never late");
    let held: Vec<_> = (0..100).filter(|&i| t.blocked_us[i] > 0).collect();
    assert!(held.len() > 25 && held.len() < 35, "{held:?}");
    // From the first held chunk on, each took its place in the socket when the server read again, at 6.0 s.
    for &i in &held {
        assert_eq!(t.planned_ns(i as u64).unwrap() / 1_000 + u64::from(t.blocked_us[i]), 6_000_000);
    }
    assert_eq!(t.final_ns.unwrap(), 10_000_000_000, "and the call ends on time");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_delays_no_chunk() {
    let handler = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        linger(&mut ws).await;
    });
    let plan = Plan { timeouts: Timeouts { no_response: None, ..Timeouts::default() }, ..once() };
    let played = one_call(plan, 20_000, handler).await;
    let t = &played.trace;
    assert_eq!(t.outcome.outcome, Outcome::FinalTimeout);
    assert_eq!((t.wake_late_us.as_slice(), t.blocked_us.as_slice()), (&[0; 200][..], &[0; 200][..]));
    assert_eq!(t.end_ns, Some(20_000_000_000));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_messages_delays_no_chunk() {
    let handler = ws(|_, ws| async move {
        use futures_util::StreamExt;
        let (mut sink, mut stream) = ws.split();
        let flood = tokio::spawn(async move {
            use futures_util::SinkExt;
            loop {
                for _ in 0..200 {
                    let text = r#"{"type":"partial","text":"x"}"#;
                    if sink.feed(tokio_tungstenite::tungstenite::Message::text(text)).await.is_err() {
                        return;
                    }
                }
                let _ = sink.flush().await;
                sleep(MS).await;
            }
        });
        while let Some(Ok(_)) = stream.next().await {}
        flood.abort();
    });
    let plan = Plan { timeouts: Timeouts { final_: SECOND, ..Timeouts::default() }, ..once() };
    let played = one_call(plan, 300, handler).await;
    assert_eq!(played.trace.wake_late_us, [0; 3]);
    assert_eq!(played.trace.outcome.outcome, Outcome::Protocol, "100,000 messages in one call is nonsense");
    assert_eq!(played.trace.messages.len(), 100_000);
}
