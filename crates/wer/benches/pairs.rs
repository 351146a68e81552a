//! Time of one pair, for texts of four lengths.
//!
//! For a comparison with jiwer in one run: `cargo bench -p tapedeck-wer` beside
//! `python3 fixtures/wer/time_jiwer.py`, which times the same pairs. One such run on a busy two-core machine,
//! jiwer 4.0.0 under Python 3.11, microseconds a pair, words and characters together:
//!
//! | words in the pair | this crate | jiwer | jiwer, words alone |
//! |---|---|---|---|
//! | 10 | 3.8 | 51 | 19 |
//! | 100 | 105 | 487 | 148 |
//! | 1,000 | 1,260 | 10,700 | 1,560 |
//! | 10,000 | 95,000 | 489,000 | 28,000 |

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tapedeck_wer::measure;

/// The texts that `time_jiwer.py` makes too: a linear congruence picks words, one in ten is changed.
fn pair(words: u32) -> (String, String) {
    let mut state = 12_345_u64;
    let mut next = || {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        state >> 8
    };
    let (mut reference, mut hypothesis) = (Vec::new(), Vec::new());
    for _ in 0..words {
        let word = format!("word{}", next() % 500);
        match next() % 30 {
            0 => {}
            1 => hypothesis.push("other".to_owned()),
            2 => hypothesis.extend([word.clone(), "extra".to_owned()]),
            _ => hypothesis.push(word.clone()),
        }
        reference.push(word);
    }
    (reference.join(" "), hypothesis.join(" "))
}

fn pairs(c: &mut Criterion) {
    let mut group = c.benchmark_group("words_and_characters");
    for words in [10, 100, 1_000, 10_000] {
        let (reference, hypothesis) = pair(words);
        group.throughput(Throughput::Elements(words.into()));
        group.bench_function(BenchmarkId::from_parameter(words), |b| {
            b.iter(|| black_box(measure(black_box(&reference), black_box(&hypothesis))));
        });
    }
    group.finish();
}

criterion_group!(benches, pairs);
criterion_main!(benches);
