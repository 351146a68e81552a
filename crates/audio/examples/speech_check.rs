//! How well the speech map agrees with a pool whose utterances are known.
//!
//! `cargo run -p tapedeck-audio --example speech_check -- POOL` reads `POOL/segments.tsv` and prints the share of
//! calls whose first onset, last end, and every edge between utterances lie within 50 ms.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a measurement for people, not a library"
)]

use std::collections::BTreeMap;
use std::path::Path;

use tapedeck_audio::{Channel, Preparer, read_bytes};

/// Utterances closer than this are one stretch of speech for the map, so their inner edges are not compared.
const JOINED_MS: i64 = 250;
const NEAR_MS: i64 = 50;

fn main() {
    let pool = std::env::args().nth(1).expect("usage: speech_check POOL");
    let verbose = std::env::args().nth(2).is_some();
    let pool = Path::new(&pool);
    let table = std::fs::read_to_string(pool.join("segments.tsv")).expect("POOL/segments.tsv");
    let mut calls: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, _, start, end, ..] = cells.as_slice() else { continue };
        let ms = |s: &str| (s.parse::<f64>().expect("seconds") * 1000.0).round() as i64;
        let known = calls.entry(file).or_default();
        match known.last_mut() {
            Some(last) if ms(start) - last.1 < JOINED_MS => last.1 = ms(end),
            _ => known.push((ms(start), ms(end))),
        }
    }
    let mut preparer = Preparer::new();
    let (mut onset_ok, mut end_ok, mut both_ok, mut all_ok, mut edges, mut edges_ok) = (0, 0, 0, 0, 0, 0);
    let mut spurious_calls = 0;
    for (file, known) in &calls {
        let bytes = read_bytes(&pool.join(file)).expect("readable");
        let call = preparer.prepare(&bytes, Some(Channel::Mix)).expect("decodable");
        let map = call.speech();
        let found: Vec<(i64, i64)> =
            map.intervals().iter().map(|i| (i64::from(i.start_ms), i64::from(i.end_ms))).collect();
        let near = |a: i64, b: i64| (a - b).abs() <= NEAR_MS;
        let onset = known.first().zip(found.first()).is_some_and(|(k, f)| near(k.0, f.0));
        let end = known.last().zip(found.last()).is_some_and(|(k, f)| near(k.1, f.1));
        let missed: Vec<String> = known
            .iter()
            .flat_map(|k| {
                let start =
                    found.iter().map(|f| f.0 - k.0).min_by_key(|d| d.abs()).filter(|d| d.abs() > NEAR_MS);
                let end =
                    found.iter().map(|f| f.1 - k.1).min_by_key(|d| d.abs()).filter(|d| d.abs() > NEAR_MS);
                [start.map(|d| format!("start {} {d:+}", k.0)), end.map(|d| format!("end {} {d:+}", k.1))]
            })
            .flatten()
            .collect();
        let spurious = found.iter().any(|f| !known.iter().any(|k| f.0 < k.1 && k.0 < f.1));
        edges += known.len() * 2;
        edges_ok += known.len() * 2 - missed.len();
        onset_ok += usize::from(onset);
        end_ok += usize::from(end);
        both_ok += usize::from(onset && end);
        all_ok += usize::from(missed.is_empty());
        spurious_calls += usize::from(spurious);
        if verbose && (!onset || !end || spurious || !missed.is_empty()) {
            println!("{file}: onset {onset} end {end} spurious {spurious} missed {missed:?}");
        }
    }
    let share = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
    println!("{} calls, within {NEAR_MS} ms:", calls.len());
    println!(
        "  first onset {:.1} %, last end {:.1} %, both {:.1} %",
        share(onset_ok, calls.len()),
        share(end_ok, calls.len()),
        share(both_ok, calls.len())
    );
    println!(
        "  every edge of the call {:.1} %; of {edges} edges {:.2} %",
        share(all_ok, calls.len()),
        share(edges_ok, edges)
    );
    println!("  calls with an interval where nobody speaks: {:.1} %", share(spurious_calls, calls.len()));
}
