//! Which calls count, and when everything happens.

use std::collections::BTreeMap;

use tapedeck_load::{Assignment, Control, Item, Plan};
use tapedeck_record::{FinalKind, MessageKind, Outcome};

use crate::server::*;

/// Whole milliseconds: under a paused clock nothing falls in between.
fn ms(ns: u64) -> u64 {
    assert!(ns.is_multiple_of(1_000_000), "{ns}");
    ns / 1_000_000
}

#[tokio::test(start_paused = true)]
async fn every_instant_of_a_call_is_where_it_should_be() {
    let played = one_call(once(), 2_050, recogniser()).await;
    let t = &played.trace;
    assert_eq!(t.outcome.outcome, Outcome::Ok);
    let c1 = t.c1_ns.unwrap();
    assert_eq!((t.c0_ns, c1), (0, 0), "connecting takes no time in memory");
    assert_eq!((t.chunks(), t.wake_late_us.len(), t.blocked_us.len()), (21, 21, 21));
    assert!(t.wake_late_us.iter().chain(&t.blocked_us).all(|&us| us == 0), "{t:?}");
    assert_eq!(ms(t.end_ns.unwrap()), 2_050, "the end follows the short last chunk");
    assert_eq!(ms(t.final_ns.unwrap()), 2_050);
    assert_eq!(t.final_kind, Some(FinalKind::Marker));
    assert_eq!(t.done_ns, t.final_ns.unwrap());
    let seen: Vec<_> = t.messages.iter().map(|m| (ms(m.at_ns), m.kind, m.position_ms)).collect();
    let partial = |at: u32| (u64::from(at), MessageKind::Partial, Some(at));
    assert_eq!(
        seen,
        [
            partial(500),
            partial(1_000),
            partial(1_500),
            partial(2_000),
            (2_050, MessageKind::End, Some(2_050))
        ]
    );
    assert_eq!(t.instance.as_deref(), Some("inst0"));
    assert_eq!(t.violations, 0);
    assert_eq!(played.texts.finals, "word word word word end");
}

