//! A manifest is foreign input: nothing in it is believed, and every refusal says which call and why.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::Path;

use crate::common::{fill, frozen, recording};
use proptest::prelude::*;
use serde_json::{Value, json};
use tapedeck_tape::{Manifest, Tape};

/// A good manifest and its pool.
fn good() -> (tempfile::TempDir, Value) {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    fill(&pool);
    let manifest = frozen(&pool, "1:2,2:1", 1).unwrap();
    (dir, serde_json::from_str(&manifest.to_text().unwrap()).unwrap())
}

fn load(dir: &Path, manifest: &Value) -> Result<Tape, String> {
    let path = dir.join("tape.json");
    std::fs::write(&path, manifest.to_string()).unwrap();
    Tape::load(&path, &dir.join("pool")).map_err(|e| e.to_string())
}

#[test]
fn the_good_one_loads() {
    let (dir, manifest) = good();
    assert_eq!(load(dir.path(), &manifest).unwrap().calls.len(), 3);
}

#[test]
fn every_lie_is_named() {
    let (dir, manifest) = good();
    std::fs::write(dir.path().join("outside.wav"), recording(1.0, 1, 1)).unwrap();
    let absolute = dir.path().join("outside.wav").to_string_lossy().into_owned();
    for (at, value, word) in [
        ("/schema_version", json!(2), "schema 2"),
        ("/schema_version", json!("1"), "not a tape manifest"),
        ("/tolerance", json!(7.5), "tolerance"),
        ("/channel", json!("middle"), "left, right or mix"),
        ("/calls", json!([]), "0 calls"),
        ("/quotas/0/calls", json!(3), "quotas"),
        ("/quotas/0/calls", json!(-1), "not a tape manifest"),
        ("/calls/0/path", json!("../outside.wav"), "relative to the pool"),
        ("/calls/0/path", json!("even/../../outside.wav"), "relative to the pool"),
        ("/calls/0/path", json!(absolute), "relative to the pool"),
        ("/calls/0/path", json!("..\\outside.wav"), "relative to the pool"),
        ("/calls/0/path", json!("a\u{0}b"), "zero byte"),
        ("/calls/0/path", json!(""), "empty"),
        ("/calls/0/path", json!("not/there.wav"), "there.wav"),
        ("/calls/0/path", json!("even"), "even"),
        ("/calls/0/path", manifest["calls"][1]["path"].clone(), "twice"),
        ("/calls/0/md5", json!("XYZ"), "hex"),
        ("/calls/0/md5", json!("0".repeat(32)), "MD5"),
        ("/calls/0/bytes", json!(u64::MAX), "bytes"),
        ("/calls/0/bytes", json!(1), "the manifest says 1"),
        ("/calls/0/bucket_s", json!(0), "bucket_s"),
        ("/calls/0/bucket_s", json!(4_000_000_000_u32), "bucket_s"),
        ("/calls/0/duration_ms", json!(4_000_000_000_u32), "tolerance"),
        ("/calls/0/samples", json!(u64::MAX), "samples"),
        ("/calls/0/channel", json!("up"), "left, right or mix"),
        ("/calls/0/speech", json!([[0, 4_000_000_000_u32]]), "speech"),
        ("/calls/0/speech", json!([[0, -1]]), "not a tape manifest"),
        ("/calls/0/surprise", json!(1), "surprise"),
    ] {
        let mut bad = manifest.clone();
        match (bad.pointer_mut(at), at.strip_prefix("/calls/0/")) {
            (Some(slot), _) => *slot = value.clone(),
            (None, Some(key)) => bad["calls"][0][key] = value.clone(),
            (None, None) => panic!("{at}"),
        }
        let error = load(dir.path(), &bad).expect_err(at);
        assert!(error.contains(word), "{at} = {value}: {error}");
        assert!(error.contains("tape.json") || error.contains("pool"), "no file named: {error}");
    }
}

#[test]
fn a_million_calls_of_a_day_are_no_tape() {
    let (dir, mut manifest) = good();
    let call = json!({
        "path": "x.wav", "md5": "0".repeat(32), "bytes": 1, "bucket_s": 86_400, "duration_ms": 86_400_000,
        "samples": 1_382_400_000_u64, "speech": []
    });
    let calls: Vec<Value> = (0..3)
        .map(|i| {
            let mut call = call.clone();
            call["path"] = json!(format!("{i}.wav"));
            call
        })
        .collect();
    manifest["calls"] = json!(calls);
    manifest["quotas"] = json!([{ "bucket_s": 86_400, "calls": 3 }]);
    let error = load(dir.path(), &manifest).unwrap_err();
    assert!(error.contains("a tape holds at most"), "{error}");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed_out() {
    let (dir, mut manifest) = good();
    let outside = dir.path().join("outside.wav");
    let real = manifest["calls"][0]["path"].as_str().unwrap().to_owned();
    let inside = dir.path().join("pool").join(&real);
    std::fs::rename(&inside, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &inside).unwrap();
    let error = load(dir.path(), &manifest).unwrap_err();
    assert!(error.contains("out of the pool") && error.contains(&real), "{error}");
    // A folder in the place of a file.
    manifest["calls"][0]["path"] = json!("odd");
    assert!(load(dir.path(), &manifest).unwrap_err().contains("odd"));
}

#[test]
fn files_that_are_no_manifest() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["", "{", "[]", "null", "RIFF", "{\"schema_version\":1}", "\u{FEFF}{}"] {
        let path = dir.path().join("tape.json");
        std::fs::write(&path, text).unwrap();
        let error = Manifest::read(&path).unwrap_err().to_string();
        assert!(error.contains("tape.json") && error.contains("tapectl freeze"), "{text:?}: {error}");
    }
    assert!(Manifest::read(&dir.path().join("none.json")).unwrap_err().to_string().contains("none.json"));
    assert!(Manifest::read(dir.path()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        // No 300 bytes drawn at random are a manifest.
        let error = Manifest::parse(&bytes, Path::new("x.json")).err().map(|e| e.to_string());
        prop_assert!(error.as_ref().is_some_and(|e| e.contains("x.json")), "{:?}", error);
    }

    #[test]
    fn any_json_numbers_are_answered(a: u64, b: u32, c: f64, d: i64) {
        let text = json!({
            "schema_version": 1, "name": "x", "seed": a, "quotas": [{ "bucket_s": b, "calls": 1 }], "tolerance": c,
            "strata": [], "channel": null, "resampler": "", "speech_method": "", "digest": "",
            "calls": [{ "path": "a", "md5": "0".repeat(32), "bytes": a, "bucket_s": b, "duration_ms": b,
                        "samples": a, "speech": [[b, d]] }]
        })
        .to_string();
        match Manifest::parse(text.as_bytes(), Path::new("x.json")) {
            Err(error) => prop_assert!(error.to_string().contains("x.json"), "{}", error),
            Ok(manifest) => {
                prop_assert_eq!(manifest.calls.len(), 1);
                prop_assert_eq!((manifest.seed, manifest.calls[0].samples), (a, a));
                for interval in manifest.calls[0].speech.intervals() {
                    prop_assert!(interval.start_ms < interval.end_ms, "{:?}", interval);
                }
            }
        }
    }
}
