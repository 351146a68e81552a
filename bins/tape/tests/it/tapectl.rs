//! `tapectl` as a user runs it: what it prints, what it writes, and its exit codes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// Runs `tapectl` in `dir` and gives its exit code, standard output and standard error.
fn tapectl(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("tapectl")
        .unwrap()
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A copy of the short pool that may be spoilt.
fn pool_in(dir: &Path) -> PathBuf {
    let pool = dir.join("pool");
    std::fs::create_dir(&pool).unwrap();
    for entry in std::fs::read_dir(fixture("pool-tenth")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), pool.join(entry.file_name())).unwrap();
    }
    pool
}

const SPEC: [&str; 4] = ["--spec", "3:6,6:2,18:1", "--name", "tape-a-tenth"];

#[test]
fn from_a_folder_to_a_tape_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    let tags = pool.join("tags.csv");
    let mut args = vec!["freeze", shown(&pool), "--tags", shown(&tags), "--by", "noise", "-o", "t.json"];
    args.extend(SPEC);
    let (code, out, err) = tapectl(dir.path(), &args);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("t.json: 9 calls, 47 s, seed 1"), "{out}");

    // The shipped tape, but for the frame by which another CPU may move an edge.
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let (made, shipped) = (read(&dir.path().join("t.json")), read(&fixture("tapes/tape-a-tenth.json")));
    for (a, b) in made["calls"].as_array().unwrap().iter().zip(shipped["calls"].as_array().unwrap()) {
        assert_eq!((&a["path"], &a["md5"], &a["samples"]), (&b["path"], &b["md5"], &b["samples"]));
    }

    let (code, out, _) = tapectl(dir.path(), &["verify", "t.json", shown(&pool)]);
    assert_eq!(code, 0, "{out}");

    // The same again is no change; another choice does not replace the file unasked.
    assert_eq!(tapectl(dir.path(), &args).0, 0);
    let mut other = args.clone();
    other.extend(["--seed", "2"]);
    let (code, _, err) = tapectl(dir.path(), &other);
    assert!(code == 2 && err.contains("--force"), "{code} {err}");
    other.push("--force");
    assert_eq!(tapectl(dir.path(), &other).0, 0);
}

#[test]
fn verify_names_the_changed_byte_s_file() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    let tape = fixture("tapes/tape-a-tenth.json");
    let victim = pool.join("call-00086.wav");
    let mut bytes = std::fs::read(&victim).unwrap();
    bytes[70_000] ^= 1;
    std::fs::write(&victim, bytes).unwrap();
    let (code, out, _) = tapectl(dir.path(), &["verify", shown(&tape), shown(&pool)]);
    assert_eq!(code, 1);
    assert!(out.contains("call-00086.wav") && out.contains("1 finding;"), "{out}");
    std::fs::remove_file(&victim).unwrap();
    let (code, out, _) = tapectl(dir.path(), &["verify", shown(&tape), shown(&pool)]);
    assert!(code == 1 && out.contains("call-00086.wav"), "{out}");
    let (code, _, err) = tapectl(dir.path(), &["verify", shown(&tape), "nowhere"]);
    assert!(code == 2 && err.contains("nowhere: not a folder; give the folder"), "{code} {err}");
    std::fs::write(dir.path().join("x.json"), "{}").unwrap();
    let (code, _, err) = tapectl(dir.path(), &["verify", "x.json", shown(&pool)]);
    assert!(code == 2 && err.contains("x.json") && err.contains("tapectl freeze"), "{code} {err}");
}

#[test]
fn freeze_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    let (code, _, err) = tapectl(dir.path(), &["freeze", shown(&pool)]);
    assert!(code == 1 && err.contains("bucket 30 s: 6 calls wanted, 0 usable"), "{code} {err}");
    let (code, _, err) = tapectl(dir.path(), &["freeze", shown(&pool), "--spec", "tape-z"]);
    assert!(code == 2 && err.contains("tape-z") && err.contains("30:6"), "{code} {err}");
    let tags = pool.join("tags.csv");
    let (code, _, err) =
        tapectl(dir.path(), &["freeze", shown(&pool), "--tags", shown(&tags), "--by", "colour"]);
    assert!(code == 2 && err.contains("colour"), "{code} {err}");
    assert!(!dir.path().join("tape-a.json").exists());
}

