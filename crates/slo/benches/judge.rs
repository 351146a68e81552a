//! How long a tier of the usual ladder's top and a soak take to judge; the aim is 100 ms for 1,000 calls.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tapedeck_slo::{Limits, judge};

#[path = "../tests/it/common/mod.rs"]
mod common;

fn tiers(c: &mut Criterion) {
    let limits = Limits::default();
    let mut group = c.benchmark_group("judge");
    group.sample_size(10);
    for (name, streams, loops) in [("90 streams", 90, 1), ("soak of 24 streams", 24, 30)] {
        let tier = common::Tier::closed(streams, loops, 1)
            .with_instance("inst1", 0.4, &[])
            .with_instance("inst2", 0.5, &[])
            .with_instance("inst3", 0.6, &[]);
        let evidence = tier.evidence();
        group.bench_function(name, |b| b.iter(|| judge(black_box(&evidence), &limits)));
    }
    group.finish();
}

criterion_group!(benches, tiers);
criterion_main!(benches);
