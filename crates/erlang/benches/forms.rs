//! Time of one answer, forward and inverse.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tapedeck_erlang::engset::Source;
use tapedeck_erlang::erlang_a::Target;
use tapedeck_erlang::{engset, erlang_a, erlang_b, erlang_c, retries};

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("forward");
    for (lines, traffic) in [(100, 85.0), (10_000, 9_900.0), (1_000_000, 999_000.0), (1_000_000, 1_000_500.0)]
    {
        group.bench_function(format!("b/{lines}/{traffic}"), |b| {
            b.iter(|| erlang_b::blocking(black_box(traffic), black_box(lines)));
        });
        group.bench_function(format!("a/{lines}/{traffic}"), |b| {
            b.iter(|| erlang_a::queue(black_box(traffic), black_box(lines), 0.5));
        });
    }
    group.finish();
}

fn inverse(c: &mut Criterion) {
    let mut group = c.benchmark_group("inverse_at_1e6_lines");
    let (lines, traffic) = (1_000_000, 1_000_000.0);
    group.bench_function("b lines", |b| b.iter(|| erlang_b::lines(black_box(traffic), 0.01)));
    group.bench_function("b traffic", |b| b.iter(|| erlang_b::traffic(black_box(lines), 0.01)));
    group.bench_function("c lines", |b| b.iter(|| erlang_c::lines_for_waiting(black_box(traffic), 0.2)));
    group.bench_function("c lines for a service level", |b| {
        b.iter(|| erlang_c::lines_for_service_level(black_box(traffic), 0.8, 1e-4));
    });
    group.bench_function("c traffic", |b| b.iter(|| erlang_c::traffic_for_waiting(black_box(lines), 0.2)));
    group.bench_function("c traffic for a service level", |b| {
        b.iter(|| erlang_c::traffic_for_service_level(black_box(lines), 0.8, 1e-4));
    });
    group.bench_function("retries lines", |b| b.iter(|| retries::lines(black_box(traffic), 0.01, 0.7)));
    group.bench_function("retries traffic", |b| b.iter(|| retries::traffic(black_box(lines), 0.01, 0.7)));
    group.bench_function("engset lines", |b| {
        b.iter(|| engset::lines(black_box(10_000_000), Source::Busy(0.1), 0.01))
    });
    group
        .bench_function("engset traffic", |b| b.iter(|| engset::traffic(black_box(10_000_000), lines, 0.01)));
    for (name, target) in [
        ("abandoning", Target::Abandoning(0.001)),
        ("waiting", Target::Waiting(0.2)),
        ("answered", Target::Answered { share: 0.8, within: 1e-4 }),
    ] {
        group.bench_function(format!("a lines, {name}"), |b| {
            b.iter(|| erlang_a::lines(black_box(traffic), 0.5, target))
        });
        group.bench_function(format!("a traffic, {name}"), |b| {
            b.iter(|| erlang_a::traffic(black_box(lines), 0.5, target))
        });
    }
    group.finish();
}

criterion_group!(benches, forward, inverse);
criterion_main!(benches);
