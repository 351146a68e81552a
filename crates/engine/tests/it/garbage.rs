//! Whatever bytes arrive, nothing panics, nothing hangs and no session is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::common::{exact, spawn};
use proptest::collection::vec;
use proptest::prelude::*;
use tapedeck_engine::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

const UPGRADE: &[u8] = b"GET /asr HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// Sends the pieces, reads whatever comes back, leaves, and waits for the engine to let go.
fn throw_at_the_engine(pieces: &[&[u8]]) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = spawn(exact(), Options::new("inst1", 1));
        let (client, server) = tokio::io::duplex(4_096);
        let served = tokio::spawn(engine.serve(server));
        let (mut read, mut write) = tokio::io::split(client);
        let reader = tokio::spawn(async move {
            let mut answer = Vec::new();
            let _ = read.read_to_end(&mut answer).await;
        });
        for piece in pieces {
            if write.write_all(piece).await.is_err() {
                break;
            }
        }
        let _ = write.shutdown().await;
        timeout(Duration::from_secs(60), served).await.expect("the engine must let go").unwrap();
        reader.await.unwrap();
        assert_eq!((engine.counters().open_sessions, engine.open_sockets()), (0, 0));
    });
}

/// A masked frame with any opcode and flags, and a length that may be a lie.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), vec(any::<u8>(), 0..300), any::<[u8; 4]>(), any::<Option<u8>>()).prop_map(
        |(head, payload, mask, lie)| {
            let length = lie.map_or(payload.len(), usize::from);
            let mut frame = vec![head, 0x80 | 126];
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            frame.extend(mask);
            frame.extend(payload);
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn before_the_upgrade(bytes in vec(any::<u8>(), 0..2_000)) {
        throw_at_the_engine(&[&bytes]);
    }

    #[test]
    fn after_the_upgrade(bytes in vec(any::<u8>(), 0..2_000)) {
        throw_at_the_engine(&[UPGRADE, &bytes]);
    }

    #[test]
    fn as_frames(frames in vec(frame(), 0..12)) {
        throw_at_the_engine(&[UPGRADE, &frames.concat()]);
    }
}
