//! The real `tape-gateway` in front of a scripted engine on a real socket: one call, the log line, draining,
//! refusals, exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served::{Call, Served, get};

/// An engine that is healthy, lists one model and hears `yes` in everything.
fn engine() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
                reader.read_line(&mut first).unwrap();
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    if let Some(n) = line.to_lowercase().strip_prefix("content-length: ") {
                        length = n.trim().parse().unwrap();
                    }
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                let body = match first.split(' ').nth(1).unwrap() {
                    "/v1/models" => r#"{"data":[{"id":"toy","max_model_len":4096}]}"#,
                    "/v1/chat/completions" => {
                        r#"{"choices":[{"message":{"content":"language English<asr_text>yes"}}]}"#
                    }
                    _ => "",
                };
                let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
    address
}

/// A running `tape-gateway`.
struct Gateway(Served);

impl Gateway {
    fn start(upstream: &str, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tape-gateway"));
        command
            .args(["--backend", "rolling", "--upstream", &format!("http://{upstream}")])
            .args(args)
            .stderr(Stdio::piped());
        Self(Served::start(&mut command))
    }

    fn get(&self, path: &str) -> String {
        get(self.0.address(), path)
    }

    fn call(&self) -> Result<Call, String> {
        Call::open(self.0.address(), "")
    }
}

#[test]
fn a_terminated_gateway_lets_its_call_finish_and_logs_it_without_a_word() {
    let gateway = Gateway::start(&engine(), &[]);
    assert_eq!(
        (&gateway.0.ready["backend"], &gateway.0.ready["upstreams_up"]),
        (&"rolling".into(), &1.into())
    );
    assert!(gateway.get("/health").starts_with("HTTP/1.1 200"));
    let mut call = gateway.call().unwrap();
    for _ in 0..20 {
        call.send(2, &[1; 3_200]);
    }
    let (_, partial) = call.receive();
    assert_eq!(partial, br#"{"type":"partial","text":"yes","audio_ms":2000,"instance":"inst1"}"#);
    gateway.0.terminate();
    while !gateway.get("/health").starts_with("HTTP/1.1 503") {
        std::thread::yield_now();
    }
    assert!(gateway.call().err().unwrap().contains(" 503 "));
    call.send(1, br#"{"type":"end"}"#);
    assert_eq!(call.receive().1, br#"{"type":"final","text":"yes","audio_ms":2000,"instance":"inst1"}"#);
    assert_eq!(call.receive().0, 8);
    let (code, log) = gateway.0.wait();
    assert_eq!(code, Some(0));
    let line: Value = serde_json::from_str(log.trim()).unwrap();
    assert_eq!(
        (&line["outcome"], &line["audio_s"], &line["chars"]),
        (&"done".into(), &2.0.into(), &3.into())
    );
    assert!(!log.contains("yes"));
}

#[test]
fn calls_that_do_not_finish_in_time_are_cut_and_the_exit_code_says_so() {
    let gateway = Gateway::start(&engine(), &["--drain-s", "0", "--max-sessions", "1"]);
    let _call = gateway.call().unwrap();
    assert!(gateway.call().err().unwrap().contains(" 503 "));
    assert!(gateway.get("/metrics").contains("\ntapedeck_gateway_sessions_open 1.0\n"));
    gateway.0.terminate();
    assert_eq!(gateway.0.wait().0, Some(130));
}

#[test]
fn wrong_flags_are_named() {
    for (args, words) in [
        (&["--upstream", "nowhere:1"][..], "--upstream"),
        (&["--upstream", "http://h:1", "--backend", "rolling", "--window-s=-1"], "--window-s"),
        (&["--upstream", "a=http://h:1,a=http://h:2"], "two upstreams"),
        (&["--upstream", "http://h:1", "--token-env", "TAPE_GATEWAY_TEST_UNSET"], "TAPE_GATEWAY_TEST_UNSET"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tape-gateway")).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
}
