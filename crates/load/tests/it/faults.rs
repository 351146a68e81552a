//! Every fault in every dialect that speaks over a WebSocket: each has a class, and keeps the server's own words.

#[cfg(test)]
mod tests {
    use std::{future::Future, sync::Arc, time::Duration};

    use futures_util::SinkExt;
    use serde_json::{Value, json};
    use tapedeck_load::{Plan, PreparedCalls, Target};
    use tapedeck_protocol::registry;
    use tapedeck_record::{Outcome, OutcomeDetail, Trace};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::sleep,
    };
    use tokio_tungstenite::tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    };

    use crate::server::*;

    /// A dialect, and what its servers say.
    struct Speaker {
        dialect: &'static str,
        /// Before they take audio.
        greeting: Option<Value>,
        /// A text of that many bytes in all, the message included.
        text: fn(usize) -> String,
        /// A complaint that does not close the socket, and how it reads.
        error: (Value, &'static str),
    }

    fn filled(with: impl Fn(&str) -> Value, bytes: usize) -> String {
        let frame = with("").to_string().len();
        with(&"x".repeat(bytes - frame)).to_string()
    }

    fn speakers() -> Vec<Speaker> {
        let complaint = "expected 8000 Hz, got 16000 Hz";
        let plain = (json!({ "error": complaint }), complaint);
        vec![
            Speaker {
                dialect: "pcm-json",
                greeting: None,
                text: |n| filled(|t| json!({ "type": "partial", "text": t }), n),
                error: (json!({ "type": "error", "message": complaint }), complaint),
            },
            Speaker {
                dialect: "vllm-realtime",
                greeting: Some(json!({ "type": "session.created", "id": "sess-1", "created": 1 })),
                text: |n| filled(|t| json!({ "type": "transcription.delta", "delta": t }), n),
                error: (
                    json!({ "type": "error", "error": complaint, "code": "invalid_audio" }),
                    "expected 8000 Hz, got 16000 Hz (invalid_audio)",
                ),
            },
            Speaker {
                dialect: "sherpa-onnx",
                greeting: None,
                text: |n| filled(|t| json!({ "text": t, "tokens": [], "segment": 0, "is_final": false }), n),
                error: plain.clone(),
            },
            Speaker {
                dialect: "whisper-live",
                greeting: Some(json!({ "uid": "x", "message": "SERVER_READY", "backend": "x" })),
                text: |n| filled(|t| json!({ "segments": [{ "start": "0", "end": "1", "text": t }] }), n),
                error: (json!({ "uid": "x", "status": "ERROR", "message": complaint }), complaint),
            },
            Speaker {
                dialect: "funasr-2pass",
                greeting: None,
                text: |n| filled(|t| json!({ "mode": "2pass-online", "text": t }), n),
                error: plain.clone(),
            },
            Speaker {
                dialect: "vosk",
                greeting: None,
                text: |n| filled(|t| json!({ "partial": t }), n),
                error: plain,
            },
        ]
    }

    /// What becomes of a call of 3 s.
    async fn call(dialect: &str, handler: Handler) -> Trace {
        let dialect = registry::dialect(dialect, Value::Null).unwrap();
        let prepared =
            PreparedCalls::new(&*dialect, 100 * MS, Duration::ZERO, [(meta(0, 3_000), pcm(3_000))]).unwrap();
        let target = Target { dialect, ..in_memory(handler) };
        let (mut all, _) = play(Plan { ping_every: None, ..once() }, Arc::new(prepared), target).await;
        assert_eq!(all.len(), 1);
        all.remove(0).trace
    }

    fn said(outcome: Outcome, code: impl Into<Option<u16>>, words: &str) -> OutcomeDetail {
        OutcomeDetail::said(outcome, code.into(), words)
    }

    /// A server that greets as it must, hears half a second of audio and then does this.
    fn midway<F, R>(speaker: &Speaker, then: F) -> Handler
    where
        F: Fn(Ws) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let greeting = speaker.greeting.clone();
        let then = Arc::new(then);
        ws(move |_, mut ws| {
            let (greeting, then) = (greeting.clone(), Arc::clone(&then));
            async move {
                if let Some(greeting) = greeting {
                    say(&mut ws, greeting).await;
                }
                sleep(550 * MS).await;
                then(ws).await;
            }
        })
    }

    fn closing(speaker: &Speaker, code: u16, reason: &'static str) -> Handler {
        midway(speaker, move |mut ws| async move {
            let _ = ws.close(Some(CloseFrame { code: CloseCode::from(code), reason: reason.into() })).await;
            linger(&mut ws).await;
        })
    }

    #[tokio::test(start_paused = true)]
    async fn every_dialect_that_has_sockets_is_here() {
        let mut ours: Vec<_> = speakers().iter().map(|s| s.dialect).collect();
        let mut all: Vec<_> = registry::names().filter(|n| *n != "openai-transcriptions").collect();
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all, "uploads have their own tests");
    }

    #[tokio::test(start_paused = true)]
    async fn complaints_that_do_not_close_the_socket_end_the_call_at_once() {
        for speaker in speakers() {
            let (error, words) = speaker.error.clone();
            let handler = midway(&speaker, move |mut ws| {
                let error = error.clone();
                async move {
                    say(&mut ws, error).await;
                    linger(&mut ws).await;
                }
            });
            let t = call(speaker.dialect, handler).await;
            assert_eq!(t.outcome, said(Outcome::ServerError, None, words), "{}", speaker.dialect);
            assert_eq!(t.done_ns, 550_000_000, "{}: not after a time-out", speaker.dialect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn closes_say_what_they_mean() {
        for speaker in speakers() {
            for (code, reason, outcome) in [
                (1012, "service restart", Outcome::ClosedEarly),
                (1011, "engine died", Outcome::ClosedEarly),
                (1003, "binary frames only", Outcome::ClosedEarly),
                (1007, "16000 Hz expected", Outcome::ClosedEarly),
                (1013, "too many sessions", Outcome::RefusedBusy),
            ] {
                let t = call(speaker.dialect, closing(&speaker, code, reason)).await;
                assert_eq!(t.outcome, said(outcome, code, reason), "{}", speaker.dialect);
                assert_eq!(t.done_ns, 550_000_000, "{}", speaker.dialect);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_at_the_door_keep_their_words() {
        for speaker in speakers() {
            for (answer, want) in [
                (
                    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nall taken",
                    said(Outcome::RefusedBusy, 503, "all taken"),
                ),
                (
                    "HTTP/1.1 403 Forbidden\r\ncontent-length: 8\r\n\r\nno route",
                    said(Outcome::Handshake, 403, "no route"),
                ),
            ] {
                let handler = bare(move |_, mut io| async move {
                    let _ = io.read(&mut [0; 4_096]).await;
                    let _ = io.write_all(answer.as_bytes()).await;
                });
                let t = call(speaker.dialect, handler).await;
                assert_eq!((t.outcome, t.wake_late_us.len()), (want, 0), "{}", speaker.dialect);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_message_breaks_the_protocol() {
        for speaker in speakers() {
            for message in [Message::text("hello?"), Message::text("[1]"), Message::binary(vec![0xff, 0])] {
                let sent = message.clone();
                let handler = midway(&speaker, move |mut ws| {
                    let message = sent.clone();
                    async move {
                        let _ = ws.send(message).await;
                        linger(&mut ws).await;
                    }
                });
                let outcome = call(speaker.dialect, handler).await.outcome;
                assert_eq!(outcome.outcome, Outcome::Protocol, "{} {message:?}", speaker.dialect);
                assert!(outcome.words.unwrap().contains("JSON"), "{} {message:?}", speaker.dialect);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_16_mb_are_read_and_larger_ones_refused() {
        let largest = 16 << 20;
        for speaker in speakers() {
            for bytes in [largest, largest + 1] {
                let text = speaker.text;
                let handler = midway(&speaker, move |mut ws| async move {
                    let _ = ws.send(Message::text(text(bytes))).await;
                    linger(&mut ws).await;
                });
                let t = call(speaker.dialect, handler).await;
                if bytes == largest {
                    let read = t.messages.iter().map(|m| m.bytes as usize).max();
                    assert_eq!(read, Some(largest), "{}: {:?}", speaker.dialect, t.outcome);
                    assert_ne!(t.outcome.outcome, Outcome::Protocol, "{}", speaker.dialect);
                } else {
                    let words = "a message of 16777217 bytes, over the limit of 16777216";
                    assert_eq!(t.outcome, said(Outcome::Protocol, None, words), "{}", speaker.dialect);
                }
            }
        }
    }
}
