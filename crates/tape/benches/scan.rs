//! What a look at a pool costs per file: 6,000 recordings shall take less than ten seconds.
//!
//! `cargo bench -p tapedeck-tape`. Throughput is in files per second; 600 are enough to see it. The recordings are those
//! of the fixtures, linked under many names: headers do not care, and MD5 reads each byte again.
#![expect(clippy::expect_used, reason = "a bench, not a library")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use tapedeck_tape::{Pool, ScanOptions, scan};

const FILES: usize = 600;

/// A folder that looks like a pool of [`FILES`] calls of half a minute.
fn pool() -> tempfile::TempDir {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pool-a");
    let entries = std::fs::read_dir(fixtures).expect("the fixtures");
    let wavs = entries.filter_map(|entry| entry.ok().map(|e| e.path()));
    let half_a_minute = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "wav") && path.metadata().is_ok_and(|m| m.len() < 300_000)
    };
    let recordings: Vec<PathBuf> = wavs.filter(half_a_minute).collect();
    let dir = tempfile::tempdir().expect("a folder");
    for (n, from) in (0..FILES).zip(recordings.iter().cycle()) {
        let to = dir.path().join(format!("call-{n:05}.wav"));
        // Where the temporary folder is on another disk, there are no links.
        if std::fs::hard_link(from, &to).is_err() {
            std::fs::copy(from, &to).expect("a copy");
        }
    }
    dir
}

fn look(c: &mut Criterion) {
    let dir = pool();
    let mut group = c.benchmark_group("scan");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Elements(FILES as u64));
    for (name, hash) in [("headers", false), ("every byte", true)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let listed = Pool::list(dir.path()).expect("a pool");
                let reports = scan(&listed, ScanOptions { threads: None, hash }, &BTreeMap::new(), |_| ());
                assert_eq!(reports.iter().filter(|report| report.ok).count(), FILES);
                black_box(reports)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, look);
criterion_main!(benches);
