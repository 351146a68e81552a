//! What the pages say exists: every link and anchor, every command, every flag in an example.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use tapedeck_commands as commands;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page: `docs/`, and what stands at the top.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    let top = std::fs::read_dir(root()).unwrap().map(|e| e.unwrap().path());
    pages.extend(top.filter(|p| p.extension().is_some_and(|e| e == "md")));
    pages.sort();
    pages
}

/// A page taken apart: text without code, and fenced blocks with their language.
#[derive(Default)]
struct Page {
    text: Vec<String>,
    blocks: Vec<(String, Vec<String>)>,
}

fn read(path: &Path) -> Page {
    let (mut page, mut open) = (Page::default(), None::<(String, Vec<String>)>);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (Some(_), Some(_)) => page.blocks.extend(open.take()),
            (None, Some(language)) => open = Some((language.trim().to_string(), Vec::new())),
            (Some((_, lines)), None) => lines.push(line.to_string()),
            (None, None) => page.text.push(line.to_string()),
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", path.display());
    page
}

/// The text outside `code`.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Targets of `[text](target)` in a line.
fn links(line: &str) -> Vec<String> {
    let line = without_code(line);
    let parts = line.split("](").skip(1);
    parts.filter_map(|part| part.split_once(')').map(|(target, _)| target.to_string())).collect()
}

/// The anchors that a forge makes of headings.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in &page.text {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut name = slug.clone();
        let mut n = 0;
        while !anchors.insert(name.clone()) {
            n += 1;
            name = format!("{slug}-{n}");
        }
    }
    anchors
}

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for path in pages() {
        let page = read(&path);
        for target in page.text.iter().flat_map(|line| links(line)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let whole = there.exists()
                && (anchor.is_empty() || there.is_file() && anchors(&read(&there)).contains(anchor));
            if !whole {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} links were found");
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = root().join("docs/README.md");
    let listed: BTreeSet<PathBuf> = read(&contents)
        .text
        .iter()
        .flat_map(|line| links(line))
        .filter_map(|target| root().join("docs").join(target.split('#').next().unwrap()).canonicalize().ok())
        .collect();
    let missing: Vec<_> = pages()
        .into_iter()
        .filter(|p| p.starts_with(root().join("docs")) && *p != contents)
        .filter(|p| !listed.contains(p) && !listed.iter().any(|l| l.is_dir() && p.starts_with(l)))
        .collect();
    assert_eq!(missing, Vec::<PathBuf>::new());
}

/// Splits a line as a shell would, as far as examples need it; a comment, pipe or redirection ends it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '|' | '>' | ';' | '&') => break,
            (None, '#') if !begun => break,
            (None, c) if c.is_whitespace() => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    // `2>` leaves the 2 behind.
    if begun && !(word.len() == 1 && line.contains(&format!("{word}>"))) {
        words.push(word);
    }
    words
}

/// The commands that a block shows, continued lines joined.
fn shown(language: &str, lines: &[String]) -> Vec<String> {
    // Where the fence says nothing, what is typed begins with `$`, as in a console.
    let console = matches!(language, "console" | "");
    if !console && !matches!(language, "sh" | "bash") {
        return Vec::new();
    }
    let mut all: Vec<String> = Vec::new();
    let mut continued = false;
    for line in lines {
        let text = if continued {
            line.trim_start()
        } else {
            match line.strip_prefix("$ ") {
                Some(text) => text,
                None if console => continue,
                None => line.trim_start(),
            }
        };
        let (text, more) = text.strip_suffix('\\').map_or((text, false), |text| (text, true));
        match all.last_mut().filter(|_| continued) {
            Some(last) => last.push_str(text),
            None => all.push(text.to_string()),
        }
        continued = more;
    }
    all
}

/// What is run, without `cargo run` and settings of the environment.
fn command(line: &str) -> Vec<String> {
    let mut words = words(line);
    while words.first().is_some_and(|w| {
        w.split_once('=').is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    }) {
        words.remove(0);
    }
    if words.starts_with(&["cargo".into(), "run".into()]) {
        let program = words.iter().position(|w| w == "--bin").and_then(|i| words.get(i + 1)).cloned();
        let flags = words.iter().position(|w| w == "--").map_or(words.len(), |i| i + 1);
        return program.into_iter().chain(words.split_off(flags)).collect();
    }
    if let Some(first) = words.first_mut() {
        *first = first.rsplit('/').next().unwrap().to_string();
    }
    words
}

