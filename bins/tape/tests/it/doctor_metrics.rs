//! `tape-doctor metrics`: what it prints and what it answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;
use tapedeck_record::ExitCode;
use tapedeck_tape_bins::doctor::{Cli, run};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/metrics").join(name);
    path.to_str().unwrap().to_owned()
}

fn doctor(args: &[&str]) -> (String, Option<ExitCode>) {
    let cli = Cli::try_parse_from(["tape-doctor", "metrics"].iter().chain(args)).unwrap();
    let mut out = Vec::new();
    let code = run(&cli, &mut out);
    (String::from_utf8(out).unwrap(), code.ok())
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Answers one connection with `body` and gives the URL.
fn serve(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let _ = stream.read(&mut asked);
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
    });
    url
}

#[test]
fn a_real_page_is_shown_in_our_words() {
    let (text, code) = doctor(&[&fixture("vllm-metrics-realtime-preempted.txt")]);
    assert_eq!(code, Some(ExitCode::Ok));
    for (ours, rest) in [
        ("kv_pool", "1   vllm:kv_cache_usage_perc"),
        ("preemptions", "3   vllm:num_preemptions_total"),
        ("waiting_capacity", "3   vllm:num_requests_waiting_by_reason{reason=\"capacity\"}"),
        ("queue", "sum not usable"),
        ("pool", "2048 tokens, prefix caching on"),
    ] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{ours} ")) && line.contains(rest));
        assert!(line.is_some(), "{ours} {rest} in\n{text}");
    }
    assert!(text.contains("0 line(s) not understood"), "{text}");
}

#[test]
fn json_has_the_same_figures_per_source() {
    let (text, code) =
        doctor(&["--json", &fixture("vllm-metrics-idle.txt"), &fixture("g01-nvidia-smi-mig.csv")]);
    assert_eq!(code, Some(ExitCode::Ok));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["values"]["kv_pool"]["value"], 0.0);
    assert_eq!(json[0]["values"]["kv_pool"]["from"], "vllm:kv_cache_usage_perc");
    assert_eq!(json[0]["pool"]["size_tokens"], 65_536);
    assert_eq!(json[0]["missing"], Value::Array(Vec::new()));
    assert_eq!(json[1]["gpus"][0]["reading"]["utilisation"], Value::Null);
    assert_eq!(json[1]["gpus"][0]["not_available"]["utilisation"], "N/A");
}

#[test]
fn values_that_are_no_numbers_stay_out_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let page = "vllm:kv_cache_usage_perc NaN\nvllm:num_preemptions_total 1\nvllm:num_requests_running +Inf\n";
    let (text, code) = doctor(&["--json", &write(folder.path(), "page", page)]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["values"].as_object().unwrap().keys().collect::<Vec<_>>(), ["preemptions"]);
    assert_eq!(code, Some(ExitCode::No));
}

#[test]
fn a_page_without_the_red_lines_is_a_no_with_the_nearest_names() {
    let folder = tempfile::tempdir().unwrap();
    let page = "vllm:kv_cache_use_perc 0.5\nvllm:num_requests_running 1\nwhat is this\n";
    let (text, code) = doctor(&[&write(folder.path(), "page", page)]);
    assert_eq!(code, Some(ExitCode::No));
    assert!(text.contains("the page has vllm:kv_cache_use_perc"), "{text}");
    assert!(text.contains("1 line(s) not understood") && text.contains("what is this"), "{text}");
    assert!(text.contains("cannot be watched without kv_pool and preemptions"), "{text}");

    let other = write(folder.path(), "other", "up 1\n");
    let (text, code) = doctor(&[&other]);
    assert_eq!(code, Some(ExitCode::No));
    assert!(text.contains("is it the right page?"), "{text}");
    assert_eq!(doctor(&["--kind", "none", &other]).1, Some(ExitCode::Ok));
}

#[test]
fn a_page_of_gpus_is_read_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let page = "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\",modelName=\"NVIDIA A40\"} 37\n";
    let (text, code) = doctor(&[&write(folder.path(), "page", page)]);
    assert_eq!(code, Some(ExitCode::Ok));
    assert!(text.contains("GPU-1 (NVIDIA A40)") && text.contains("0.3700"), "{text}");
    assert!(text.contains("the page has no DCGM_FI_DEV_POWER_USAGE"), "{text}");
}

#[test]
fn servers_answer_or_fail_with_their_own_code() {
    let page = std::fs::read_to_string(fixture("vllm-metrics-realtime-load.txt")).unwrap();
    let url = serve("200 OK", page);
    let (text, code) = doctor(&[&url]);
    assert_eq!(code, Some(ExitCode::Ok), "{text}");
    assert!(
        text.contains("open_sessions") && text.contains("12   vllm:websocket_connections_active"),
        "{text}"
    );

    let html = serve("200 OK", std::fs::read_to_string(fixture("m09-html-with-200.prom")).unwrap());
    let (text, code) = doctor(&[&html, &fixture("m09-html-with-200.prom")]);
    assert_eq!(code, Some(ExitCode::Environment));
    assert_eq!(text.matches("markup").count(), 2, "{text}");

    let (text, code) = doctor(&[&serve("500 Internal Server Error", String::new())]);
    assert_eq!(code, Some(ExitCode::Environment));
    assert!(text.contains("500"), "{text}");

    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (text, code) = doctor(&["--json", &format!("http://{gone}/metrics")]);
    assert_eq!(code, Some(ExitCode::Environment));
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere").to_str().unwrap().to_owned();
    for args in [
        &[nowhere.as_str()][..],
        &["ftp://host/x"],
        &["--token-env", "TAPEDECK_NO_SUCH", "http://127.0.0.1:1/"],
    ] {
        let cli = Cli::try_parse_from(["tape-doctor", "metrics"].iter().chain(args)).unwrap();
        let failure = run(&cli, &mut Vec::new()).unwrap_err();
        assert_eq!(failure.exit_code(), ExitCode::Usage, "{failure}");
    }
    assert!(Cli::try_parse_from(["tape-doctor", "metrics"]).is_err());
}

#[test]
fn the_binary_prints_and_exits() {
    let mut command = assert_cmd::Command::cargo_bin("tape-doctor").unwrap();
    let page = std::fs::read(fixture("vllm-metrics-idle.txt")).unwrap();
    let output = command.args(["metrics", "-"]).write_stdin(page).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("kv_pool"));
}
