//! Health, readiness and drain under a paused clock, over in-memory pipes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tapedeck_fleet::{DrainRules, Health, Instance, WaitRules, drain, health, wait_healthy};
use tapedeck_l10n::LocalizedText;
use tapedeck_metrics::EngineKind;
use tapedeck_record::DrainReason;
use tapedeck_transport::{BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, HttpLimits, Io};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::Instant;

/// What a fake server does with one question: a status and a body, or nothing at all.
type Answer = Option<(&'static str, String)>;

/// A body that is never sent.
const SILENT: &str = "silent";

fn ok(body: &str) -> Answer {
    Some(("200 OK", body.to_owned()))
}

fn page(running: u32, deferred: u32, capacity: u32, open: u32) -> Answer {
    ok(&format!(
        "vllm:num_requests_running {running}\nvllm:num_requests_waiting {}\n\
         vllm:num_requests_waiting_by_reason{{reason=\"capacity\"}} {capacity}\n\
         vllm:num_requests_waiting_by_reason{{reason=\"deferred\"}} {deferred}\nvllm:websocket_connections_active {open}\n",
        deferred + capacity
    ))
}

/// Answers the n-th connection to a path with the n-th answer, and the last one from then on; none means refused.
#[derive(Debug)]
struct Fake(Mutex<BTreeMap<String, (usize, Vec<Answer>)>>);

impl Fake {
    fn new(paths: &[(&str, Vec<Answer>)]) -> Self {
        let paths = paths.iter().map(|(path, answers)| ((*path).to_owned(), (0, answers.clone())));
        Self(Mutex::new(paths.collect()))
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
            let Some((status, body)) = answer else {
                return Err(ConnectError::new(endpoint, ConnectErrorKind::Refused, "connection refused"));
            };
            let (ours, mut theirs) = duplex(1 << 16);
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    if theirs.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                if body == SILENT {
                    std::future::pending::<()>().await;
                }
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = theirs.write_all(head.as_bytes()).await;
            });
            Ok(Io::Pipe(ours))
        })
    }
}

fn instance(name: &str, health: bool, metrics: bool, kind: EngineKind) -> Instance {
    let endpoint = |what: &str| format!("http://fake/{name}/{what}").parse().unwrap();
    Instance {
        name: name.to_owned(),
        health: health.then(|| endpoint("health")),
        metrics: metrics.then(|| endpoint("metrics")),
        direct: None,
        kind,
        bearer: None,
    }
}

fn vllm(name: &str) -> Instance {
    instance(name, true, true, EngineKind::Vllm)
}

