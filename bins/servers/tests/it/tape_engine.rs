//! The real `tape-engine`, started as its users start it: addresses, balancing, draining, exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::served::{Call, Served, get};

/// A running `tape-engine`.
struct Server(Served);

impl Server {
    fn start(args: &[&str]) -> Self {
        Self(Served::start(Command::new(env!("CARGO_BIN_EXE_tape-engine")).args(args)))
    }

    fn instances(&self) -> Vec<&str> {
        self.0.ready["instances"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect()
    }

    fn balancer(&self) -> &str {
        self.0.ready["balancer"].as_str().unwrap()
    }
}

fn say(call: &mut Call, pcm: &[u8]) {
    pcm.chunks(3_200).for_each(|chunk| call.send(2, chunk));
}

/// Ends the call and reads every message up to the close frame, whose code is the second answer.
fn finish(mut call: Call) -> (Vec<Value>, u16) {
    call.send(1, b"{\"type\":\"end\"}");
    let mut messages = Vec::new();
    loop {
        match call.receive() {
            (1, payload) => messages.push(serde_json::from_slice(&payload).unwrap()),
            (8, payload) => return (messages, u16::from_be_bytes([payload[0], payload[1]])),
            _ => {}
        }
    }
}

/// Half a second of a loud tone.
fn tone() -> Vec<u8> {
    (0..8_000_u32).flat_map(|n| (if n / 20 % 2 == 0 { 8_000_i16 } else { -8_000 }).to_le_bytes()).collect()
}

/// Which instances answer this many calls that are all open at once, in the order of opening.
fn who_answers(address: &str, calls: usize) -> Vec<String> {
    let mut open: Vec<_> = (0..calls).map(|_| Call::open(address, "").unwrap()).collect();
    open.iter_mut().for_each(|call| say(call, &tone()));
    let answer = |call: Call| {
        let (messages, code) = finish(call);
        assert_eq!(code, 1000);
        messages.last().unwrap()["instance"].as_str().unwrap().to_owned()
    };
    open.into_iter().map(answer).collect()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

#[test]
fn three_instances_behind_a_balancer_share_the_calls() {
    let server = Server::start(&["--instances", "3", "--balancer", "127.0.0.1:0"]);
    assert_eq!(server.0.ready["simulated"], true);
    assert_eq!(server.instances().len(), 3);
    for address in server.instances() {
        assert!(get(address, "/health").starts_with("HTTP/1.1 200"));
        assert!(get(address, "/metrics").contains("\ntapedeck_simulated 1.0\n"));
    }
    assert_eq!(who_answers(server.balancer(), 6), ["inst1", "inst2", "inst3", "inst1", "inst2", "inst3"]);
    server.0.terminate();
    assert_eq!(server.0.wait().0, Some(0));
}

#[test]
fn a_process_each_behind_a_balancer_process() {
    let first = Server::start(&["--instances", "1", "--first", "4"]);
    let second = Server::start(&["--instances", "1", "--first", "5", "--name", "node-"]);
    let backends = format!("{},{}", first.instances()[0], second.instances()[0]);
    let balancer = Server::start(&["--balance", &backends]);
    assert_eq!(who_answers(balancer.balancer(), 4), ["inst4", "node-5", "inst4", "node-5"]);
    drop(first); // killed, not asked
    assert_eq!(who_answers(balancer.balancer(), 3), ["node-5"; 3]);
    balancer.0.terminate();
    assert_eq!(balancer.0.wait().0, Some(0));
}

#[test]
fn a_terminated_engine_lets_its_call_finish() {
    let server = Server::start(&["--instances", "1"]);
    let address = server.instances()[0].to_owned();
    let mut call = Call::open(&address, "").unwrap();
    say(&mut call, &tone());
    server.0.terminate();
    while !get(&address, "/health").starts_with("HTTP/1.1 503") {
        std::thread::yield_now();
    }
    assert!(Call::open(&address, "").err().unwrap().contains(" 503 "));
    let (messages, code) = finish(call);
    assert_eq!((messages.last().unwrap()["type"].as_str(), code), (Some("final"), 1000));
    assert_eq!(server.0.wait().0, Some(0));
}

#[test]
fn calls_that_do_not_finish_in_time_are_cut_and_the_exit_code_says_so() {
    let server = Server::start(&["--instances", "1", "--drain-s", "0"]);
    let _call = Call::open(server.instances()[0], "").unwrap();
    while !get(server.instances()[0], "/metrics").contains("\nvllm:websocket_connections_active 1.0\n") {
        std::thread::yield_now();
    }
    server.0.terminate();
    assert_eq!(server.0.wait().0, Some(130));
}

#[test]
fn a_tape_gives_the_engine_its_words() {
    let (tape, pool) = (fixtures().join("tapes/tape-a-tenth.json"), fixtures().join("pool-tenth"));
    let (tape, pool) = (tape.to_str().unwrap(), pool.to_str().unwrap());
    let params = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(params.path(), "[degradation]\nbase = 0.0\nworst = 0.0\n").unwrap();
    let params = params.path().to_str().unwrap();
    let server = Server::start(&["--instances", "1", "--tape", tape, "--pool", pool, "--params", params]);

    let loaded = tapedeck_tape::Tape::load(Path::new(tape), Path::new(pool)).unwrap();
    let known = loaded.calls.iter().find(|c| c.reference.is_some()).unwrap();
    let mut call = Call::open(server.instances()[0], "").unwrap();
    say(&mut call, &known.pcm);
    let (messages, code) = finish(call);
    let words: Vec<_> = messages.last().unwrap()["text"].as_str().unwrap().split_whitespace().collect();
    let spoken: Vec<_> = known.reference.as_ref().unwrap().text.split_whitespace().collect();
    assert_eq!((words, code), (spoken, 1000));
}

#[test]
fn a_token_from_the_environment_is_asked_of_callers() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tape-engine"));
    command.args(["--instances", "1", "--token-env", "TAPE_ENGINE_TEST_UNSET"]);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));

    // PATH is set everywhere; any variable will do as a token.
    let server = Server::start(&["--instances", "1", "--token-env", "PATH"]);
    let address = server.instances()[0];
    assert!(Call::open(address, "").err().unwrap().contains(" 401 "));
    let token = format!("authorization: Bearer {}\r\n", std::env::var("PATH").unwrap());
    assert!(Call::open(address, &token).is_ok());
}

