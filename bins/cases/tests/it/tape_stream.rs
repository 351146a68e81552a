//! `tape-stream` against a scripted server on a socket of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
: keep-alive\n\n\
data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n\
data: {\"choices\":[{\"delta\":{\"content\":\" you\"},\"finish_reason\":\"stop\"}]}\n\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4}}\n\n\
data: [DONE]\n\n";

/// Answers every connection alike; returns its address and what was asked so far.
fn server(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = String::new();
            let mut piece = [0; 4096];
            // The body is JSON and ends with the outermost brace.
            while !request.ends_with('}') {
                let n = socket.read(&mut piece).unwrap();
                if n == 0 {
                    break;
                }
                request.push_str(&String::from_utf8_lossy(&piece[..n]));
            }
            heard.lock().unwrap().push(request);
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    (url, asked)
}

fn ask(url: &str, out: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let run = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tape-stream"))
        .env("INFERENCE_API_KEY", "hunter2")
        .args(["--url", url, "--model", "m", "--prompt", "why?", "--out"])
        .arg(out)
        .args(flags)
        .output()
        .unwrap();
    let text = [run.stdout, run.stderr].concat();
    (run.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_run_leaves_its_record_and_never_its_key() {
    let (url, asked) = server(ANSWER);
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--requests", "6", "--concurrency", "2", "--experiment", "one request at a time"];
    let (code, text) = ask(&url, folder.path(), &flags);
    assert_eq!(code, Some(0), "{text}");
    for words in ["with an API key: closed, 2 at once", "6 ok", "cold", "first text", "goodput"] {
        assert!(text.contains(words), "no {words} in\n{text}");
    }
    let requests = std::fs::read_to_string(folder.path().join("requests.jsonl")).unwrap();
    assert_eq!(requests.lines().count(), 7, "six and the cold one");
    let record: toml::Table =
        toml::from_str(&std::fs::read_to_string(folder.path().join("record.toml")).unwrap()).unwrap();
    assert_eq!(record["experiment"].as_str(), Some("one request at a time"));
    assert_eq!(record["engine"].as_str(), Some("unknown"));
    assert_eq!(record["load"]["prompt_tokens_mean"].as_str(), Some("10.0"));
    assert_eq!(record["quality"]["success"].as_integer(), Some(6));
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|a| a.contains("Bearer hunter2") && a.contains("\"stream\":true")));
    let figures = std::fs::read_to_string(folder.path().join("figures.json")).unwrap();
    for told in [&text, &requests, &figures] {
        assert!(!told.contains("hunter2"));
    }
}

#[test]
fn an_open_loop_and_a_config_with_a_price() {
    let (url, _) = server(ANSWER);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stream.toml");
    let text =
        "[price]\ncurrency = \"EUR\"\nper_million_completion = 1000000.0\n[load]\ncold_first = false\n";
    std::fs::write(&config, text).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--rate", "50", "--requests", "5", "--json"];
    let (code, text) = ask(&url, &folder.path().join("out"), &flags);
    assert_eq!(code, Some(0), "{text}");
    let answer: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(answer["answer"]["requests"], 5);
    assert_eq!(answer["answer"]["cost"], 20.0, "4 tokens x 5 at a currency unit each");
}

#[test]
fn failures_have_codes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) =
        server("HTTP/1.1 401 Unauthorized\r\ncontent-length: 11\r\nconnection: close\r\n\r\nno such key");
    let (code, text) = ask(&url, folder.path(), &["--requests", "1"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("http_status no such key"), "{text}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, text) = ask(&format!("http://{free}"), folder.path(), &["--requests", "1"]);
    assert_eq!(code, Some(3), "{text}");
    let (code, text) = ask("", folder.path(), &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("server.url: missing"), "{text}");
    let (code, text) = ask("http://h", folder.path(), &["--rate", "-1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("load.rate_per_s"), "{text}");
}
