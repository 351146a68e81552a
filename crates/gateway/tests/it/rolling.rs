//! The rolling back end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tapedeck_gateway::{Backend, Move, Options, Outcome, Rolling};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::{Caller, Stage, completion, get};

fn rolling(options: &mut Options) {
    options.backend = Backend::Rolling(Rolling::default());
}

/// The WAV file of a request.
fn wav(request: &Value) -> Vec<u8> {
    let url = request["messages"][0]["content"][0]["audio_url"]["url"].as_str().unwrap();
    STANDARD.decode(url.strip_prefix("data:audio/wav;base64,").unwrap()).unwrap()
}

const WORDS: [&str; 4] = [
    "language English<asr_text>one two",
    "language English<asr_text>one two three four five six",
    // From here on what follows the text so far less five tokens.
    " two three four five six seven",
    " three four five six seven eight",
];

#[tokio::test(start_paused = true)]
async fn every_window_sends_all_audio_and_the_text_less_its_tail() {
    let stage = Arc::new(Stage::chat(|n, _| (Duration::from_millis(200), 200, completion(WORDS[n - 1]))));
    let gateway = stage.gateway(1, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(7_000).await;
    caller.end().await;
    let (said, code) = caller.rest().await;
    let said: Vec<_> = said
        .iter()
        .map(|m| (m["type"].as_str().unwrap(), m["text"].as_str().unwrap(), m["audio_ms"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ("partial", "one two", 2_000),
            ("partial", "one two three four five six", 4_000),
            ("partial", "one two three four five six seven", 6_000),
            ("final", "one two three four five six seven eight", 7_000),
        ]
    );
    assert_eq!(code, Some(1000));
    let requests = stage.requests.lock().unwrap().clone();
    for (request, ms) in requests.iter().zip([2_000, 4_000, 6_000, 7_000]) {
        let wav = wav(request);
        assert!(wav.starts_with(b"RIFF") && wav.len() == 54 + ms * 32, "{}", wav.len());
        assert_eq!((request["model"].as_str(), request["temperature"].as_u64()), (Some("toy"), Some(0)));
    }
    let prefix = |n: usize| requests[n]["messages"].get(1).map(|m| m["content"].as_str().unwrap().to_owned());
    assert_eq!(prefix(0), None);
    assert_eq!(prefix(1), None, "two chunks are unfixed");
    assert_eq!(prefix(2).unwrap(), "language English<asr_text>one");
    assert_eq!(prefix(3).unwrap(), "language English<asr_text>one two");
    assert_eq!(
        (&requests[2]["continue_final_message"], &requests[2]["add_generation_prompt"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(requests[0].get("continue_final_message"), None);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_ends_the_request_under_way() {
    let stage = Arc::new(Stage::chat(|_, _| (Duration::from_secs(50), 200, completion("never said"))));
    let gateway = stage.gateway(1, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(2_100).await;
    drop(caller);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(stage.cancelled.load(Ordering::Relaxed), 1);
    assert_eq!((stage.log().outcome, gateway.open_sessions()), (Outcome::CallerLeft, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_fell_behind_catches_up_in_one_request_and_reads_no_more_than_it_may() {
    let stage = Arc::new(Stage::chat(|n, _| {
        (Duration::from_secs(if n == 1 { 20 } else { 1 }), 200, completion("words"))
    }));
    let gateway = stage.gateway(1, |options| {
        rolling(options);
        options.backlog = Duration::from_secs(10);
    });
    let mut caller = Caller::call(&gateway).await.unwrap();
    let began = tokio::time::Instant::now();
    for _ in 0..300 {
        caller.raw(Message::Binary(vec![0; 3_200].into())).await.unwrap();
    }
    assert!(began.elapsed() >= Duration::from_secs(20), "30 s of audio went in where 12 s have room");
    caller.end().await;
    let (said, _) = caller.rest().await;
    assert_eq!(said.last().unwrap()["audio_ms"], 30_000);
    let lengths: Vec<_> =
        stage.requests.lock().unwrap().iter().map(|r| (wav(r).len() - 54) / 32_000).collect();
    assert_eq!(lengths[..2], [2, 12], "{lengths:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_rest_asks_no_more_and_a_short_call_is_filled_up() {
    let stage = Arc::new(Stage::chat(|_, _| (Duration::ZERO, 200, completion("language None<asr_text>"))));
    let gateway = stage.gateway(1, rolling);
    let mut whole = Caller::call(&gateway).await.unwrap();
    whole.speak(2_000).await;
    assert_eq!(whole.next().await["type"], "partial");
    whole.end().await;
    let (said, code) = whole.rest().await;
    assert_eq!((said.len(), said[0]["text"].as_str(), code), (1, Some(""), Some(1000)));
    assert_eq!(stage.requests.lock().unwrap().len(), 1);

    let mut short = Caller::call(&gateway).await.unwrap();
    short.speak(100).await;
    short.end().await;
    assert_eq!(short.rest().await.0[0]["audio_ms"], 100);
    assert_eq!(wav(&stage.requests.lock().unwrap()[1]).len(), 54 + 16_000);

    let mut empty = Caller::call(&gateway).await.unwrap();
    empty.end().await;
    let (said, code) = empty.rest().await;
    assert_eq!(
        (said[0]["type"].as_str(), said[0]["audio_ms"].as_u64(), code),
        (Some("final"), Some(0), Some(1000))
    );
    assert_eq!(stage.requests.lock().unwrap().len(), 2, "nothing was said, nothing is asked");
}

#[tokio::test(start_paused = true)]
async fn refusals_and_nonsense_end_the_call_with_the_engines_words() {
    for (status, body, words) in [
        (
            400,
            r#"{"error":{"message":"maximum context length"}}"#.to_owned(),
            "HTTP 400: maximum context length",
        ),
        (200, "<html>hello</html>".to_owned(), "not a chat completion"),
        (200, r#"{"choices":[]}"#.to_owned(), "no choices"),
    ] {
        let stage = Arc::new(Stage::chat(move |_, _| (Duration::ZERO, status, body.clone())));
        let gateway = stage.gateway(1, rolling);
        let mut caller = Caller::call(&gateway).await.unwrap();
        caller.speak(2_000).await;
        let (said, code) = caller.rest().await;
        let said = said.last().unwrap()["message"].as_str().unwrap().to_owned();
        assert!(said.contains(words), "{said}");
        assert_eq!((code, stage.log().outcome), (Some(1011), Outcome::UpstreamFailed));
    }
    let stage = Arc::new(Stage::chat(|_, _| (Duration::from_secs(500), 200, String::new())));
    let gateway = stage.gateway(1, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(2_000).await;
    assert!(caller.rest().await.0[0]["message"].as_str().unwrap().contains("within 60s"));
    assert_eq!(stage.log().outcome, Outcome::UpstreamSilent);
    assert_eq!(stage.cancelled.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_elsewhere_when_its_server_is_gone_between_two_windows() {
    let stage = Arc::new(Stage::chat(|n, _| (Duration::from_millis(200), 200, completion(WORDS[n - 1]))));
    let gateway = stage.gateway(2, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(3_000).await;
    assert_eq!(caller.next().await["instance"], "inst1");
    stage.down.lock().unwrap().push("inst1".into());
    caller.speak(4_000).await;
    caller.end().await;
    let (said, code) = caller.rest().await;
    let said: Vec<_> =
        said.iter().map(|m| (m["text"].as_str().unwrap(), m["instance"].as_str().unwrap())).collect();
    assert_eq!(
        said,
        [
            ("one two three four five six", "inst2"),
            ("one two three four five six seven", "inst2"),
            ("one two three four five six seven eight", "inst2"),
        ],
        "with all the audio and the text so far"
    );
    let log = stage.log();
    assert_eq!(
        (code, log.outcome, log.upstream.as_str(), log.windows),
        (Some(1000), Outcome::Done, "inst2", 4)
    );
    assert_eq!(log.moves, [Move { from: "inst1".into(), windows: 1 }]);
    let page = get(&gateway, "/metrics").await;
    assert!(page.contains("tapedeck_gateway_moves_total 1.0"), "{page}");
    assert!(page.contains(r#"upstream_sessions_open{upstream="inst1"} 0.0"#), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_first_window_finds_another_server_before_the_next_health_check() {
    let stage = Arc::new(Stage::chat(|_, _| (Duration::ZERO, 200, completion("words"))));
    let gateway = stage.gateway(3, rolling);
    gateway.check().await;
    let mut caller = Caller::call(&gateway).await.unwrap();
    *stage.down.lock().unwrap() = vec!["inst1".into(), "inst2".into()];
    caller.speak(2_000).await;
    caller.end().await;
    let (said, code) = caller.rest().await;
    assert_eq!((said.last().unwrap()["instance"].as_str(), code), (Some("inst3"), Some(1000)));
    let log = stage.log();
    assert_eq!(log.moves, [Move { from: "inst1".into(), windows: 0 }], "inst2 never had the session");
}

#[tokio::test(start_paused = true)]
async fn with_nobody_left_the_call_ends_and_says_who_was_lost() {
    let stage = Arc::new(Stage::chat(|_, _| (Duration::ZERO, 200, completion("words"))));
    let gateway = stage.gateway(2, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    *stage.down.lock().unwrap() = vec!["inst1".into(), "inst2".into()];
    caller.speak(2_000).await;
    let (said, code) = caller.rest().await;
    assert!(said[0]["message"].as_str().unwrap().contains("inst1"), "{said:?}");
    assert_eq!((code, stage.log().outcome), (Some(1011), Outcome::UpstreamFailed));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_broke_midway_is_not_taken_to_the_next_engine() {
    // An answer that breaks off: what was asked may be what killed the engine.
    let stage = Arc::new(Stage::chat(|_, _| (Duration::ZERO, 0, String::new())));
    let gateway = stage.gateway(2, rolling);
    let mut caller = Caller::call(&gateway).await.unwrap();
    caller.speak(2_000).await;
    let (_, code) = caller.rest().await;
    assert_eq!((code, stage.log().outcome), (Some(1011), Outcome::UpstreamFailed));
    assert_eq!(stage.requests.lock().unwrap().len(), 1);
}
