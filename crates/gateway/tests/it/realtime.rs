//! The realtime back end.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tapedeck_gateway::Outcome;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::stage::{Caller, Engine, Stage};

/// Greets, and says one segment's words for every 5 s of audio.
async fn two_segments(mut engine: Engine) {
    engine.greet().await;
    let mut heard_ms = 0;
    engine.hear(&mut heard_ms, 5_000).await;
    for delta in ["", "langu", "age English", "<asr", "_text>good", " morning", ""] {
        engine.delta(delta).await;
    }
    assert!(engine.until_final().await);
    engine.delta("language English<asr_text>how are you").await;
    let text = "language English<asr_text>good morninglanguage English<asr_text>how are you";
    engine.send(json!({"type": "transcription.done", "text": text, "usage": null})).await;
}

#[tokio::test(start_paused = true)]
async fn words_pass_through_without_marks_and_with_what_they_cover() {
    let stage = Arc::new(Stage::realtime(two_segments));
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(6_000).await;
    caller.end().await;
    let (said, code) = caller.rest().await;
    let said: Vec<_> =
        said.iter().map(|m| (m["type"].as_str(), m["text"].as_str(), m["audio_ms"].as_u64())).collect();
    assert_eq!(
        said,
        [
            (Some("partial"), Some("good"), Some(5_000)),
            (Some("partial"), Some("good morning"), Some(5_000)),
            (Some("partial"), Some("good morning how are you"), Some(6_000)),
            (Some("final"), Some("good morning how are you"), Some(6_000)),
        ]
    );
    assert_eq!(code, Some(1000));
    let log = stage.log();
    assert_eq!((log.outcome, log.windows, log.upstream.as_str()), (Outcome::Done, 2, "inst1"));
    assert!((log.audio_s - 6.0).abs() < 1e-9 && log.wall_s >= 6.0, "{log:?}");
    assert!(!serde_json::to_string(&log).unwrap().contains("morning"));
}

#[tokio::test(start_paused = true)]
async fn the_engine_hears_the_audio_in_order_and_no_scrap_at_the_end() {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let stage = Arc::new(Stage::realtime(move |mut engine| {
        let tell = tell.lock().unwrap().take().unwrap();
        async move {
            engine.greet().await;
            let mut events = Vec::new();
            while let Some(event) = engine.next().await {
                let last = event["final"] == true;
                events.push(event);
                if last {
                    break;
                }
            }
            let _ = tell.send(events);
            engine.send(json!({"type": "transcription.done", "text": ""})).await;
        }
    }));
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(5_000).await;
    caller.raw(Message::Binary(vec![9; 320].into())).await.unwrap();
    caller.end().await;
    let (said, code) = caller.rest().await;
    assert_eq!(
        (said[0]["type"].as_str(), said[0]["audio_ms"].as_u64(), code),
        (Some("final"), Some(5_010), Some(1000))
    );
    let events: Vec<Value> = told.await.unwrap();
    let kinds: Vec<_> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["session.update", "input_audio_buffer.commit"]);
    assert_eq!(events[0]["model"], "toy");
    assert_eq!(events.last().unwrap(), &json!({"type": "input_audio_buffer.commit", "final": true}));
    // 50 chunks, the 10 ms, and 30 ms of silence that make the last piece long enough.
    assert_eq!(kinds.len(), 2 + 50 + 2 + 1);
    assert_eq!(events[2]["audio"].as_str().unwrap().len(), 3_200_usize.div_ceil(3) * 4);
    assert_eq!(events[53]["audio"].as_str().unwrap().len(), 960_usize.div_ceil(3) * 4);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_frees_the_engine() {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let stage = Arc::new(Stage::realtime(move |mut engine| {
        let tell = tell.lock().unwrap().take().unwrap();
        async move {
            engine.greet().await;
            let ended = engine.until_final().await;
            let _ = tell.send(ended);
        }
    }));
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(1_000).await;
    drop(caller);
    assert!(!told.await.unwrap(), "the engine's connection ends without a final commit");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.log().outcome, Outcome::CallerLeft);
    assert_eq!(gateway.open_sessions(), 0);
}

