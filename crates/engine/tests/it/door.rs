//! The HTTP side: health, metrics, who is let in.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, on figures that are exact"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{call, exact, get, open, pipe, play, settle, spawn, status};
use futures_util::SinkExt as _;
use tapedeck_engine::{Balancer, Bearer, EngineHandle, Options, Params, State};
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Series of a page: `name{labels}` to value. Panics on a line that is no exposition text.
fn series(page: &str) -> BTreeMap<String, f64> {
    let body = page.split_once("\r\n\r\n").unwrap().1;
    let mut series = BTreeMap::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            assert!(comment.starts_with("HELP ") || comment.starts_with("TYPE "), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        if let Some((_, labels)) = name.trim_end_matches('}').split_once('{') {
            let keys: Vec<_> = labels.split("\",").map(|l| l.split_once("=\"").unwrap().0).collect();
            assert!(keys.is_sorted(), "labels out of order: {line}");
        }
        assert!(series.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
    }
    series
}

async fn scrape(engine: &EngineHandle) -> BTreeMap<String, f64> {
    series(&get(pipe(engine), "/metrics").await)
}

const LABELS: &str = "{engine=\"0\",model_name=\"tapedeck/simulated-asr\"}";

#[tokio::test(start_paused = true)]
async fn the_page_has_the_names_of_vllm_and_moves_with_the_load() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let at = |name: &str| format!("vllm:{name}{LABELS}");
    let idle = scrape(&engine).await;
    for name in [
        "kv_cache_usage_perc",
        "num_preemptions_total",
        "num_requests_running",
        "num_requests_waiting",
        "prefix_cache_queries_total",
        "prefix_cache_hits_total",
        "mm_cache_queries_total",
        "mm_cache_hits_total",
        "prompt_tokens_total",
        "generation_tokens_total",
        "time_to_first_token_seconds_count",
        "time_to_first_token_seconds_sum",
    ] {
        assert_eq!(idle.get(&at(name)), Some(&0.0), "{name}");
    }
    assert_eq!(idle["tapedeck_simulated"], 1.0);
    assert_eq!(idle["vllm:websocket_connections_active"], 0.0);

    let socket = open(&engine).await.unwrap();
    let pcm = call().pcm;
    let playing = tokio::spawn(async move { play(socket, &pcm, 100).await });
    sleep(Duration::from_millis(3_000)).await;
    let busy = scrape(&engine).await;
    assert_eq!(busy["vllm:websocket_connections_active"], 1.0);
    assert!(busy[&at("kv_cache_usage_perc")] > 0.0);
    let deferred = LABELS.replace('}', ",reason=\"deferred\"}");
    assert_eq!(busy[&format!("vllm:num_requests_waiting_by_reason{deferred}")], 1.0);
    assert_eq!(busy[&at("num_requests_waiting")], 1.0);

    playing.await.unwrap();
    settle().await;
    let after = scrape(&engine).await;
    assert_eq!(after["vllm:websocket_connections_active"], 0.0);
    assert_eq!(after["vllm:websocket_connections_total"], 1.0);
    assert_eq!(after[&at("kv_cache_usage_perc")], 0.0);
    assert!(after[&at("generation_tokens_total")] > 0.0);
    // Four windows: three of two seconds and the rest of one.
    assert_eq!(after[&at("time_to_first_token_seconds_count")], 4.0);
    assert_eq!(
        after["vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",\
               model_name=\"tapedeck/simulated-asr\"}"],
        4.0
    );
    assert_eq!(
        after["vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",\
               model_name=\"tapedeck/simulated-asr\"}"],
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn the_page_tells_the_pool_and_the_caches() {
    let params = Params { kv_blocks: 99, block_tokens: 16, prefix_cache: true, ..exact() };
    let engine = spawn(params, Options { model_name: "a \"b\"".into(), ..Options::new("inst1", 1) });
    let page = get(pipe(&engine), "/metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("x-tapedeck-simulated: 1"));
    assert!(page.contains("content-type: text/plain; version=0.0.4"));
    let config = page.lines().find(|l| l.starts_with("vllm:cache_config_info{")).unwrap();
    for label in ["kv_cache_size_tokens=\"1600\"", "num_gpu_blocks=\"100\"", "enable_prefix_caching=\"True\""]
    {
        assert!(config.contains(label), "{config}");
    }
    assert!(page.contains("model_name=\"a \\\"b\\\"\""));
}

#[tokio::test(start_paused = true)]
async fn caches_hit_when_the_same_call_comes_again() {
    let params = Params { prefix_cache: true, mm_cache: true, ..exact() };
    let engine = spawn(params, Options::new("inst1", 1));
    play(open(&engine).await.unwrap(), &call().pcm, 100).await;
    let first = engine.counters();
    assert!(first.mm_queries > 0 && first.mm_hits == 0, "{first:?}");
    play(open(&engine).await.unwrap(), &call().pcm, 100).await;
    let second = engine.counters();
    assert!(second.mm_hits > 0 && second.prefix_hits > first.prefix_hits, "{second:?}");
    // One changed sample in the first window makes all of it new.
    let mut unique = call().pcm.to_vec();
    unique[10] ^= 1;
    play(open(&engine).await.unwrap(), &unique.into(), 100).await;
    assert_eq!(engine.counters().mm_hits, second.mm_hits);
}

#[tokio::test(start_paused = true)]
async fn only_three_doors_are_open() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    for (path, status) in [("/health", 200), ("/metrics", 200), ("/asr", 426), ("/v1/realtime", 404)] {
        let answer = get(pipe(&engine), path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    let root = client_async("ws://engine/", pipe(&engine)).await;
    assert!(root.is_ok());
    assert_eq!(status(client_async("ws://engine/elsewhere", pipe(&engine)).await), Some(404));
}

#[tokio::test(start_paused = true)]
async fn callers_show_their_token_and_scrapers_need_none() {
    let options = Options { bearer: Some(Bearer::new("secret")), ..Options::new("inst1", 1) };
    let engine = spawn(exact(), options);
    let call_with = |header: Option<&'static str>| {
        let mut request = "ws://engine/asr".into_client_request().unwrap();
        if let Some(header) = header {
            request.headers_mut().insert("authorization", header.parse().unwrap());
        }
        client_async(request, pipe(&engine))
    };
    assert_eq!(status(call_with(None).await), Some(401));
    assert_eq!(status(call_with(Some("Bearer wrong")).await), Some(401));
    assert!(call_with(Some("Bearer secret")).await.is_ok());
    assert!(get(pipe(&engine), "/metrics").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn a_draining_engine_finishes_its_calls_and_takes_no_more() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let socket = open(&engine).await.unwrap();
    engine.drain();
    assert!(get(pipe(&engine), "/health").await.starts_with("HTTP/1.1 503"));
    assert_eq!(status(open(&engine).await), Some(503));
    assert_eq!(play(socket, &call().pcm, 100).await.code, Some(1000));
}

#[tokio::test(start_paused = true)]
async fn a_dead_engine_fails_its_calls_and_a_killed_one_breaks_them() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let socket = open(&engine).await.unwrap();
    engine.fail();
    let heard = crate::common::listen(socket, Instant::now()).await;
    assert_eq!((heard.kinds(), heard.code), (vec!["error"], Some(1012)));
    assert!(get(pipe(&engine), "/health").await.starts_with("HTTP/1.1 503"));

    engine.revive();
    assert_eq!(engine.counters().opened, 0);
    let socket = open(&engine).await.unwrap();
    engine.kill();
    let heard = crate::common::listen(socket, Instant::now()).await;
    assert_eq!((heard.messages.len(), heard.code), (0, None));
    assert_eq!(get(pipe(&engine), "/health").await, "");
    engine.revive();
    assert_eq!(play(open(&engine).await.unwrap(), &call().pcm, 100).await.code, Some(1000));
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_is_renewed_and_one_with_a_call_keeps_it() {
    let engine = spawn(Params { jitter: 0.2, ..exact() }, Options::new("inst1", 1));
    let socket = open(&engine).await.unwrap();
    engine.renew(7);
    assert_eq!(engine.counters().opened, 1);
    assert_eq!(play(socket, &call().pcm, 100).await.code, Some(1000));

    // What is played after it is heard again after the next, a start anew in between included.
    let mut heard = Vec::new();
    for _ in 0..2 {
        settle().await;
        engine.renew(7);
        assert_eq!(engine.counters().opened, 0);
        heard.push(play(open(&engine).await.unwrap(), &call().pcm, 100).await);
        engine.kill();
        engine.revive();
        heard.push(play(open(&engine).await.unwrap(), &call().pcm, 100).await);
    }
    let [first, restarted, first_again, restarted_again] = heard.try_into().unwrap();
    assert_ne!(first, restarted);
    assert_eq!(first, first_again);
    assert_eq!(restarted, restarted_again);
}

fn through(balancer: &Balancer) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 * 1024);
    tokio::spawn(balancer.serve(server));
    client
}

#[tokio::test(start_paused = true)]
async fn the_balancer_deals_to_the_least_busy_and_skips_what_is_down() {
    let engines: Vec<_> = (1..=3).map(|n| spawn(exact(), Options::new(format!("inst{n}"), n))).collect();
    let balancer = Balancer::new(engines.clone());
    let opened = || engines.iter().map(|e| e.counters().opened).collect::<Vec<_>>();
    let mut sockets = Vec::new();
    for _ in 0..6 {
        sockets.push(client_async("ws://engine/asr", through(&balancer)).await.unwrap().0);
    }
    assert_eq!(opened(), [2, 2, 2]);

    // A call stays where it began, whatever happens to the others.
    engines[1].kill();
    let heard = play(sockets.remove(0), &call().pcm, 100).await;
    assert!(heard.messages.iter().all(|m| m.json["instance"] == "inst1"));
    for _ in 0..4 {
        sockets.push(client_async("ws://engine/asr", through(&balancer)).await.unwrap().0);
    }
    // One call of inst1 has ended, so it has one open and inst3 two: inst1, inst1 (first among equals), inst3, inst1.
    assert_eq!(opened(), [5, 2, 3]);

    engines[0].drain();
    engines[2].fail();
    assert_eq!(balancer.engines().iter().filter(|e| e.state() == State::Up).count(), 0);
    assert_eq!(status(client_async("ws://engine/asr", through(&balancer)).await), Some(503));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_talks_no_http_is_let_go() {
    let engine = spawn(exact(), Options::new("inst1", 1));
    let socket = client_async("ws://engine/asr", {
        let mut io = pipe(&engine);
        tokio::io::AsyncWriteExt::write_all(&mut io, b"\x16\x03\x01 not http\r\n\r\n").await.unwrap();
        io
    });
    assert!(matches!(socket.await, Err(Error::Http(_) | Error::Protocol(_) | Error::Io(_))));
    let mut late = open(&engine).await.unwrap();
    assert!(late.send(Message::text("{\"type\":\"end\"}")).await.is_ok());
}
