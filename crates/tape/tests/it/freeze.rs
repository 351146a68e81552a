//! What a freeze promises: the same choice from the same content, and nothing unasked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::Path;

use crate::common::{fill, frozen, options, recording, reports};
use tapedeck_audio::Channel;
use tapedeck_tape::{Manifest, Tape, TapeError, freeze, verify};

fn paths(manifest: &Manifest) -> Vec<&str> {
    manifest.calls.iter().map(|c| c.path.as_str()).collect()
}

/// The picks of one seed, kept for good: if this changes, every frozen tape in the world would.
#[test]
fn golden_picks() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    let manifest = frozen(pool.path(), "1:6,2:2", 42).unwrap();
    insta::assert_snapshot!(paths(&manifest).join("\n"));
    assert_ne!(paths(&manifest), paths(&frozen(pool.path(), "1:6,2:2", 43).unwrap()));
}

#[test]
fn the_order_of_the_listing_is_no_matter() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    let mut listed = reports(pool.path());
    let straight = freeze(pool.path(), &listed, &options("1:6,2:2", 1, None)).unwrap();
    listed.reverse();
    listed.rotate_left(11);
    let turned = freeze(pool.path(), &listed, &options("1:6,2:2", 1, None)).unwrap();
    assert_eq!(straight.to_text().unwrap(), turned.to_text().unwrap());
}

#[test]
fn other_names_give_the_same_recordings() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(a.path());
    for mark in 0..40_u32 {
        let seconds = if mark < 30 { 1.0 } else { 2.0 } + f64::from(mark % 7) * 0.01;
        std::fs::write(b.path().join(format!("{}.wav", 99 - mark)), recording(seconds, mark, 1)).unwrap();
    }
    let md5s = |pool: &Path| -> Vec<String> {
        frozen(pool, "1:6,2:2", 5).unwrap().calls.into_iter().map(|c| c.md5).collect()
    };
    assert_eq!(md5s(a.path()), md5s(b.path()));
}

#[test]
fn a_file_added_elsewhere_changes_nothing() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    let before = frozen(pool.path(), "1:6,2:2", 1).unwrap();
    // Another length, a duplicate of a call that is there, and something that is no recording.
    std::fs::write(pool.path().join("long.wav"), recording(5.0, 99, 1)).unwrap();
    std::fs::copy(pool.path().join("even/02.wav"), pool.path().join("zz.wav")).unwrap();
    std::fs::write(pool.path().join("bad.wav"), "no audio").unwrap();
    let after = frozen(pool.path(), "1:6,2:2", 1).unwrap();
    assert_eq!(before, after);
}

#[test]
fn too_few_and_stereo_are_said() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    match frozen(pool.path(), "1:31", 1) {
        Err(TapeError::TooFew { bucket_s: 1, wanted: 31, found: 30, .. }) => {}
        other => panic!("{other:?}"),
    }
    std::fs::write(pool.path().join("two.wav"), recording(1.0, 7, 2)).unwrap();
    match frozen(pool.path(), "1:3", 1) {
        Err(TapeError::ChannelNotChosen { files: 1, first }) => assert_eq!(first, "two.wav"),
        other => panic!("{other:?}"),
    }
    let left = freeze(pool.path(), &reports(pool.path()), &options("1:31", 1, Some(Channel::Left))).unwrap();
    let two = left.calls.iter().find(|c| c.path == "two.wav").unwrap();
    assert_eq!((two.channel.as_deref(), two.id().as_str()), (Some("left"), "two.wav#left"));
    let mono = left.calls.iter().find(|c| c.path == "even/02.wav").unwrap();
    assert_eq!(mono.id(), "even/02.wav");
}

#[test]
fn strata_by_tag() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    let mut listed = reports(pool.path());
    for report in &mut listed {
        // One call in ten is from a car.
        let rare = report.path.contains('7');
        report.tags = [("noise".to_owned(), if rare { "car" } else { "office" }.to_owned())].into();
    }
    let mut by = options("1:4", 1, None);
    by.strata = vec!["noise".to_owned()];
    let manifest = freeze(pool.path(), &listed, &by).unwrap();
    let cars = manifest.calls.iter().filter(|c| c.tags["noise"] == "car").count();
    assert_eq!(cars, 2, "each kind of call gets its share");
}

