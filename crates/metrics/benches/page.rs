//! What one scrape of a real 60 kB page costs: it happens once a second and instance, so 2 ms are the limit.
//!
//! `cargo bench -p tapedeck-metrics`. The scrape goes over HTTP, though through memory instead of a wire: client and server
//! both, so its time bounds the client's part from above.
#![expect(clippy::expect_used, reason = "a bench, not a library")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tapedeck_metrics::{EngineKind, normalise, parse, scrape};
use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, HttpLimits, Io};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const PAGE: &str = include_str!("../../../fixtures/metrics/vllm-metrics-realtime-load.txt");

/// A server that answers everything with the page.
#[derive(Debug)]
struct Memory;

impl Connector for Memory {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        let (ours, mut theirs) = duplex(1 << 16);
        tokio::spawn(async move {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                if theirs.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", PAGE.len());
            // A client that is gone has its page.
            let _ = theirs.write_all(head.as_bytes()).await;
            let _ = theirs.write_all(PAGE.as_bytes()).await;
        });
        Box::pin(std::future::ready(Ok(Io::Pipe(ours))))
    }
}

fn page(criterion: &mut Criterion) {
    criterion.bench_function("parse 60 kB", |bencher| bencher.iter(|| parse(black_box(PAGE))));
    let page = parse(PAGE);
    criterion.bench_function("understand 60 kB", |bencher| {
        bencher.iter(|| normalise(black_box(&page), EngineKind::Vllm));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let endpoint: Endpoint = "http://memory/metrics".parse().expect("an address");
    criterion.bench_function("scrape 60 kB", |bencher| {
        bencher.iter(|| {
            let read = scrape(&Memory, &endpoint, None, EngineKind::Vllm, HttpLimits::default());
            let scraped = runtime.block_on(read).expect("a page");
            assert_eq!(scraped.normalised.missing.len(), 0);
            scraped
        });
    });
}

criterion_group!(benches, page);
criterion_main!(benches);
