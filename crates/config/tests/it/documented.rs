//! The config page is the config.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeSet;

use tapedeck_config::keys::{self, Takes};
use tapedeck_config::{Config, ranges};

/// Everything between the first ```toml fence and its end.
fn toml_block(page: &str) -> &str {
    page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn every_key_stands_on_the_page_with_its_default() {
    let page = include_str!("../../../../docs/config.md");
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
    let page = include_str!("../../../../docs/config.md");
    let all: String = toml_block(page)
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let config = Config::parse(&all, "docs/config.md".as_ref()).unwrap();
    assert_eq!(config.server.window_ms, Some(2000));
    assert_eq!(config.instances[0].name, "inst1");
}

/// Every dotted key of a tree, the elements of lists without their place; free tables are left out.
fn named(tree: &toml::Table, section: &str, all: &mut BTreeSet<String>) {
    for (key, value) in tree {
        let name = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
        if keys::find(&name).is_some() {
            all.insert(name);
            continue;
        }
        match value {
            toml::Value::Table(table) => named(table, &name, all),
            toml::Value::Array(elements) => {
                elements.iter().filter_map(toml::Value::as_table).for_each(|table| named(table, &name, all));
            }
            _ => panic!("{name} is on the page and is no key"),
        }
    }
}

#[test]
fn the_page_names_every_key_of_the_types_and_no_other() {
    let page = include_str!("../../../../docs/config.md");
    let all: String = toml_block(page)
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line)))
        .collect();
    let mut on_page = BTreeSet::new();
    named(&toml::from_str(&all).unwrap(), "", &mut on_page);
    let keys = keys::all().into_iter();
    // What a topology's instances and a balancer take stands with the instances.
    let elsewhere = |name: &str| name.starts_with("topologies.") || name.starts_with("balancer.commands.");
    let keys = keys.filter(|key| !elsewhere(&key.name) && key.takes != Takes::Table);
    let missing: Vec<String> = keys.map(|key| key.name).filter(|name| !on_page.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_page_shows_every_range() {
    let page = include_str!("../../../../docs/config.md");
    let shown = page.split("## Ranges").nth(1).unwrap();
    assert!(shown.contains(&ranges::table()), "the table under Ranges should be:\n{}", ranges::table());
}
