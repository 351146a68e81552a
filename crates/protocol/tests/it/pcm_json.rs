//! `pcm-json` as servers speak it, well and badly.

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tapedeck_protocol::{
        Dialect, Frame, Incoming, Reading, Ready, Session, SessionStart, Signal, registry,
    };
    use tapedeck_record::{Evidence, MessageKind};

    fn dialect(settings: Value) -> Arc<dyn Dialect> {
        registry::dialect("pcm-json", settings).unwrap()
    }

    fn session(settings: Value) -> Box<dyn Session> {
        dialect(settings).session(&SessionStart::default())
    }

    fn read(session: &mut dyn Session, message: Value) -> Reading {
        session.read(Incoming::Text(&message.to_string()))
    }

    fn refusal(settings: Value) -> String {
        registry::dialect("pcm-json", settings).unwrap_err().to_string()
    }

    #[test]
    fn audio_is_cut_without_copying() {
        let pcm = Bytes::from((0..8_000_u32).map(|i| i.to_le_bytes()[0]).collect::<Vec<_>>());
        let frames = dialect(Value::Null).prepare(&pcm, 3_200);
        assert_eq!(frames.iter().map(Frame::len).collect::<Vec<_>>(), [3_200, 3_200, 1_600]);
        for (i, frame) in frames.iter().enumerate() {
            let Frame::Binary(bytes) = frame else { panic!("{frame:?}") };
            assert_eq!(bytes.as_ptr(), pcm[i * 3_200..].as_ptr(), "a slice, not a copy");
        }
        assert!(dialect(Value::Null).prepare(&Bytes::new(), 3_200).is_empty());
    }

    #[test]
    fn the_default_conversation() {
        let dialect = dialect(Value::Null);
        let promises = (dialect.evidence(), dialect.ready(), dialect.window());
        assert_eq!(promises, (Evidence::Position, Ready::OnOpen, None));
        let mut s = dialect.session(&SessionStart::default());
        assert!(s.opening().is_empty());
        let first =
            read(&mut *s, json!({ "type": "partial", "text": "", "audio_ms": 0, "instance": "inst2" }));
        assert_eq!((first.kind, first.chars), (MessageKind::Empty, 0), "empty text is no first text");
        let second = read(&mut *s, json!({ "type": "partial", "text": " hello wurld", "audio_ms": 800 }));
        assert_eq!((second.kind, second.chars, second.position_ms), (MessageKind::Partial, 11, Some(800)));
        let early = read(&mut *s, json!({ "type": "final", "text": "hello world", "audio_ms": 1_600 }));
        assert_eq!((early.kind, early.revised, early.signal), (MessageKind::Final, 4, Signal::None));
        assert_eq!(s.ending(), [Frame::Text(r#"{"type":"end"}"#.into())]);
        let last =
            read(&mut *s, json!({ "type": "final", "text": "hello world again", "audio_ms": 2_000.0 }));
        assert_eq!((last.kind, last.signal), (MessageKind::End, Signal::Final));
        assert_eq!((s.texts().finals.as_str(), s.tail_open()), ("hello world again", false));
        assert_eq!((s.instance(), s.violations()), (Some("inst2"), 0));
    }

    #[test]
    fn every_name_is_a_setting() {
        let dialect = dialect(json!({
            "type_field": "final", "partial": ["false"], "final": ["true"], "done": ["eos"],
            "text_field": "alternatives.0.transcript", "position_field": "end", "position_unit": "s",
            "segment_field": "start", "text_model": "segment", "instance_field": "meta.host",
            "start_message": "{\"rate\":16000}", "end_message": "EOS", "end_rule": "done",
            "final_quiet_s": 1.5,
        }));
        assert_eq!(dialect.final_quiet(), Some(Duration::from_millis(1_500)));
        let mut s = dialect.session(&SessionStart::default());
        assert_eq!(s.opening(), [Frame::Text("{\"rate\":16000}".to_owned().into())]);
        let m = |is_final: bool, start: f64, text: &str, end: f64| {
            json!({ "final": is_final, "start": start, "alternatives": [{ "transcript": text }], "end": end,
                    "meta": { "host": "gpu1" } })
        };
        read(&mut *s, m(false, 0.0, "four hundred", 1.2));
        let r = read(&mut *s, m(true, 0.0, "four hundred forty", 2.001));
        assert_eq!(r.position_ms, Some(2_001));
        read(&mut *s, m(false, 2.5, "thanks", 3.0));
        assert_eq!(s.ending(), [Frame::Text("EOS".into())]);
        assert_eq!(
            read(&mut *s, m(true, 2.5, "thanks", 3.0)).signal,
            Signal::None,
            "finals end nothing here"
        );
        assert_eq!(read(&mut *s, json!({ "final": "eos" })).signal, Signal::Final);
        assert_eq!(s.texts().finals, "four hundred forty thanks");
        assert_eq!((s.instance(), s.violations(), s.tail_open()), (Some("gpu1"), 0, false));
    }

    #[test]
    fn a_tail_that_is_never_final_stays_open() {
        let mut s = session(json!({ "text_model": "segment", "done": ["done"] }));
        read(&mut *s, json!({ "type": "final", "text": "hello there" }));
        read(&mut *s, json!({ "type": "partial", "text": "how are" }));
        s.ending();
        assert_eq!(read(&mut *s, json!({ "type": "done" })).signal, Signal::Final);
        let texts = s.texts();
        assert_eq!(texts.finals, "hello there");
        assert_eq!(texts.finals_and_tail, "hello there how are");
        assert!(s.tail_open());
    }

    #[test]
    fn untyped_text_counts_as_final_unless_told_otherwise() {
        let mut s = session(Value::Null);
        assert_eq!(s.read(Incoming::Binary(br#"{"text":"ok"}"#)).kind, MessageKind::Final);
        assert_eq!(s.texts().finals, "ok");
        let mut s = session(json!({ "untyped": "partial" }));
        assert_eq!(read(&mut *s, json!({ "text": "ok" })).kind, MessageKind::Partial);
        assert_eq!(read(&mut *s, json!({ "heartbeat": 1 })), Reading::EMPTY);
    }

    #[test]
    fn errors_and_refusals_keep_the_servers_words() {
        let mut s = session(json!({ "ready": ["hello"], "message_field": "detail" }));
        assert_eq!(read(&mut *s, json!({ "type": "hello" })).signal, Signal::Ready);
        let busy = read(&mut *s, json!({ "type": "busy", "detail": "try later" }));
        assert_eq!(busy.signal, Signal::Busy("try later".into()));
        let error = read(&mut *s, json!({ "type": "error", "detail": { "code": 7 } }));
        assert_eq!(error.signal, Signal::ServerError(r#"{"code":7}"#.into()));
        let error = read(&mut *s, json!({ "type": "error" }));
        assert!(matches!(error.signal, Signal::ServerError(words) if !words.is_empty()));
    }

    #[test]
    fn broken_invariants_are_counted() {
        let mut s = session(Value::Null);
        read(&mut *s, json!({ "type": "partial", "text": "a", "audio_ms": 900 }));
        assert_eq!(s.violations(), 0);
        read(&mut *s, json!({ "type": "partial", "text": "a b", "audio_ms": 800 }));
        assert_eq!(s.violations(), 1, "a position went back");
        read(&mut *s, json!({ "type": "partial", "text": "a b", "audio_ms": "soon" }));
        assert_eq!(s.violations(), 2, "a position that is none");
        s.ending();
        read(&mut *s, json!({ "type": "final", "text": "a b" }));
        read(&mut *s, json!({ "type": "final", "text": "a b" }));
        assert_eq!(s.violations(), 3, "something followed the end");
    }

    #[test]
    fn what_breaks_the_protocol_is_said_without_quoting_it() {
        let bad =
            ["private words", "", "[1]", "\"private\"", "nul", r#"{"type":"final","text":["private"]}"#];
        for bad in bad {
            let reading = session(Value::Null).read(Incoming::Text(bad));
            let Signal::Protocol(words) = reading.signal else { panic!("{bad}: {reading:?}") };
            assert!(!words.contains("private"), "{words}");
        }
        let deep = "[".repeat(1 << 20);
        assert!(matches!(session(Value::Null).read(Incoming::Text(&deep)).signal, Signal::Protocol(_)));
    }

    #[test]
    fn settings_that_do_not_fit_are_refused_by_name() {
        let cases = [
            (json!({ "end_message": "" }), "end_message"),
            (json!({ "end_rule": "done" }), "done"),
            (json!({ "segment_field": "start" }), "segment_field"),
            (json!({ "final_quiet_s": -1.0 }), "final_quiet_s"),
            (json!({ "evidence": "per_window" }), "evidence"),
            (json!({ "evidence": "position", "position_field": null }), "evidence"),
            (json!({ "text_field": "" }), "text_field"),
            (json!({ "text_model": "replace" }), "cumulative"),
            (json!("ws"), "settings"),
        ];
        for (settings, word) in cases {
            let error = refusal(settings);
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(dialect(json!({ "position_field": null })).evidence(), Evidence::None);
        assert_eq!(dialect(json!({ "evidence": "ack" })).evidence(), Evidence::Ack);
    }

    /// JSON that looks like the protocol, with anything at all inside.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            prop_oneof!["partial", "final", "end", "error", "busy", "done"].prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            let keys = prop_oneof!["type", "text", "audio_ms", "instance", "start", "message", "\\PC{0,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(keys, inner, 0..6)
                    .prop_map(|m| Value::from(serde_json::Map::from_iter(m))),
            ]
        })
    }

    fn any_settings() -> impl Strategy<Value = Value> {
        let model = prop_oneof!["cumulative", "append", "segment"];
        let rule = prop_oneof!["first_final", "close", "done"];
        let unit = prop_oneof!["ms", "s", "samples"];
        (model, rule, unit).prop_map(|(model, rule, unit)| {
            let segment = (model == "segment").then_some("start");
            json!({ "text_model": model, "end_rule": rule, "position_unit": unit, "done": ["done"],
                    "segment_field": segment })
        })
    }

    proptest! {
        #[test]
        fn no_message_panics(
            settings in any_settings(),
            messages in prop::collection::vec(anything(), 0..30),
            end in 0_usize..30,
        ) {
            let mut s = session(settings);
            s.opening();
            for (i, message) in messages.iter().enumerate() {
                if i == end {
                    s.ending();
                }
                let text = message.to_string();
                let reading = s.read(Incoming::Text(&text));
                prop_assert!(reading.chars as usize <= text.len());
                s.replies();
            }
            // What is final is all that is shown, unless a tail is open or the server broke its own rules.
            let texts = s.texts();
            if !s.tail_open() && s.violations() == 0 {
                prop_assert_eq!(texts.finals, texts.finals_and_tail);
            }
            s.instance();
        }

        #[test]
        fn bytes_that_are_no_object_break_the_protocol(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
            let mut s = session(Value::Null);
            for message in [Incoming::Binary(&bytes), Incoming::Text(&text), Incoming::Binary(text.as_bytes())] {
                let reading = s.read(message);
                let object = match message {
                    Incoming::Binary(bytes) => serde_json::from_slice::<Value>(bytes),
                    Incoming::Text(text) => serde_json::from_str::<Value>(text),
                };
                if !object.is_ok_and(|value| value.is_object()) {
                    prop_assert!(matches!(reading.signal, Signal::Protocol(_)), "{:?}", reading.signal);
                    prop_assert_eq!(reading.chars, 0);
                }
                s.ending();
            }
            prop_assert!(s.texts().finals_and_tail.len() <= bytes.len() + 2 * text.len());
        }

        #[test]
        fn frames_put_together_are_the_audio(
            pcm in prop::collection::vec(any::<u8>(), 0..5_000),
            chunk in 0_usize..1_000,
        ) {
            let mut all = Vec::new();
            for frame in dialect(Value::Null).prepare(&Bytes::from(pcm.clone()), chunk) {
                prop_assert!(!frame.is_empty() && frame.len() <= chunk.max(1));
                if let Frame::Binary(bytes) = frame {
                    all.extend_from_slice(&bytes);
                }
            }
            prop_assert_eq!(all, pcm);
        }
    }
}
