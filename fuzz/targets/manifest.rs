//! The manifest: what is accepted can be written and is then read as the same; no path of it leaves the pool.

use std::path::{Component, Path};

use tapedeck_tape::Manifest;

/// One input.
pub fn run(data: &[u8]) {
    let path = Path::new("fuzzed.json");
    match Manifest::parse(data, path) {
        Ok(manifest) => {
            let text = manifest.to_text().expect("what was read can be written");
            let again = Manifest::parse(text.as_bytes(), path).expect("what was written can be read");
            assert_eq!(again, manifest);
            for call in &manifest.calls {
                let inside = Path::new(&call.path).components().all(|c| matches!(c, Component::Normal(_)));
                assert!(inside, "{:?} leaves the pool", call.path);
                let _ = call.meta(0);
            }
            let _ = (manifest.duration_ms(), manifest.expected_digest());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
