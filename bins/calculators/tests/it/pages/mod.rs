//! Pages of the documentation that show answers of a program: they are asked again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::Path;

/// Runs every `console` block of a page that shows one command of the program with what it prints, and holds the two against
/// each other. Blocks that need a run directory are left out. Says how many were asked.
pub(crate) fn ask_again(page: &str, program: &str, path: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let mut asked = 0;
    for block in text.split("```console\n$ ").skip(1) {
        let (command, rest) = block.split_once('\n').unwrap();
        let (answer, _) = rest.split_once("```").unwrap();
        let mut words = command.split(' ');
        if words.next() != Some(program) || answer.is_empty() || command.contains("results/") {
            continue;
        }
        let run = assert_cmd::Command::new(path).args(words).current_dir(&root).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout), answer, "{page}: {command}");
        asked += 1;
    }
    asked
}