#[tokio::test(start_paused = true)]
async fn each_tier_holds_every_content_equally_often() {
    let prepared = prepared(&[1_000, 2_000, 3_000, 1_500]);
    for (streams, loops) in [(1_u32, 3_u32), (3, 2), (5, 1), (8, 1)] {
        let plan = Plan { streams, loops, ramp: 500 * MS, warm_up: 4 * SECOND, ..Plan::default() };
        let opens = plan.opens_after();
        let (all, summary) = play(plan, prepared.clone(), in_memory(recogniser())).await;
        let counted: Vec<_> = all.iter().filter(|p| p.trace.counted).collect();
        assert_eq!(counted.len(), (streams * 4 * loops) as usize);
        assert_eq!((summary.counted, summary.counted_planned), (counted.len() as u64, counted.len() as u64));
        assert!(summary.is_complete() && !summary.cut);
        let mut contents = BTreeMap::<(u32, u32), u32>::new();
        for played in &counted {
            let t = &played.trace;
            assert!(
                u128::from(t.c0_ns) >= opens.as_nanos(),
                "no counted call before ramp and warm-up are over"
            );
            *contents.entry((t.stream, t.call)).or_default() += 1;
        }
        assert_eq!(u32::try_from(contents.len()), Ok(streams * 4));
        assert!(contents.values().all(|&n| n == loops), "{contents:?}");
        for played in &all {
            let t = &played.trace;
            assert_eq!(t.outcome.outcome, Outcome::Ok, "streams finish what they are in");
            assert_eq!(t.call, (t.stream + t.seq) % 4, "stream k starts at call k mod C");
            if t.seq == 0 {
                assert_eq!(ms(t.c0_ns), 500 * u64::from(t.stream), "ramp");
            }
        }
        // The window is contiguous, and everybody plays on until the last counted call of anybody is done.
        for stream in 0..streams {
            let flags: Vec<_> =
                all.iter().filter(|p| p.trace.stream == stream).map(|p| p.trace.counted).collect();
            let first = flags.iter().position(|&c| c).unwrap();
            assert!(flags[first..][..(4 * loops) as usize].iter().all(|&c| c));
            let last = all.iter().rfind(|p| p.trace.stream == stream).unwrap();
            assert!(last.trace.done_ns >= summary.window_to_ns.unwrap());
        }
        assert_eq!(summary.stop_ns, summary.window_to_ns);
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_call_starts_at_once() {
    let (all, _) = play(once(), prepared(&[1_000, 700, 300]), in_memory(recogniser())).await;
    let starts: Vec<_> = all.iter().map(|p| ms(p.trace.c0_ns)).collect();
    assert_eq!(starts, [0, 1_000, 1_700]);
}

#[tokio::test(start_paused = true)]
async fn late_finals_are_kept_and_still_count() {
    // Each final comes 7 s after the audio: far beyond where the last window's audio ended.
    let slow = ws(|_, mut ws| async move {
        if hear_all(&mut ws).await.is_some() {
            tokio::time::sleep(7 * SECOND).await;
            say(&mut ws, serde_json::json!({ "type": "final", "text": "late but whole" })).await;
            linger(&mut ws).await;
        }
    });
    let plan = Plan { streams: 4, ramp: 250 * MS, warm_up: SECOND, keep_texts: true, ..Plan::default() };
    let (all, summary) = play(plan, prepared(&[1_000, 2_000]), in_memory(slow)).await;
    let counted: Vec<_> = all.iter().filter(|p| p.trace.counted).collect();
    assert_eq!(counted.len(), 8);
    assert!(summary.is_complete());
    for played in counted {
        assert_eq!(played.trace.outcome.outcome, Outcome::Ok);
        let final_s = played.trace.final_ns.unwrap() - played.trace.planned_last_ns().unwrap();
        assert_eq!(ms(final_s), 7_000);
        assert_eq!(played.texts.finals, "late but whole");
    }
}

#[tokio::test(start_paused = true)]
async fn what_outlasts_the_drain_is_cut() {
    // Stream 0 has begun the long call once more when stream 1's last counted call ends, at 66 s.
    let plan = Plan { streams: 2, ramp: 5 * SECOND, drain: 2 * SECOND, ..once() };
    let (all, summary) = play(plan, prepared(&[1_000, 30_000]), in_memory(recogniser())).await;
    assert_eq!(summary.stop_ns, Some(66_000_000_000));
    assert!(summary.cut && summary.is_complete());
    let cut: Vec<_> = all.iter().filter(|p| p.trace.outcome.outcome == Outcome::Cancelled).collect();
    assert_eq!(cut.len(), 1);
    assert!(!cut[0].trace.counted);
    assert_eq!(ms(cut[0].trace.done_ns), ms(summary.stop_ns.unwrap()) + 2_000);
    assert!(!cut[0].trace.wake_late_us.is_empty(), "what was measured of it is kept");
    assert_eq!(summary.last_close_ns, cut[0].trace.done_ns);
}

#[tokio::test(start_paused = true)]
async fn stop_finishes_calls_and_cut_ends_them() {
    for cut in [false, true] {
        let control = Control::new();
        let hand = control.clone();
        tokio::spawn(async move {
            tokio::time::sleep(1_250 * MS).await;
            if cut { hand.cut() } else { hand.stop() }
        });
        let plan = Plan { streams: 3, ramp: SECOND, ..once() };
        let (all, summary) = play_with(plan, prepared(&[5_000]), in_memory(recogniser()), control).await;
        assert_eq!(all.len(), 2, "stream 2 never began");
        assert!(!summary.is_complete());
        assert_eq!(ms(summary.stop_ns.unwrap()), 1_250);
        for played in &all {
            let t = &played.trace;
            let (outcome, done) = if cut {
                (Outcome::Cancelled, 1_250)
            } else {
                (Outcome::Ok, 5_000 + 1_000 * u64::from(t.stream))
            };
            assert_eq!((t.outcome.outcome, ms(t.done_ns)), (outcome, done));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_counted_calls_ends() {
    let (all, summary) =
        play(Plan { streams: 0, ..once() }, prepared(&[1_000]), in_memory(recogniser())).await;
    assert!(all.is_empty() && summary.is_complete());
    let (all, _) = play(Plan { loops: 0, ..once() }, prepared(&[1_000]), in_memory(recogniser())).await;
    assert!(all.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_same_run_twice_gives_the_same_traces() {
    let plan = || Plan { streams: 7, ramp: 333 * MS, warm_up: 3 * SECOND, ..once() };
    let prepared = prepared(&[1_000, 2_500, 700]);
    let first = play(plan(), prepared.clone(), in_memory(recogniser())).await;
    let second = play(plan(), prepared, in_memory(recogniser())).await;
    // The clock has moved on between the two; everything else must be the same.
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_not_hammered_and_its_calls_count() {
    let plan = Plan { streams: 2, back_off: 3 * SECOND, ..once() };
    let refusing = bare(|_, mut io| async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut head = [0; 2_048];
        let _ = io.read(&mut head).await;
        let _ =
            io.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nall full\n").await;
    });
    let (all, summary) = play(plan, prepared(&[1_000, 2_000, 3_000]), in_memory(refusing)).await;
    assert_eq!(all.len(), 6);
    assert!(summary.is_complete());
    for played in &all {
        let t = &played.trace;
        assert!(t.counted);
        assert_eq!((t.outcome.outcome, t.outcome.code), (Outcome::RefusedBusy, Some(503)));
        assert_eq!(t.outcome.words.as_deref(), Some("all full"));
        assert_eq!(ms(t.c0_ns), 3_000 * u64::from(t.seq), "one call of the tape after the other");
        assert_eq!((t.c1_ns, t.final_kind), (None, None));
    }
}

#[tokio::test(start_paused = true)]
async fn streams_may_play_different_tapes_each_to_its_own_end() {
    let (main, words) = (prepared(&[1_000, 2_000, 3_000]), prepared(&[700]));
    let items = vec![
        Item::new(words.clone(), 0).of_tape("words"),
        Item::new(main.clone(), 1),
        Item::new(main, 0).in_order([2, 0]),
    ];
    let plan = Plan { streams: 3, loops: 2, ..once() };
    assert_eq!(Assignment::Each(items.clone()).counted_calls(3, 2), 2 * (1 + 3 + 2));
    assert_eq!(Assignment::All(words).counted_calls(5, 3), 15);
    let (all, summary) = play(plan, Assignment::Each(items), in_memory(recogniser())).await;
    assert!(summary.is_complete());
    let counted = |stream: u32| -> Vec<u32> {
        all.iter()
            .filter(|p| p.trace.stream == stream && p.trace.counted)
            .inspect(|p| assert_eq!(p.trace.tape.as_deref(), (stream == 0).then_some("words")))
            .map(|p| p.trace.call)
            .collect()
    };
    assert_eq!(counted(0), [0, 0]);
    assert_eq!(counted(1), [1, 2, 0, 1, 2, 0]);
    assert_eq!(counted(2), [2, 0, 2, 0]);
    // Whoever is through first plays on until the last counted call of anybody is done.
    assert!(all.iter().filter(|p| p.trace.stream == 0).count() > 10);
}
