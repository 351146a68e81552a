//! The config page is the config.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use tapedeck_cases::Config;

/// Everything between the first ```toml fence and its end.
fn toml_block(page: &str) -> &str {
    page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn every_key_stands_on_the_page_with_its_default() {
    let page = include_str!("../../../docs/config.md");
    let documented = Config::parse(toml_block(page), "docs/config.md".as_ref()).unwrap();
    assert_eq!(documented, Config::default());
    // Equality alone would not notice a key that is left out; the serialised defaults name them all.
    for line in Config::default().to_toml().unwrap().lines() {
        let key = line.split(" = ").next().unwrap().trim();
        if key.is_empty() || key.parse::<f64>().is_ok() || key.starts_with(']') || key.ends_with(',') {
            continue;
        }
        assert!(page.contains(key), "docs/config.md does not name {key}");
    }
}

#[test]
fn optional_keys_on_the_page_are_keys() {
    let page = include_str!("../../../docs/config.md");
    let all: String = toml_block(page)
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let config = Config::parse(&all, "docs/config.md".as_ref()).unwrap();
    assert_eq!(config.server.window_ms, Some(2000));
    assert_eq!(config.instances[0].name, "inst1");
}