/// What a caller is told by an engine that greets and then does this.
async fn told<F>(act: impl Fn(Engine) -> F + Send + Sync + 'static) -> (Value, Option<u16>, Outcome)
where
    F: Future<Output = ()> + Send + 'static,
{
    let stage = Arc::new(Stage::realtime(act));
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(300).await;
    let _ = caller.raw(Message::Text(r#"{"type":"end"}"#.into())).await;
    let (mut said, code) = caller.rest().await;
    (said.pop().unwrap(), code, stage.log().outcome)
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_misbehaves_is_reported_in_its_own_words() {
    let (said, code, outcome) = told(|mut engine: Engine| async move {
        engine.greet().await;
        engine
            .send(json!({"type": "error", "error": "The model does not exist", "code": "model_not_found"}))
            .await;
        engine.until_final().await;
    })
    .await;
    assert_eq!(said["message"], "the engine said: model_not_found: The model does not exist");
    assert_eq!((said["type"].as_str(), code, outcome), (Some("error"), Some(1011), Outcome::UpstreamFailed));

    let (said, ..) = told(|mut engine: Engine| async move {
        engine.greet().await;
        engine.raw(Message::Close(Some(CloseFrame { code: 1012.into(), reason: "going down".into() }))).await;
        engine.until_final().await;
    })
    .await;
    assert!(said["message"].as_str().unwrap().contains("1012 going down"), "{said}");

    for message in [Message::Text("{\"type\":".into()), Message::Binary(vec![1, 2].into())] {
        let (said, code, _) = told(move |mut engine: Engine| {
            let message = message.clone();
            async move {
                engine.greet().await;
                engine.raw(message).await;
                engine.until_final().await;
            }
        })
        .await;
        assert!(said["message"].as_str().unwrap().contains("makes no sense"), "{said}");
        assert_eq!(code, Some(1011));
    }

    let (said, _, outcome) = told(|mut engine: Engine| async move {
        engine.greet().await;
        while engine.next().await.is_some() {}
    })
    .await;
    assert!(said["message"].as_str().unwrap().contains("within 60s"), "{said}");
    assert_eq!(outcome, Outcome::UpstreamSilent);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_ended_before_it_kills_the_engine() {
    // 512 tokens bear three segments of 139; one is kept in hand.
    let mut stage = Stage::realtime(|mut engine: Engine| async move {
        engine.greet().await;
        while engine.next().await.is_some() {}
    });
    stage.max_model_len = 512;
    let stage = Arc::new(stage);
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(10_100).await;
    let (said, code) = caller.rest().await;
    let why = said[0]["message"].as_str().unwrap();
    assert!(why.contains("more than 10 s") && why.contains("512"), "{why}");
    assert_eq!((code, stage.log().outcome), (Some(1008), Outcome::TooLong));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_takes_nothing_holds_the_caller_up() {
    let stage = Arc::new(Stage::realtime(|mut engine: Engine| async move {
        engine.greet().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(engine.until_final().await);
        engine.send(json!({"type": "transcription.done", "text": "late"})).await;
        while engine.next().await.is_some() {}
    }));
    let gateway = stage.gateway(1, |_| {});
    let mut caller = Caller::call(&gateway).await.unwrap();
    let began = tokio::time::Instant::now();
    // Pipes hold some 150 KiB; 60 s of audio are 1.9 MB, thrown at the gateway at once.
    for _ in 0..600 {
        caller.raw(Message::Binary(vec![0; 3_200].into())).await.unwrap();
    }
    assert!(began.elapsed() >= Duration::from_secs(30), "the gateway swallowed a minute of audio");
    caller.end().await;
    let (said, code) = caller.rest().await;
    assert_eq!((said.last().unwrap()["text"].as_str(), code), (Some("late"), Some(1000)));
}