#[test]
fn faults_are_injected_and_callers_refused_on_request() {
    let server = Server::start(&["--instances", "1", "--fault-injection", "handshake:500/2"]);
    let address = server.instances()[0];
    assert!(Call::open(address, "").err().unwrap().contains(" 500 "));
    assert_eq!(who_answers(address, 1), ["inst1"]);

    let params = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(params.path(), "max_sessions = 0\n").unwrap();
    let params = params.path().to_str().unwrap();
    let full = Server::start(&["--instances", "1", "--params", params, "--refusal", "message"]);
    let (messages, code) = finish(Call::open(full.instances()[0], "").unwrap());
    assert_eq!((messages[0]["type"].as_str(), code), (Some("busy"), 1013));
}

/// Runs it with arguments that must not work; gives exit code and words.
fn fails(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tape-engine")).args(args).output().unwrap();
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_wrong_is_said_with_the_right_exit_code() {
    let params = tempfile::NamedTempFile::new().unwrap();
    let path = params.path().to_str().unwrap();
    for (text, words) in [("windows_ms = 5000\n", "window_ms"), ("window_ms = 0\n", "at least 1")] {
        std::fs::write(params.path(), text).unwrap();
        let (code, said) = fails(&["--params", path]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(words) && said.contains(path), "{said}");
    }
    let (code, said) = fails(&["--fault-injection", "sulk:1"]);
    assert!(code == Some(2) && said.contains("slow-reader:MS"), "{said}");
    let (code, said) = fails(&["--tape", "nowhere.json", "--pool", "."]);
    assert!(code == Some(2) && said.contains("nowhere.json"), "{said}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = fails(&["--instances", "1", "--listen", &address]);
    assert!(code == Some(3) && said.contains(&address), "{said}");
}
