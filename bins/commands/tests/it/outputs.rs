//! What commands print, whole. Rehearsals are exact for a seed, so every figure stands here as it is printed.
//!
//! After a change that is meant: `INSTA_UPDATE=always cargo test -p tapedeck-commands --test it outputs`, then read the difference.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap()
}

/// Runs a command in `folder`; exit code, standard output and standard error as one text, without paths of this machine.
fn printed(folder: &Path, program: &str, args: &[&str]) -> String {
    let out = Command::cargo_bin(program)
        .unwrap()
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let text = text.replace(fixtures().to_str().unwrap(), "FIXTURES");
        text.replace(folder.canonicalize().unwrap().to_str().unwrap(), "HERE").trim_end().to_string()
    };
    let (said, warned) = (text(&out.stdout), text(&out.stderr));
    let code = out.status.code().unwrap();
    format!(
        "$ {program} {}\nexit code {code}\n-- standard output\n{said}\n-- standard error\n{warned}\n",
        text(args.join(" ").as_bytes())
    )
}

/// A folder with a config for tapes a tenth as long.
fn folder() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let at = fixtures().display().to_string();
    let text = format!(
        "[server]\nwindow_ms = 2000\n[tape]\nmanifest = \"{at}/tapes/tape-a-tenth.json\"\npool = \"{at}/pool-tenth\"\n\
         [labelled]\nmanifest = \"{at}/tapes/labelled-tenth.json\"\npool = \"{at}/pool-longer-tenth\"\n\
         [load]\nramp_s = 0.05\nwarm_up_s = 6.0\ncool_down_s = 2.0\n[slo]\nttft_basis = \"window\"\n"
    );
    std::fs::write(tmp.path().join("tenth.toml"), text).unwrap();
    tmp
}

const REHEARSE: [&str; 5] = ["--rehearse", "--config", "tenth.toml", "--out", "runs"];

fn rehearsed(folder: &Path, program: &str, flags: &[&str]) -> String {
    printed(folder, program, &[&REHEARSE[..], flags].concat())
}

#[test]
fn a_ladder_with_limits() {
    let tmp = folder();
    let flags = ["--tiers", "6,36,60", "--fail", "final_s:p95<=0.4 by instance", "--fail", "drain_s<=600"];
    insta::assert_snapshot!(rehearsed(tmp.path(), "tc03", &flags));
}

#[test]
fn a_ladder_that_is_quiet() {
    let tmp = folder();
    insta::assert_snapshot!(rehearsed(tmp.path(), "tc03", &["--streams", "6", "--quiet", "--require", "7"]));
}

#[test]
fn one_stream() {
    let tmp = folder();
    insta::assert_snapshot!(rehearsed(tmp.path(), "tc01", &[]));
}

#[test]
fn words_under_load() {
    let tmp = folder();
    insta::assert_snapshot!(rehearsed(tmp.path(), "tc04", &["--n-star", "6"]));
}

#[test]
fn events() {
    let tmp = folder();
    let text = rehearsed(tmp.path(), "tc03", &["--streams", "3", "--json", "--fail", "errors<=0"]);
    // The first event of each kind: which keys there are, and what they hold.
    let mut kinds = std::collections::BTreeSet::new();
    let firsts = text.lines().filter(|line| {
        let event: Option<serde_json::Value> = serde_json::from_str(line).ok();
        let kind = event.and_then(|e| Some(e["progress"].as_str()?.to_string()));
        // A whole report is the business of the run's files.
        kind.is_some_and(|kind| !matches!(kind.as_str(), "step_done" | "answer") && kinds.insert(kind))
    });
    insta::assert_snapshot!(firsts.collect::<Vec<_>>().join("\n"));
}

