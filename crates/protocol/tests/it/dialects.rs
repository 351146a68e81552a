//! Every dialect: recorded sessions of real servers, published protocols by the letter, and whatever else may come.

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tapedeck_protocol::{
        Dialect, Frame, Incoming, Reading, Ready, Session, SessionStart, Signal, SseEvents, Wire, registry,
    };
    use tapedeck_record::{Evidence, MessageKind};

    fn dialect(name: &str, settings: Value) -> Arc<dyn Dialect> {
        registry::dialect(name, settings).unwrap()
    }

    fn session(name: &str, settings: Value) -> Box<dyn Session> {
        dialect(name, settings).session(&SessionStart::default())
    }

    fn read(session: &mut dyn Session, message: Value) -> Reading {
        session.read(Incoming::Text(&message.to_string()))
    }

    /// What a frame says, as JSON.
    fn said(frame: &Frame) -> Value {
        match frame {
            Frame::Text(text) => serde_json::from_str(text).unwrap(),
            Frame::Binary(bytes) => panic!("{bytes:?}"),
        }
    }

    /// Messages of a recorded session: whether it came in, and its data.
    fn recorded(name: &str) -> Vec<(bool, Value)> {
        let path = format!("{}/../../fixtures/sessions/{name}", env!("CARGO_MANIFEST_DIR"));
        let lines = std::fs::read_to_string(path).unwrap();
        let message = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let key = if line["frame"].is_null() { "data" } else { "frame" };
            (line["dir"] == "in", line[key].take())
        };
        lines.lines().map(message).collect()
    }

    #[test]
    fn a_real_sherpa_onnx_session() {
        let mut s = session("sherpa-onnx", Value::Null);
        assert!(s.opening().is_empty());
        let (mut finals, mut last) = (0, Reading::EMPTY);
        for (incoming, data) in recorded("asr-session-sherpa-onnx-online.jsonl") {
            if !incoming {
                if data == "Done" {
                    assert_eq!(s.ending(), [Frame::Text("Done".into())]);
                }
                continue;
            }
            let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
            last = s.read(Incoming::Text(&text));
            finals += u32::from(last.kind == MessageKind::Final);
        }
        assert_eq!((last.kind, last.signal, finals), (MessageKind::End, Signal::Final, 2));
        let texts = s.texts();
        assert_eq!(texts.finals, texts.finals_and_tail);
        assert!(texts.finals.starts_with("billing card ticket"), "{}", texts.finals);
        assert!(texts.finals.ends_with("change support today invoice yes"), "{}", texts.finals);
        assert_eq!((s.tail_open(), s.violations()), (false, 0));
    }

    #[test]
    fn sherpa_onnx_without_a_last_final_loses_its_tail() {
        let mut s = session("sherpa-onnx", json!({ "step_ms": 300 }));
        let m = |segment: u32, text: &str, is_final: bool| json!({ "text": text, "tokens": [], "segment": segment, "is_final": is_final, "is_eof": false });
        read(&mut *s, m(0, "one", true));
        read(&mut *s, m(1, " two", false));
        s.ending();
        assert_eq!(s.read(Incoming::Text("Done!")).signal, Signal::Final);
        let texts = s.texts();
        assert_eq!((texts.finals.as_str(), texts.finals_and_tail.as_str()), ("one", "one two"));
        assert!(s.tail_open());
        assert_eq!(
            dialect("sherpa-onnx", json!({ "step_ms": 300 })).window(),
            Some(Duration::from_millis(300))
        );
        assert_eq!(dialect("sherpa-onnx", Value::Null).evidence(), Evidence::None);
    }

    #[test]
    fn a_real_whisper_live_session() {
        let d = dialect("whisper-live", json!({ "model": "tiny.en" }));
        assert_eq!(d.ready(), Ready::OnMessage);
        let mut s = d.session(&SessionStart { stream: 3, seq: 7, ..SessionStart::default() });
        let hello = said(&s.opening()[0]);
        let mut ready = 0;
        for (incoming, data) in recorded("asr-session-whisper-live.jsonl") {
            if incoming && data.is_object() {
                ready += u32::from(read(&mut *s, data).signal == Signal::Ready);
            } else if data.is_object() {
                let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
                assert_eq!(keys(&data), keys(&hello), "the greeting that the real client sent");
                assert_eq!((&hello["uid"], &hello["model"]), (&json!("tapedeck-3-7"), &data["model"]));
            }
        }
        assert_eq!(ready, 1);
        assert_eq!(s.ending(), [Frame::Binary(Bytes::from_static(b"END_OF_AUDIO"))]);
        let texts = s.texts();
        assert!(texts.finals.starts_with("And Mr. John Dashwood"), "{}", texts.finals);
        assert!(texts.finals.ends_with("still more respectable than"), "{}", texts.finals);
        assert_eq!(texts.finals_and_tail, format!("{} he was.", texts.finals));
        assert_eq!((s.tail_open(), s.violations()), (true, 0));
    }

    #[test]
    fn whisper_live_says_what_it_is_about() {
        let mut s = session("whisper-live", Value::Null);
        let about = |s: &mut dyn Session, m: Value| read(s, m).signal;
        let busy = about(&mut *s, json!({ "uid": "x", "status": "WAIT", "message": 9.97 }));
        assert_eq!(busy, Signal::Busy("WAIT: 9.97 minutes".into()));
        let error = about(&mut *s, json!({ "uid": "x", "status": "ERROR", "message": "no such model" }));
        assert_eq!(error, Signal::ServerError("no such model".into()));
        let warning = about(&mut *s, json!({ "uid": "x", "status": "WARNING", "message": "no TensorRT" }));
        assert_eq!(warning, Signal::None);
        assert_eq!(
            about(&mut *s, json!({ "uid": "x", "language": "en", "language_prob": 0.9 })),
            Signal::None
        );
        let over = about(&mut *s, json!({ "uid": "x", "message": "DISCONNECT" }));
        assert!(matches!(over, Signal::ServerError(words) if words.contains("DISCONNECT")));
        let part = |start: &str, end: &str, text: &str, completed: bool| json!({ "uid": "x", "segments": [{ "start": start, "end": end, "text": text, "completed": completed }] });
        // The tail begins elsewhere in its next version; it is not said twice.
        read(&mut *s, part("5.400", "7.0", " in his power", false));
        let again = read(&mut *s, part("5.600", "7.4", " in his powers", true));
        assert_eq!((again.kind, again.revised), (MessageKind::Final, 0));
        assert_eq!(s.texts().finals_and_tail, "in his powers");
        assert_eq!(s.violations(), 0);
        read(&mut *s, part("5.600", "7.4", " in his power", true));
        assert_eq!(s.violations(), 1, "completed means completed");
    }

    #[test]
    fn a_real_vllm_session_of_a_model_without_marks() {
        for (marks, violations) in [(false, 0), (true, 1)] {
            let d =
                dialect("vllm-realtime", json!({ "model": "Qwen/Qwen3-ASR-0.6B", "language_marks": marks }));
            assert_eq!((d.ready(), d.window()), (Ready::OnMessage, Some(Duration::from_secs(5))));
            let mut s = d.session(&SessionStart::default());
            assert!(s.opening().is_empty());
            let (mut sent, mut last) = (Vec::new(), Reading::EMPTY);
            for (incoming, frame) in recorded("vllm-realtime-session.jsonl") {
                if incoming {
                    last = read(&mut *s, frame);
                    sent.extend(s.replies().iter().map(said));
                } else if frame["final"] == true {
                    assert_eq!(s.ending().iter().map(said).collect::<Vec<_>>(), [frame]);
                }
            }
            assert_eq!(sent[0], json!({ "type": "session.update", "model": "Qwen/Qwen3-ASR-0.6B" }));
            assert_eq!(sent[1], json!({ "type": "input_audio_buffer.commit", "final": false }));
            assert_eq!((last.kind, last.signal), (MessageKind::End, Signal::Final));
            assert_eq!(
                (s.tail_open(), s.violations()),
                (false, violations),
                "the end is the sum of its pieces"
            );
            assert!(!s.texts().finals.is_empty());
        }
    }

    #[test]
    fn vllm_marks_tell_windows_apart() {
        let mut s = session("vllm-realtime", Value::Null);
        assert_eq!(
            read(&mut *s, json!({ "type": "session.created", "id": "sess-1", "created": 1 })).signal,
            Signal::Ready
        );
        let mut delta = |text: &str| {
            let r = read(&mut *s, json!({ "type": "transcription.delta", "delta": text }));
            (r.kind, r.chars, r.window)
        };
        use MessageKind::{Empty, Partial};
        assert_eq!(delta("language"), (Empty, 0, None));
        assert_eq!(delta(" English"), (Empty, 0, None));
        assert_eq!(delta("<asr_text>"), (Empty, 0, Some(0)), "the mark is no text, but an answer");
        assert_eq!(delta("Hello"), (Partial, 5, Some(0)));
        assert_eq!(
            delta(" all"),
            (Partial, 2, Some(0)),
            "an l may begin a mark, and is kept until it does not"
        );
        assert_eq!(delta("."), (Partial, 2, Some(0)));
        assert_eq!(delta(""), (Empty, 0, Some(0)));
        assert_eq!(delta("language"), (Empty, 0, None), "the next window's, most likely");
        assert_eq!(delta(" None<asr_text>"), (Empty, 0, Some(1)), "silence is answered too");
        assert_eq!(delta("language English<asr_text>Good bye"), (Partial, 8, Some(2)));
        assert!(s.tail_open());
        assert_eq!(s.texts().finals_and_tail, "Hello all. Good bye");
        s.ending();
        let raw =
            "language English<asr_text>Hello all.language None<asr_text>language English<asr_text>Good bye";
        let done = read(&mut *s, json!({ "type": "transcription.done", "text": raw, "usage": {} }));
        assert_eq!((done.signal, done.revised), (Signal::Final, 0));
        assert_eq!((s.texts().finals.as_str(), s.violations()), ("Hello all. Good bye", 0));
        read(&mut *s, json!({ "type": "transcription.delta", "delta": "more" }));
        assert_eq!(s.violations(), 1, "nothing follows the end");
    }

    #[test]
    fn vllm_errors_keep_their_words() {
        let error = |m: Value| read(&mut *session("vllm-realtime", Value::Null), m).signal;
        let words = "The model `x` does not exist.";
        assert_eq!(
            error(json!({ "type": "error", "error": words, "code": "model_not_found" })),
            Signal::ServerError(format!("{words} (model_not_found)"))
        );
        assert_eq!(
            error(json!({ "type": "error", "error": { "message": "full", "code": "too_many_sessions" } })),
            Signal::Busy("full (too_many_sessions)".into())
        );
        assert!(matches!(error(json!({ "type": "error" })), Signal::ServerError(words) if !words.is_empty()));
        let openai =
            error(json!({ "type": "session.created", "event_id": "e", "session": { "type": "realtime" } }));
        assert!(matches!(openai, Signal::Protocol(words) if words.contains("OpenAI")));
    }

    #[test]
    fn vllm_audio_is_base64_and_its_end_is_long_enough() {
        let d = dialect("vllm-realtime", json!({ "max_model_len": 4_096 }));
        assert_eq!(d.longest_call().map(|d| d.as_secs()), Some(145));
        let audio = |frame: &Frame| STANDARD.decode(said(frame)["audio"].as_str().unwrap()).unwrap();
        let pcm: Bytes = (0..3_360_u32).map(|i| i.to_le_bytes()[0]).collect(); // 105 ms
        let frames = d.prepare(&pcm, 3_200);
        assert_eq!(frames.len(), 2);
        assert_eq!(audio(&frames[0]), pcm[..3_200]);
        let last = audio(&frames[1]);
        assert_eq!(last.len(), 640, "5 ms of audio and 15 ms of silence");
        assert_eq!((&last[..160], &last[160..]), (&pcm[3_200..], &[0; 480][..]));
        assert_eq!(audio(&d.prepare(&pcm.slice(..320), 320)[0]).len(), 320, "a beginning is no end");
    }

    #[test]
    fn vosk_by_its_published_protocol() {
        let d = dialect("vosk", json!({ "phrase_list": ["yes", "no"] }));
        assert_eq!((d.evidence(), d.ready()), (Evidence::Ack, Ready::OnOpen));
        let mut s = d.session(&SessionStart::default());
        let hello =
            json!({ "config": { "sample_rate": 16_000, "words": false, "phrase_list": ["yes", "no"] } });
        assert_eq!(said(&s.opening()[0]), hello);
        assert_eq!(read(&mut *s, json!({ "partial": "" })).kind, MessageKind::Empty);
        assert_eq!(read(&mut *s, json!({ "partial": "hello wor" })).chars, 9);
        let result = json!([{ "word": "hello", "start": 0.1, "end": 0.4, "conf": 1.0 }]);
        let r = read(&mut *s, json!({ "result": result, "text": "hello world" }));
        assert_eq!((r.kind, r.revised), (MessageKind::Final, 0));
        read(&mut *s, json!({ "partial": "bye" }));
        assert!(s.tail_open());
        assert_eq!(s.ending(), [Frame::Text(r#"{"eof" : 1}"#.into())], "to the blank");
        assert_eq!(read(&mut *s, json!({ "text": "bye bye" })).signal, Signal::None, "the close ends it");
        let best = json!({ "alternatives": [{ "text": "yes", "confidence": 1.0 }, { "text": "yet" }] });
        assert_eq!(read(&mut *s, best).kind, MessageKind::Final);
        assert_eq!((s.texts().finals.as_str(), s.tail_open()), ("hello world bye bye yes", false));
    }

    #[test]
    fn funasr_by_its_published_protocol() {
        let mut s = session("funasr-2pass", Value::Null);
        let hello = said(&s.opening()[0]);
        assert_eq!(
            (&hello["mode"], &hello["chunk_size"], &hello["audio_fs"]),
            (&json!("2pass"), &json!([5, 10, 5]), &json!(16_000))
        );
        let online =
            |text: &str| json!({ "mode": "2pass-online", "wav_name": "x", "text": text, "is_final": false });
        let offline =
            |text: &str| json!({ "mode": "2pass-offline", "wav_name": "x", "text": text, "is_final": false });
        read(&mut *s, online("你好"));
        read(&mut *s, online("请文"));
        assert_eq!(s.texts().finals_and_tail, "你好请文");
        let corrected = read(&mut *s, offline("你好，请问"));
        assert_eq!((corrected.kind, corrected.revised), (MessageKind::Final, 2));
        read(&mut *s, online("再见"));
        assert!(s.tail_open());
        assert_eq!(said(&s.ending()[0]), json!({ "is_speaking": false }));
        assert_eq!(read(&mut *s, offline("再见。")).signal, Signal::None);
        let end = read(&mut *s, json!({ "text": "", "wav_name": "x", "is_final": true }));
        assert_eq!((end.kind, end.signal), (MessageKind::End, Signal::Final), "empty, and without a mode");
        assert_eq!(
            (s.texts().finals.as_str(), s.tail_open(), s.violations()),
            ("你好，请问 再见。", false, 0)
        );

        // The Python server marks every sentence final: that is not the end.
        let mut s = session(
            "funasr-2pass",
            json!({ "runtime": "python", "final_quiet_s": 3.0, "subprotocol": "binary" }),
        );
        assert_eq!(said(&s.ending()[0]), json!({ "is_speaking": false, "is_end": true }));
        let sentence = json!({ "mode": "2pass-offline", "wav_name": "x", "text": "one", "is_final": true });
        assert_eq!(read(&mut *s, sentence).signal, Signal::None);
        assert_eq!(read(&mut *s, json!({ "is_end": true, "is_final": true })).signal, Signal::Final);
    }

    /// A body as a server would see it: the fields, and the file.
    fn parts(session: &mut dyn Session, pcm: &[u8]) -> (Vec<(String, String)>, Vec<u8>) {
        let mut all = Vec::new();
        let bytes = |frame: Frame| match frame {
            Frame::Binary(bytes) => bytes,
            Frame::Text(text) => panic!("{text:?}"),
        };
        session.opening().into_iter().for_each(|f| all.extend_from_slice(&bytes(f)));
        all.extend_from_slice(pcm);
        session.ending().into_iter().for_each(|f| all.extend_from_slice(&bytes(f)));
        let boundary_end = all.windows(2).position(|w| w == b"\r\n").unwrap();
        let boundary = all[..boundary_end].to_vec();
        let tail = [b"\r\n", &boundary[..], b"--\r\n"].concat();
        assert!(all.ends_with(&tail));
        let file_at = all.windows(4).position(|w| w == b"RIFF").unwrap();
        let head = String::from_utf8(all[..file_at].to_vec()).unwrap();
        let boundary = String::from_utf8(boundary).unwrap();
        let fields = head.split(&boundary).filter_map(|part| {
            let (head, value) = part.trim_start_matches("\r\n").split_once("\r\n\r\n")?;
            let name = head.split("name=\"").nth(1)?.split('"').next()?;
            Some((name.to_owned(), value.trim_end().to_owned()))
        });
        (fields.collect(), all[file_at..all.len() - tail.len()].to_vec())
    }

    #[test]
    fn an_upload_is_a_form_with_a_wav_file() {
        let d =
            dialect("openai-transcriptions", json!({ "model": "m", "language": "en", "temperature": 0.0 }));
        assert_eq!((d.wire(), d.answers_during_call(), d.evidence()), (Wire::Http, false, Evidence::None));
        let boundary = d.upgrade().headers[0].1.split_once("boundary=").unwrap().1.to_owned();
        let pcm = vec![7; 6_400]; // 200 ms
        let start = SessionStart { audio: Duration::from_millis(200), ..SessionStart::default() };
        let mut s = d.session(&start);
        let Frame::Binary(head) = &d.session(&start).opening()[0] else { panic!() };
        assert!(head.starts_with(format!("--{boundary}\r\n").as_bytes()));
        let (fields, file) = parts(&mut *s, &pcm);
        let field = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!(
            (field("model"), field("language"), field("stream")),
            (Some("m"), Some("en"), Some("true"))
        );
        assert_eq!((field("temperature"), field("prompt"), field("file")), (Some("0"), None, Some("")));
        assert_eq!(file.len(), 44 + pcm.len());
        assert_eq!(file[4..8], (36 + 6_400_u32).to_le_bytes());
        assert_eq!((&file[8..16], &file[36..40]), (&b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!(file[24..28], 16_000_u32.to_le_bytes());
        assert_eq!(file[40..44], 6_400_u32.to_le_bytes());
        assert_eq!(file[44..], pcm[..]);
    }

    #[test]
    fn answers_to_uploads_of_every_kind() {
        let chunk = |delta: Value| json!({ "id": "x", "object": "transcription.chunk", "choices": [{ "delta": delta, "index": 0 }] });
        let stream = format!(
            "data: {}\n\ndata: {}\n\ndata: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
            chunk(json!({ "content": "" })),
            chunk(json!({ "content": " good" })),
            chunk(json!({ "content": " morning" })),
            json!({ "id": "x", "object": "transcription.chunk", "choices": [], "usage": { "total_tokens": 9 } }),
        );
        let mut s = session("openai-transcriptions", Value::Null);
        let readings: Vec<Reading> = SseEvents::default()
            .push(stream.as_bytes())
            .unwrap()
            .iter()
            .map(|data| s.read(Incoming::Text(std::str::from_utf8(data).unwrap())))
            .collect();
        let kinds: Vec<MessageKind> = readings.iter().map(|r| r.kind).collect();
        use MessageKind::{Empty, End, Partial};
        assert_eq!(kinds, [Empty, Partial, Partial, Empty, End]);
        assert_eq!(readings[4].signal, Signal::Final);
        assert_eq!((s.texts().finals.as_str(), s.tail_open(), s.violations()), ("good morning", false, 0));

        let mut s = session("openai-transcriptions", json!({ "stream": false }));
        let plain =
            s.read(Incoming::Binary(br#"{"text":"good morning","usage":{"type":"duration","seconds":2}}"#));
        assert_eq!((plain.kind, plain.chars, plain.signal), (End, 12, Signal::Final));
        assert_eq!(s.texts().finals, "good morning");

        let mut s = session("openai-transcriptions", Value::Null);
        read(&mut *s, json!({ "type": "transcript.text.delta", "delta": "good" }));
        let done = read(&mut *s, json!({ "type": "transcript.text.done", "text": "good" }));
        assert_eq!((done.signal, s.texts().finals.as_str(), s.violations()), (Signal::Final, "good", 0));

        let error = json!({ "error": { "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404 } });
        let error = read(&mut *session("openai-transcriptions", Value::Null), error).signal;
        assert_eq!(error, Signal::ServerError("The model `x` does not exist.".into()));
    }

    /// Of each server a message that gives it away.
    fn signatures() -> Vec<(&'static str, Value)> {
        vec![
            ("pcm-json", json!({ "type": "partial", "text": "hello", "audio_ms": 100 })),
            ("vllm-realtime", json!({ "type": "session.created", "id": "sess-1", "created": 1 })),
            ("vllm-realtime", json!({ "type": "transcription.delta", "delta": "hello" })),
            ("sherpa-onnx", json!({ "text": "hello", "tokens": ["hello"], "segment": 0, "is_final": false })),
            ("whisper-live", json!({ "uid": "x", "message": "SERVER_READY", "backend": "faster_whisper" })),
            ("whisper-live", json!({ "segments": [{ "start": "0.000", "end": "1.0", "text": "hello" }] })),
            ("whisper-live", json!({ "uid": "x", "status": "WAIT", "message": 2.0 })),
            (
                "funasr-2pass",
                json!({ "mode": "2pass-online", "text": "hello", "wav_name": "x", "is_final": false }),
            ),
            ("vosk", json!({ "partial": "hello" })),
            ("vosk", json!({ "text": "hello", "result": [{ "word": "hello" }] })),
            ("openai-transcriptions", json!({ "object": "transcription.chunk", "choices": [] })),
        ]
    }

    #[test]
    fn a_server_of_another_dialect_is_recognised() {
        for (server, message) in signatures() {
            assert_eq!(tapedeck_protocol::looks_like(&message), Some(server), "{message}");
            for ours in registry::names() {
                let signal = read(&mut *session(ours, Value::Null), message.clone()).signal;
                if ours == server {
                    assert!(!matches!(signal, Signal::Protocol(_)), "{server}: {signal:?}");
                } else if ours == "openai-transcriptions" && message["text"].is_string() {
                    // The plain answer of that protocol is any object with a text.
                } else {
                    let Signal::Protocol(words) = signal else { panic!("{ours} meets {server}: {signal:?}") };
                    assert_eq!(
                        words,
                        format!("the server looks like {server}: set server.dialect = \"{server}\"")
                    );
                }
            }
        }
        // Whoever says where the text is, or how its type is called, knows the server.
        let mut s =
            session("pcm-json", json!({ "type_field": "is_final", "partial": ["false"], "final": ["true"] }));
        assert_eq!(read(&mut *s, signatures()[3].1.clone()).kind, MessageKind::Partial);
        let mut s = session("pcm-json", json!({ "text_field": "partial", "untyped": "partial" }));
        assert_eq!(read(&mut *s, json!({ "partial": "hello" })).kind, MessageKind::Partial);
    }

    #[test]
    fn settings_that_do_not_fit_are_refused_by_name() {
        let cases = [
            ("vllm-realtime", json!({ "model": " " }), "model"),
            ("vllm-realtime", json!({ "max_model_len": 70 }), "max_model_len"),
            ("vllm-realtime", json!({ "language": "en" }), "language_marks"),
            ("sherpa-onnx", json!({ "step_ms": 0 }), "step_ms"),
            ("sherpa-onnx", json!({ "sample_rate": 8_000 }), "sample_rate"),
            ("whisper-live", json!({ "send_last_n_segments": 0 }), "send_last_n_segments"),
            ("whisper-live", json!({ "no_speech_thresh": 2 }), "no_speech_thresh"),
            ("funasr-2pass", json!({ "chunk_interval": 0 }), "chunk_interval"),
            ("funasr-2pass", json!({ "runtime": "java" }), "python"),
            ("funasr-2pass", json!({ "final_quiet_s": 0 }), "final_quiet_s"),
            ("vosk", json!({ "words": "yes" }), "vosk"),
            ("openai-transcriptions", json!({ "model": "" }), "model"),
            ("openai-transcriptions", json!({ "temperature": 3 }), "temperature"),
        ];
        for (name, settings, word) in cases {
            let error = registry::dialect(name, settings).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(word), "{error}");
        }
    }

    /// JSON that looks like one of the protocols, with anything at all inside.
    fn anything() -> impl Strategy<Value = Value> {
        let word = prop_oneof![
            "partial",
            "final",
            "error",
            "session.created",
            "transcription.delta",
            "transcription.done",
            "language English<asr_text>",
            "2pass-online",
            "2pass-offline",
            "SERVER_READY",
            "WAIT",
            "DISCONNECT",
            "transcription.chunk",
            "transcript.text.delta",
            "1e999",
            "-5.4",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            word.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 6, |inner| {
            let keys = prop_oneof![
                "type",
                "text",
                "delta",
                "mode",
                "is_final",
                "is_end",
                "segment",
                "segments",
                "start",
                "end",
                "completed",
                "tokens",
                "partial",
                "result",
                "alternatives",
                "status",
                "message",
                "uid",
                "error",
                "code",
                "object",
                "choices",
                "content",
                "session",
                "wav_name",
                "\\PC{0,6}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(keys, inner, 0..6)
                    .prop_map(|m| Value::from(serde_json::Map::from_iter(m))),
            ]
        })
    }

    fn any_dialect() -> impl Strategy<Value = &'static str> {
        prop::sample::select(registry::names().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn no_message_panics(
            name in any_dialect(),
            messages in prop::collection::vec(anything(), 0..30),
            end in 0_usize..30,
        ) {
            let mut s = session(name, Value::Null);
            s.opening();
            for (i, message) in messages.iter().enumerate() {
                if i == end {
                    s.ending();
                }
                s.read(Incoming::Text(&message.to_string()));
                s.replies();
            }
            let texts = s.texts();
            if !s.tail_open() && s.violations() == 0 {
                prop_assert_eq!(texts.finals, texts.finals_and_tail);
            }
            s.instance();
        }

        #[test]
        fn bytes_show_no_more_than_they_are(
            name in any_dialect(),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in "[\\x00-\\x7f]{0,80}",
        ) {
            let mut s = session(name, Value::Null);
            let mut chars = s.read(Incoming::Binary(&bytes)).chars as usize;
            chars += s.read(Incoming::Text(&text)).chars as usize;
            s.ending();
            chars += s.read(Incoming::Binary(text.as_bytes())).chars as usize;
            // A byte that is no text may be shown as the three of U+FFFD.
            let most = 3 * bytes.len() + 2 * text.len();
            let shown = s.texts().finals_and_tail;
            prop_assert!(chars <= most, "{}: {} characters of {}", name, chars, most);
            // Separators between pieces are the dialect's own.
            prop_assert!(shown.len() <= most + 3, "{}: {:?}", name, shown);
        }

        #[test]
        fn there_is_one_frame_for_each_chunk(
            name in any_dialect(),
            samples in 1_usize..3_000,
            chunk_ms in 1_usize..50,
        ) {
            let pcm = Bytes::from(vec![1; samples * 2]);
            let chunk = chunk_ms * 32;
            let frames = dialect(name, Value::Null).prepare(&pcm, chunk);
            prop_assert_eq!(frames.len(), pcm.len().div_ceil(chunk));
            prop_assert!(frames.iter().all(|f| !f.is_empty()));
        }
    }

    #[test]
    fn giant_and_deep_messages_are_read_or_refused() {
        let giant = "l".repeat(2 << 20);
        for name in registry::names() {
            for message in [
                "[".repeat(1 << 20),
                json!({ "type": "transcription.delta", "delta": giant, "text": giant, "partial": giant })
                    .to_string(),
            ] {
                let mut s = session(name, Value::Null);
                let reading = s.read(Incoming::Text(&message));
                assert!(reading.chars as usize <= message.len(), "{name}");
                let shown = s.texts().finals_and_tail;
                assert!(shown.len() <= giant.len(), "{name}: {} bytes", shown.len());
                if message.starts_with('[') {
                    let refused = matches!(reading.signal, Signal::Protocol(_));
                    assert!(refused && shown.is_empty(), "{name}: {:?}", reading.signal);
                }
            }
        }
    }
}
