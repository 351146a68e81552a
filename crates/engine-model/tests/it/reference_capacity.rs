//! The truths themselves: what they are, and what moves them.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::collections::BTreeSet;

use tapedeck_engine_model::reference_capacity::{
    Balance, Family, Limit, ReferenceCapacity, ReferenceError, ReferenceRules, TapeCall, catalogue,
    find_reference_capacity, long_tape, play_tier, short_tape,
};
use tapedeck_engine_model::{Params, StepCost};

fn short_rules() -> ReferenceRules {
    ReferenceRules::default().tenth()
}

fn short(params: &Params) -> ReferenceCapacity {
    find_reference_capacity(params, 3, &short_tape(), &short_rules(), 1).unwrap()
}

/// Deployment, truth and limit on the short tape. The documentation quotes this table.
const SHORT: [(&str, u32, Option<Limit>); 16] = [
    ("demo", 30, Some(Limit::Rtf)),
    ("single", 6, Some(Limit::Rtf)),
    ("pair", 20, Some(Limit::Rtf)),
    ("slow-steps", 15, Some(Limit::Rtf)),
    ("fast-card", 84, Some(Limit::Rtf)),
    ("five-second-windows", 60, Some(Limit::Rtf)),
    ("resends-all", 63, Some(Limit::Rtf)),
    ("resends-long-calls", 90, None),
    ("few-seats", 51, Some(Limit::Ttft)),
    ("tiny-pool", 12, Some(Limit::Preemption)),
    ("small-pool", 36, Some(Limit::Preemption)),
    ("middling-pool", 69, Some(Limit::Preemption)),
    ("resends-all-tiny-pool", 21, Some(Limit::Preemption)),
    ("long-calls-pool", 90, None),
    ("door-of-four", 12, Some(Limit::Refusal)),
    ("door-of-twenty", 60, Some(Limit::Refusal)),
];

/// The same on the long tape, for those that it brings to their limits.
const LONG: [(&str, u32, Limit); 5] = [
    ("demo", 45, Limit::Rtf),
    ("five-second-windows", 54, Limit::Final),
    ("resends-long-calls", 42, Limit::Rtf),
    ("few-seats", 36, Limit::Ttft),
    ("long-calls-pool", 36, Limit::Preemption),
];

#[test]
fn the_catalogue_on_the_short_tape() {
    let references: Vec<_> = catalogue()
        .into_iter()
        .map(|deployment| {
            let reference = deployment.reference_capacity(&short_tape(), &short_rules(), 1).unwrap();
            (deployment.name, reference.capacity, reference.limited_by)
        })
        .collect();
    assert_eq!(references, SHORT);
}

#[test]
fn the_catalogue_on_the_long_tape() {
    for (name, capacity, limit) in LONG {
        let deployment = catalogue().into_iter().find(|deployment| deployment.name == name).unwrap();
        let rules = ReferenceRules { max_streams: capacity + 6, ..ReferenceRules::default() };
        let reference = deployment.reference_capacity(&long_tape(), &rules, 1).unwrap();
        assert_eq!((reference.capacity, reference.limited_by), (capacity, Some(limit)), "{name}");
    }
}

#[test]
fn the_catalogue_covers_every_kind_of_limit_from_six_to_nearly_ninety() {
    let limited: Vec<_> =
        SHORT.iter().filter_map(|&(_, n, limit)| limit.map(|limit| (n, limit.family()))).collect();
    assert!(limited.len() >= 10);
    assert_eq!(limited.iter().map(|&(_, family)| family).collect::<BTreeSet<_>>().len(), 3);
    for family in [Family::Kv, Family::Latency, Family::Refusal] {
        assert!(limited.iter().filter(|&&(_, f)| f == family).count() >= 2, "{family:?}");
    }
    assert_eq!(limited.iter().map(|&(n, _)| n).min(), Some(6));
    assert!(limited.iter().any(|&(n, _)| n > 80));
}

#[test]
fn the_seed_moves_a_truth_by_a_step_at_most() {
    for deployment in catalogue() {
        let reference =
            |seed| deployment.reference_capacity(&short_tape(), &short_rules(), seed).unwrap().capacity;
        let references = [reference(2), reference(3)];
        for capacity in references {
            assert!(
                capacity.abs_diff(reference(1)) <= deployment.instances,
                "{}: {references:?}",
                deployment.name
            );
        }
    }
}

#[test]
fn the_knee_moves_with_the_step_cost_alone() {
    let capacity = |per_stream_ns| {
        let demo = Params::demo();
        let reference = short(&Params { step: StepCost { per_stream_ns, ..demo.step }, ..demo });
        assert_eq!(reference.limited_by.map(Limit::family), Some(Family::Latency));
        reference.capacity
    };
    let capacities = [14_000_000, 7_000_000, 4_000_000].map(capacity);
    assert!(capacities.is_sorted_by(|a, b| a < b), "{capacities:?}");
}

