//! Whatever a server does, it is one of a closed list.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tapedeck_load::{Plan, Target, Timeouts};
use tapedeck_protocol::registry;
use tapedeck_record::{Outcome, OutcomeDetail};
use tapedeck_transport::{BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, Io};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::sleep,
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::server::*;

/// Never gets anywhere, in one way or another.
#[derive(Debug)]
struct Failing(Option<ConnectErrorKind>);

impl Connector for Failing {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        match self.0 {
            Some(kind) => Box::pin(async move { Err(ConnectError::new(endpoint, kind, "no luck")) }),
            None => Box::pin(std::future::pending()),
        }
    }
}

async fn outcome(target: Target, plan: Plan) -> (OutcomeDetail, u64) {
    let (all, summary) = play(plan, prepared(&[2_000]), target).await;
    assert_eq!(all.len(), 1);
    assert!(summary.is_complete());
    (all[0].trace.outcome.clone(), all[0].trace.done_ns / 1_000_000)
}

async fn of(handler: Handler) -> (OutcomeDetail, u64) {
    outcome(in_memory(handler), once()).await
}

fn said(outcome: Outcome, code: impl Into<Option<u16>>, words: &str) -> OutcomeDetail {
    OutcomeDetail::said(outcome, code.into(), words)
}

#[tokio::test(start_paused = true)]
async fn connections_that_never_come_to_be() {
    use ConnectErrorKind as K;
    let cases = [
        (K::Refused, Outcome::ConnectRefused),
        (K::Resolve, Outcome::ConnectRefused),
        (K::Unreachable, Outcome::ConnectRefused),
        (K::Other, Outcome::ConnectRefused),
        (K::TimedOut, Outcome::ConnectTimeout),
        (K::Tls, Outcome::Tls),
    ];
    for (kind, want) in cases {
        let target = target(Arc::new(Failing(Some(kind))), "ws://nowhere/asr".parse().unwrap());
        assert_eq!(outcome(target, once()).await.0, said(want, None, "no luck"));
    }
    let target = target(Arc::new(Failing(None)), "ws://nowhere/asr".parse().unwrap());
    assert_eq!(outcome(target, once()).await, (OutcomeDetail::plain(Outcome::ConnectTimeout), 10_000));
}

/// Reads the request and answers with these bytes.
fn http(answer: &'static str) -> Handler {
    bare(move |_, mut io| async move {
        let mut head = [0; 4_096];
        let _ = io.read(&mut head).await;
        let _ = io.write_all(answer.as_bytes()).await;
    })
}

#[tokio::test(start_paused = true)]
async fn upgrades_that_are_refused() {
    let not_found = http("HTTP/1.1 404 Not Found\r\ncontent-length: 14\r\n\r\nno such route\n");
    assert_eq!(of(not_found).await.0, said(Outcome::Handshake, 404, "no such route"));
    let unauthorised = http("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(of(unauthorised).await.0, said(Outcome::Handshake, 401, "Unauthorized"));
    let full = http("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull");
    assert_eq!(of(full).await.0, said(Outcome::RefusedBusy, 503, "full"));
    let hasty = http("HTTP/1.1 429 Too Many Requests\r\n\r\n");
    assert_eq!(of(hasty).await.0, said(Outcome::RefusedBusy, 429, "Too Many Requests"));
    let stranger = http("220 mail.example.org ESMTP\r\n");
    assert_eq!(of(stranger).await.0.outcome, Outcome::Handshake);
    let hung_up = bare(|_, _io| async {});
    assert_eq!(of(hung_up).await.0.outcome, Outcome::Handshake);
    let silent = bare(|_, mut io| async move {
        let mut sink = Vec::new();
        let _ = io.read_to_end(&mut sink).await;
    });
    assert_eq!(of(silent).await, (OutcomeDetail::plain(Outcome::ConnectTimeout), 10_000));
}

#[tokio::test(start_paused = true)]
async fn the_bearer_token_is_sent() {
    let handler = bare(|_, mut io| async move {
        let mut head = vec![0; 4_096];
        let n = io.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..n]).to_lowercase();
        assert!(head.contains("authorization: bearer tok-123\r\n"), "{head}");
        assert!(head.starts_with("get /asr?lang=en http/1.1\r\nhost: memory:9000\r\n"), "{head}");
        let _ = io.write_all(b"HTTP/1.1 418 I'm a teapot\r\n\r\nseen").await;
    });
    let mut target = target(pipes(handler), "ws://memory:9000/asr?lang=en".parse().unwrap());
    target.bearer = Some(tapedeck_transport::Secret::new("tok-123"));
    assert_eq!(outcome(target, once()).await.0, said(Outcome::Handshake, 418, "seen"));
}

