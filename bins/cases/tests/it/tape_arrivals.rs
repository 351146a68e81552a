//! `tape-arrivals`: what it prints, what it leaves and what it answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::{Path, PathBuf};

use clap::Parser;
use tapedeck::tape_arrivals::Cli;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A config on the short tape, in a folder of its own.
fn config(folder: &Path) -> PathBuf {
    let text = format!(
        "[server]\nwindow_ms = 2000\n[tape]\nmanifest = {:?}\npool = {:?}\n[load]\nchunk_ms = 1000\n",
        fixtures().join("tapes/tape-a-tenth.json"),
        fixtures().join("pool-tenth")
    );
    let path = folder.join("site.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn play(folder: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let run = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tape-arrivals"))
        .args(["--rehearse", "--config"])
        .arg(config(folder))
        .arg("--out")
        .arg(folder.join("results"))
        .args(flags)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (run.status.code(), text(&run.stdout), text(&run.stderr))
}

#[test]
fn a_rehearsal_says_what_callers_met_and_that_it_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--rate", "3600", "--lines", "5", "--calls", "200", "--warm-up-s", "60"];
    let (code, out, err) = play(folder.path(), &flags);
    assert_eq!(code, Some(0), "{out}{err}");
    for words in
        ["callers who find all busy are lost", "beside Erlang B", "Little's law", "goodput", "Simulated"]
    {
        assert!(out.contains(words), "no {words} in\n{out}");
    }
    let run = folder.path().join("results/arrivals-rehearsal-seed1");
    let table = std::fs::read_to_string(run.join("arrivals-A03600.000.csv")).unwrap();
    assert!(table.starts_with("caller,counted,planned_s,arrived_s,start_s,freed_s,waited_s,fate\n"));
    assert_eq!(table.lines().filter(|l| l.contains(",true,")).count(), 200);
    assert!(table.contains(",,,,blocked\n"));
    assert!(run.join("arrivals.json").is_file());
}

#[test]
fn too_much_blocking_is_a_no_and_a_recording_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("starts.csv");
    std::fs::write(&csv, "start_s\n100\n101\n102\n103\n130\n").unwrap();
    let replay =
        ["--replay", csv.to_str().unwrap(), "--lines", "2", "--warm-up-s", "0", "--max-blocking", "0.1"];
    let (code, out, err) = play(folder.path(), &[&replay[..], &["--json"]].concat());
    assert_eq!(code, Some(1), "{out}{err}");
    let answer: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let figures = &answer["answer"]["rates"][0]["figures"];
    assert_eq!(figures["callers"], 5);
    assert_eq!(figures["blocked"], 2);
    assert!(figures["blocking"]["agrees"].is_null(), "{figures}");
}

#[test]
fn the_server_itself_can_be_the_one_that_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        ["--rate", "3600", "--lines", "4", "--when-busy", "server", "--calls", "150", "--warm-up-s", "30"];
    let (code, out, err) = play(folder.path(), &flags);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("note: one built-in engine with 4 lines") && out.contains("the server refuses"),
        "{out}"
    );
    assert!(!out.contains(" 0 blocked"), "{out}");
}

#[test]
fn what_cannot_be_asked_is_refused_in_words() {
    for (flags, words) in [
        ("--rate 0", "a rate of 0 calls an hour"),
        ("--rate -5", "a rate of -5 calls an hour"),
        ("--rate nan", "a rate of NaN calls an hour"),
        ("--rate inf", "a rate of inf calls an hour"),
        ("--rate 1e9", "more than a thousand a second"),
        ("--rate 20,10", "give ascending rates"),
        ("--rate 10 --lines 0", "--lines 0"),
        ("--rate 10 --when-busy waits", "--when-busy needs --lines"),
        ("--rate 10 --lengths exponential --mean-s -1", "--mean-s -1"),
        ("--rate 10 --mean-s 5", "--lengths exponential only"),
        ("--rate 10 --arrivals bursty --burst 0", "a burst of 0 calls"),
        ("--rate 10 --warm-up-s -1", "--warm-up-s -1"),
        ("--rate 10 --max-blocking 2", "--max-blocking 2"),
        ("--rate 10 --require 3", "did you mean --max-blocking?"),
        ("--replay /nowhere.csv", "cannot read /nowhere.csv"),
    ] {
        let cli = Cli::try_parse_from(std::iter::once("tape-arrivals").chain(flags.split(' '))).unwrap();
        let refusal = cli.asked().unwrap_err().to_string();
        assert!(refusal.contains(words), "{flags}: {refusal}");
    }
    assert!(Cli::try_parse_from(["tape-arrivals"]).unwrap_err().to_string().contains("--rate"));
}