#[test]
fn refusals() {
    let tmp = folder();
    let here = tmp.path();
    let all = [
        printed(here, "tc03", &[]),
        printed(here, "tc03", &["--config", "nowhere.toml"]),
        rehearsed(here, "tc03", &["--listen", "127.0.0.1:0"]),
        rehearsed(here, "tc03", &["--resume"]),
        rehearsed(here, "tc08", &[]),
        rehearsed(here, "tc04", &[]),
        rehearsed(here, "campaign", &["--skip", "tc2"]),
        printed(here, "tapectl", &["verify", "no.json", "pool"]),
        printed(here, "tape-doctor", &[]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// Runs `tape-report` in this process; exit code, what it prints and why it gave up as one text.
fn reported(folder: &Path, args: &[&str]) -> String {
    use clap::Parser;
    use tapedeck_cli::HasExitCode;
    let here = folder.canonicalize().unwrap();
    let paths = args.iter().map(|arg| match arg.starts_with("runs") || *arg == "both" {
        true => here.join(arg).display().to_string(),
        false => (*arg).to_string(),
    });
    let cli = tapedeck_report_bins::Cli::try_parse_from(["tape-report".to_string()].into_iter().chain(paths));
    let mut out = Vec::new();
    let (code, why) = match cli.map(|cli| tapedeck_report_bins::run_to(&cli, &mut out)) {
        Ok(Ok(code)) => (code as u8, String::new()),
        Ok(Err(failure)) => (failure.exit_code() as u8, format!("error: {failure}")),
        Err(usage) => (2, usage.to_string()),
    };
    let text = |text: &str| text.replace(here.to_str().unwrap(), "HERE").trim_end().to_string();
    let out = String::from_utf8(out).unwrap();
    let (said, warned) = (text(&out), text(&why));
    let args = args.join(" ");
    format!(
        "$ tape-report {args}\nexit code {code}\n-- standard output\n{said}\n-- standard error\n{warned}\n"
    )
}

/// Rehearses a small ladder, whose load and the rest of whose config differ from the usual, into `runs/NAME`.
fn ladder(folder: &Path, name: &str, tiers: &str, [load, rest]: [&str; 2]) {
    let usual = std::fs::read_to_string(folder.join("tenth.toml")).unwrap();
    let text = usual.replacen("[load]\n", &format!("[load]\n{load}"), 1) + rest;
    std::fs::write(folder.join("other.toml"), text).unwrap();
    let flags = ["--rehearse", "--config", "other.toml", "--out", "made", "--tiers", tiers, "--quiet"];
    let said = printed(folder, "tc03", &flags);
    assert!(said.contains("exit code 0") || said.contains("exit code 1"), "{said}");
    std::fs::create_dir_all(folder.join("runs")).unwrap();
    std::fs::rename(folder.join("made/tc03-rehearsal-seed1"), folder.join("runs").join(name)).unwrap();
}

#[test]
fn reports_of_a_rehearsal() {
    let tmp = folder();
    let here = tmp.path();
    ladder(here, "usual", "6,60", ["", ""]);
    let all = [
        reported(here, &["runs/usual", "--require", "30", "--fail", "final_s:p95<=0.4 by instance"]),
        reported(here, &["diagnose", "runs/usual"]),
        reported(here, &["riva", "runs/usual"]),
        reported(here, &["runs/usual", "--rescore", "--set", "slo.rtf_p95=0.9", "--set", "slo.ttft_p95_s=3"]),
        // What was derived cannot be scored again, and what was measured is not written over.
        reported(here, &["riva", "runs/usual/rescored"]),
        reported(here, &["runs/usual", "--rescore", "--out", "runs/usual"]),
        reported(here, &["runs/usual", "--rescore", "--set", "slo.rtf_p59=0.9"]),
        reported(here, &["runs/usual", "--rescore", "--set", "slo.rtf_p95=half"]),
        reported(here, &["runs/usual", "--rescore", "--set", "slo.ttft_basis=words"]),
        reported(here, &["runs/usual", "--rescore", "--set", "slo.rtf_p95"]),
        reported(here, &["runs/usual", "--rescore", "--tape", "no.json"]),
        reported(here, &["runs/usual", "--set", "slo.rtf_p95=0.9"]),
        reported(here, &["runs/none"]),
        reported(here, &["runs"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn runs_beside_each_other() {
    let tmp = folder();
    let here = tmp.path();
    let slow = "[rehearsal.engine.step]\nbase_ns = 40_000_000\n";
    ladder(here, "monday", "6", ["", ""]);
    ladder(here, "tuesday", "36", ["", ""]);
    ladder(here, "again", "6", ["", ""]);
    ladder(here, "slower", "6", ["", slow]);
    ladder(here, "two", "6", ["chunk_ms = 200\n", slow]);
    ladder(here, "stricter", "6", ["", "final_p95_s = 1.5\n"]);
    let all = [
        reported(here, &["compare", "runs/monday", "runs/again"]),
        reported(here, &["compare", "runs/monday", "runs/slower"]),
        reported(here, &["compare", "runs/slower", "runs/monday"]),
        reported(here, &["compare", "runs/monday", "runs/two"]),
        reported(here, &["compare", "runs/monday", "runs/tuesday"]),
        reported(here, &["compare", "runs/monday", "runs/stricter"]),
        reported(here, &["merge", "runs/monday", "runs/tuesday", "--out", "both"]),
        reported(here, &["merge", "runs/monday", "runs/tuesday", "--out", "runs/monday"]),
        reported(here, &["merge", "runs/monday", "runs/monday", "--out", "both"]),
        reported(here, &["merge", "runs/monday", "runs/again", "--out", "both"]),
        reported(here, &["merge", "runs/tuesday", "runs/two", "--out", "both"]),
        reported(here, &["merge", "runs/monday", "runs/stricter", "--out", "both"]),
        reported(here, &["merge", "runs/monday", "--out", "both"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn tapes() {
    let tmp = folder();
    let tape = fixtures().join("tapes/tape-a-tenth.json");
    let pool = fixtures().join("pool-tenth");
    let (tape, pool) = (tape.to_str().unwrap(), pool.to_str().unwrap());
    let all = [
        printed(tmp.path(), "tapectl", &["show", tape]),
        printed(tmp.path(), "tapectl", &["verify", tape, pool]),
        printed(tmp.path(), "tapectl", &["phases", tape, "4"]),
    ];
    insta::assert_snapshot!(all.join("\n").replace(tape, "FIXTURES/tapes/tape-a-tenth.json"));
}

#[test]
fn small_questions() {
    let tmp = folder();
    let wer = fixtures().join("wer/example");
    let (reference, heard) = (wer.join("ref.tsv"), wer.join("hyp.tsv"));
    let all = [
        printed(tmp.path(), "tape-erlang", &["b", "--traffic", "2.5", "--lines", "7"]),
        printed(
            tmp.path(),
            "tape-erlang",
            &["c", "--traffic", "2.5", "--lines", "7", "--mean-s", "60", "--table"],
        ),
        printed(tmp.path(), "tape-wer", &[reference.to_str().unwrap(), heard.to_str().unwrap()]),
        printed(
            tmp.path(),
            "campaign",
            &["--rehearse", "--config", "tenth.toml", "--dry-run", "--n-star", "6"],
        ),
    ];
    let text = all.join("\n");
    insta::assert_snapshot!(text.replace(fixtures().to_str().unwrap(), "FIXTURES"));
}