#[tokio::test(start_paused = true)]
async fn health_is_up_down_or_unknown() {
    let fake = Fake::new(&[
        ("/a/health", vec![ok("")]),
        ("/b/health", vec![Some(("503 Service Unavailable", String::new()))]),
        ("/c/health", vec![None]),
        ("/d/metrics", vec![page(0, 0, 0, 0)]),
        ("/e/metrics", vec![ok("<html>")]),
    ]);
    let ask = async |instance: Instance| health(&fake, &instance, HttpLimits::default()).await;
    assert_eq!(ask(vllm("a")).await, Health::Up);
    let Health::Down { why } = ask(vllm("b")).await else { panic!() };
    assert!(why.contains("503"), "{why}");
    let Health::Down { why } = ask(vllm("c")).await else { panic!() };
    assert!(why.contains("refused"), "{why}");
    assert!(ask(instance("d", false, true, EngineKind::Vllm)).await.is_up());
    assert!(matches!(ask(instance("e", false, true, EngineKind::Vllm)).await, Health::Down { .. }));
    assert_eq!(ask(instance("f", false, false, EngineKind::None)).await, Health::Unknown);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_health_ends_with_the_last_instance() {
    let fake = Fake::new(&[("/a/health", vec![ok("")]), ("/b/health", vec![None, None, None, ok("")])]);
    let fleet = [vllm("a"), vllm("b"), instance("c", false, false, EngineKind::None)];
    let mut heard = Vec::new();
    let waited = wait_healthy(&fake, &fleet, WaitRules::default(), |down| {
        heard.push(down.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    })
    .await;
    assert_eq!(waited, Ok(Duration::from_secs(3)));
    assert_eq!(heard, [["b"], ["b"], ["b"]]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_health_gives_up_and_says_for_whom() {
    let fake = Fake::new(&[("/a/health", vec![ok("")]), ("/b/health", vec![None])]);
    let rules = WaitRules { timeout: Duration::from_secs(10), ..WaitRules::default() };
    let start = Instant::now();
    let error = wait_healthy(&fake, &[vllm("a"), vllm("b")], rules, |_| ()).await.unwrap_err();
    assert!(start.elapsed() <= rules.timeout);
    assert_eq!(error.down.len(), 1);
    assert!(error.to_string().contains("b (cannot connect"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn silent_instances_are_asked_at_the_same_time() {
    let fake = Fake::new(&[("/a/health", vec![ok(SILENT)]), ("/b/health", vec![ok(SILENT)])]);
    let rules = WaitRules { timeout: Duration::from_secs(6), ..WaitRules::default() };
    let start = Instant::now();
    let error = wait_healthy(&fake, &[vllm("a"), vllm("b")], rules, |_| ()).await.unwrap_err();
    // One round of 5 s each way, then a second one that begins before the limit.
    assert_eq!((error.down.len(), start.elapsed()), (2, Duration::from_secs(10)));
}

/// The English texts in a row.
fn words(reasons: &[DrainReason]) -> String {
    LocalizedText::list(reasons).en
}

#[tokio::test(start_paused = true)]
async fn drained_is_clean_everywhere_twice_in_a_row() {
    let fake = Fake::new(&[
        ("/a/metrics", vec![page(3, 0, 0, 3), page(0, 0, 0, 0)]),
        // Clean once, busy again (gauges lag), then clean for good; a deferred request alone holds up nothing.
        ("/b/metrics", vec![page(0, 1, 0, 0), page(0, 0, 0, 0), page(0, 0, 1, 0), page(0, 2, 0, 0)]),
    ]);
    let mut steps = Vec::new();
    let drained =
        drain(&fake, &[vllm("a"), vllm("b")], DrainRules::default(), |step| steps.push(step.clone())).await;
    assert_eq!((drained.drained, drained.seconds, drained.why), (Some(true), 3.0, vec![]));
    let clean: Vec<_> = steps.iter().map(|step| step.clean).collect();
    assert_eq!(clean, [0, 1, 0, 1, 2]);
    assert_eq!(words(&steps[0].busy), "a: running 3; a: open_sessions 3");
    assert_eq!(words(&steps[2].busy), "b: waiting_capacity 1");
    assert!(drained.unchecked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_does_not_end_says_what_held_it_up() {
    let fake =
        Fake::new(&[("/a/metrics", vec![page(0, 0, 0, 0)]), ("/b/metrics", vec![page(1, 0, 0, 2), None])]);
    let start = Instant::now();
    let drained = drain(&fake, &[vllm("a"), vllm("b")], DrainRules::default(), |_| ()).await;
    assert_eq!(drained.drained, Some(false));
    let why = words(&drained.why);
    assert!(why.contains("b: ") && why.contains("refused"), "{why}");
    assert_eq!(start.elapsed(), Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn what_an_engine_does_not_tell_is_said() {
    // An old version: one queue for everything, no sockets. The stricter gauge takes the place of the split one.
    let old = |running: u32, waiting: u32| {
        ok(&format!("vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n"))
    };
    let fake = Fake::new(&[("/a/metrics", vec![old(0, 2), old(0, 0)])]);
    let fleet = [
        vllm("a"),
        instance("b", true, true, EngineKind::None),
        instance("c", true, false, EngineKind::Vllm),
    ];
    let drained = drain(&fake, &fleet, DrainRules::default(), |_| ()).await;
    assert_eq!((drained.drained, drained.seconds), (Some(true), 1.0));
    assert_eq!(
        words(&drained.unchecked),
        "b: an engine of kind none has no metrics to drain by; c: no metrics URL; \
         a: the page does not tell open_sessions"
    );
}

#[tokio::test(start_paused = true)]
async fn without_any_page_nobody_knows() {
    let fake = Fake::new(&[]);
    let drained =
        drain(&fake, &[instance("b", true, true, EngineKind::None)], DrainRules::default(), |_| ()).await;
    assert_eq!((drained.drained, drained.seconds), (None, 0.0));
    assert!(words(&drained.why).starts_with("b: an engine of kind none"), "{drained:?}");
}