#[test]
fn stereo_is_a_choice() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    std::fs::create_dir(&pool).unwrap();
    std::fs::copy(fixture("cases/w15-stereo-agent-customer.wav"), pool.join("two.wav")).unwrap();
    let base = ["freeze", shown(&pool), "--spec", "1:1", "--tolerance", "0.9", "-o", "t.json"];
    let (code, _, err) = tapectl(dir.path(), &base);
    assert!(code == 2 && err.contains("two.wav") && err.contains("--channel"), "{code} {err}");
    let both: Vec<&str> = base.into_iter().chain(["--channel", "both"]).collect();
    assert_eq!(tapectl(dir.path(), &both).0, 0);
    for side in ["left", "right"] {
        let text = std::fs::read_to_string(dir.path().join(format!("t-{side}.json"))).unwrap();
        assert!(text.contains(&format!("\"channel\":\"{side}\"")), "{text}");
        assert_eq!(tapectl(dir.path(), &["verify", &format!("t-{side}.json"), shown(&pool)]).0, 0);
    }
}

#[test]
fn scan_lists_good_and_bad() {
    let dir = tempfile::tempdir().unwrap();
    let cases = fixture("cases");
    let (code, out, err) = tapectl(dir.path(), &["scan", shown(&cases), "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let files: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Compressed ones (c..) depend on a feature of the build.
    assert_eq!(files.iter().filter(|f| f["path"].as_str().unwrap().starts_with('w')).count(), 13);
    let of = |name: &str| files.iter().find(|f| f["path"].as_str().unwrap().starts_with(name)).unwrap();
    assert_eq!(
        (&of("w01")["ok"], &of("w01")["encoding"], &of("w01")["frames"]),
        (&true.into(), &"mulaw".into(), &4_000.into())
    );
    assert_eq!((&of("w20")["ok"], &of("w20")["sample_rate_hz"]), (&true.into(), &8_000.into()));
    assert_eq!((&of("w15")["channels"], &of("w15")["duration_s"]), (&2.into(), &0.5.into()));
    assert_eq!((&of("w19")["ok"], &of("w19")["frames"]), (&true.into(), &3_499.into()));
    assert!(of("w19")["warnings"][0].as_str().unwrap().contains("3499"));
    assert_eq!(of("w17")["ok"], false);
    assert!(of("w31")["error"].as_str().unwrap().contains("GSM"));

    let (code, out, _) = tapectl(dir.path(), &["scan", shown(&cases)]);
    assert_eq!(code, 0);
    for words in ["15 recordings", "mulaw 8000 Hz stereo", "w31-gsm-tag49.wav: WAV with GSM 6.10"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(tapectl(dir.path(), &["scan", shown(&cases), "--strict"]).0, 1);
    let one = cases.join("w17-header-only.wav");
    let (code, out, _) = tapectl(dir.path(), &["scan", shown(&one), "--no-index"]);
    assert!(code == 1 && out.contains("empty call"), "{out}");
    assert_eq!(tapectl(dir.path(), &["scan", "nowhere"]).0, 2);
}

#[test]
fn twins_are_named_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    std::fs::copy(pool.join("call-00010.wav"), pool.join("twin.wav")).unwrap();
    let (code, out, _) = tapectl(dir.path(), &["scan", shown(&pool), "--md5"]);
    assert!(code == 0 && out.contains("call-00010.wav: twin.wav"), "{out}");
    // An index without MD5s does not answer a question about them.
    let args = ["scan", shown(&pool), "--json", "--index", "i.jsonl"];
    assert!(tapectl(dir.path(), &args).1.contains("\"md5\":null"));
    let (_, out, _) = tapectl(dir.path(), &[&args[..], &["--md5"]].concat());
    assert!(!out.contains("\"md5\":null"), "{out}");
}

#[test]
fn a_tape_can_travel_with_its_own_pool() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    let args = ["freeze", shown(&pool), "--spec", "3:2,18:1", "-o", "t.json", "--with-pool", "small"];
    assert_eq!(tapectl(dir.path(), &args).0, 0);
    let (code, out, _) = tapectl(dir.path(), &["verify", "t.json", "small"]);
    assert_eq!(code, 0, "{out}");
    let again = ["freeze", "small", "--spec", "3:2,18:1", "-o", "again.json"];
    assert_eq!(tapectl(dir.path(), &again).0, 0);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("t.json"), read("again.json"));
    assert_eq!(read("small/transcripts.tsv").lines().count(), 4);
    assert!(read("small/segments.tsv").lines().count() > 4);
}

