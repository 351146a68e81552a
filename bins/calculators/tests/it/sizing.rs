//! Runs `tape-sizing` as its users run it.

#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

pub(crate) fn sizing(args: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("tape-sizing").unwrap().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn json(args: &[&str]) -> Value {
    let (code, out, err) = sizing(&[args, &["--json"]].concat());
    assert!(code == 0 || code == 1 || code == 4, "{code}: {err}");
    serde_json::from_str(&out).unwrap()
}

pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}
