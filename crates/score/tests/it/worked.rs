//! Every figure on calls that were worked by hand.

use crate::common::{C1_MS, MS, covering, message, meta, of_window, trace};
use tapedeck_record::{Evidence, MessageKind, Outcome, OutcomeClass, OutcomeDetail, WordCounts};
use tapedeck_score::{Rules, Words, outstanding_intervals, score, union_ns};

fn close(got: Option<f64>, want: f64) {
    assert!(got.is_some_and(|got| (got - want).abs() < 1e-9), "got {got:?}, want {want}");
}

/// A server with windows of 2 s; 10 s of audio; speech from 0.5 to 3.2 s and from 6.1 to 9.0 s.
///
/// window      0        1        2        3        4
/// audio     0..2     2..4     4..6     6..8     8..10
/// speech    1.5 s    1.2 s    none     1.9 s    1.0 s
/// due         2        4        -        8       10
/// answered   2.4      4.9       -       8.6     10.3 (with the final)
fn two_second_windows() -> (tapedeck_record::Trace, tapedeck_record::CallMeta) {
    let messages = vec![
        message(50, MessageKind::Empty, 0),
        covering(2_400, 2_000),
        covering(4_900, 4_000),
        covering(6_500, 6_000),
        covering(8_600, 8_000),
        message(10_300, MessageKind::End, 0),
    ];
    (trace(10_000, messages, Some(10_300)), meta(10_000, &[(500, 3_200), (6_100, 9_000)]))
}

#[test]
fn a_server_with_windows() {
    let (trace, meta) = two_second_windows();
    let rules = Rules::new(Evidence::Position, Some(2_000));
    let r = score(&trace, &meta, &rules, &Words::default());
    close(r.connect_s, 0.040);
    // First text at 2.4 s: from the first chunk (0.1), the first speech (0.5), the first window (2.0).
    close(r.ttft_wire_s, 2.3);
    close(r.ttft_speech_s, 1.9);
    close(r.ttft_window_s, 0.4);
    // What was shown first was taken back: the text that stays begins with the second one, at 4.9 s.
    assert_eq!(r.ttft_kept_s, None, "this trace does not tell");
    let tells = tapedeck_record::Trace { kept_from_ns: Some(11_900_000_000), ..trace.clone() };
    close(score(&tells, &meta, &rules, &Words::default()).ttft_kept_s, 4.8);
    // The empty message is a response, but no text.
    close(r.first_response_s, -0.05);
    close(r.final_s, 0.3);
    close(r.final_speech_s, 1.3);
    // Owed: 2.0-2.4, 4.0-4.9, 8.0-8.6, 10.0-10.3 twice: 0.4 + 0.9 + 0.6 + 0.3 = 2.2 s of 10.
    close(r.rtf, 0.22);
    close(r.pace, 1.03);
    close(r.lag_max_s, 0.9);
    // Lags 0.4, 0.9, 0.6, 0.3 at ages 2, 4, 8, 10 s: means 0.55 and 6 s.
    // sxx = 16 + 4 + 4 + 16 = 40; sxy = (-4)(-0.15) + (-2)(0.35) + (2)(0.05) + (4)(-0.25) = 0.6 - 0.7 + 0.1 - 1.0 = -1.0
    // slope = -0.025 s/s = -1500 ms per minute.
    close(r.age_slope_ms_per_min, -1_500.0);
    // Texts at 2.4, 4.9, 6.5, 8.6: speech between them 0.8, 0.4, 2.1, then 0.4 to the final.
    close(r.stall_max_s, 2.1);
    assert_eq!((r.messages, r.class), (6, OutcomeClass::Ok));
    assert_eq!((r.stream, r.seq, r.call, r.bucket_s, r.counted), (2, 5, 4, 30, true));
    assert!(
        (r.start_s - 6.96).abs() < 1e-9 && (r.done_s - 17.3).abs() < 1e-9 && (r.audio_s - 10.0).abs() < 1e-9
    );
}

#[test]
fn without_a_window_length_every_chunk_is_a_window() {
    let (trace, meta) = two_second_windows();
    let rules = Rules::new(Evidence::Position, None);
    let r = score(&trace, &meta, &rules, &Words::default());
    assert_eq!(r.ttft_window_s, None);
    // Chunks with speech: 0.5-3.2, 6.1-9.0. Owed from the end of the first until covered:
    // 0.6-2.4, 2.1-4.9, 6.2-8.6, 8.1-10.3; union 0.6-4.9 (4.3) + 6.2-10.3 (4.1) = 8.4 s.
    close(r.rtf, 0.84);
    // The first chunk that the second message covers ended at 2.1: 4.9 - 2.1.
    close(r.lag_max_s, 2.8);
}