#[test]
fn verify_names_what_changed() {
    let pool = tempfile::tempdir().unwrap();
    fill(pool.path());
    let mut manifest = frozen(pool.path(), "1:6,2:2", 1).unwrap();
    let clean = |m: &Manifest| verify(m, pool.path(), None).unwrap();
    assert_eq!(clean(&manifest), Vec::<String>::new());

    let victim = manifest.calls[3].path.clone();
    let at = pool.path().join(&victim);
    let whole = std::fs::read(&at).unwrap();
    let mut spoilt = whole.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    std::fs::write(&at, &spoilt).unwrap();
    let findings = clean(&manifest);
    assert!(
        findings.len() == 1 && findings[0].contains(&victim) && findings[0].contains("MD5"),
        "{findings:?}"
    );
    std::fs::write(&at, &whole[1..]).unwrap();
    assert!(clean(&manifest)[0].contains("bytes, the manifest says"));
    std::fs::remove_file(&at).unwrap();
    assert!(clean(&manifest)[0].contains(&victim));
    std::fs::write(&at, &whole).unwrap();

    manifest.seed += 1;
    assert!(clean(&manifest)[0].contains("edited"));
    manifest.calls[0].speech = tapedeck_record::SpeechMap::default();
    manifest.calls[1].duration_ms += 1;
    let findings = clean(&manifest);
    assert!(findings.iter().any(|f| f.contains("speech map")), "{findings:?}");
    assert!(findings.iter().any(|f| f.contains("duration")), "{findings:?}");
}

#[test]
fn one_side_of_a_conversation_has_its_own_words() {
    let pool = tempfile::tempdir().unwrap();
    std::fs::write(pool.path().join("two.wav"), recording(1.0, 7, 2)).unwrap();
    let write = |name: &str, text: &str| std::fs::write(pool.path().join(name), text).unwrap();
    let load = |channel| {
        let manifest = freeze(pool.path(), &reports(pool.path()), &options("1:1", 1, Some(channel))).unwrap();
        write("tape.json", &manifest.to_text().unwrap());
        Tape::load(&pool.path().join("tape.json"), pool.path()).map(|t| t.calls[0].reference.clone())
    };
    assert_eq!(load(Channel::Left).unwrap(), None);
    write("transcripts.tsv", "file\ttext\ntwo.wav\thello yes\n");
    assert_eq!(load(Channel::Left).unwrap(), None, "all words are not the agent's words");
    assert_eq!(load(Channel::Mix).unwrap().unwrap().text, "hello yes");
    write(
        "transcripts.tsv",
        "\u{FEFF}file\tchannel\ttext\r\ntwo.wav\tleft\thello\r\ntwo.wav\t\thello yes\r\n",
    );
    write(
        "segments.tsv",
        "file\tchannel\tstart_s\tend_s\ttext\ntwo.wav\tright\t0.5\t0.7\tyes\ntwo.wav\tleft\t0.1\t0.25\thello\n",
    );
    let left = load(Channel::Left).unwrap().unwrap();
    assert_eq!((left.text.as_str(), left.segments[0].start_ms, left.segments[0].end_ms), ("hello", 100, 250));
    assert_eq!(load(Channel::Right).unwrap().unwrap().text, "yes");
    let mix = load(Channel::Mix).unwrap().unwrap();
    assert_eq!(mix.segments.iter().map(|s| s.text.as_str()).collect::<Vec<_>>(), ["hello", "yes"]);
    write("transcripts.tsv", "file\ttext\ntwo.wav\ta\ntwo.wav\tb\n");
    assert!(load(Channel::Mix).unwrap_err().to_string().contains("transcripts.tsv:3"));
    write("transcripts.tsv", "name\ttext\ntwo.wav\ta\n");
    assert!(load(Channel::Mix).unwrap_err().to_string().contains("no column `file`"));
}
