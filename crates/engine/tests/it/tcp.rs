//! The same engine on real sockets in real time.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, on figures that are exact"
)]

use crate::common::{WORDS, audio, call, exact, get, pour, spawn, status};
use tapedeck_engine::{EngineHandle, Options, Proxy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::client_async;

/// Puts an engine on a port of its own.
async fn listen(engine: EngineHandle) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(engine.serve(stream));
        }
    });
    (address, accepting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_tcp_says_what_it_says_over_a_pipe() {
    let (address, _accepting) = listen(spawn(exact(), Options::new("inst1", 1))).await;
    assert!(get(TcpStream::connect(&address).await.unwrap(), "/health").await.starts_with("HTTP/1.1 200"));
    let tcp = TcpStream::connect(&address).await.unwrap();
    let (socket, response) = client_async(format!("ws://{address}/asr"), tcp).await.unwrap();
    assert_eq!(response.headers()["x-tapedeck-simulated"], "1");
    // Faster than speech: the words do not depend on the pace.
    let heard = pour(socket, &call().pcm).await;
    assert_eq!((heard.texts().last(), heard.code), (Some(&WORDS), Some(1000)));
    assert!(heard.positions().is_sorted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proxy_deals_in_turn_and_skips_a_backend_that_is_gone() {
    let engines: Vec<_> = (1..=2).map(|n| spawn(exact(), Options::new(format!("inst{n}"), n))).collect();
    let (first, _first) = listen(engines[0].clone()).await;
    let (second, accepting) = listen(engines[1].clone()).await;
    let proxy = Proxy::new(vec![first, second]);
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = front.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = front.accept().await {
            let proxy = proxy.clone();
            tokio::spawn(async move { proxy.serve(stream).await });
        }
    });
    let connect = || async {
        let tcp = TcpStream::connect(&address).await.unwrap();
        client_async(format!("ws://{address}/asr"), tcp).await
    };
    let opened = || engines.iter().map(|e| e.counters().opened).collect::<Vec<_>>();
    let (a, b) = (connect().await, connect().await);
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(opened(), [1, 1]);
    let (socket, _) = a.unwrap();
    let heard = pour(socket, &audio(300, 5)).await;
    assert_eq!(heard.kinds().last(), Some(&"final"));

    // The second port closes for good: new calls go to the first one only.
    accepting.abort();
    let _ = accepting.await;
    for _ in 0..4 {
        assert!(connect().await.is_ok());
    }
    assert_eq!(opened(), [5, 1]);
    // Nobody left that takes calls: the one that still answers says so.
    engines[0].drain();
    assert_eq!(status(connect().await), Some(503));
}
