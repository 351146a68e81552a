//! What a dialect knows of its server, and what a world makes of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use std::path::Path;

use tapedeck_cases::{CaseError, World};
use tapedeck_config::Config;
use tapedeck_record::{ExitCode, HasExitCode};
use tokio::sync::watch;

/// A world over the tenth of Tape-A, whose longest call lasts 17,783 ms.
fn world(server: &str, load: &str) -> Result<World, CaseError> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap();
    let fixtures = fixtures.display();
    let text = format!(
        "[server]\nurl = \"ws://127.0.0.1:1/\"\n{server}\n[load]\n{load}\n\
         [tape]\nmanifest = \"{fixtures}/tapes/tape-a-tenth.json\"\npool = \"{fixtures}/pool-tenth\"\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("site.toml");
    std::fs::write(&file, text).unwrap();
    World::real(Config::read(&file).unwrap(), &[], watch::channel(false).1)
}

#[tokio::test]
async fn the_servers_window_is_filled_in_where_the_config_says_nothing() {
    let window_ms = |server: &str| world(server, "").unwrap().config.server.window_ms;
    assert_eq!(window_ms("dialect = \"vllm-realtime\""), Some(5_000));
    assert_eq!(
        window_ms("dialect = \"vllm-realtime\"\nwindow_ms = 2000"),
        Some(2_000),
        "the user knows better"
    );
    assert_eq!(window_ms("dialect = \"sherpa-onnx\"\noptions = { step_ms = 300 }"), Some(300));
    assert_eq!(window_ms("dialect = \"pcm-json\""), None, "any server may be behind it");
}

#[tokio::test]
async fn a_call_that_may_kill_the_engine_is_refused_before_anything_is_played() {
    let vllm = |tokens: u32| format!("dialect = \"vllm-realtime\"\noptions = {{ max_model_len = {tokens} }}");
    assert!(world("dialect = \"vllm-realtime\"", "").is_ok(), "without a limit nothing is known");
    assert!(world(&vllm(4_096), "").is_ok());
    let error = world(&vllm(512), "").unwrap_err();
    let words = error.to_string();
    assert!(words.contains("17783 ms") && words.contains("longer than 16 s may kill the engine"), "{words}");
    assert_eq!(error.exit_code(), ExitCode::Usage);
    // Three segments of 139 tokens, and 2.783 s: 37 of audio and 74 beside it.
    assert!(world(&vllm(530), "").is_ok());
    let error = world(&vllm(530), "tail_silence_ms = 1000").unwrap_err().to_string();
    assert!(error.contains("and 1000 ms of silence"), "{error}");
}
