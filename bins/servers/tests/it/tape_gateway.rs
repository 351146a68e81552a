//! The real `tape-gateway` in front of a scripted engine on a real socket: one call, the log line, draining,
//! refusals, exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything here takes; a hang fails instead of hanging the suite.
const LIMIT: Duration = Duration::from_secs(60);

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

struct Gateway {
    child: Child,
    address: String,
    ready: Value,
}

impl Gateway {
    fn start(upstream: &str, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tape-gateway"))
            .args(["--backend", "rolling", "--upstream", &format!("http://{upstream}")])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        Self { child, address: ready["listen"].as_str().unwrap().to_owned(), ready }
    }

    fn terminate(&self) {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Exit code and what was logged.
    fn wait(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// An upgraded connection, or the status line.
    fn call(&self) -> Result<BufReader<TcpStream>, String> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
            .write_all(
                b"GET /asr HTTP/1.1\r\nhost: g\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                  sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            )
            .unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        if !status.contains(" 101 ") {
            return Err(status);
        }
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Ok(reader)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A masked frame; the mask of zeros changes nothing.
fn send(call: &mut BufReader<TcpStream>, opcode: u8, payload: &[u8]) {
    let mut frame = vec![0x80 | opcode, 0x80 | 126];
    frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(payload);
    call.get_mut().write_all(&frame).unwrap();
}

/// The next frame: opcode and payload.
fn receive(call: &mut BufReader<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    call.read_exact(&mut head).unwrap();
    assert!(head[1] < 126, "short messages only");
    let mut payload = vec![0; usize::from(head[1])];
    call.read_exact(&mut payload).unwrap();
    (head[0] & 15, payload)
}

#[test]
fn a_terminated_gateway_lets_its_call_finish_and_logs_it_without_a_word() {
    let gateway = Gateway::start(&engine(), &[]);
    assert_eq!((&gateway.ready["backend"], &gateway.ready["upstreams_up"]), (&"rolling".into(), &1.into()));
    assert!(gateway.get("/health").starts_with("HTTP/1.1 200"));
    let mut call = gateway.call().unwrap();
    for _ in 0..20 {
        send(&mut call, 2, &[1; 3_200]);
    }
    let (_, partial) = receive(&mut call);
    assert_eq!(partial, br#"{"type":"partial","text":"yes","audio_ms":2000,"instance":"inst1"}"#);
    gateway.terminate();
    while !gateway.get("/health").starts_with("HTTP/1.1 503") {
        std::thread::yield_now();
    }
    assert!(gateway.call().unwrap_err().contains(" 503 "));
    send(&mut call, 1, br#"{"type":"end"}"#);
    assert_eq!(receive(&mut call).1, br#"{"type":"final","text":"yes","audio_ms":2000,"instance":"inst1"}"#);
    assert_eq!(receive(&mut call).0, 8);
    let (code, log) = gateway.wait();
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
    assert!(gateway.call().unwrap_err().contains(" 503 "));
    assert!(gateway.get("/metrics").contains("\ntapedeck_gateway_sessions_open 1.0\n"));
    gateway.terminate();
    assert_eq!(gateway.wait().0, Some(130));
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
