//! `tape-doctor`: what it writes, prints and answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use std::path::Path;

use clap::Parser;
use serde_json::Value;
use tapedeck_record::ExitCode;
use tapedeck_tape_bins::doctor::{Cli, run};

fn doctor(args: &[&str]) -> (String, Result<ExitCode, String>) {
    let cli = Cli::try_parse_from(["tape-doctor"].iter().chain(args)).unwrap();
    let mut out = Vec::new();
    let code = run(&cli, &mut out).map_err(|failure| failure.to_string());
    (String::from_utf8(out).unwrap(), code)
}

/// A config whose server is a port that nobody listens on, over the fixtures' small tape.
fn config(folder: &Path, more: &str) -> String {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap();
    let fixtures = fixtures.display();
    let text = format!(
        "[server]\nurl = \"ws://{closed}/asr\"\n\
         [[instances]]\nname = \"inst1\"\nhealth = \"http://{closed}/health\"\nkind = \"vllm\"\n\
         [tape]\nmanifest = \"{fixtures}/tapes/tape-a-tenth.json\"\npool = \"{fixtures}/pool-tenth\"\n\
         [run]\nout = \"{}/results\"\n{more}",
        folder.display()
    );
    let path = folder.join("site.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_failure_has_a_line_and_a_mend() {
    let dir = tempfile::tempdir().unwrap();
    let more = "[gpu]\ncommand = \"printf 'index, name, driver_version, memory.used [MiB], memory.total [MiB]\\\\n\
                0, NVIDIA A40, 550.54.15, 3 MiB, 46068 MiB\\\\n'\"\n\
                [environment.commands]\nversions = \"echo vllm 0.11.0\"\nbroken = \"exit 3\"\n";
    let (text, code) = doctor(&["--config", &config(dir.path(), more), "--streams", "90"]);
    assert_eq!(code, Ok(ExitCode::Environment), "{text}");
    let line = |name: &str| {
        let found = text.lines().find(|line| line[6..].starts_with(name));
        found.unwrap_or_else(|| panic!("no line {name} in\n{text}")).to_owned()
    };
    assert!(line("server").starts_with("FAIL") && line("server").contains("is the server started"), "{text}");
    assert!(line("session").starts_with('-'));
    assert!(line("health inst1").starts_with("FAIL"));
    assert!(line("metrics inst1").starts_with("warn"));
    assert!(line("tape").starts_with("ok") && line("tape").contains("every byte"), "{text}");
    assert!(line("network").contains("90 streams send 23.0 Mbit/s"), "{text}");
    assert!(line("gpu").contains("NVIDIA A40, driver 550.54.15, 3 of 46068 MiB in use"), "{text}");
    assert!(line("command versions").contains("vllm 0.11.0") && line("command broken").starts_with("warn"));
    assert!(text.ends_with("mend the failures first.\n"), "{text}");
    // What a run would need was not made.
    assert!(!dir.path().join("results").exists());
}

#[test]
fn a_changed_recording_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = config(dir.path(), "");
    let pool = dir.path().join("pool");
    std::fs::create_dir(&pool).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pool-tenth");
    for file in std::fs::read_dir(from).unwrap().map(|e| e.unwrap().path()) {
        std::fs::copy(&file, pool.join(file.file_name().unwrap())).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let text: String = text
        .lines()
        .map(|l| if l.starts_with("pool = ") { "pool = \"pool\"\n".into() } else { format!("{l}\n") })
        .collect();
    std::fs::write(&path, text).unwrap();
    let manifest = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tapes/tape-a-tenth.json"),
    );
    let manifest: Value = serde_json::from_str(&manifest.unwrap()).unwrap();
    let first = manifest["calls"][0]["path"].as_str().unwrap();
    let mut bytes = std::fs::read(pool.join(first)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(pool.join(first), bytes).unwrap();
    let (json, code) = doctor(&["--config", &path, "--json"]);
    assert_eq!(code, Ok(ExitCode::Environment));
    let answer: Value = serde_json::from_str(&json).unwrap();
    let tape = answer["checks"].as_array().unwrap().iter().find(|c| c["name"] == "tape").unwrap();
    assert_eq!(tape["state"], "fail");
    assert!(tape["says"].as_str().unwrap().contains(first), "{tape}");
    assert_eq!(answer["ok"], false);
}

#[test]
fn init_writes_once_and_what_it_writes_can_be_examined() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tapedeck.toml");
    let name = path.to_str().unwrap();
    let (text, code) = doctor(&["--init", name]);
    assert_eq!(code, Ok(ExitCode::Ok));
    assert!(text.contains("tape-doctor --config"), "{text}");
    tapedeck_config::Config::read(&path).unwrap().check().unwrap();
    let (_, again) = doctor(&["--init", name]);
    assert!(again.unwrap_err().contains("move the file away"));
}

#[test]
fn every_key_is_printed() {
    let (text, code) = doctor(&["--print-config"]);
    assert_eq!(code, Ok(ExitCode::Ok));
    assert!(include_str!("../../../../docs/config.md").contains(&text));
    for key in ["ramp_s = 0.5", "[slo]", "nvml = false"] {
        assert!(text.contains(key), "{key}");
    }
}

#[test]
fn wrong_configs_and_missing_ones_are_usage() {
    let dir = tempfile::tempdir().unwrap();
    let (_, none) = doctor(&[]);
    assert!(none.unwrap_err().contains("--init"));
    let path = dir.path().join("x.toml");
    std::fs::write(&path, "[load]\nramp = 1\n").unwrap();
    let (_, typo) = doctor(&["--config", path.to_str().unwrap()]);
    assert!(typo.unwrap_err().contains("ramp_s"));
    assert!(Cli::try_parse_from(["tape-doctor", "--print-config", "--json"]).is_err());
}