#[test]
fn groups_of_messages_belong_to_windows() {
    // Windows of 5 s, two messages a window: the last one of a group ends its debt. Window 2 has no speech.
    let messages = vec![
        of_window(5_200, 0),
        of_window(5_700, 0),
        of_window(10_300, 1),
        of_window(10_400, 1),
        of_window(20_900, 3),
        message(21_000, MessageKind::End, 0),
    ];
    let trace = trace(20_000, messages, Some(21_000));
    let meta = meta(20_000, &[(1_000, 9_000), (16_000, 19_000)]);
    let rules = Rules::new(Evidence::PerWindow, Some(5_000));
    let r = score(&trace, &meta, &rules, &Words::default());
    // 0.7 + 0.4 + (20.0 to 21.0 = 1.0, which holds window 3's 0.9) = 2.1 of 20.
    close(r.rtf, 0.105);
    close(r.lag_max_s, 1.0);
    close(r.ttft_window_s, 0.2);
    // Without the length of the windows nothing is known of when they were due.
    let r = score(&trace, &meta, &Rules::new(Evidence::PerWindow, None), &Words::default());
    assert_eq!((r.rtf, r.lag_max_s, r.age_slope_ms_per_min), (None, None, None));
    close(r.final_s, 1.0);
}

#[test]
fn a_window_that_was_passed_over_is_answered_by_the_next() {
    let messages = vec![of_window(5_500, 0), of_window(15_200, 2), message(15_400, MessageKind::End, 0)];
    let trace = trace(15_000, messages, Some(15_400));
    let meta = meta(15_000, &[(0, 15_000)]);
    let outstanding =
        outstanding_intervals(&trace, &meta, &Rules::new(Evidence::PerWindow, Some(5_000))).unwrap();
    let lags: Vec<u64> = outstanding.iter().map(|o| o.lag_ns() / MS).collect();
    assert_eq!(lags, [500, 5_200, 200, 400]);
    // 5.0-5.5 + 10.0-15.2 + 15.2-15.4.
    assert_eq!(union_ns(&outstanding) / MS, 5_900);
}

#[test]
fn acknowledgements_are_owed_in_silence_too() {
    // One reply per second, silence included; the third reply is late by 0.8 s.
    let messages = vec![
        message(1_100, MessageKind::Partial, 5),
        message(2_100, MessageKind::Empty, 0),
        message(3_800, MessageKind::Empty, 0),
        message(4_100, MessageKind::Final, 12),
        message(4_150, MessageKind::End, 0),
    ];
    let trace = trace(4_000, messages, Some(4_150));
    let meta = meta(4_000, &[(200, 900)]);
    let r = score(&trace, &meta, &Rules::new(Evidence::Ack, Some(1_000)), &Words::default());
    close(r.lag_max_s, 0.8);
    // 0.1 + 0.1 + 0.8 + 0.15.
    close(r.rtf, 1.15 / 4.0);
}

#[test]
fn without_evidence_only_the_final_is_known() {
    let (trace, meta) = two_second_windows();
    let r = score(&trace, &meta, &Rules::new(Evidence::None, Some(2_000)), &Words::default());
    assert_eq!((r.rtf, r.lag_max_s, r.age_slope_ms_per_min), (None, None, None));
    close(r.final_s, 0.3);
    close(r.ttft_window_s, 0.4);
}

#[test]
fn a_session_that_never_began_has_no_figures() {
    let mut refused = trace(10_000, vec![], None);
    refused.c1_ns = None;
    refused.end_ns = None;
    refused.outcome = OutcomeDetail::said(Outcome::RefusedBusy, Some(503), "full");
    let r = score(
        &refused,
        &meta(10_000, &[(0, 9_000)]),
        &Rules::new(Evidence::Position, None),
        &Words::default(),
    );
    let figures = [
        r.connect_s,
        r.ttft_wire_s,
        r.ttft_speech_s,
        r.ttft_window_s,
        r.first_response_s,
        r.final_s,
        r.final_speech_s,
        r.rtf,
        r.pace,
        r.lag_max_s,
        r.age_slope_ms_per_min,
        r.stall_max_s,
        r.wake_late_p99_ms,
        r.wake_late_max_ms,
        r.blocked_max_ms,
        r.rtt_p50_ms,
        r.revisions,
    ];
    assert_eq!(figures, [None; 17]);
    assert_eq!((r.class, r.outcome.code), (OutcomeClass::Error, Some(503)));
}

