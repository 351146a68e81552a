//! Keys that are named in the docs, and in the messages of crates that stand below the config, exist.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tapedeck_config::keys;

/// Crates whose messages may name a key, and that cannot take it from the types.
const BELOW: [&str; 10] =
    ["answers", "fleet", "l10n", "metrics", "protocol", "record", "sizing", "slo", "tape", "transport"];
/// Endings of files, which look like keys: `run.toml`.
const FILES: [&str; 8] = ["csv", "html", "json", "jsonl", "md", "rs", "svg", "toml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &Path, ending: &str, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, all);
        } else if path.extension().is_some_and(|e| e == ending) {
            all.push(path);
        }
    }
}

/// Words of a text that look like keys: a section, a dot, and more.
fn keys_in(text: &str, sections: &BTreeSet<String>) -> Vec<String> {
    let word =
        |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '/' | '-' | '{'));
    text.split(word)
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| {
            let key = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.');
            let parts: Vec<&str> = word.split('.').collect();
            let section = parts.first().is_some_and(|first| sections.contains(*first));
            let file = parts.last().is_some_and(|last| FILES.contains(last));
            word.chars().all(key) && parts.len() > 1 && section && !file && !parts.contains(&"")
        })
        .map(str::to_owned)
        .collect()
}

/// Whether a name is a key, a section, or below a table whose keys are free.
fn exists(name: &str) -> bool {
    keys::all().iter().any(|key| {
        let below = |outer: &str, inner: &str| {
            inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
        };
        below(name, &key.name) || key.takes == keys::Takes::Table && below(&key.name, name)
    })
}

fn unknown(texts: impl Iterator<Item = (PathBuf, String)>) -> (usize, Vec<String>) {
    let mut sections: BTreeSet<String> =
        keys::all().iter().map(|key| key.name.split('.').next().unwrap().to_owned()).collect();
    sections.extend(["engine".to_owned(), "config".to_owned()]);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (path, text) in texts {
        for name in keys_in(&text, &sections) {
            seen += 1;
            if !exists(&name) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    (seen, wrong)
}

fn quoted(path: &Path, mark: char) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split(mark).skip(1).step_by(2)).map(|span| format!("{span}\n")).collect()
}

#[test]
fn keys_in_the_docs_exist() {
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    pages.extend(["README.md", "README.zh.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    // The config of text streams is another one, and so are the engine's own parameters.
    pages.retain(|page| !page.ends_with("text-streams.md") && !page.ends_with("engine.md"));
    let (seen, wrong) = unknown(pages.into_iter().map(|page| (page.clone(), quoted(&page, '`'))));
    assert!(seen > 20, "{seen}");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn keys_in_messages_of_crates_below_exist() {
    let mut sources = Vec::new();
    for name in BELOW {
        files(&root().join("crates").join(name).join("src"), "rs", &mut sources);
    }
    let (seen, wrong) = unknown(sources.into_iter().map(|path| (path.clone(), quoted(&path, '"'))));
    assert!(seen > 5, "{seen}");
    assert_eq!(wrong, Vec::<String>::new());
}
