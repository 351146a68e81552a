//! Time of one pair.
use criterion::{Criterion, criterion_group, criterion_main};

fn pairs(c: &mut Criterion) {
    let _ = c;
}

criterion_group!(benches, pairs);
criterion_main!(benches);