#[test]
fn a_call_without_a_final_keeps_what_is_known() {
    // The text stopped after 2.4 s; the call timed out 30 s after its audio.
    let trace = trace(10_000, vec![covering(2_400, 2_000)], None);
    let meta = meta(10_000, &[(500, 9_000)]);
    let r = score(&trace, &meta, &Rules::new(Evidence::Position, Some(2_000)), &Words::default());
    close(r.ttft_window_s, 0.4);
    assert_eq!((r.final_s, r.final_speech_s, r.pace, r.final_kind), (None, None, None, None));
    // How long the server would have owed is unknown, so there is no factor; but the debt lasted at least this long.
    assert_eq!(r.rtf, None);
    close(r.lag_max_s, 36.0);
    close(r.stall_max_s, 6.6);
}

#[test]
fn a_window_that_was_not_yet_due_is_not_owed() {
    let mut cut = trace(10_000, vec![covering(2_400, 2_000)], None);
    cut.done_ns = (C1_MS + 5_000) * MS;
    cut.outcome = OutcomeDetail::plain(Outcome::ClosedEarly);
    let outstanding = outstanding_intervals(
        &cut,
        &meta(10_000, &[(0, 10_000)]),
        &Rules::new(Evidence::Position, Some(2_000)),
    )
    .unwrap();
    let lags: Vec<(u64, bool)> = outstanding.iter().map(|o| (o.lag_ns() / MS, o.closed)).collect();
    assert_eq!(lags, [(400, true), (1_000, false)]);
}

#[test]
fn text_before_anybody_spoke_precedes_its_anchor() {
    let trace = trace(5_000, vec![message(1_000, MessageKind::Partial, 3)], Some(5_200));
    let meta = meta(5_000, &[(2_000, 4_000)]);
    let r = score(&trace, &meta, &Rules::new(Evidence::Position, Some(2_000)), &Words::default());
    close(r.ttft_speech_s, -1.0);
    close(r.ttft_window_s, -3.0);
}

#[test]
fn silence_has_no_anchor_and_little_speech_opens_no_window() {
    let trace = trace(5_000, vec![], Some(5_200));
    let rules = Rules::new(Evidence::Position, Some(2_000));
    let r = score(&trace, &meta(5_000, &[]), &rules, &Words::default());
    assert_eq!((r.ttft_wire_s, r.ttft_speech_s, r.ttft_window_s, r.final_speech_s), (None, None, None, None));
    close(r.rtf, 0.04);
    // 250 ms at the end of the first window, 250 ms at the begin of the second: neither holds 300 ms.
    let mut talking = trace.clone();
    talking.messages = vec![message(4_500, MessageKind::Partial, 3)];
    let r = score(&talking, &meta(5_000, &[(1_750, 2_250)]), &rules, &Words::default());
    assert_eq!(r.ttft_window_s, None);
    close(r.ttft_speech_s, 2.75);
}

#[test]
fn a_window_ends_with_the_chunk_that_completes_it() {
    // Chunks of 160 ms: the window of 2,000 ms is complete with chunk 12, planned at 2,080 ms.
    let mut trace = trace(4_800, vec![covering(2_500, 2_000)], Some(5_000));
    trace.chunk_ns = 160 * MS;
    let r = score(
        &trace,
        &meta(4_800, &[(0, 4_000)]),
        &Rules::new(Evidence::Position, Some(2_000)),
        &Words::default(),
    );
    close(r.ttft_window_s, 0.42);
    close(r.ttft_wire_s, 2.34);
}

#[test]
fn tail_silence_is_audio_but_owes_nothing() {
    let mut trace = trace(6_000, vec![covering(2_300, 2_000), covering(4_400, 4_000)], Some(6_100));
    trace.tail_silence_ns = 2_000 * MS;
    let meta = meta(4_000, &[(0, 4_000)]);
    let r = score(&trace, &meta, &Rules::new(Evidence::Position, Some(2_000)), &Words::default());
    // 0.3 + 0.4 + the last interval 0.1 of 6 s.
    close(r.rtf, 0.8 / 6.0);
    close(r.final_s, 0.1);
    close(r.final_speech_s, 2.1);
}

