//! What one scrape of a real 60 kB page costs: it happens once a second and instance, so 2 ms are the limit.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tapedeck_metrics::{EngineKind, parse, understand};

const PAGE: &str = include_str!("../../../fixtures/metrics/vllm-metrics-realtime-load.txt");

fn page(criterion: &mut Criterion) {
    criterion.bench_function("parse 60 kB", |bencher| bencher.iter(|| parse(black_box(PAGE))));
    let page = parse(PAGE);
    criterion.bench_function("understand 60 kB", |bencher| {
        bencher.iter(|| understand(black_box(&page), EngineKind::Vllm));
    });
}

criterion_group!(benches, page);
criterion_main!(benches);
