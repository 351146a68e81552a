//! The tapes that ship: they load, they are what was frozen, and freezing their pools again gives them again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapedeck_tape::{
    FreezeOptions, Manifest, Pool, ScanOptions, Spec, Tape, freeze, read_tags, scan, verify,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn frozen(pool: &Path, spec: &str, name: &str) -> Manifest {
    let options = ScanOptions { threads: None, hash: true };
    let mut reports = scan(&Pool::list(pool).unwrap(), options, &BTreeMap::new(), |_| ());
    let mut tags = read_tags(&pool.join("tags.csv")).unwrap();
    for report in &mut reports {
        report.tags = tags.remove(&report.path).unwrap_or_default();
    }
    let spec = Spec { name: name.to_owned(), ..Spec::parse(spec).unwrap() };
    let options = FreezeOptions {
        spec,
        seed: 1,
        tolerance: 0.1,
        strata: vec!["noise".to_owned()],
        channel: None,
        threads: None,
    };
    freeze(pool, &reports, &options).unwrap()
}

#[test]
fn the_short_tape_loads_with_words_and_times() {
    let tape = Tape::load(&fixture("tapes/tape-a-tenth.json"), &fixture("pool-tenth")).unwrap();
    assert_eq!(tape.calls.len(), 9);
    assert_eq!(tape.manifest.name, "tape-a-tenth");
    let buckets: Vec<u32> = tape.calls.iter().map(|c| c.meta.bucket_s).collect();
    assert_eq!(buckets, [3, 3, 6, 3, 18, 3, 3, 6, 3]);
    assert!((46_000..=48_000).contains(&tape.duration_ms()));
    assert!(tape.speech_ms() * 2 > tape.duration_ms());
    for (index, call) in tape.calls.iter().enumerate() {
        assert_eq!(call.meta.index as usize, index);
        // 8 kHz doubled, two bytes each: 32 bytes per millisecond.
        assert_eq!(call.pcm.len() as u64 / 32, u64::from(call.meta.duration_ms));
        let reference = call.reference.as_ref().unwrap();
        let joined: Vec<&str> = reference.segments.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(reference.text, joined.join(" "));
        let onset = call.meta.speech.onset_ms().unwrap();
        let end = call.meta.speech.end_ms().unwrap();
        assert!(onset.abs_diff(reference.segments[0].start_ms) <= 50, "{}: {onset}", call.meta.id);
        assert!(end.abs_diff(reference.segments.last().unwrap().end_ms) <= 50, "{}: {end}", call.meta.id);
    }
}

#[test]
fn the_full_tape_is_eight_minutes_of_speech() {
    let tape = Tape::load(&fixture("tapes/tape-a.json"), &fixture("pool-a")).unwrap();
    let buckets: Vec<u32> = tape.calls.iter().map(|c| c.meta.bucket_s).collect();
    assert_eq!(buckets, [30, 30, 60, 30, 180, 30, 30, 60, 30]);
    assert!((460_000..=480_000).contains(&tape.duration_ms()));
    assert!(tape.calls.iter().all(|c| c.reference.as_ref().is_some_and(|r| r.text.split(' ').count() > 20)));
    assert_eq!(tape.md5.len(), 32);
}

#[test]
fn shipped_tapes_verify_and_freeze_again() {
    for (name, pool, spec) in [("tape-a-tenth", "pool-tenth", "3:6,6:2,18:1"), ("tape-a", "pool-a", "tape-a")]
    {
        let path = fixture(&format!("tapes/{name}.json"));
        let manifest = Manifest::read(&path).unwrap();
        assert_eq!(verify(&manifest, &fixture(pool), None).unwrap(), Vec::<String>::new());
        let again = frozen(&fixture(pool), spec, name);
        // Another CPU may move an edge of a speech map by a frame; all else is the same.
        let essence = |m: &Manifest| {
            m.calls
                .iter()
                .map(|c| (c.path.clone(), c.md5.clone(), c.samples, c.tags.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(essence(&again), essence(&manifest));
        assert_eq!(manifest.to_text().unwrap(), std::fs::read_to_string(&path).unwrap());
    }
}
