//! Scraping and sampling under a paused clock, over in-memory pipes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tapedeck_metrics::gpu::{Dcgm, GpuDevice, GpuError, GpuSource, NoGpu};
use tapedeck_metrics::{
    ClientSource, EngineKind, EngineSource, GpuWatch, NoProbe, Sampler, ScrapeError, Summary, scrape,
};
use tapedeck_record::{GpuReading, Metric, Sample, SampleBody};
use tapedeck_transport::{BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, HttpLimits, Io};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// What a fake server does with one question.
#[derive(Debug, Clone)]
enum Answer {
    Refuse,
    Silence,
    Page { after: Duration, status: &'static str, kind: &'static str, body: String },
}

fn page(body: &str) -> Answer {
    Answer::Page { after: Duration::ZERO, status: "200 OK", kind: "text/plain", body: body.to_owned() }
}

/// Answers the n-th connection to a path with the n-th answer, and the last one from then on.
#[derive(Debug, Default)]
struct Fake(Mutex<BTreeMap<String, (usize, Vec<Answer>)>>);

impl Fake {
    fn new(paths: &[(&str, Vec<Answer>)]) -> Arc<Self> {
        let paths = paths.iter().map(|(path, answers)| ((*path).to_owned(), (0, answers.clone())));
        Arc::new(Self(Mutex::new(paths.collect())))
    }
}

impl Connector for Fake {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        let answer = {
            let mut paths = self.0.lock().unwrap();
            let (asked, answers) = paths.get_mut(endpoint.path_and_query()).unwrap();
            let answer = answers[(*asked).min(answers.len() - 1)].clone();
            *asked += 1;
            answer
        };
        Box::pin(async move {
            if matches!(answer, Answer::Refuse) {
                return Err(ConnectError::new(endpoint, ConnectErrorKind::Refused, "connection refused"));
            }
            let (ours, mut theirs) = duplex(1 << 16);
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    if theirs.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                match answer {
                    Answer::Page { after, status, kind, body } => {
                        sleep(after).await;
                        let head = format!(
                            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
                            body.len()
                        );
                        let _ = theirs.write_all(head.as_bytes()).await;
                    }
                    _ => std::future::pending().await,
                }
            });
            Ok(Io::Pipe(ours))
        })
    }
}

fn endpoint(path: &str) -> Endpoint {
    format!("http://fake{path}").parse().unwrap()
}

fn limits() -> HttpLimits {
    HttpLimits { timeout: Duration::from_secs(2), max_bytes: 1000 }
}

fn engine(name: &str, connector: &Arc<Fake>) -> EngineSource {
    EngineSource {
        name: name.to_owned(),
        connector: connector.clone(),
        endpoint: endpoint(&format!("/{name}")),
        bearer: None,
        kind: EngineKind::Vllm,
        limits: limits(),
    }
}

/// Samples for so long and gives everything back.
async fn sample(sampler: Sampler, length: Duration) -> (Vec<Sample>, Summary) {
    let (stop, stopped) = watch::channel(false);
    let (out, mut samples) = mpsc::unbounded_channel();
    let running = tokio::spawn(sampler.run(stopped, out));
    sleep(length).await;
    // It may be over already, when every source is.
    let _ = stop.send(true);
    let summary = running.await.unwrap();
    let mut all = Vec::new();
    while let Some(sample) = samples.recv().await {
        all.push(sample);
    }
    (all, summary)
}