fn ours(name: &str) -> bool {
    let case =
        name.strip_prefix("tc0").is_some_and(|n| n.len() <= 2 && n.starts_with(|c: char| c.is_ascii_digit()));
    name.starts_with("tape-") || name == "tapectl" || name == "campaign" || case
}

#[test]
fn every_example_is_understood() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in pages() {
        // What stood in a past release stays as it was.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        for (language, lines) in read(&path).blocks {
            for line in shown(&language, &lines) {
                let words = command(&line);
                let Some(name) = words.first().filter(|w| ours(w)) else { continue };
                let Some(known) = commands::all().into_iter().find(|c| c.get_name() == name) else {
                    wrong.push(format!("{}: there is no {name}", path.display()));
                    continue;
                };
                // `...` stands for more of the same.
                if words.iter().any(|w| w == "..." || w == "…") {
                    continue;
                }
                tried += 1;
                match known.try_get_matches_from(&words) {
                    Ok(_) => {}
                    Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                    Err(e) => wrong.push(format!("{}: {line}\n{e}", path.display())),
                }
            }
        }
    }
    assert!(tried > 40, "only {tried} examples were found");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_command_that_is_named_exists() {
    let known: BTreeSet<String> = commands::all().iter().map(|c| c.get_name().to_string()).collect();
    let mut unknown = Vec::new();
    for path in pages().into_iter().filter(|p| !p.ends_with("CHANGELOG.md")) {
        let code = read(&path).text;
        let spans = code.iter().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_string);
        for span in spans {
            let first = span.split_whitespace().next().unwrap_or("");
            // A tape's name looks like a command's; it is followed by nothing and ends a file's name.
            let tape = ["tape-a", "tape-b", "tape-c"].iter().any(|t| first.starts_with(t))
                && !first.starts_with("tape-arrivals");
            let file = first.contains(['.', '/', '*', '<', '{', '=', ',']);
            if ours(first) && !tape && !file && !first.contains("-N0") && !known.contains(first) {
                unknown.push(format!("{}: `{span}`", path.display()));
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn both_readmes_show_the_same_commands_tables_and_pages() {
    let [en, zh] = ["README.md", "README.zh.md"].map(|name| read(&root().join(name)));
    // A comment at the end of a line is the only thing in a block that a language changes.
    let code = |page: &Page| -> Vec<(String, Vec<String>)> {
        let bare = |line: &String| {
            line.split_once(" #").map_or(line.as_str(), |(code, _)| code).trim_end().to_string()
        };
        page.blocks
            .iter()
            .map(|(language, lines)| (language.clone(), lines.iter().map(bare).collect()))
            .collect()
    };
    assert_eq!(code(&en), code(&zh));
    let pages = |page: &Page| -> BTreeSet<String> {
        let all = page.text.iter().flat_map(|line| links(line));
        all.filter(|target| !target.starts_with("README")).collect()
    };
    assert_eq!(pages(&en), pages(&zh));
    let shape = |page: &Page| {
        let starts = |mark: &str| page.text.iter().filter(|line| line.starts_with(mark)).count();
        (starts("## "), starts("|"))
    };
    assert_eq!(shape(&en), shape(&zh), "headings and rows of tables");
}

#[test]
fn the_checks_themselves_find_what_is_wrong() {
    assert_eq!(links("see [a](b.md#c) and `[no](link)` and [d](e)"), ["b.md#c", "e"]);
    assert_eq!(
        words("tc03 --fail 'final_s:p95<=2 by x' --json | jq ."),
        ["tc03", "--fail", "final_s:p95<=2 by x", "--json"]
    );
    assert_eq!(words("tc03 --json 2>log"), ["tc03", "--json"]);
    assert_eq!(command("RUST_LOG=1 cargo run --release --bin tc03 -- --rehearse"), ["tc03", "--rehearse"]);
    assert_eq!(command("target/debug/tc03 --seed 2 # a comment"), ["tc03", "--seed", "2"]);
    let lines = ["$ tc03 \\".to_string(), "    --rehearse".into(), "N* = 3".into()];
    assert_eq!(shown("console", &lines), ["tc03 --rehearse"]);
    let page = Page {
        text: vec!["# What it is, and why".into(), "## `--fail` & more".into(), "## A".into(), "## A".into()],
        ..Page::default()
    };
    let expected = ["what-it-is-and-why", "--fail--more", "a", "a-1"];
    assert_eq!(anchors(&page), expected.map(String::from).into());
}
