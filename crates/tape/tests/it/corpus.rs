//! The manifest, with everything that fuzzing starts from and everything that it ever found: see `fuzz/`.

use std::path::Path;

#[path = "../../../../fuzz/targets/manifest.rs"]
#[allow(clippy::expect_used, unreachable_pub, reason = "the fuzz target is a program of its own")]
mod target;

#[test]
fn every_input_of_the_corpus_is_taken_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/manifest");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        target::run(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 5, "{inputs} inputs: the corpus is not there");
}
