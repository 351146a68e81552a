//! The cases around the ladder, as their users run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap()
}

/// A config for tapes a tenth as long, written into a folder.
fn config(folder: &Path) -> PathBuf {
    let at = fixtures().display().to_string();
    let text = format!(
        "[server]\nwindow_ms = 2000\n[tape]\nmanifest = \"{at}/tapes/tape-a-tenth.json\"\npool = \"{at}/pool-tenth\"\n\
         [tape_b]\nmanifest = \"{at}/tapes/tape-b-tenth.json\"\npool = \"{at}/pool-longer-tenth\"\n\
         [labelled]\nmanifest = \"{at}/tapes/labelled-tenth.json\"\npool = \"{at}/pool-longer-tenth\"\n\
         [load]\nramp_s = 0.05\nwarm_up_s = 6.0\ncool_down_s = 2.0\n[slo]\nttft_basis = \"window\"\n\
         [ladder]\ntiers = [3, 6]\n"
    );
    let path = folder.join("tenth.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs a command in a rehearsal over `config` and gives exit code, standard output and standard error.
fn rehearse(program: &str, folder: &Path, flags: &[&str]) -> (i32, String, String) {
    let out = Command::cargo_bin(program)
        .unwrap()
        .args(["--rehearse", "--config"])
        .arg(config(folder))
        .arg("--out")
        .arg(folder)
        .args(flags)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

#[test]
fn one_stream_answers_with_floors_and_where_the_evidence_is() {
    let tmp = tempfile::tempdir().unwrap();
    let (code, out, err) = rehearse("tc01", tmp.path(), &[]);
    assert_eq!(code, 0, "{out}{err}");
    for part in
        ["RTF1", "TTFT floor from `window`", "<- slo.ttft_basis", "Answer: yes", "Simulated", "Evidence: "]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(tmp.path().join("tc01-rehearsal-seed1/tc01.json").exists());
}

#[test]
fn quiet_json_is_one_object_an_event_and_the_answer_last() {
    let tmp = tempfile::tempdir().unwrap();
    let (code, out, err) = rehearse("tc01", tmp.path(), &["--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["progress"], &last["case"]), (&"answer".into(), &"tc01".into()));
    assert_eq!(last["answer"]["decision"], "yes");
    assert_eq!(last["answer"]["calls"].as_array().unwrap().len(), 9);
}

#[test]
fn cases_after_a_ladder_write_into_its_run() {
    let tmp = tempfile::tempdir().unwrap();
    let run = tmp.path().join("tc03-rehearsal-seed1");
    let into = ["--into", run.to_str().unwrap()];
    let (code, out, err) = rehearse("tc03", tmp.path(), &[]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = rehearse("tc08", tmp.path(), &into);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("no drift") && out.contains("6 streams, N006 once more"), "{out}");
    let (code, out, err) = rehearse("tc03b", tmp.path(), &into);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("expected: ") && out.contains("N* = 6 (capacity.json (censored)) holds"), "{out}");
    let (code, out, err) = rehearse("tc04", tmp.path(), &[&into[..], &["--n-star", "3"]].concat());
    // So short a tape holds too few words for one answer or the other; that it was played is what counts here.
    assert!([0, 1, 4].contains(&code), "{out}{err}");
    assert!(out.contains("rise of WER"), "{out}");
    let rows = std::fs::read_to_string(run.join("ladder.csv")).unwrap();
    // Two tiers, one repeated, two with long calls, the baseline and one load with words.
    assert_eq!(rows.lines().count(), 1 + 2 + 1 + 2 + 2, "{rows}");
}

#[test]
fn what_a_case_needs_is_said_before_anything_is_made() {
    let tmp = tempfile::tempdir().unwrap();
    for (program, needs) in [("tc03b", "--n-star N"), ("tc04", "--n-star N"), ("tc08", "--into RUN_DIR")] {
        let (code, _, err) = rehearse(program, tmp.path(), &[]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(needs) && err.contains("tc03"), "{err}");
    }
    let (code, _, err) = rehearse("tc03", tmp.path(), &["--content", "pool", "--streams", "3"]);
    assert_eq!(code, 2);
    assert!(err.contains("no [pool] in the config"), "{err}");
    let (code, _, err) = rehearse("tc02", tmp.path(), &["--levels", "8,1"]);
    assert_eq!(code, 2);
    assert!(err.contains("footprint.levels"), "{err}");
    let made = std::fs::read_dir(tmp.path()).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(made, 0);
}

#[test]
fn the_hard_ceiling_is_printed_as_offline() {
    let tmp = tempfile::tempdir().unwrap();
    let (code, out, err) = rehearse("tc03", tmp.path(), &["--pace", "off", "--streams", "3"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("No capacity follows from this") && !out.contains("N* ="), "{out}");
}

#[test]
fn footprint_prints_theory_beside_measurement() {
    let tmp = tempfile::tempdir().unwrap();
    let (code, out, err) = rehearse("tc02", tmp.path(), &["--levels", "3,6,9", "--steady-s", "40"]);
    assert_eq!(code, 0, "{out}{err}");
    for part in ["KV pool of inst1: ", "stream_tokens", "95 % interval", "overhead_gb"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}
