//! What must hold for any figures.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use proptest::prelude::*;
use tapedeck_sizing::kv::{call, tape};
use tapedeck_sizing::statement::{Basis, Measured, Promise, state};
use tapedeck_sizing::{Card, Durations, Need, Session, Topology, how_many, supply};

fn sessions() -> impl Strategy<Value = Session> {
    let preset = prop_oneof![
        Just(Session::plan()),
        Just(Session::vllm_realtime()),
        Just(Session::official_streaming()),
        Just(Session::whole_utterance())
    ];
    (preset, 0.1..30.0, 0.0..15.0, prop::option::of(0.0..10.0)).prop_map(
        |(session, audio, text, answer_s)| Session {
            audio_tokens_per_s: audio,
            text_tokens_per_s: text,
            answer_s,
            ..session
        },
    )
}

proptest! {
    #[test]
    fn a_mean_is_no_more_than_a_peak_and_a_peak_no_more_than_the_most(session in sessions(), call_s in 0.1..3_600.0) {
        let tokens = session.tokens(call_s).unwrap();
        prop_assert!(tokens.mean >= 0.0 && tokens.mean <= tokens.peak * (1.0 + 1e-9), "{tokens:?}");
        prop_assert!(tokens.peak <= tokens.most * (1.0 + 1e-9), "{tokens:?}");
    }

    #[test]
    fn a_longer_call_never_needs_less(session in sessions(), call_s in 0.1..3_600.0, more in 0.0..600.0) {
        prop_assert!(session.tokens(call_s + more).unwrap().peak >= session.tokens(call_s).unwrap().peak - 1e-6);
    }

    #[test]
    fn a_tape_of_equal_calls_is_like_one_of_them(session in sessions(), call_s in 0.1..3_600.0, n in 1_usize..20) {
        let (one, all) = (call(&session, 1_000, call_s).unwrap(), tape(&session, 1_000, &vec![call_s; n]).unwrap());
        prop_assert!((all.mean_of_peaks_bytes / one.peak_bytes - 1.0).abs() < 1e-9);
        prop_assert!((all.mean_bytes - one.mean_bytes).abs() <= 1e-9 * one.peak_bytes);
        prop_assert!(all.mean_bytes <= all.mean_of_peaks_bytes * (1.0 + 1e-9));
    }

    #[test]
    fn more_instances_have_no_more_pool_in_all(
        memory in 8.0..160.0, weights in 0.5..4.0, overhead in 0.0..3.0, share in 0.3..1.0, n in 1_u32..8, call in 1e7..2e9,
    ) {
        let card = Card { memory_gb: memory, weights_gb: weights, overhead_gb: overhead };
        prop_assume!(card.check().is_ok());
        let all = |n| supply(&card, Topology::split(share, n), call).unwrap();
        let (few, many) = (all(n), all(n + 1));
        prop_assert!(many.pool_all_gb.unwrap_or(0.0) <= few.pool_all_gb.unwrap_or(0.0) + 1e-9);
        // Each pool holds whole calls, so that one more pool may win back what rounding cost: one call a pool at most.
        prop_assert!(many.calls_all <= few.calls_all + u64::from(n));
    }

    #[test]
    fn the_answers_to_how_many_hold(calls in 1_u32..200, call in 1e7..2e9, latency in 0.5..60.0) {
        let card = Card::a40_qwen3_asr_0_6b();
        let need = Need { calls, call_bytes: call, share: 0.92, latency_calls: Some(latency) };
        let answer = how_many(&card, &need).unwrap();
        if let Some((few, many)) = answer.all {
            for n in few..=many {
                let row = supply(&card, Topology::split(0.92, n), call).unwrap();
                prop_assert!(row.pool_gb.is_some() && row.calls_all >= u64::from(calls));
                prop_assert!(f64::from(n) * latency >= f64::from(calls) - 1e-6);
            }
        }
        prop_assert!(answer.by_kv.is_none_or(|(few, many)| few <= many && many <= answer.by_memory));
    }

    #[test]
    fn a_statement_promises_no_more_than_it_measured(
        n_star in 2_u32..500, safety in 0.5..1.0, blocking in 0.0001..0.2, mean in 5.0..900.0, demand in 1.0..5_000.0,
    ) {
        let short = Measured::said(n_star, Durations::of_mean("calls", mean).unwrap());
        let basis = Basis {
            short, long: None, hard_ceiling: None, safety, instances: 1, topology: None, round_robin: false,
            promise: Promise::Blocking(blocking), own: None, demand_per_h: Some(demand), simulated: false,
        };
        let statement = state(&basis).unwrap();
        let carried = &statement.carried[0];
        prop_assert!(carried.lines <= u64::from(n_star));
        // Enough lines for the demand is the same question as enough traffic for the lines.
        let demand_erl = demand * mean / 3_600.0;
        let close = (demand_erl / carried.erlang - 1.0).abs() < 1e-9;
        prop_assert!(close || carried.enough == Some(demand_erl < carried.erlang));
    }

    #[test]
    fn shares_of_calls_add_up(lengths in prop::collection::vec(0.1..3_600.0_f64, 1..50), share in 0.01..0.99) {
        let calls = Durations::of_calls("x", &lengths).unwrap();
        let at = calls.at_share(share);
        prop_assert!(1.0 - calls.share_longer(at) >= share - 1e-9);
        prop_assert!(calls.mean_s <= calls.longest_s + 1e-9 && calls.cv >= 0.0);
    }
}
