//! The same session in memory and over real sockets gives the same records.

use std::sync::Arc;

use tapedeck_load::{CallResult, Plan, Target};
use tapedeck_record::{Outcome, Trace};
use tapedeck_transport::{NetConnector, NetOptions, TlsOptions};
use tokio_rustls::TlsAcceptor;

use crate::server::*;

/// How far instants may differ between a paused clock and a busy machine, nanoseconds.
const TOLERANCE_NS: u64 = 500_000_000;

fn plan() -> Plan {
    Plan { streams: 4, ramp: 130 * MS, warm_up: 100 * MS, ping_every: Some(200 * MS), ..once() }
}

const CALLS_MS: [u32; 3] = [700, 1_050, 500];

/// One shared body: what has to be so on every carrier. Real time needs no more than about 5 s of it.
fn same(paused: &[CallResult], real: &[CallResult]) {
    let counted =
        |all: &[CallResult]| -> Vec<CallResult> { all.iter().filter(|p| p.trace.counted).cloned().collect() };
    let (paused, real) = (counted(paused), counted(real));
    assert_eq!((paused.len(), real.len()), (12, 12));
    for (a, b) in paused.iter().zip(&real) {
        let (x, y) = (&a.trace, &b.trace);
        assert_eq!((x.stream, x.call), (y.stream, y.call));
        assert_eq!((x.outcome.clone(), y.outcome.outcome), (y.outcome.clone(), Outcome::Ok));
        assert_eq!(a.texts, b.texts);
        assert_eq!((x.audio_ns, x.chunk_ns, x.final_kind), (y.audio_ns, y.chunk_ns, y.final_kind));
        assert_eq!((x.wake_late_us.len(), x.blocked_us.len()), (y.wake_late_us.len(), y.blocked_us.len()));
        assert_eq!(x.violations, y.violations);
        assert!(!x.rtt_us.is_empty() && !y.rtt_us.is_empty());
        let facts = |t: &Trace| -> Vec<_> {
            t.messages.iter().map(|m| (m.kind, m.bytes, m.chars, m.revised, m.position_ms)).collect()
        };
        assert_eq!(facts(x), facts(y));
        // Within the call, every instant agrees.
        let inside = |t: &Trace| -> Vec<u64> {
            let c1 = t.c1_ns.unwrap();
            let ends = [t.end_ns, t.final_ns, Some(t.done_ns)].map(|at| at.unwrap() - c1);
            t.messages.iter().map(|m| m.at_ns - c1).chain(ends).collect()
        };
        for (at, bt) in inside(x).into_iter().zip(inside(y)) {
            assert!(bt >= at, "nothing can be earlier than planned: {at} {bt}");
            assert!(bt - at < TOLERANCE_NS, "{at} {bt}");
        }
    }
}

fn paused() -> Vec<CallResult> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async { play(plan(), prepared(&CALLS_MS), in_memory(named_once())).await.0 })
}

/// The recogniser without instance names, which depend on who connects first.
fn named_once() -> Handler {
    let inner = recogniser();
    Arc::new(move |_, io| inner(0, io))
}

#[test]
fn tcp_gives_the_same_records() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let real = runtime.block_on(async {
        let endpoint = tcp(named_once()).await;
        let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
        play(plan(), prepared(&CALLS_MS), target(connector, endpoint)).await.0
    });
    same(&paused(), &real);
}

#[test]
fn tls_gives_the_same_records() {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, key.cert.pem()).unwrap();
    let server =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![key.cert.der().clone()],
                rustls_pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap(),
            )
            .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let real = runtime.block_on(async {
        let inner = named_once();
        let endpoint = tcp(bare(move |n, io| {
            let (inner, acceptor) = (Arc::clone(&inner), acceptor.clone());
            async move {
                if let Ok(tls) = acceptor.accept(io).await {
                    inner(n, Box::new(tls)).await;
                }
            }
        }))
        .await;
        let endpoint: tapedeck_transport::Endpoint =
            format!("wss://localhost:{}/asr", endpoint.port()).parse().unwrap();

        // Nobody vouches for the server yet: a failure of its own kind.
        let stranger = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
        let one = Plan { streams: 1, loops: 1, ..once() };
        let (refused, _) = play(one, prepared(&[300]), target(stranger, endpoint.clone())).await;
        assert_eq!(refused[0].trace.outcome.outcome, Outcome::Tls);
        assert!(refused[0].trace.outcome.words.is_some());

        let tls = TlsOptions { extra_ca_file: Some(ca), ..TlsOptions::default() };
        let connector = Arc::new(NetConnector::new(NetOptions { tls, ..NetOptions::default() }).unwrap());
        let target: Target = target(connector, endpoint);
        play(plan(), prepared(&CALLS_MS), target).await.0
    });
    same(&paused(), &real);
}

#[tokio::test]
async fn nobody_listening_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("ws://{}/asr", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
    let plan = Plan { back_off: 10 * MS, ..once() };
    let (all, summary) = play(plan, prepared(&[300, 300]), target(connector, endpoint)).await;
    assert_eq!(all.len(), 2);
    assert!(summary.is_complete());
    assert!(all.iter().all(|p| p.trace.outcome.outcome == Outcome::ConnectRefused));
}

#[tokio::test]
async fn a_reset_in_mid_call_is_an_early_close() {
    // Hangs up with audio unread, which makes the kernel reset the connection.
    let endpoint = tcp(ws(|_, ws| async move {
        tokio::time::sleep(250 * MS).await;
        drop(ws);
    }))
    .await;
    let connector = Arc::new(NetConnector::new(NetOptions::default()).unwrap());
    // A minute of audio, of which the server lets a quarter of a second pass.
    let (all, _) = play(once(), prepared(&[60_000]), target(connector, endpoint)).await;
    let t = &all[0].trace;
    assert_eq!((t.outcome.outcome, t.outcome.code), (Outcome::ClosedEarly, None));
    assert!(t.outcome.words.is_some());
    // The client did not go on to the end: it never came to say it.
    assert_eq!((t.end_ns, t.final_ns), (None, None));
    assert!(t.wake_late_us.len() < 300, "{} of 600 chunks were sent", t.wake_late_us.len());
}