#[test]
fn our_own_lateness_back_pressure_and_pings() {
    let mut trace = trace(1_000, vec![], Some(1_100));
    trace.wake_late_us = (1..=100).map(|i| i * 10).collect();
    trace.blocked_us = vec![0, 0, 250_000, 10];
    trace.rtt_us = vec![3_000, 1_000, 2_000];
    let r = score(&trace, &meta(1_000, &[(0, 900)]), &Rules::new(Evidence::None, None), &Words::default());
    close(r.wake_late_p99_ms, 0.99);
    close(r.wake_late_max_ms, 1.0);
    close(r.blocked_max_ms, 250.0);
    close(r.rtt_p50_ms, 2.0);
}

#[test]
fn revisions_are_counted_against_the_final_text() {
    let mut messages = vec![
        message(500, MessageKind::Partial, 8),
        message(700, MessageKind::Partial, 12),
        message(900, MessageKind::Final, 20),
    ];
    messages[1].revised = 3;
    messages[2].revised = 2;
    let rules = Rules::new(Evidence::None, None);
    let meta = meta(1_000, &[(0, 900)]);
    let r = score(&trace(1_000, messages.clone(), Some(1_100)), &meta, &rules, &Words::default());
    close(r.revisions, 0.25);
    messages.truncate(2);
    // Nothing was called final: the longest text stands in.
    let r = score(&trace(1_000, messages, Some(1_100)), &meta, &rules, &Words::default());
    close(r.revisions, 0.25);
}

#[test]
fn words_are_passed_through_and_a_silent_call_owes_none() {
    let words = Words {
        finals: Some(WordCounts { ref_tokens: 10, sub: 1, del: 2, ins: 0 }),
        finals_and_tail: Some(WordCounts { ref_tokens: 10, sub: 1, del: 0, ins: 0 }),
        chars: None,
    };
    let mut silent = trace(1_000, vec![], Some(1_100));
    silent.outcome = OutcomeDetail::plain(Outcome::EmptyFinal);
    let rules = Rules::new(Evidence::None, None);
    let r = score(&silent, &meta(1_000, &[]), &rules, &words);
    assert_eq!(r.class, OutcomeClass::Excluded);
    assert_eq!((r.words_finals, r.words, r.chars), (words.finals, words.finals_and_tail, None));
    let r = score(&silent, &meta(1_000, &[(0, 500)]), &rules, &words);
    assert_eq!(r.class, OutcomeClass::Quality);
}

#[test]
fn a_trace_without_audio_or_chunks_gives_no_figure_instead_of_a_division_by_zero() {
    let mut trace = trace(0, vec![], Some(10));
    let meta = meta(0, &[]);
    for chunk_ns in [0, 100 * MS] {
        trace.chunk_ns = chunk_ns;
        for evidence in [Evidence::Position, Evidence::PerWindow, Evidence::Ack, Evidence::None] {
            let r = score(&trace, &meta, &Rules::new(evidence, Some(2_000)), &Words::default());
            assert_eq!((r.rtf, r.pace), (None, None));
        }
    }
}

#[test]
fn rules_have_their_defaults_and_refuse_typos() {
    let rules: Rules = serde_json::from_str(r#"{"evidence": "position"}"#).unwrap();
    assert_eq!(rules, Rules::new(Evidence::Position, None));
    assert_eq!(rules.window_speech_min_ms, 300);
    assert!(serde_json::from_str::<Rules>(r#"{"evidence": "position", "window": 2000}"#).is_err());
}

#[test]
fn a_call_that_was_sent_at_once_has_its_final_and_nothing_that_needs_a_clock_of_speech() {
    let text = covering(900, 2_000);
    let at_once = tapedeck_record::Trace { chunk_ns: 0, ..trace(10_000, vec![text], Some(1_500)) };
    let found = score(
        &at_once,
        &meta(10_000, &[(500, 9_000)]),
        &Rules::new(Evidence::Position, Some(2_000)),
        &Words::default(),
    );
    // All of it was due when the session was ready.
    assert_eq!((found.final_s, found.pace), (Some(1.5), Some(0.15)));
    let needs_speech = [
        found.ttft_wire_s,
        found.ttft_speech_s,
        found.ttft_window_s,
        found.final_speech_s,
        found.rtf,
        found.lag_max_s,
        found.stall_max_s,
    ];
    assert_eq!(needs_speech, [None; 7]);
}
