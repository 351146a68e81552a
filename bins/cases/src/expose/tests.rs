use std::io::{Read, Write};
use std::net::TcpStream;

use tapedeck_cases::{Phase, Progress};
use tapedeck_record::{Outcome, OutcomeClass};

use super::*;

fn ended(outcome: Outcome, counts: bool, ttft_s: f64) -> Progress<'static> {
    Progress::Call {
        step: "N003",
        counts,
        counted: 0,
        of: 27,
        errors: 0,
        outcome,
        class: outcome.class(true),
        connect_s: Some(0.004),
        ttft_s: Some(ttft_s),
        final_s: Some(1.0),
        rtf: None,
    }
}

/// A page after a step with three counted calls, of which one errored, and one that does not count.
fn played() -> State {
    let mut state = State::new("tc03");
    state.on(&Progress::Run { path: "results/tc03-a\"b".into(), simulated: true, paused: false });
    let begins =
        Progress::StepBegins { step: "N003", streams: 3, counted_calls: 27, expected_s: 60.0, at_s: 5.0 };
    state.on(&begins);
    state.on(&Progress::Phase { step: "N003", phase: Phase::Load });
    for (outcome, counts, ttft_s) in [
        (Outcome::Ok, true, 0.1),
        (Outcome::Ok, true, 0.35),
        (Outcome::ClosedEarly, true, 0.2),
        (Outcome::Ok, false, 9.0),
    ] {
        state.on(&ended(outcome, counts, ttft_s));
    }
    state
}

fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|l| l.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn only_counted_calls_without_error_enter_the_histograms() {
    let page = page::write(&played());
    let of = |le: &str| {
        let series = format!("tapedeck_ttft_seconds_bucket{{simulated=\"true\",step=\"N003\",le=\"{le}\"}}");
        value(&page, &series)
    };
    // A value on a bound belongs to it.
    assert_eq!((of("0.05"), of("0.1"), of("0.3")), (Some(0.0), Some(1.0), Some(1.0)));
    assert_eq!((of("0.5"), of("+Inf")), (Some(2.0), Some(2.0)));
    let sum = value(&page, "tapedeck_ttft_seconds_sum{simulated=\"true\",step=\"N003\"}");
    assert!(sum.is_some_and(|s| (s - 0.45).abs() < 1e-12), "{sum:?}");
    let calls = |rest: &str| {
        value(&page, &format!("tapedeck_calls_total{{simulated=\"true\",step=\"N003\",{rest}}}"))
    };
    assert_eq!(calls("outcome=\"ok\",class=\"ok\",counted=\"true\""), Some(2.0));
    assert_eq!(calls("outcome=\"closed_early\",class=\"error\",counted=\"true\""), Some(1.0));
    assert_eq!(calls("outcome=\"ok\",class=\"ok\",counted=\"false\""), Some(1.0));
    assert_eq!(value(&page, "tapedeck_rtf_ratio_count{simulated=\"true\",step=\"N003\"}"), Some(0.0));
}

#[test]
fn what_is_not_known_is_not_on_the_page() {
    let page = page::write(&played());
    for name in ["kv_pool", "waiting", "cpu", "wake_late", "ttft_p95", "open_sessions"] {
        assert!(!page.contains(name), "{name}: {page}");
    }
    let live = Progress::Live {
        step: "N003",
        at_s: 25.0,
        counted: 2,
        of: 27,
        errors: 1,
        ttft_p95_s: Some(0.35),
        ttft_n: 2,
        wake_late_p99_ms: Some(1.5),
        cpu_share: None,
        kv_pool: Some(0.25),
        waiting: Some(0.0),
        open_sessions: Some(3.0),
    };
    let mut state = played();
    state.on(&live);
    let page = page::write(&state);
    assert_eq!(value(&page, "tapedeck_step_elapsed_seconds{simulated=\"true\"}"), Some(20.0));
    assert_eq!(value(&page, "tapedeck_kv_pool_ratio{simulated=\"true\"}"), Some(0.25));
    assert_eq!(
        value(&page, "tapedeck_wake_late_p99_seconds{simulated=\"true\",step=\"N003\"}"),
        Some(0.0015)
    );
    assert!(!page.contains("loadgen_cpu"), "{page}");
}

#[test]
fn labels_are_escaped_and_every_series_says_whether_it_is_simulated() {
    let page = page::write(&played());
    assert!(page.contains("run=\"tc03-a\\\"b\""), "{page}");
    let series: Vec<_> = page.lines().filter(|l| !l.starts_with('#')).collect();
    assert!(series.len() > 20 && series.iter().all(|l| l.contains("{simulated=\"true\"")), "{page}");
    for line in series {
        let name = line.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
        assert!(page.contains(&format!("# TYPE {family} ")), "{name} has no type");
    }
}

#[test]
fn a_step_that_is_played_again_begins_anew() {
    let mut state = played();
    let begins =
        Progress::StepBegins { step: "N003", streams: 3, counted_calls: 27, expected_s: 60.0, at_s: 90.0 };
    state.on(&begins);
    let page = page::write(&state);
    assert!(!page.contains("tapedeck_calls_total{"), "{page}");
}

fn ask(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_is_served_at_a_free_port() {
    let exposed = Exposed::serve(([127, 0, 0, 1], 0).into(), "tc03").unwrap();
    assert!(
        ask(exposed.address, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .ends_with("not begun.\n")
    );
    exposed.on(&Progress::Run { path: "results/tc03-x".into(), simulated: false, paused: false });
    let get = |path: &str, method: &str| {
        ask(exposed.address, &format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    };
    let page = get("/metrics", "GET");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/plain; version=0.0.4"), "{page}");
    assert!(page.contains("tapedeck_run_info{simulated=\"false\",case=\"tc03\""), "{page}");
    assert!(get("/", "GET").starts_with("HTTP/1.1 404"));
    assert!(get("/metrics", "DELETE").starts_with("HTTP/1.1 405"));
    let again = Exposed::serve(exposed.address, "tc03");
    assert!(again.is_err_and(|e| e.to_string().contains("port 0 for a free one")));
}

#[test]
fn outcome_classes_have_the_names_of_the_files() {
    for class in [OutcomeClass::Ok, OutcomeClass::Error, OutcomeClass::Quality, OutcomeClass::Excluded] {
        let mut state = played();
        state.steps.get_mut("N003").unwrap().calls.insert((Outcome::Cancelled, class, true), 7);
        let name = serde_json::to_value(class).unwrap();
        let label = format!("class={name},counted=\"true\"}} 7");
        assert!(page::write(&state).contains(&label), "{label}");
    }
}
