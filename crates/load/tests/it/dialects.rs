//! Calls in every dialect against scripted servers, under a paused clock: what becomes of them, and of the words.

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use futures_util::{SinkExt, StreamExt};
    use serde_json::{Value, json};
    use tapedeck_load::{CallResult, Plan, PreparedCalls, Target};
    use tapedeck_protocol::registry;
    use tapedeck_record::{FinalKind, MessageKind, Outcome, OutcomeDetail};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::sleep,
    };
    use tokio_tungstenite::tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    };

    use crate::server::*;

    /// Plays one call of that length in a dialect, somebody speaking from 200 ms on.
    async fn call(name: &str, settings: Value, ms: u32, handler: Handler) -> CallResult {
        let dialect = registry::dialect(name, settings).unwrap();
        let prepared =
            PreparedCalls::new(&*dialect, 100 * MS, Duration::ZERO, [(meta(0, ms), pcm(ms))]).unwrap();
        let target = Target { dialect, ..in_memory(handler) };
        let (mut all, _) = play(Plan { ping_every: None, ..once() }, Arc::new(prepared), target).await;
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn said(outcome: Outcome, code: impl Into<Option<u16>>, words: &str) -> OutcomeDetail {
        OutcomeDetail::said(outcome, code.into(), words)
    }

    async fn close(ws: &mut Ws, code: u16, reason: &str) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.to_owned().into() };
        let _ = ws.close(Some(frame)).await;
        linger(ws).await;
    }

    /// Reads until this text message; returns bytes of binary messages before it.
    async fn hear_until(ws: &mut Ws, wanted: impl Fn(&Message) -> bool) -> usize {
        let mut bytes = 0;
        while let Some(Ok(message)) = ws.next().await {
            if wanted(&message) {
                break;
            }
            if let Message::Binary(audio) = message {
                bytes += audio.len();
            }
        }
        bytes
    }

    /// The scripted sessions of the fixtures, by name.
    fn case(id: &str) -> (Vec<String>, Value) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions/cases.jsonl");
        let lines = std::fs::read_to_string(path).unwrap();
        let case: Value =
            lines.lines().map(|l| serde_json::from_str(l).unwrap()).find(|c: &Value| c["id"] == id).unwrap();
        let call_plan =
            case["server"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_owned()).collect();
        (call_plan, case["want"].clone())
    }

    /// Plays a script: `sleep MS`, `close CODE WORDS`, `binary:DATA`, anything else as a text message.
    async fn act(ws: &mut Ws, call_plan: &[String]) {
        for line in call_plan {
            if let Some(ms) = line.strip_prefix("sleep ") {
                sleep(Duration::from_millis(ms.parse().unwrap())).await;
            } else if let Some(rest) = line.strip_prefix("close ") {
                let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                close(ws, code.parse().unwrap(), reason).await;
            } else if let Some(data) = line.strip_prefix("binary:") {
                let _ = ws.send(Message::binary(data.as_bytes().to_vec())).await;
            } else {
                let _ = ws.send(Message::text(line.as_str())).await;
            }
        }
    }

    /// A server that says hello if it must, hears the whole call (or none of it) and then acts.
    fn scripted(call_plan: Vec<String>, ready: bool, listens: bool) -> Handler {
        let call_plan = Arc::new(call_plan);
        ws(move |_, mut ws| {
            let call_plan = Arc::clone(&call_plan);
            async move {
                if ready {
                    say(&mut ws, json!({ "uid": "x", "message": "SERVER_READY", "backend": "x" })).await;
                }
                if listens {
                    hear_until(&mut ws, |m| match m {
                        Message::Binary(bytes) => &bytes[..] == b"END_OF_AUDIO",
                        Message::Text(text) => text.contains("eof"),
                        _ => false,
                    })
                    .await;
                }
                act(&mut ws, &call_plan).await;
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn scripted_sessions_end_as_they_should() {
        for (id, outcome) in
            [("s01-tail-never-final", Outcome::TailLost), ("s03-resent-and-revised", Outcome::Ok)]
        {
            let (call_plan, want) = case(id);
            let played = call("whisper-live", Value::Null, 3_000, scripted(call_plan, true, true)).await;
            assert_eq!(played.trace.outcome.outcome, outcome, "{id}");
            assert_eq!(played.texts.finals, want["finals"].as_str().unwrap(), "{id}");
            assert_eq!(played.texts.finals_and_tail, want["with_tail"].as_str().unwrap(), "{id}");
        }

        let (call_plan, _) = case("s05-refused-wait");
        let full = call("whisper-live", Value::Null, 3_000, scripted(call_plan, false, false)).await.trace;
        assert_eq!(full.outcome, said(Outcome::RefusedBusy, None, "WAIT: 9.97 minutes"));
        assert!(full.c1_ns.is_none() && full.wake_late_us.is_empty(), "no audio was sent");

        let (call_plan, want) = case("s07-final-after-our-close-wait");
        let late = call("vosk", Value::Null, 3_000, scripted(call_plan, false, true)).await;
        assert_eq!(
            (late.trace.outcome.outcome, late.trace.final_kind),
            (Outcome::Ok, Some(FinalKind::Close))
        );
        assert_eq!(late.texts.finals, want["finals"].as_str().unwrap());
        let final_ms = late.trace.final_ns.unwrap() / 1_000_000 - 3_000;
        assert_eq!(Some(final_ms), want["final_latency_ms"].as_u64());

        let (call_plan, want) = case("s09-binary-json");
        let binary = call("vosk", Value::Null, 3_000, scripted(call_plan, false, true)).await;
        assert_eq!(
            (binary.trace.outcome.outcome, Some(binary.texts.finals.as_str())),
            (Outcome::Ok, want["finals"].as_str())
        );

        let (call_plan, _) = case("s10-close-1011-midcall");
        let crash = call("vosk", Value::Null, 3_000, scripted(call_plan, false, false)).await;
        assert_eq!(crash.trace.outcome, said(Outcome::ClosedEarly, 1011, "internal error"));
        assert_eq!(crash.texts.finals_and_tail, "hel");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sherpa_onnx_call() {
        let server = |last_is_final: bool| {
            ws(move |_, mut ws| async move {
                let bytes =
                    hear_until(&mut ws, |m| matches!(m, Message::Text(t) if t.as_str() == "Done")).await;
                assert_eq!(bytes, 2_000 * 64, "float32");
                say(
                    &mut ws,
                    json!({ "text": "one two", "segment": 0, "is_final": last_is_final, "tokens": [] }),
                )
                .await;
                let _ = ws.send(Message::text("Done!")).await;
                linger(&mut ws).await;
            })
        };
        let played = call("sherpa-onnx", Value::Null, 2_000, server(true)).await;
        assert_eq!((played.trace.outcome.outcome, played.trace.final_ns), (Outcome::Ok, Some(2_000_000_000)));
        assert_eq!(played.texts.finals, "one two");
        let lost = call("sherpa-onnx", Value::Null, 2_000, server(false)).await;
        assert_eq!(lost.trace.outcome.outcome, Outcome::TailLost);
        let full = ws(|_, mut ws| async move { close(&mut ws, 1013, "too many clients").await });
        let busy = call("sherpa-onnx", Value::Null, 2_000, full).await.trace.outcome;
        assert_eq!(busy, said(Outcome::RefusedBusy, 1013, "too many clients"));
    }

    /// A vLLM server up to the point where it would generate; `then` gets the socket with the model's name.
    fn vllm<F, R>(then: F) -> Handler
    where
        F: Fn(Ws, String) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let then = Arc::new(then);
        ws(move |_, mut ws| {
            let then = Arc::clone(&then);
            async move {
                say(&mut ws, json!({ "type": "session.created", "id": "sess-1", "created": 1 })).await;
                let mut model = String::new();
                while let Some(Ok(Message::Text(text))) = ws.next().await {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    match message["type"].as_str().unwrap() {
                        "session.update" => model = message["model"].as_str().unwrap().to_owned(),
                        "input_audio_buffer.commit" => {
                            assert_eq!(message["final"], false);
                            return then(ws, model).await;
                        }
                        other => panic!("{other} before the first commit"),
                    }
                }
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_vllm_call_with_windows() {
        let server = vllm(|mut ws, _| async move {
            let delta = |text: &str| json!({ "type": "transcription.delta", "delta": text });
            let mut frames = 0;
            while let Some(Ok(Message::Text(text))) = ws.next().await {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == "input_audio_buffer.commit" {
                    assert_eq!(message["final"], true);
                    break;
                }
                frames += 1;
                if frames == 50 {
                    sleep(300 * MS).await;
                    for text in ["language", " English", "<asr_text>", "hello", ""] {
                        say(&mut ws, delta(text)).await;
                    }
                }
            }
            assert_eq!(frames, 70);
            say(&mut ws, delta("language English<asr_text>bye")).await;
            let text = "language English<asr_text>hellolanguage English<asr_text>bye";
            say(&mut ws, json!({ "type": "transcription.done", "text": text })).await;
            linger(&mut ws).await;
        });
        let played = call("vllm-realtime", Value::Null, 7_000, server).await;
        let t = &played.trace;
        assert_eq!((t.outcome.outcome, t.violations), (Outcome::Ok, 0), "{:?}", t.outcome);
        assert_eq!(played.texts.finals, "hello bye");
        let first = t.messages.iter().find(|m| m.chars > 0).unwrap();
        assert_eq!((first.at_ns, first.window), (5_300_000_000, Some(0)), "the mark was no first text");
        assert_eq!(t.messages.iter().rev().find(|m| m.kind == MessageKind::Partial).unwrap().window, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn vllm_faults_have_classes_and_words() {
        // Neither of these closes the socket.
        let wrong_model = vllm(|mut ws, model| async move {
            let error = format!("The model `{model}` does not exist.");
            say(&mut ws, json!({ "type": "error", "error": error, "code": "model_not_found" })).await;
            linger(&mut ws).await;
        });
        let t = call("vllm-realtime", json!({ "model": "x" }), 3_000, wrong_model).await.trace;
        assert_eq!(
            t.outcome,
            said(Outcome::ServerError, None, "The model `x` does not exist. (model_not_found)")
        );
        assert_eq!(t.done_ns, 0, "at once, not after a time-out");
        let dying = vllm(|mut ws, _| async move {
            sleep(700 * MS).await;
            say(&mut ws, json!({ "type": "error", "error": "EngineCore encountered an issue.", "code": "processing_error" })).await;
            linger(&mut ws).await;
        });
        let t = call("vllm-realtime", Value::Null, 3_000, dying).await.trace;
        assert_eq!(
            t.outcome,
            said(Outcome::ServerError, None, "EngineCore encountered an issue. (processing_error)")
        );
        let dead = vllm(|mut ws, _| async move {
            sleep(700 * MS).await;
            close(&mut ws, 1012, "").await;
        });
        let t = call("vllm-realtime", Value::Null, 3_000, dead).await.trace;
        assert_eq!((t.outcome, t.done_ns), (said(Outcome::ClosedEarly, 1012, ""), 700_000_000));
        let no_route = bare(|_, mut io| async move {
            let mut head = [0; 4_096];
            let _ = io.read(&mut head).await;
            let _ = io.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
        });
        let t = call("vllm-realtime", Value::Null, 3_000, no_route).await.trace;
        assert_eq!(t.outcome, said(Outcome::Handshake, 403, "Forbidden"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_of_another_dialect_is_named_at_once() {
        let greeting = |message: Value| {
            ws(move |_, mut ws| {
                let message = message.clone();
                async move {
                    say(&mut ws, message).await;
                    linger(&mut ws).await;
                }
            })
        };
        let created = json!({ "type": "session.created", "id": "sess-1", "created": 1 });
        let ready = json!({ "uid": "x", "message": "SERVER_READY", "backend": "x" });
        let sherpa = json!({ "text": "", "tokens": [], "segment": 0, "is_final": false });
        for (ours, theirs, message) in [
            ("pcm-json", "vllm-realtime", &created),
            ("whisper-live", "vllm-realtime", &created),
            ("vosk", "whisper-live", &ready),
            ("pcm-json", "sherpa-onnx", &sherpa),
            ("vllm-realtime", "sherpa-onnx", &sherpa),
        ] {
            let t = call(ours, Value::Null, 30_000, greeting(message.clone())).await.trace;
            let words = format!("the server looks like {theirs}: set server.dialect = \"{theirs}\"");
            assert_eq!((t.outcome, t.done_ns), (said(Outcome::Protocol, None, &words), 0), "{ours}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn giant_messages_are_read_up_to_the_limit() {
        let giant = |bytes: usize| {
            ws(move |_, mut ws| async move {
                hear_until(&mut ws, |m| matches!(m, Message::Text(t) if t.contains("eof"))).await;
                let frame = r#"{"text":""}"#.len();
                say(&mut ws, json!({ "text": "x".repeat(bytes - frame) })).await;
                close(&mut ws, 1000, "").await;
            })
        };
        let largest = 16 << 20;
        let t = call("vosk", Value::Null, 200, giant(largest)).await.trace;
        assert_eq!((t.outcome.outcome, t.messages[0].bytes as usize), (Outcome::Ok, largest));
        let t = call("vosk", Value::Null, 200, giant(largest + 1)).await.trace;
        assert_eq!(t.outcome.outcome, Outcome::Protocol);
        assert!(t.outcome.words.unwrap().contains("16777217 bytes"));
    }

    /// An HTTP server that reads one upload, checks it and answers with these pieces, 500 ms apart.
    fn http(pieces: Vec<String>) -> Handler {
        let pieces = Arc::new(pieces);
        bare(move |_, mut io| {
            let pieces = Arc::clone(&pieces);
            async move {
                let mut all = Vec::new();
                let mut piece = vec![0; 64 << 10];
                loop {
                    let n = io.read(&mut piece).await.unwrap();
                    if n == 0 {
                        return; // hung up
                    }
                    all.extend_from_slice(&piece[..n]);
                    let Some(head) = all.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
                    let lines = String::from_utf8_lossy(&all[..head]).to_lowercase();
                    let length =
                        lines.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
                    if all.len() == head + 4 + length.parse::<usize>().unwrap() {
                        break;
                    }
                }
                let wav = all.windows(4).position(|w| w == b"RIFF").unwrap();
                assert_eq!(all[wav + 44..wav + 44 + 64_000], pcm(2_000)[..], "the audio as it is");
                for piece in pieces.iter() {
                    sleep(500 * MS).await;
                    let _ = io.write_all(piece.as_bytes()).await;
                }
            }
        })
    }

    fn answer(status: &str, content_type: &str, body: &str) -> Vec<String> {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![head + body]
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_is_sent_when_the_call_would_have_ended() {
        let chunk = |text: &str| {
            format!(
                "data: {}\n\n",
                json!({ "object": "transcription.chunk", "choices": [{ "delta": { "content": text } }] })
            )
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";
        let pieces = vec![head.to_owned() + &chunk("good"), chunk(" morning"), "data: [DONE]\n\n".to_owned()];
        let played = call("openai-transcriptions", Value::Null, 2_000, http(pieces)).await;
        let t = &played.trace;
        assert_eq!(
            (t.outcome.outcome, t.final_kind),
            (Outcome::Ok, Some(FinalKind::Marker)),
            "{:?}",
            t.outcome
        );
        assert_eq!((t.c1_ns, t.end_ns), (Some(0), Some(2_000_000_000)));
        let at: Vec<u64> = t.messages.iter().map(|m| m.at_ns / 1_000_000).collect();
        assert_eq!(at, [2_500, 3_000, 3_500]);
        assert_eq!((t.final_ns, t.wake_late_us.len(), t.rtt_us.len()), (Some(3_500_000_000), 1, 0));
        assert_eq!(played.texts.finals, "good morning");

        let body =
            json!({ "text": "good morning", "usage": { "type": "duration", "seconds": 2 } }).to_string();
        let plain = json!({ "stream": false });
        let played =
            call("openai-transcriptions", plain, 2_000, http(answer("200 OK", "application/json", &body)))
                .await;
        assert_eq!((played.trace.outcome.outcome, played.trace.final_ns), (Outcome::Ok, Some(2_500_000_000)));
        assert_eq!(played.texts.finals, "good morning");
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_that_are_refused_or_fail() {
        let outcome = async |pieces: Vec<String>| {
            call("openai-transcriptions", Value::Null, 2_000, http(pieces)).await.trace.outcome
        };
        let json = "application/json";
        let error =
            json!({ "error": { "message": "The model `x` does not exist.", "code": 404 } }).to_string();
        let missing = outcome(answer("404 Not Found", json, &error)).await;
        assert_eq!(missing, said(Outcome::ServerError, 404, "The model `x` does not exist."));
        let no_route = outcome(answer("404 Not Found", json, "{\"detail\":\"Not Found\"}")).await;
        assert_eq!(no_route, said(Outcome::Handshake, 404, "{\"detail\":\"Not Found\"}"));
        let full = outcome(answer("503 Service Unavailable", "text/plain", "")).await;
        assert_eq!(full, said(Outcome::RefusedBusy, 503, "Service Unavailable"));
        let broken = outcome(answer("500 Internal Server Error", "text/html", "<h1>oh</h1>")).await;
        assert_eq!(broken, said(Outcome::ServerError, 500, "<h1>oh</h1>"));
        let cut = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: nothing\n\n".to_owned();
        let cut = outcome(vec![cut]).await;
        assert_eq!(cut, said(Outcome::ClosedEarly, None, "the answer ended without its end marker"));
        let short =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"te".to_owned();
        assert_eq!(outcome(vec![short]).await.outcome, Outcome::ClosedEarly);
        let hung_up = outcome(Vec::new()).await;
        assert_eq!(hung_up.outcome, Outcome::ClosedEarly);
        let silent = bare(|_, mut io| async move {
            let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        });
        let t = call("openai-transcriptions", Value::Null, 2_000, silent).await.trace;
        assert_eq!((t.outcome, t.done_ns), (OutcomeDetail::plain(Outcome::FinalTimeout), 32_000_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_can_be_made_unique_and_are_cut_like_any_call() {
        let dialect = registry::dialect("openai-transcriptions", Value::Null).unwrap();
        let prepared = Arc::new(
            PreparedCalls::new(&*dialect, 100 * MS, Duration::ZERO, [(meta(0, 2_000), pcm(2_000))]).unwrap(),
        );
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let uploads = Arc::clone(&seen);
        let server = bare(move |_, mut io| {
            let seen = Arc::clone(&uploads);
            async move {
                let mut all = Vec::new();
                let mut piece = vec![0; 64 << 10];
                while let Ok(n) = io.read(&mut piece).await
                    && n > 0
                {
                    all.extend_from_slice(&piece[..n]);
                    if all.ends_with(b"--\r\n") {
                        break;
                    }
                }
                if let Some(at) = all.windows(4).position(|w| w == b"RIFF") {
                    seen.lock().unwrap().push(Bytes::copy_from_slice(&all[at + 44..at + 44 + 64_000]));
                }
                let _ = io
                    .write_all(answer("200 OK", "application/json", "{\"text\":\"hi\"}")[0].as_bytes())
                    .await;
            }
        });
        let target = Target { dialect, ..in_memory(server) };
        let plan = Plan { unique_per_session: true, loops: 2, ..once() };
        let (all, _) = play(plan, Arc::clone(&prepared), target.clone()).await;
        assert!(all.len() >= 2 && all[..2].iter().all(|p| p.trace.outcome.outcome == Outcome::Ok), "{all:?}");
        let seen = seen.lock().unwrap();
        let original = pcm(2_000);
        let changed = |upload: &Bytes| (0..64_000).filter(|&i| upload[i] != original[i]).count();
        assert!(seen[0] != seen[1] && seen[..2].iter().all(|u| (1..=2).contains(&changed(u))));
    }
}
