//! A run that version 0.1.0 (commit 13300b5) recorded stays readable.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tapedeck_report::rescore::{Changes, RescoreError, rescore};
use tapedeck_report::{Answer, ReadError, Run};

/// The run as it was written, in a folder of its own.
fn recorded(under: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rundir/tests/data/run-0.1.0");
    let to = under.join("run");
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match name.strip_suffix(".gz") {
            Some(name) => {
                let mut whole = File::create(to.join(name)).unwrap();
                std::io::copy(&mut GzDecoder::new(File::open(&path).unwrap()), &mut whole).unwrap();
            }
            None => drop(fs::copy(&path, to.join(name)).unwrap()),
        }
    }
    to
}

#[test]
fn everything_of_it_can_be_read_but_it_is_not_judged_again() {
    let tmp = tempfile::tempdir().unwrap();
    let run = Run::read(&recorded(tmp.path())).unwrap();
    assert_eq!(run.warnings, []);
    assert_eq!(run.steps.len(), 8);
    assert!(run.steps.iter().all(|s| s.calls_agree));
    // What the case said of it, from the same tiers.
    assert_eq!(Answer::of(&run).short, run.answers.capacity);
    let names: Vec<&str> = run.ladder().iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["N003-x2", "N003-x2-r2", "N004-x2", "N004-x2-r2"]);
    let refused = rescore(&run, &Changes::default(), &tmp.path().join("again")).unwrap_err();
    assert!(matches!(refused, RescoreError::NoEvidence { .. }));
    assert!(refused.to_string().contains("version 0.1.0 (commit 13300b5)"), "{refused}");
}

#[test]
fn a_run_of_a_newer_version_is_refused_with_its_schema() {
    let tmp = tempfile::tempdir().unwrap();
    let path = recorded(tmp.path());
    let text = fs::read_to_string(path.join("run.json")).unwrap();
    fs::write(path.join("run.json"), text.replacen('{', "{\"schema\":7,", 1)).unwrap();
    let refused = Run::read(&path).unwrap_err();
    assert!(matches!(refused, ReadError::Newer(_)) && refused.to_string().contains("schema 7"), "{refused}");
}
