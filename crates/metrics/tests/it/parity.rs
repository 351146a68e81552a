//! Every page of the fixtures, read by this crate and by `prometheus-parse`: the same series with the same values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prometheus_parse::{Scrape, Value};
use tapedeck_metrics::{Series, parse};

/// A series: its name, then its labels in order.
type Key = (String, Vec<(String, String)>);

/// Pages that the other reader cannot be compared on, and what comes of it there.
const NOT_COMPARED: [(&str, &str); 2] = [
    // Neither finds a sample in a page of markup; ours says so, and the other is silent.
    ("m09-html-with-200.prom", "no sample"),
    // It keeps the spaces around the names and values of labels.
    ("m12-crlf-and-spaces.prom", "b_total"),
];

fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/metrics");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut pages: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "txt" || e == "prom")).collect();
    pages.sort();
    pages
}

/// A name as the other reader can take it: its names hold no colon, and it passes over a line that has one.
fn plain(name: &str) -> String {
    name.replace(':', "__")
}

/// The page with such names: on sample lines all that stands before the labels or the value, on others the third word.
fn plain_page(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(comment) => {
            let words: Vec<_> = comment.splitn(3, ' ').collect();
            match words.as_slice() {
                [what, name, rest] => format!("# {what} {} {rest}", plain(name)),
                _ => line.to_owned(),
            }
        }
        None => {
            let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap_or(line.len()));
            format!("{}{rest}", plain(name))
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A bucket's bound or a quantile, whatever way it is written.
fn bound(text: &str) -> String {
    text.parse::<f64>().unwrap().to_string()
}

fn ours(series: &Series) -> Key {
    let label = |(key, value): &(String, String)| {
        let number = key == "le" && series.name.ends_with("_bucket") || key == "quantile";
        (key.clone(), if number { bound(value) } else { value.clone() })
    };
    let mut labels: Vec<_> = series.labels.iter().map(label).collect();
    labels.sort();
    (plain(&series.name), labels)
}

/// Its samples, one by one again: it gathers buckets and quantiles.
fn theirs(page: Scrape) -> Vec<(Key, f64)> {
    let mut all = Vec::new();
    for sample in page.samples {
        let key = |suffix: &str, more: Option<(&str, f64)>| {
            let mut labels: Vec<_> =
                sample.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            labels.extend(more.map(|(key, value)| (key.to_owned(), value.to_string())));
            labels.sort();
            (format!("{}{suffix}", sample.metric), labels)
        };
        match &sample.value {
            Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => {
                all.push((key("", None), *value));
            }
            Value::Histogram(buckets) => {
                all.extend(buckets.iter().map(|b| (key("_bucket", Some(("le", b.less_than))), b.count)));
            }
            Value::Summary(quantiles) => {
                all.extend(quantiles.iter().map(|q| (key("", Some(("quantile", q.quantile))), q.count)));
            }
        }
    }
    all
}

fn other_reader(text: &str) -> Scrape {
    Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap()
}

/// How many series both readers found, with the same values to the bit; else the first that differs.
fn compare(text: &str) -> Result<usize, String> {
    compare_with(text, other_reader(&plain_page(text)))
}

fn compare_with(text: &str, other: Scrape) -> Result<usize, String> {
    let mut left: BTreeMap<Key, u64> = BTreeMap::new();
    for (key, value) in theirs(other) {
        if left.insert(key.clone(), value.to_bits()).is_some() {
            return Err(format!("{key:?} comes twice"));
        }
    }
    let page = parse(text);
    for series in &page.series {
        let key = ours(series);
        let same = |bits: u64| {
            bits == series.value.to_bits() || series.value.is_nan() && f64::from_bits(bits).is_nan()
        };
        match left.remove(&key) {
            Some(bits) if same(bits) => {}
            other => return Err(format!("{key:?}: {} and {:?}", series.value, other.map(f64::from_bits))),
        }
    }
    match left.pop_first() {
        Some((key, _)) => Err(format!("{key:?} is not in ours")),
        None if page.series.is_empty() => Err("no sample".into()),
        None => Ok(page.series.len()),
    }
}

#[test]
fn both_readers_find_the_same_values() {
    let (mut read, mut refused) = (Vec::new(), Vec::new());
    for path in pages() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match compare(&std::fs::read_to_string(&path).unwrap()) {
            Ok(series) => read.push((name, series)),
            Err(why) => refused.push((name, why)),
        }
    }
    for (name, why) in &refused {
        let known = NOT_COMPARED.iter().any(|(page, what)| page == name && why.contains(what));
        assert!(known, "{name}: {why}");
    }
    assert_eq!(refused.len(), NOT_COMPARED.len(), "a page of the list can be compared: {refused:?}");
    // The pages of a real engine hold hundreds of series each.
    let real =
        read.iter().filter(|(name, series)| name.starts_with("vllm-metrics-") && *series > 300).count();
    assert!(real >= 6, "{read:?}");
}

#[test]
fn what_differs_is_found() {
    assert_eq!(compare("a:b{x=\"1\"} 2\nc 3\n"), Ok(2));
    // Why names are translated: the page of an engine would pass for nearly empty.
    assert!(other_reader("a:b{x=\"1\"} 2\n").samples.is_empty());
    let differs = |other: &str| compare_with("a{x=\"1\"} 2\n", other_reader(other)).unwrap_err();
    assert!(differs("a{x=\"1\"} 3\n").contains("2 and Some(3.0)"));
    assert!(differs("a{x=\"2\"} 2\n").contains("2 and None"));
    assert!(differs("a{x=\"1\"} 2\nb 1\n").contains("is not in ours"));
    // It passes over a label's value with a brace in it.
    assert!(compare("a{x=\"}\"} 2\n").is_err());
}