#[tokio::test(start_paused = true)]
async fn closes_in_mid_call_carry_their_code() {
    let crash = ws(|_, mut ws| async move {
        sleep(700 * MS).await;
        let reason = CloseFrame { code: CloseCode::Error, reason: "internal error".into() };
        let _ = ws.close(Some(reason)).await;
        linger(&mut ws).await;
    });
    assert_eq!(of(crash).await, (said(Outcome::ClosedEarly, 1011, "internal error"), 700));
    let clean_but_early = ws(|_, mut ws| async move {
        sleep(700 * MS).await;
        let _ = ws.close(None).await;
        linger(&mut ws).await;
    });
    assert_eq!(of(clean_but_early).await.0, said(Outcome::ClosedEarly, None, "closed without a code"));
    let gone = ws(|_, ws| async move {
        sleep(700 * MS).await;
        drop(ws);
    });
    let (detail, at) = of(gone).await;
    assert_eq!((detail.outcome, detail.code), (Outcome::ClosedEarly, None));
    assert!(at <= 950, "{at}");
    let restart_after_end = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        let reason = CloseFrame { code: CloseCode::Restart, reason: "engine died".into() };
        let _ = ws.close(Some(reason)).await;
        linger(&mut ws).await;
    });
    assert_eq!(of(restart_after_end).await.0, said(Outcome::ClosedEarly, 1012, "engine died"));
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_words() {
    let error = ws(|_, mut ws| async move {
        sleep(300 * MS).await;
        say(&mut ws, json!({ "type": "error", "message": "CUDA out of memory" })).await;
        linger(&mut ws).await;
    });
    assert_eq!(of(error).await, (said(Outcome::ServerError, None, "CUDA out of memory"), 300));
    let busy = ws(|_, mut ws| async move {
        say(&mut ws, json!({ "type": "busy", "message": "too many sessions" })).await;
        let _ = ws.close(None).await;
    });
    assert_eq!(of(busy).await, (said(Outcome::RefusedBusy, None, "too many sessions"), 0));
}