fn running(samples: &[Sample], source: &str) -> Vec<(f64, Option<f64>)> {
    samples
        .iter()
        .filter(|sample| sample.source == source)
        .map(|sample| match &sample.body {
            SampleBody::Engine(scrape) => (sample.at_s, scrape.values.get(&Metric::Running).copied()),
            _ => (sample.at_s, None),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_source_is_read_once_a_second_and_failures_are_gaps() {
    let count = |n: u32| page(&format!("vllm:num_requests_running {n}\n"));
    let fake = Fake::new(&[
        ("/one", vec![count(1), Answer::Refuse, page("<html>bad gateway</html>"), count(4)]),
        ("/two", vec![count(7)]),
    ]);
    let sampler = Sampler::new(Instant::now()).with(engine("one", &fake)).with(engine("two", &fake));
    let (samples, summary) = sample(sampler, Duration::from_millis(4500)).await;
    assert_eq!(
        running(&samples, "one"),
        [(0.0, Some(1.0)), (1.0, None), (2.0, None), (3.0, Some(4.0)), (4.0, Some(4.0))]
    );
    assert_eq!(running(&samples, "two").len(), 5);
    let reasons: Vec<_> = samples
        .iter()
        .filter_map(|sample| match &sample.body {
            SampleBody::Gap { why } if sample.source == "one" => Some(why.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("refused") && reasons[1].contains("it is markup"), "{reasons:?}");
    let one = &summary.sources["one"];
    assert_eq!((one.read, one.failed), (3, 2));
    assert!(one.missing.iter().any(|missing| missing.what == "kv_pool"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_source_holds_up_nobody_and_is_stamped_in_the_middle() {
    let slow = Answer::Page {
        after: Duration::from_millis(1500),
        status: "200 OK",
        kind: "text/plain",
        body: "vllm:num_requests_running 3\n".to_owned(),
    };
    let fake = Fake::new(&[
        ("/slow", vec![slow, Answer::Silence]),
        ("/quick", vec![page("vllm:num_requests_running 1\n")]),
    ]);
    let sampler = Sampler::new(Instant::now()).with(engine("slow", &fake)).with(engine("quick", &fake));
    let (samples, _) = sample(sampler, Duration::from_millis(5500)).await;
    // Read from 0 to 1.5 s; the tick at 1 s is left out; from 2 to 4 s nothing comes; from 5 s on it is asked again.
    assert_eq!(running(&samples, "slow"), [(0.75, Some(3.0)), (3.0, None)]);
    let quick: Vec<_> = running(&samples, "quick").into_iter().map(|(at_s, _)| at_s).collect();
    assert_eq!(quick, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[tokio::test(start_paused = true)]
async fn two_runs_give_the_same_samples() {
    let run = || async {
        let fake = Fake::new(&[
            (
                "/a",
                vec![
                    page("vllm:num_requests_running 1\n"),
                    Answer::Silence,
                    page("vllm:num_requests_running 2\n"),
                ],
            ),
            ("/b", vec![Answer::Refuse, page("vllm:num_requests_running 3\n")]),
        ]);
        let sampler = Sampler::new(Instant::now()).with(engine("a", &fake)).with(engine("b", &fake));
        sample(sampler, Duration::from_secs(30)).await
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test(start_paused = true)]
async fn what_shows_up_later_was_not_missing() {
    let fake = Fake::new(&[(
        "/one",
        vec![
            page("vllm:num_requests_running 0\n"),
            page("vllm:num_requests_running 1\nvllm:num_preemptions_total 1\n"),
        ],
    )]);
    let sampler = Sampler::new(Instant::now()).with(engine("one", &fake));
    let (_, summary) = sample(sampler, Duration::from_secs(3)).await;
    let missing: Vec<_> =
        summary.sources["one"].missing.iter().map(|missing| missing.what.as_str()).collect();
    assert!(!missing.contains(&"preemptions") && missing.contains(&"kv_pool"), "{missing:?}");
}

/// Two instances on one GPU, read twice, and a third way that fails.
#[derive(Debug)]
struct OneGpu;

impl GpuSource for OneGpu {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        let reading = GpuReading { power_w: Some(60.0), ..GpuReading::default() };
        Box::pin(async { Ok(vec![GpuDevice { id: "GPU-1".into(), reading, ..GpuDevice::default() }]) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_gpu_counts_once_and_an_absent_one_is_said_once() {
    let both = GpuWatch { sources: vec![Arc::new(OneGpu), Arc::new(OneGpu)] };
    let (samples, summary) =
        sample(Sampler::new(Instant::now()).with(both), Duration::from_millis(1500)).await;
    let sources: Vec<_> = samples.iter().map(|sample| sample.source.as_str()).collect();
    assert_eq!(sources, ["GPU-1", "GPU-1"]);
    assert_eq!(summary.gpus["GPU-1"].reading.power_w, Some(60.0));

    let none = GpuWatch { sources: vec![Arc::new(NoGpu("no driver".into()))] };
    let (samples, _) = sample(Sampler::new(Instant::now()).with(none), Duration::from_secs(5)).await;
    let [only] = samples.as_slice() else { panic!("{samples:?}") };
    assert_eq!(only.body, SampleBody::Gap { why: "GPU not available: no driver".into() });
}

#[derive(Debug)]
struct LostGpu;

impl GpuSource for LostGpu {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async { Ok(vec![GpuDevice::unreadable("GPU-2", "GPU is lost")]) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_gpu_is_a_gap_and_exporters_are_asked_over_the_wire() {
    let fake = Fake::new(&[(
        "/gpus",
        vec![page("DCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-1\"} 61.5\n"), page("up 1\n"), Answer::Refuse],
    )]);
    let dcgm = Dcgm { connector: fake, endpoint: endpoint("/gpus"), bearer: None, limits: limits() };
    let watch = GpuWatch { sources: vec![Arc::new(dcgm), Arc::new(LostGpu)] };
    let (samples, _) = sample(Sampler::new(Instant::now()).with(watch), Duration::from_millis(2500)).await;
    let power = GpuReading { power_w: Some(61.5), ..GpuReading::default() };
    assert_eq!((samples[0].source.as_str(), &samples[0].body), ("GPU-1", &SampleBody::Gpu(power)));
    for (source, count) in [("GPU-1", 1), ("GPU-2", 3), ("gpu", 2)] {
        let of: Vec<_> = samples.iter().filter(|sample| sample.source == source).collect();
        assert_eq!(of.len(), count, "{source}: {of:?}");
        assert!(source == "GPU-1" || of.iter().all(|sample| matches!(&sample.body, SampleBody::Gap { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rehearsed_client_is_empty_and_not_zero() {
    let source = ClientSource { probe: Arc::new(NoProbe) };
    let (samples, _) = sample(Sampler::new(Instant::now()).with(source), Duration::from_millis(500)).await;
    assert_eq!(samples[0].source, "client");
    assert_eq!(samples[0].body, SampleBody::Client { cpu_share: None, rss_bytes: None });
}

#[tokio::test(start_paused = true)]
async fn sampling_ends_when_nobody_can_stop_it_or_nobody_listens() {
    let fake = Fake::new(&[("/one", vec![page("vllm:num_requests_running 1\n")])]);
    let (stop, stopped) = watch::channel(false);
    let (out, _samples) = mpsc::unbounded_channel();
    drop(stop);
    let begun = Instant::now();
    let ends = Sampler::new(begun).with(engine("one", &fake)).run(stopped, out);
    timeout(Duration::from_secs(60), ends).await.expect("nobody can stop it");
    assert!(begun.elapsed() <= Duration::from_secs(2), "{:?}", begun.elapsed());

    let (_stop, stopped) = watch::channel(false);
    let (out, samples) = mpsc::unbounded_channel();
    drop(samples);
    let begun = Instant::now();
    let ends = Sampler::new(begun).with(engine("one", &fake)).run(stopped, out);
    timeout(Duration::from_secs(60), ends).await.expect("nobody listens");
    assert!(begun.elapsed() <= Duration::from_secs(2), "{:?}", begun.elapsed());
    let asked = fake.0.lock().unwrap()["/one"].0;
    assert!(asked <= 4, "the page was read {asked} times for nobody");
}

#[tokio::test(start_paused = true)]
async fn every_way_to_fail_has_its_name() {
    let answer = |status, kind, body: &str| Answer::Page {
        after: Duration::ZERO,
        status,
        kind,
        body: body.to_owned(),
    };
    let fake = Fake::new(&[
        ("/refused", vec![Answer::Refuse]),
        ("/silent", vec![Answer::Silence]),
        ("/huge", vec![page(&"x".repeat(2000))]),
        ("/lost", vec![answer("404 Not Found", "text/plain", "vllm:num_requests_running 1\n")]),
        ("/unwell", vec![answer("503 Service Unavailable", "text/plain", "\nthe driver is asleep\n")]),
        ("/markup", vec![answer("502 Bad Gateway", "text/html", "<h1>Bad Gateway</h1>")]),
        (
            "/html",
            vec![answer("200 OK", "text/plain", "<!doctype html><html><body>502 Bad Gateway</body></html>")],
        ),
        ("/liar", vec![answer("200 OK", "text/html; charset=utf-8", "running 1\n")]),
        ("/empty", vec![page("")]),
        ("/other", vec![page("node_cpu_seconds_total 5\n")]),
    ]);
    let read = |path: &'static str| {
        let fake = fake.clone();
        async move { scrape(&*fake, &endpoint(path), None, EngineKind::Vllm, limits()).await.unwrap_err() }
    };
    for (path, words) in
        [("/refused", "refused"), ("/silent", "within 2s"), ("/huge", "more than 1000 bytes")]
    {
        let error = read(path).await;
        assert!(matches!(error, ScrapeError::Http(_)) && error.to_string().contains(words), "{error}");
    }
    assert!(matches!(read("/lost").await, ScrapeError::Status { status: 404, .. }));
    let unwell = read("/unwell").await.to_string();
    assert!(unwell.contains("answers 503 (the driver is asleep); is this"), "{unwell}");
    let markup = read("/markup").await.to_string();
    assert!(markup.contains("answers 502; is this"), "{markup}");
    for path in ["/html", "/liar", "/empty"] {
        let error = read(path).await;
        assert!(matches!(error, ScrapeError::NotMetrics { .. }), "{path}: {error}");
    }
    let other = read("/other").await;
    assert!(matches!(other, ScrapeError::WrongKind { series: 1, .. }), "{other}");
    // An engine of kind none promises nothing, so nothing is wrong with its page.
    let fine = scrape(&*fake, &endpoint("/other"), None, EngineKind::None, limits()).await.unwrap();
    assert!(fine.normalised.scrape.values.is_empty());
}
