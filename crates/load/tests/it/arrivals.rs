//! Open arrivals: who is placed, who waits, who is lost, and when.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use std::time::Duration;

use tapedeck_load::arrivals::{Arrival, ArrivalSchedule, Arrived, Disposition, Offer, Trunks, arrive};
use tapedeck_load::{CallResult, Control, Plan, Target};
use tapedeck_record::Outcome;
use tokio::{sync::mpsc, time::Instant};

use crate::server::*;

/// Callers at these milliseconds, each with a call of 1 s; those in `counted` count.
fn offer(at_ms: &[u64], counted: std::ops::Range<usize>, lines: Trunks) -> Offer {
    let arrival = |(i, &ms): (usize, &u64)| Arrival {
        at: Duration::from_millis(ms),
        call: 0,
        audio: SECOND,
        counted: counted.contains(&i),
    };
    let arrivals = at_ms.iter().enumerate().map(arrival).collect();
    Offer {
        table: ArrivalSchedule { arrivals, from: Duration::ZERO, to: Duration::ZERO },
        prepared: prepared(&[3_000]),
        lines,
    }
}

async fn come(offer: &Offer, target: Target, control: Control) -> (Vec<CallResult>, Arrived) {
    let (out, mut calls) = mpsc::unbounded_channel();
    let arrived = arrive(Plan::default(), offer, target, Instant::now(), control, out).await;
    let mut all = Vec::new();
    while let Some(played) = calls.recv().await {
        all.push(played);
    }
    all.sort_by_key(|p| p.trace.stream);
    (all, arrived)
}

/// Planned, start and end in milliseconds, and the disposition.
fn times(arrived: &Arrived) -> Vec<(u64, Option<u64>, Option<u64>, Disposition)> {
    let ms = |ns: u64| ns / 1_000_000;
    let callers = arrived.callers.iter();
    callers.map(|c| (ms(c.planned_ns), c.start_ns.map(ms), c.freed_ns.map(ms), c.disposition)).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_all_lines_busy_is_lost() {
    let offer = offer(&[0, 500, 800, 1_001, 1_200], 0..5, Trunks::Lose(2));
    let (all, arrived) = come(&offer, in_memory(recogniser()), Control::new()).await;
    assert_eq!(
        times(&arrived),
        [
            (0, Some(0), Some(1_000), Disposition::Carried),
            (500, Some(500), Some(1_500), Disposition::Carried),
            (800, None, None, Disposition::Blocked),
            (1_001, Some(1_001), Some(2_001), Disposition::Carried),
            (1_200, None, None, Disposition::Blocked),
        ]
    );
    assert_eq!(all.iter().map(|p| p.trace.stream).collect::<Vec<_>>(), [0, 1, 3]);
    assert!(all.iter().all(|p| p.trace.audio_ns == 1_000_000_000 && p.trace.outcome.outcome == Outcome::Ok));
    assert_eq!((arrived.summary.calls, arrived.summary.counted), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_served_in_order_of_arrival() {
    let offer = offer(&[0, 100, 200, 4_000], 0..4, Trunks::Wait(1));
    let (_, arrived) = come(&offer, in_memory(recogniser()), Control::new()).await;
    assert_eq!(
        times(&arrived),
        [
            (0, Some(0), Some(1_000), Disposition::Carried),
            (100, Some(1_000), Some(2_000), Disposition::Carried),
            (200, Some(2_000), Some(3_000), Disposition::Carried),
            (4_000, Some(4_000), Some(5_000), Disposition::Carried),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn once_all_that_count_are_decided_nobody_else_is_placed() {
    let offer = offer(&[0, 300, 700, 1_100, 9_000], 1..2, Trunks::Server);
    let (all, arrived) = come(&offer, in_memory(recogniser()), Control::new()).await;
    // The fourth comes before the second has ended, the fifth after.
    assert_eq!(arrived.callers.len(), 4);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|p| p.trace.outcome.outcome == Outcome::Ok), "under way is finished");
    assert_eq!(arrived.summary.counted, 1);
    assert!(!arrived.summary.cut);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_full_refuses_and_that_is_a_fate_of_its_own() {
    let open = Arc::new(AtomicU32::new(0));
    let handler = ws(move |_, mut ws| {
        let open = Arc::clone(&open);
        async move {
            if open.fetch_add(1, Ordering::SeqCst) >= 1 {
                say(&mut ws, serde_json::json!({ "type": "busy", "message": "too many sessions" })).await;
            } else {
                hear_all(&mut ws).await;
                say(&mut ws, serde_json::json!({ "type": "final", "text": "word" })).await;
            }
            linger(&mut ws).await;
            open.fetch_sub(1, Ordering::SeqCst);
        }
    });
    let (all, arrived) =
        come(&offer(&[0, 400, 2_000], 0..3, Trunks::Server), in_memory(handler), Control::new()).await;
    let fates: Vec<Disposition> = arrived.callers.iter().map(|c| c.disposition).collect();
    let outcomes: Vec<_> = all.iter().map(|p| p.trace.outcome.clone()).collect();
    assert_eq!(fates, [Disposition::Carried, Disposition::Refused, Disposition::Carried], "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_calls_and_waiting_alike() {
    let offer = offer(&[0, 100, 5_000], 0..3, Trunks::Wait(1));
    let control = Control::new();
    let hand = control.clone();
    tokio::spawn(async move {
        tokio::time::sleep(500 * MS).await;
        hand.cut();
    });
    let (all, arrived) = come(&offer, in_memory(recogniser()), control).await;
    assert_eq!(times(&arrived).iter().map(|t| t.3).collect::<Vec<_>>(), [Disposition::Cut, Disposition::Cut]);
    assert_eq!(all.len(), 1);
    assert!(arrived.summary.cut && arrived.summary.counted == 1);
}