#[tokio::test(start_paused = true)]
async fn a_mute_server_is_told_from_a_silent_call_and_from_a_dead_one() {
    let timeouts = Timeouts { no_response: Some(5 * SECOND), idle: 12 * SECOND, ..Timeouts::default() };
    let plan = || Plan { ping_every: Some(SECOND), timeouts: timeouts.clone(), ..once() };
    // Answers pings and sends empty partials, but no text: speech is owed from 200 ms + 1 s on.
    let no_response = || {
        ws(|_, mut ws| async move {
            while let Some(Ok(message)) = ws.next().await {
                if matches!(message, Message::Binary(_)) {
                    say(&mut ws, json!({ "type": "partial", "text": " " })).await;
                }
            }
        })
    };
    let t = one_call(plan(), 60_000, no_response()).await.trace;
    assert_eq!((t.outcome.outcome, t.done_ns), (Outcome::Mute, 6_200_000_000));

    // Words until 20 s, none after: owed again after another second of speech.
    let falls_silent = ws(|_, mut ws| async move {
        let mut chunks = 0;
        while let Some(Ok(message)) = ws.next().await {
            chunks += u32::from(matches!(message, Message::Binary(_)));
            let text = if chunks <= 200 { "words ".repeat(1 + chunks as usize) } else { String::new() };
            say(&mut ws, json!({ "type": "partial", "text": text })).await;
        }
    });
    let t = one_call(plan(), 60_000, falls_silent).await.trace;
    assert_eq!((t.outcome.outcome, t.done_ns), (Outcome::Mute, 26_000_000_000));

    // Nobody speaks: nothing is owed, so the call ends in its own way.
    let dialect = registry::dialect("pcm-json", serde_json::Value::Null).unwrap();
    let mut quiet = meta(0, 30_000);
    quiet.speech = Default::default();
    let prepared =
        tapedeck_load::PreparedCalls::new(&*dialect, 100 * MS, Default::default(), [(quiet, pcm(30_000))])
            .unwrap();
    let ends = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        say(&mut ws, json!({ "type": "final", "text": "" })).await;
        linger(&mut ws).await;
    });
    let (all, _) = play(plan(), Arc::new(prepared), in_memory(ends)).await;
    assert_eq!(all[0].trace.outcome.outcome, Outcome::EmptyFinal);
    assert_eq!(all[0].trace.done_ns, 30_000_000_000);

    // Takes the audio in but answers nothing, not even pings: dead rather than mute.
    let dead = bare(|_, io| async move {
        let ws = tokio_tungstenite::accept_async(io).await.unwrap();
        let mut io = ws.into_inner();
        let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
    });
    let t = one_call(plan(), 60_000, dead).await.trace;
    assert_eq!((t.outcome.outcome, t.done_ns), (Outcome::IdleTimeout, 12_000_000_000));
}

#[tokio::test(start_paused = true)]
async fn no_final_within_the_limit() {
    let never = ws(|_, mut ws| async move {
        hear_all(&mut ws).await;
        say(&mut ws, json!({ "type": "partial", "text": "almost" })).await;
        linger(&mut ws).await;
    });
    assert_eq!(of(never).await, (OutcomeDetail::plain(Outcome::FinalTimeout), 32_000));
}