#[test]
fn the_knee_moves_with_the_pool_alone() {
    let step = StepCost { base_ns: 8_000_000, per_stream_ns: 500_000, ..StepCost::default() };
    let capacity = |kv_blocks| {
        let reference = short(&Params { step, kv_blocks, ..Params::default() });
        assert_eq!(reference.limited_by.map(Limit::family), Some(Family::Kv));
        reference.capacity
    };
    let capacities = [70, 140, 280].map(capacity);
    assert!(capacities.is_sorted_by(|a, b| a < b), "{capacities:?}");
}

#[test]
fn the_demo_breaks_between_two_tiers_of_the_usual_ladder() {
    let rules = ReferenceRules::default();
    let play = |streams| play_tier(&Params::demo(), 3, &long_tape(), &rules, streams, 1).unwrap();
    let (below, above) = (play(36), play(48));
    assert_eq!((below.stopped_by, below.calls), (None, 36 * 9));
    assert_eq!((above.stopped_by, above.calls), (Some(Limit::Rtf), 48 * 9));
    // Clear of the limit on both sides, so that a ladder has something to find.
    assert!(below.rtf_p95.unwrap() < 0.4 && above.rtf_p95.unwrap() > 0.55);
    assert!(below.kv_p95.unwrap() < 0.5, "memory is not what stops it");
}

#[test]
fn the_figures_of_one_caller_can_be_reckoned_by_hand() {
    let step = StepCost {
        base_ns: 10_000_000,
        per_stream_ns: 1_000_000,
        per_prefill_token_ns: 100_000,
        per_context_token_ns: 0,
    };
    let params = Params { step, jitter: 0.0, ..Params::default() };
    // Half a second of silence in each of two full windows, and half a window without any speech at the end.
    let tape = [TapeCall { duration_ms: 5_000, speech: vec![(0, 1_500), (2_000, 3_500)] }];
    let tier = play_tier(&params, 1, &tape, &short_rules(), 1, 0).unwrap();
    // 35 prompt tokens, 4 of preface and 7 or 8 of text: 15 ms of intake, 14.5 ms for the first, 11 ms for each other.
    let (first, second) = (15.0 + 14.5 + 10.0 * 11.0, 15.0 + 14.5 + 11.0 * 11.0);
    // The last window has 22 prompt tokens (12 of audio) and no text.
    let last = 15.0 + 13.2 + 3.0 * 11.0;
    let near = |value: Option<f64>, ms: f64| (value.unwrap() - ms / 1e3).abs() < 1e-9;
    assert_eq!(tier.calls, 3);
    assert!(near(tier.ttft_p95_s, 15.0 + 14.5 + 4.0 * 11.0), "{tier:?}");
    assert!(near(tier.final_p95_s, last), "{tier:?}");
    // The silent window is owed only because it is the last.
    assert!(near(tier.rtf_p95, (first + second + last) / 5.0), "{tier:?}");
}

#[test]
fn few_streams_play_the_tape_three_times() {
    let play = |streams| play_tier(&Params::demo(), 3, &short_tape(), &short_rules(), streams, 1).unwrap();
    assert_eq!((play(6).calls, play(7).calls), (6 * 9 * 3, 7 * 9));
}

#[test]
fn giving_up_early_changes_no_verdict() {
    let params = Params::demo();
    let reference = short(&params);
    for tier in reference.tiers.iter().filter(|tier| tier.streams > reference.capacity + 3).step_by(5) {
        assert_eq!(tier.rtf_p95, None, "this one was given up");
        let whole = play_tier(&params, 3, &short_tape(), &short_rules(), tier.streams, 1).unwrap();
        assert!(tier.stopped_by.is_some() && whole.stopped_by.is_some(), "{} streams", tier.streams);
    }
}

#[test]
fn the_same_arguments_give_the_same_truth() {
    assert_eq!(short(&Params::demo()), short(&Params::demo()));
}

#[test]
fn dealing_in_turn_carries_less_at_a_narrow_door() {
    let params = Params { max_sessions: Some(8), ..Params::default() };
    let capacity = |balance| {
        let rules = ReferenceRules { balance, ..short_rules() };
        find_reference_capacity(&params, 3, &short_tape(), &rules, 1).unwrap().capacity
    };
    assert_eq!(capacity(Balance::LeastConnections), 24, "three doors of eight");
    assert!(capacity(Balance::RoundRobin) < 24, "long calls pile up on one instance");
}

#[test]
fn nothing_to_play_is_an_error() {
    let reference =
        |instances, tape: &[_]| find_reference_capacity(&Params::demo(), instances, tape, &short_rules(), 1);
    assert!(matches!(reference(0, &short_tape()), Err(ReferenceError::Empty(_))));
    assert!(matches!(reference(3, &[]), Err(ReferenceError::Empty(_))));
    let mut silent = short_tape();
    silent[0].duration_ms = 0;
    assert!(matches!(reference(3, &silent), Err(ReferenceError::Empty(_))));
    let broken = Params { kv_blocks: 0, ..Params::demo() };
    assert!(matches!(
        find_reference_capacity(&broken, 3, &short_tape(), &short_rules(), 1),
        Err(ReferenceError::Params(_))
    ));
}
