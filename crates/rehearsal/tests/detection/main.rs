//! Faults against cases: what is found, what is not, what alarms without cause. The table is `docs/detection.md`.
//!
//! Every row plays the same case with and without the fault, over several seeds, and asks the same question of both.
//! `TAPEDECK_WRITE_TABLE=1 just validity` writes the table anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

#[path = "../common/mod.rs"]
mod common;
mod played;
mod series;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::fixtures;

/// One fault and the case that exists to find it.
struct Row {
    fault: &'static str,
    case: &'static str,
    /// How it is seen.
    seen: &'static str,
    seeds: u64,
    /// Whether the case complains, with the fault (true) and without it.
    complains: fn(u64, bool) -> bool,
}

const ROWS: [Row; 17] = [
    Row {
        fault: "sessions that never answer, 2 %",
        case: "TC-03",
        seen: "errors",
        seeds: 3,
        complains: played::no_response,
    },
    Row {
        fault: "engine hangs for 15 s",
        case: "TC-03",
        seen: "latencies",
        seeds: 3,
        complains: played::hang,
    },
    Row {
        fault: "engine crashes for 20 s",
        case: "TC-03",
        seen: "errors, instance down",
        seeds: 3,
        complains: played::crash,
    },
    Row {
        fault: "refuses the sixth call of each instance",
        case: "TC-03",
        seen: "errors",
        seeds: 3,
        complains: played::refusal,
    },
    Row {
        fault: "KV pool too small by a third",
        case: "TC-03",
        seen: "preemption red line",
        seeds: 3,
        complains: played::preemption,
    },
    Row {
        fault: "prefix cache hits 3 %",
        case: "TC-03",
        seen: "suspect",
        seeds: 3,
        complains: played::prefix,
    },
    Row {
        fault: "lag grows by 0.75 s per minute of a call's age",
        case: "TC-03",
        seen: "unstable, or the final's limit",
        seeds: 3,
        complains: played::age,
    },
    Row {
        fault: "last segment never made final in 1 % of calls",
        case: "TC-03",
        seen: "quality flag",
        seeds: 3,
        complains: played::tails,
    },
    Row {
        fault: "a load that is too much, below one that is not",
        case: "TC-03",
        seen: "not monotonic",
        seeds: 3,
        complains: played::dip,
    },
    Row {
        fault: "words worse by 1.5 points under load (word counts alone)",
        case: "TC-04",
        seen: "alarm above 1.0 point",
        seeds: 200,
        complains: series::words,
    },
    Row {
        fault: "the same, played",
        case: "TC-04",
        seen: "alarm above 1.0 point",
        seeds: 3,
        complains: played::words,
    },
    Row {
        fault: "steps grow longer by the hour",
        case: "TC-08",
        seen: "drift",
        seeds: 3,
        complains: played::drift,
    },
    Row {
        fault: "leak of 1 % of VRAM per hour (memory series alone)",
        case: "TC-05",
        seen: "leak",
        seeds: 200,
        complains: series::leaks,
    },
    Row {
        fault: "the same, played for 4 h",
        case: "TC-05",
        seen: "leak",
        seeds: 3,
        complains: played::leak_played,
    },
    Row {
        fault: "first texts come later and later",
        case: "TC-05",
        seen: "drift of TTFT p95",
        seeds: 3,
        complains: played::creep,
    },
    Row {
        fault: "balancer goes on dealing calls to a dead instance",
        case: "TC-06",
        seen: "new calls lost",
        seeds: 3,
        complains: played::blind,
    },
    Row {
        fault: "two instances cannot carry 2/3 of the load",
        case: "TC-06",
        seen: "no recovery in 30 s",
        seeds: 3,
        complains: played::weak,
    },
];

/// Faults found, and false alarms.
fn counts(row: &Row) -> (u64, u64) {
    let count = |faulty| (1..=row.seeds).filter(|&seed| (row.complains)(seed, faulty)).count() as u64;
    (count(true), count(false))
}

/// Plays every row, on two threads.
fn all() -> Vec<(u64, u64)> {
    let results = Mutex::new(vec![(0, 0); ROWS.len()]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(row) = ROWS.get(at) else { return };
                    let counted = counts(row);
                    results.lock().unwrap()[at] = counted;
                }
            });
        }
    });
    results.into_inner().unwrap()
}

fn table(counted: &[(u64, u64)]) -> String {
    let mut out = String::from(
        "| fault | case | seen as | found | not found | false alarms without it |\n|---|---|---|---|---|---|\n",
    );
    for (row, (found, alarms)) in ROWS.iter().zip(counted) {
        let Row { fault, case, seen, seeds, .. } = row;
        let _ = writeln!(
            out,
            "| {fault} | {case} | {seen} | {found} of {seeds} | {} | {alarms} of {seeds} |",
            seeds - found
        );
    }
    out
}

#[test]
#[ignore = "takes minutes; `just validity` runs it"]
fn every_case_finds_its_fault_and_is_quiet_without_it_as_the_table_says() {
    let counted = all();
    let table = table(&counted);
    let path = fixtures().join("../docs/detection.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- table -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let wanted = format!("{before}<!-- table -->\n{table}<!-- end -->{after}");
    if std::env::var_os("TAPEDECK_WRITE_TABLE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    for (row, (found, alarms)) in ROWS.iter().zip(&counted) {
        assert!(found * 100 >= row.seeds * 95, "{}: {found} of {} found\n{table}", row.fault, row.seeds);
        assert!(alarms * 200 <= row.seeds, "{}: {alarms} false alarms in {}\n{table}", row.fault, row.seeds);
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/detection.md is not what was found; see above"
    );
}