#[tokio::test(start_paused = true)]
async fn messages_that_break_the_protocol() {
    for garbage in [
        Message::text("hello?"),
        Message::text("[1, 2]"),
        Message::text(r#"{"type":"final","text":17}"#),
        Message::text("[".repeat(100_000)),
        Message::binary(vec![0xff, 0xfe, 0x00]),
        Message::text(""),
    ] {
        let handler = ws(move |_, mut ws| {
            let garbage = garbage.clone();
            async move {
                let _ = ws.send(garbage).await;
                linger(&mut ws).await;
            }
        });
        let detail = of(handler).await.0;
        assert_eq!(detail.outcome, Outcome::Protocol);
        assert!(detail.words.is_some());
    }
    // Bytes that are no WebSocket frame at all.
    let noise = bare(|_, io| async move {
        let ws = tokio_tungstenite::accept_async(io).await.unwrap();
        let mut io = ws.into_inner();
        let _ = io.write_all(&[0xff; 64]).await;
        let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
    });
    assert_eq!(of(noise).await.0.outcome, Outcome::Protocol);
}

#[tokio::test(start_paused = true)]
async fn whatever_bytes_follow_the_upgrade_the_call_ends() {
    // A small generator of its own, so that the same bytes come every time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut seen = std::collections::BTreeMap::<Outcome, u32>::new();
    for round in 0..300 {
        let mut bytes: Vec<u8> = (0..random() % 200).map(|_| random().to_le_bytes()[0]).collect();
        if round % 3 > 0 && bytes.len() > 2 {
            // Make the head of a frame plausible, so that some of it is read as one.
            bytes[0] = [0x81, 0x82, 0x88, 0x89, 0x8a, 0x01][round % 6];
            bytes[1] &= 0x7f;
        }
        let hold = round % 2 == 0;
        let handler = bare(move |_, io| {
            let bytes = bytes.clone();
            async move {
                let ws = tokio_tungstenite::accept_async(io).await.unwrap();
                let mut io = ws.into_inner();
                let _ = io.write_all(&bytes).await;
                if hold {
                    let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
                }
            }
        });
        let t = one_call(once(), 500, handler).await.trace;
        assert!(t.done_ns <= 31_000_000_000, "{t:?}");
        assert_ne!(t.outcome.outcome, Outcome::Ok);
        *seen.entry(t.outcome.outcome).or_default() += 1;
    }
    assert!(seen.contains_key(&Outcome::Protocol) && seen.contains_key(&Outcome::ClosedEarly), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn giant_messages_are_read_up_to_the_limit() {
    fn giant(bytes: usize) -> Handler {
        ws(move |_, mut ws| async move {
            hear_all(&mut ws).await;
            let frame = r#"{"type":"final","text":""}"#;
            let text = format!(r#"{{"type":"final","text":"{}"}}"#, "x".repeat(bytes - frame.len()));
            assert_eq!(text.len(), bytes);
            let _ = ws.send(Message::text(text)).await;
            linger(&mut ws).await;
        })
    }
    let largest = 16 << 20;
    let played = one_call(once(), 200, giant(largest)).await;
    assert_eq!(played.trace.outcome.outcome, Outcome::Ok);
    assert_eq!(played.trace.messages[0].bytes as usize, largest);
    let too_much = one_call(once(), 200, giant(largest + 1)).await.trace.outcome;
    assert_eq!(
        too_much,
        said(Outcome::Protocol, None, "a message of 16777217 bytes, over the limit of 16777216")
    );
}

#[tokio::test(start_paused = true)]
async fn the_ready_handshake_is_waited_for() {
    let dialect =
        registry::dialect("pcm-json", json!({ "ready": ["hello"], "start_message": "{\"v\":1}" })).unwrap();
    let target = |handler| Target { dialect: dialect.clone(), ..in_memory(handler) };
    let polite = ws(|_, mut ws| async move {
        assert_eq!(ws.next().await.unwrap().unwrap().into_text().unwrap().as_str(), "{\"v\":1}");
        sleep(800 * MS).await;
        say(&mut ws, json!({ "type": "hello" })).await;
        assert!(hear_all(&mut ws).await.is_some());
        say(&mut ws, json!({ "type": "final", "text": "hi" })).await;
        linger(&mut ws).await;
    });
    let (all, _) = play(once(), prepared(&[1_000]), target(polite)).await;
    assert_eq!(all[0].trace.c1_ns, Some(800_000_000));
    assert_eq!((all[0].trace.outcome.outcome, all[0].trace.final_ns), (Outcome::Ok, Some(1_800_000_000)));

    let silent = ws(|_, mut ws| async move { linger(&mut ws).await });
    assert_eq!(
        outcome(target(silent), once()).await,
        (OutcomeDetail::plain(Outcome::ConnectTimeout), 10_000)
    );
    let full = ws(|_, mut ws| async move {
        say(&mut ws, json!({ "type": "busy", "message": "wait 9 minutes" })).await;
        let _ = ws.close(None).await;
    });
    assert_eq!(outcome(target(full), once()).await.0, said(Outcome::RefusedBusy, None, "wait 9 minutes"));
}

#[tokio::test(start_paused = true)]
async fn a_late_client_blames_nobody_else() {
    let handler = recogniser();
    // Something else holds the only thread for 3 s of the call.
    tokio::spawn(async {
        sleep(550 * MS).await;
        tokio::time::advance(3 * SECOND).await;
    });
    let t = one_call(once(), 5_000, handler).await.trace;
    assert_eq!(t.outcome.outcome, Outcome::ClientLate, "{:?}", t.wake_late_us);
    assert!(t.wake_late_us.iter().any(|&us| us > 2_000_000));
}
