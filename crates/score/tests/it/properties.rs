//! What holds for every trace, however odd.

use crate::common::{C1_MS, MS, meta, trace};
use proptest::prelude::*;
use tapedeck_record::{CallMeta, Evidence, Message, MessageKind, Trace};
use tapedeck_score::{Rules, Words, outstanding_intervals, score, union_ns};

#[derive(Debug, Clone)]
struct Case {
    trace: Trace,
    meta: CallMeta,
    rules: Rules,
}

fn evidence() -> impl Strategy<Value = Evidence> {
    prop_oneof![
        Just(Evidence::Position),
        Just(Evidence::PerWindow),
        Just(Evidence::Ack),
        Just(Evidence::None)
    ]
}

fn kind() -> impl Strategy<Value = MessageKind> {
    prop_oneof![
        Just(MessageKind::Partial),
        Just(MessageKind::Final),
        Just(MessageKind::End),
        Just(MessageKind::Empty)
    ]
}

prop_compose! {
    fn a_message()(
        at_ms in 0..40_000_u64,
        kind in kind(),
        chars in 0..30_u32,
        revised in 0..5_u32,
        position_ms in prop::option::of(0..25_000_u32),
        window in prop::option::of(0..12_u32),
    ) -> Message {
        Message { at_ns: (C1_MS + at_ms) * MS, kind, bytes: 9, chars, revised, position_ms, window }
    }
}

prop_compose! {
    fn case()(
        audio_ms in 1..20_000_u32,
        mut messages in prop::collection::vec(a_message(), 0..25),
        final_after_ms in prop::option::of(0..5_000_u64),
        speech in prop::collection::vec((0..20_000_u32, 1..4_000_u32), 0..6),
        evidence in evidence(),
        window_ms in prop::option::of(prop_oneof![Just(500_u32), Just(2_000), Just(5_000), Just(1_730)]),
        chunk_ms in prop_oneof![Just(100_u64), Just(160), Just(800)],
    ) -> Case {
        messages.sort_by_key(|m| m.at_ns);
        let spoken: Vec<(u32, u32)> = speech.iter().map(|&(from, len)| (from, from + len)).collect();
        let mut trace = trace(
            u64::from(audio_ms),
            messages,
            final_after_ms.map(|ms| u64::from(audio_ms) + ms),
        );
        trace.chunk_ns = chunk_ms * MS;
        Case {
            trace,
            meta: meta(audio_ms, &spoken),
            rules: Rules::new(evidence, window_ms),
        }
    }
}

proptest! {
    #[test]
    fn factors_and_lags_are_never_negative_and_a_union_is_at_most_the_sum(case in case()) {
        let r = score(&case.trace, &case.meta, &case.rules, &Words::default());
        prop_assert!(r.rtf.is_none_or(|v| v >= 0.0 && v.is_finite()));
        prop_assert!(r.lag_max_s.is_none_or(|v| v >= 0.0));
        prop_assert!(r.stall_max_s.is_none_or(|v| v >= 0.0));
        prop_assert!(r.age_slope_ms_per_min.is_none_or(f64::is_finite));
        prop_assert!(r.pace.is_none_or(|v| v >= 1.0));
        if let Some(outstanding) = outstanding_intervals(&case.trace, &case.meta, &case.rules) {
            let sum: u64 = outstanding.iter().map(|o| o.lag_ns()).sum();
            let longest = outstanding.iter().map(|o| o.lag_ns()).max().unwrap_or(0);
            let union = union_ns(&outstanding);
            prop_assert!(union <= sum && union >= longest);
            prop_assert!(outstanding.windows(2).all(|w| w[0].from_ns <= w[1].from_ns));
        }
        if case.rules.evidence == Evidence::None {
            prop_assert_eq!(r.rtf, None);
        }
    }

    #[test]
    fn a_later_answer_never_lowers_a_figure(case in case(), from in 0..25_usize, late_ms in 1..5_000_u64) {
        let mut late = case.trace.clone();
        for message in late.messages.iter_mut().skip(from) {
            message.at_ns += late_ms * MS;
        }
        late.final_ns = late.final_ns.map(|f| f + late_ms * MS);
        late.done_ns += late_ms * MS;
        let before = score(&case.trace, &case.meta, &case.rules, &Words::default());
        let after = score(&late, &case.meta, &case.rules, &Words::default());
        for (name, b, a) in [
            ("ttft_wire", before.ttft_wire_s, after.ttft_wire_s),
            ("ttft_speech", before.ttft_speech_s, after.ttft_speech_s),
            ("ttft_window", before.ttft_window_s, after.ttft_window_s),
            ("first_response", before.first_response_s, after.first_response_s),
            ("final", before.final_s, after.final_s),
            ("final_speech", before.final_speech_s, after.final_speech_s),
            ("pace", before.pace, after.pace),
            ("lag_max", before.lag_max_s, after.lag_max_s),
            ("rtf", before.rtf, after.rtf),
        ] {
            if let (Some(b), Some(a)) = (b, a) {
                prop_assert!(a >= b - 1e-9, "{} fell from {} to {}", name, b, a);
            }
        }
    }

    #[test]
    fn a_message_more_never_raises_what_is_owed(mut case in case(), mut extra in a_message()) {
        // A message can only answer earlier, except that per-window groups end with their last message.
        case.rules.evidence = Evidence::Position;
        // Nothing arrives once the stream is free again: what is owed then stays open until that instant.
        extra.at_ns = extra.at_ns.min(case.trace.done_ns);
        let mut more = case.trace.clone();
        let at = more.messages.partition_point(|m| m.at_ns <= extra.at_ns);
        more.messages.insert(at, extra);
        let before = outstanding_intervals(&case.trace, &case.meta, &case.rules).unwrap();
        let after = outstanding_intervals(&more, &case.meta, &case.rules).unwrap();
        prop_assert!(union_ns(&after) <= union_ns(&before));
    }

    #[test]
    fn figures_do_not_depend_on_when_the_run_began(case in case(), shift_ms in 0..1_000_000_u64) {
        let mut shifted = case.trace.clone();
        let shift = shift_ms * MS;
        shifted.c0_ns += shift;
        shifted.c1_ns = shifted.c1_ns.map(|t| t + shift);
        shifted.final_ns = shifted.final_ns.map(|t| t + shift);
        shifted.done_ns += shift;
        shifted.messages.iter_mut().for_each(|m| m.at_ns += shift);
        let mut after = score(&shifted, &case.meta, &case.rules, &Words::default());
        let before = score(&case.trace, &case.meta, &case.rules, &Words::default());
        after.start_s = before.start_s;
        after.done_s = before.done_s;
        prop_assert_eq!(before, after);
    }
}
