//! Who is let in, who is turned away, and who is sent where.

use std::sync::Arc;
use std::time::Duration;

use tapedeck_gateway::{Backend, Options, Outcome, Rolling};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::{Caller, Engine, Stage, completion, get};

fn rolling(options: &mut Options) {
    options.backend = Backend::Rolling(Rolling::default());
}

fn chatty() -> Arc<Stage> {
    Arc::new(Stage::chat(|_, _| (Duration::from_millis(10), 200, completion("yes"))))
}

#[tokio::test(start_paused = true)]
async fn a_full_gateway_says_so_and_a_place_that_is_left_is_free() {
    let stage = chatty();
    let gateway = stage.gateway(1, |options| {
        rolling(options);
        options.max_sessions = 2;
    });
    let first = Caller::call(&gateway).await.unwrap();
    let _second = Caller::call(&gateway).await.unwrap();
    let (status, words) = Caller::call(&gateway).await.err().unwrap();
    assert_eq!((status, words.as_str()), (503, "All 2 sessions are taken.\n"));
    drop(first);
    tokio::time::sleep(Duration::from_millis(1)).await;
    Caller::call(&gateway).await.unwrap();
    let page = get(&gateway, "/metrics").await;
    assert!(page.contains("\ntapedeck_gateway_refused_total{reason=\"full\"} 1.0\n"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_least_busy_upstream_that_is_up() {
    let stage = chatty();
    let gateway = stage.gateway(3, rolling);
    let open = |page: &str| -> Vec<String> {
        page.lines()
            .filter(|l| l.starts_with("tapedeck_gateway_upstream_sessions_open{"))
            .map(|l| l.rsplit(' ').next().unwrap().to_owned())
            .collect()
    };
    let mut callers = Vec::new();
    for _ in 0..7 {
        callers.push(Caller::call(&gateway).await.unwrap());
    }
    assert_eq!(open(&get(&gateway, "/metrics").await), ["3.0", "2.0", "2.0"]);
    stage.down.lock().unwrap().push("inst2".into());
    gateway.check().await;
    assert_eq!(gateway.upstreams_up(), 2);
    for _ in 0..3 {
        callers.push(Caller::call(&gateway).await.unwrap());
    }
    assert_eq!(open(&get(&gateway, "/metrics").await), ["4.0", "2.0", "4.0"]);
    stage.down.lock().unwrap().clear();
    gateway.check().await;
    callers.push(Caller::call(&gateway).await.unwrap());
    assert_eq!(open(&get(&gateway, "/metrics").await), ["4.0", "3.0", "4.0"]);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_refuses_is_passed_over_at_once() {
    let stage = Arc::new(Stage::realtime(|mut engine: Engine| async move {
        engine.greet().await;
        engine.until_final().await;
    }));
    stage.down.lock().unwrap().push("inst1".into());
    let gateway = stage.gateway(2, |options| options.model = Some("toy".into()));
    Caller::call(&gateway).await.unwrap();
    assert_eq!(stage.reached.lock().unwrap().get("inst2"), Some(&1));
    assert_eq!(gateway.upstreams_up(), 1);

    stage.down.lock().unwrap().push("inst2".into());
    gateway.check().await;
    let (status, words) = Caller::call(&gateway).await.err().unwrap();
    assert_eq!((status, words.as_str()), (503, "No upstream is up.\n"));
    assert!(get(&gateway, "/health").await.starts_with("HTTP/1.1 503"));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_route_and_one_that_speaks_otherwise_are_told_apart() {
    let gateway = chatty().gateway(1, |_| {});
    let (status, words) = Caller::call(&gateway).await.err().unwrap();
    assert!(
        status == 502 && words.contains("inst1: ") && words.contains("Qwen3ASRRealtimeGeneration"),
        "{words}"
    );

    let stage = Arc::new(Stage::realtime(|mut engine: Engine| async move {
        engine.raw(Message::Text(r#"{"type":"session.updated"}"#.into())).await;
        engine.until_final().await;
    }));
    let (status, words) = Caller::call(&stage.gateway(1, |_| {})).await.err().unwrap();
    assert!(status == 502 && words.contains("session.created"), "{words}");

    let stage = Arc::new(Stage::realtime(|mut engine: Engine| async move {
        engine.until_final().await; // says nothing
    }));
    let (status, words) = Caller::call(&stage.gateway(1, |_| {})).await.err().unwrap();
    assert!(status == 502 && words.contains("within 60s"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn draining_takes_nobody_new_and_lets_calls_finish() {
    let stage = chatty();
    let gateway = stage.gateway(1, rolling);
    assert!(get(&gateway, "/health").await.starts_with("HTTP/1.1 200"));
    let mut caller = Caller::call(&gateway).await.unwrap();
    gateway.drain();
    assert!(get(&gateway, "/health").await.starts_with("HTTP/1.1 503"));
    assert_eq!(Caller::call(&gateway).await.err().unwrap().0, 503);
    caller.speak(3_000).await;
    caller.end().await;
    let (said, code) = caller.rest().await;
    assert_eq!((said.last().unwrap()["type"].as_str(), code), (Some("final"), Some(1000)));
    assert_eq!(gateway.open_sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn callers_who_speak_otherwise_are_told_what_is_spoken_here() {
    let bad = [
        Message::Binary(vec![0; 3].into()),
        Message::Text("hello".into()),
        Message::Text(r#"{"type":"start"}"#.into()),
        Message::Binary(vec![0; 2 << 20].into()),
    ];
    for message in bad {
        let too_large = message.len() > 1 << 20;
        let stage = chatty();
        let gateway = stage.gateway(1, rolling);
        let mut caller = Caller::call(&gateway).await.unwrap();
        let _ = caller.raw(message).await;
        let (said, code) = caller.rest().await;
        // A message that is too large is cut off in the middle: its sender may hear nothing of it.
        match said.first() {
            Some(said) => assert_eq!((said["type"].as_str(), code), (Some("error"), Some(1007))),
            None => assert!(too_large),
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(stage.log().outcome, Outcome::CallerWrong);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_endless_calls_are_ended() {
    let stage = chatty();
    let gateway = stage.gateway(1, |options| {
        rolling(options);
        options.max_audio = Duration::from_secs(5);
    });
    let mut silent = Caller::call(&gateway).await.unwrap();
    silent.speak(1_000).await;
    let (said, code) = silent.rest().await;
    assert!(said[0]["message"].as_str().unwrap().contains("60s"), "{said:?}");
    assert_eq!((code, stage.log().outcome), (Some(1008), Outcome::CallerSilent));

    let mut endless = Caller::call(&gateway).await.unwrap();
    endless.speak(5_200).await;
    let (said, code) = endless.rest().await;
    assert!(said.last().unwrap()["message"].as_str().unwrap().contains("5s"), "{said:?}");
    assert_eq!((code, stage.log().outcome), (Some(1008), Outcome::TooLong));
    let page = get(&gateway, "/metrics").await;
    for outcome in ["caller_silent", "too_long"] {
        assert!(page.contains(&format!("sessions_total{{outcome=\"{outcome}\"}} 1.0")), "{page}");
    }
}
