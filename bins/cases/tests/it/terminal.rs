//! Ctrl-C on a terminal of its own, by `script`: what was drawn is cleared whole.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on shall stop")]

use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Runs a line on a terminal, presses Ctrl-C when `seen` is drawn, and gives exit code and everything that was drawn.
fn interrupted(line: &str, seen: &str) -> (Option<i32>, String) {
    let mut script = Command::new("script");
    script.args(["-qec", line, "/dev/null"]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("`script` of util-linux gives a terminal to the test");
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut drawn, mut some, mut pressed) = (Vec::new(), [0; 4096], false);
    loop {
        let n = screen.read(&mut some).unwrap();
        if n == 0 {
            break;
        }
        drawn.extend_from_slice(&some[..n]);
        if !pressed && String::from_utf8_lossy(&drawn).contains(seen) {
            keys.write_all(b"\x03").unwrap();
            keys.flush().unwrap();
            pressed = true;
        }
    }
    let code = child.wait().unwrap().code();
    (code, String::from_utf8_lossy(&drawn).into_owned())
}

#[test]
fn ctrl_c_is_not_echoed_into_what_is_drawn() {
    let program = assert_cmd::cargo::cargo_bin("tc03");
    let tmp = tempfile::tempdir().unwrap();
    let line = format!("{} --rehearse --out {}", program.display(), tmp.path().display());
    let (code, drawn) = interrupted(&line, "N003 [");
    assert_eq!(code, Some(130), "{drawn:?}");
    // The two letters would begin a line below the bar, and its own line would never be cleared.
    assert!(!drawn.contains("^C"), "{drawn:?}");
    assert!(drawn.contains("Interrupted: go on with"), "{drawn:?}");
}