#[test]
fn a_scan_goes_on_where_it_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    let args = ["scan", shown(&pool), "--json", "--index", "i.jsonl"];
    let (_, first, _) = tapectl(dir.path(), &args);
    let index = dir.path().join("i.jsonl");
    let text = std::fs::read_to_string(&index).unwrap();
    assert_eq!(text.lines().count(), 9);
    // Cut in the middle of a line, as by a kill; and one entry tells a recognisable tale.
    let told = text.replacen("\"encoding\":\"mulaw\"", "\"encoding\":\"from-the-index\"", 1);
    std::fs::write(&index, &told[..told.len() / 2]).unwrap();
    let (code, second, _) = tapectl(dir.path(), &args);
    assert_eq!(code, 0);
    assert_eq!(second.replace("from-the-index", "mulaw"), first);
    assert_eq!(second.matches("from-the-index").count(), 1, "what was known is not looked up again");
    // A changed file is looked at again, whatever the index says.
    let changed = pool.join("call-00010.wav");
    std::fs::write(&changed, "gone bad").unwrap();
    let (_, third, _) = tapectl(dir.path(), &args);
    assert!(third.contains("not a sound file"), "{third}");
    assert!(
        !tapectl(dir.path(), &["scan", shown(&pool), "--json", "--no-index"]).1.contains("from-the-index")
    );
}

#[test]
fn resample_writes_whole_files_once() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool_in(dir.path());
    std::fs::copy(fixture("cases/w15-stereo-agent-customer.wav"), pool.join("two.wav")).unwrap();
    std::fs::copy(fixture("cases/w31-gsm-tag49.wav"), pool.join("gsm.wav")).unwrap();
    let (code, out, _) = tapectl(dir.path(), &["resample", shown(&pool), "out"]);
    assert_eq!(code, 1);
    assert!(out.contains("9 files written") && out.contains("2 refused"), "{out}");
    assert!(out.contains("two.wav: stereo") && out.contains("gsm.wav: WAV with GSM"), "{out}");
    std::fs::remove_file(pool.join("gsm.wav")).unwrap();
    let (code, out, _) = tapectl(dir.path(), &["resample", shown(&pool), "out", "--channel", "both"]);
    assert!(code == 0 && out.contains("2 files written, 9 recordings were done"), "{out}");
    let written: Vec<_> =
        std::fs::read_dir(dir.path().join("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(written.len(), 11, "{written:?}");
    let wav = std::fs::read(dir.path().join("out/two.left.wav")).unwrap();
    assert_eq!(wav.len(), 44 + 2 * 8_000);
    assert_eq!(&wav[24..28], 16_000_u32.to_le_bytes());
    let inside = pool.join("sub");
    let (code, _, err) = tapectl(dir.path(), &["resample", shown(&pool), shown(&inside)]);
    assert!(code == 2 && err.contains("within the pool"), "{err}");
}

#[test]
fn show_and_phases_tell_what_a_tape_asks() {
    let dir = tempfile::tempdir().unwrap();
    let tape = fixture("tapes/tape-a.json");
    let (code, out, _) = tapectl(dir.path(), &["show", shown(&tape), "--streams", "3,90"]);
    assert_eq!(code, 0);
    for words in [
        "9 calls, 473.1 s",
        "call-00237.wav",
        " 180 s",
        "speak at once",
        "     90",
        "No recording is on it twice",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (code, out, _) = tapectl(dir.path(), &["phases", shown(&tape), "20", "--json"]);
    assert_eq!(code, 0);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["stream"], &last["call"], &last["start_s"]), (&19.into(), &1.into(), &9.5.into()));
    assert_eq!(tapectl(dir.path(), &["phases", shown(&tape), "3", "--ramp", "-1"]).0, 2);
}
