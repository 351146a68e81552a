//! What must hold after every step of any run.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::faults::{Faults, Outage};
use crate::model::Model;
use crate::output::{Heard, Output, OutputKind, SessionId};
use crate::params::{Params, SessionModel, StepCost};

/// Something that happens to the engine, some time after what happened before.
#[derive(Debug, Clone)]
enum Operation {
    Open(SessionId),
    Audio(SessionId, u32, bool),
    End(SessionId),
    Drop(SessionId),
    Wait,
}

fn operations() -> impl Strategy<Value = Vec<(u64, Operation)>> {
    let id = 0..12_u64;
    let operation = prop_oneof![
        3 => id.clone().prop_map(Operation::Open),
        12 => (id.clone(), 20..4_500_u32, any::<bool>()).prop_map(|(id, ms, speech)| Operation::Audio(id, ms, speech)),
        2 => id.clone().prop_map(Operation::End),
        1 => id.prop_map(Operation::Drop),
        2 => Just(Operation::Wait),
    ];
    // Many operations fall on one instant.
    let pause = prop_oneof![2 => Just(0), 3 => 1..400_000_000_u64];
    prop::collection::vec((pause, operation), 1..120)
}

fn params() -> impl Strategy<Value = Params> {
    let caches = (any::<bool>(), any::<bool>(), any::<bool>());
    let limits = (8..60_u32, 1..6_u32, prop_oneof![Just(None), (1..6_u32).prop_map(Some)], 16..400_u32);
    (any::<bool>(), caches, limits, 0..3_000_000_u64).prop_map(
        |(
            rolling,
            (prefix_cache, mm_cache, coalesce),
            (kv_blocks, max_num_seqs, max_sessions, budget),
            per_stream_ns,
        )| {
            Params {
                session: if rolling { SessionModel::Rolling } else { SessionModel::Resident },
                coalesce,
                kv_blocks,
                max_num_seqs,
                max_sessions,
                max_batched_tokens: budget,
                step: StepCost { per_stream_ns, ..StepCost::default() },
                prefix_cache,
                mm_cache,
                ..Params::default()
            }
        },
    )
}

fn faults() -> impl Strategy<Value = Faults> {
    let outage = || {
        prop::option::of((0..6_000_u64, 1..4_000_u64))
            .prop_map(|outage| outage.map(|(at_ms, for_ms)| Outage { at_ms, for_ms: Some(for_ms) }))
    };
    let share = || prop_oneof![Just(0.0), 0.0..1.0_f64];
    (outage(), outage(), share(), share(), 0..500_u32, share()).prop_map(
        |(crash, hang, mute_share, tail_lost_share, age_lag_ms_per_minute, prefix_hit_share)| Faults {
            crash,
            hang,
            mute_share,
            tail_lost_share,
            age_lag_ms_per_minute,
            prefix_hit_share,
            ..Faults::default()
        },
    )
}

/// Plays the operations, ends whatever is still open, and lets the engine come to rest; checks the books all the way.
fn play(
    params: &Params,
    seed: u64,
    operations: &[(u64, Operation)],
) -> (Model, Vec<Output>, BTreeMap<SessionId, u32>) {
    let mut model = Model::new(params.clone(), seed).unwrap();
    let mut said = Vec::new();
    let mut heard: BTreeMap<SessionId, Heard> = BTreeMap::new();
    let mut owed = BTreeMap::new();
    let mut now = 0;
    let mut name = 0;
    let mut names: BTreeMap<SessionId, SessionId> = BTreeMap::new();
    for (pause, operation) in operations {
        now += pause;
        match *operation {
            // Every session gets a name of its own, so that outputs can be told apart.
            Operation::Open(id) if !names.contains_key(&id) => {
                name += 1;
                if model.open(now, name).is_ok() {
                    names.insert(id, name);
                    heard.insert(name, Heard::default());
                }
            }
            Operation::Audio(id, ms, speech) => {
                if let Some(name) = names.get(&id) {
                    let heard = heard.get_mut(name).unwrap();
                    heard.total_ms += ms;
                    heard.speech_ms += if speech { ms } else { 0 };
                    // Few digests, so that caches are hit.
                    heard.digest = u64::from(heard.total_ms / 1_000);
                    model.audio(now, *name, *heard);
                }
            }
            Operation::End(id) => {
                if let Some(name) = names.remove(&id) {
                    model.end(now, name);
                    owed.insert(name, heard[&name].total_ms);
                }
            }
            Operation::Drop(id) => {
                if let Some(name) = names.remove(&id) {
                    model.drop_session(now, name);
                    heard.remove(&name);
                }
            }
            Operation::Open(_) | Operation::Wait => {}
        }
        model.advance(now, &mut said);
        check_books(&model);
    }
    for name in names.into_values() {
        model.end(now, name);
        owed.insert(name, heard[&name].total_ms);
    }
    let mut rounds = 0;
    while let Some(next) = model.next_event_ns() {
        model.advance(next, &mut said);
        check_books(&model);
        rounds += 1;
        assert!(rounds < 200_000, "the engine does not come to rest");
    }
    (model, said, owed)
}

fn check_books(model: &Model) {
    let works = || model.running.iter().chain(&model.waiting);
    let held: u32 = works()
        .map(|work| &work.held)
        .chain(model.sessions.values().map(|s| &s.held))
        .map(|h| h.blocks())
        .sum();
    assert_eq!(held, model.pool.used(), "every block is somebody's, and only one's");
    for work in works() {
        let room = u64::from(work.held.blocks()) * u64::from(model.params.block_tokens);
        assert!(u64::from(work.in_kv) <= room, "{} tokens in room for {room}", work.in_kv);
        assert!(model.sessions[&work.session].busy);
        assert!(
            model.sessions[&work.session].held.blocks() == 0,
            "a busy session's blocks are with its request"
        );
    }
    let seated = model.sessions.values().filter(|session| session.seated).count();
    assert_eq!(seated, model.seats as usize);
    if model.params.session == SessionModel::Resident {
        assert!(model.seats <= model.params.max_num_seqs);
    }
    assert!(model.running.len() <= model.params.max_num_seqs as usize);
    let mut ids: Vec<_> = works().map(|work| work.session).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), works().count(), "a session has one request at a time");
    assert!(
        model.running.is_empty() || model.step_end_ns.is_some() || model.wake_ns.is_some(),
        "no idling with work"
    );
    let planned: u32 = model.running.iter().map(|work| work.planned).sum();
    assert!(planned <= model.params.max_batched_tokens);
    let counters = model.counters();
    assert!(counters.prefix_hits <= counters.prefix_queries && counters.mm_hits <= counters.mm_queries);
    assert!((0.0..=1.0).contains(&counters.kv_usage));
    assert!(counters.waiting_deferred <= counters.open_sessions);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn books_balance_and_everybody_gets_an_answer(params in params(), seed in any::<u64>(), operations in operations()) {
        let (model, said, owed) = play(&params, seed, &operations);

        prop_assert!(said.is_sorted_by_key(|output| output.at_ns));
        let mut covered: BTreeMap<SessionId, u32> = BTreeMap::new();
        let mut over: BTreeMap<SessionId, bool> = BTreeMap::new();
        let mut tokens: BTreeMap<SessionId, u32> = BTreeMap::new();
        for output in &said {
            prop_assert!(!over.contains_key(&output.session), "nothing comes after the end");
            match output.kind {
                OutputKind::FirstText { covered_ms, text_tokens, .. } => {
                    prop_assert_eq!(covered_ms, covered.get(&output.session).copied().unwrap_or(0));
                    prop_assert_eq!(text_tokens, tokens.get(&output.session).copied().unwrap_or(0) + 1);
                }
                OutputKind::Window { covered_ms, text_tokens, new_tokens, word_error, .. } => {
                    let before = covered.insert(output.session, covered_ms).unwrap_or(0);
                    prop_assert!(covered_ms > before, "positions only grow");
                    let had = tokens.insert(output.session, text_tokens).unwrap_or(0);
                    prop_assert_eq!(had + new_tokens, text_tokens);
                    prop_assert!((0.0..=1.0).contains(&word_error));
                }
                OutputKind::Final { covered_ms, .. } => {
                    prop_assert_eq!(Some(&covered_ms), owed.get(&output.session), "the final covers all audio");
                    over.insert(output.session, true);
                }
                OutputKind::Failed(_) => { over.insert(output.session, false); }
            }
        }
        for name in owed.keys() {
            prop_assert!(over.contains_key(name), "session {} ended and got no answer", name);
        }
        let rest = model.counters();
        prop_assert_eq!((rest.kv_blocks_used, rest.running, rest.waiting_capacity, rest.open_sessions), (0, 0, 0, 0));
    }

    #[test]
    fn the_same_seed_says_the_same(params in params(), seed in any::<u64>(), operations in operations()) {
        let (one, said_one, _) = play(&params, seed, &operations);
        let (two, said_two, _) = play(&params, seed, &operations);
        prop_assert_eq!(said_one, said_two);
        prop_assert_eq!(one.counters(), two.counters());
    }

    #[test]
    fn an_ill_engine_keeps_its_books_too(params in params(), faults in faults(), operations in operations()) {
        let (model, said, owed) = play(&Params { faults: faults.clone(), ..params }, 5, &operations);
        prop_assert!(said.is_sorted_by_key(|output| output.at_ns));
        let over: BTreeSet<_> = said.iter().filter(|output| {
            matches!(output.kind, OutputKind::Final { .. } | OutputKind::Failed(_))
        }).map(|output| output.session).collect();
        let unanswered = owed.keys().filter(|name| !over.contains(name)).count();
        let open = model.counters().open_sessions as usize;
        prop_assert_eq!(open, unanswered, "whoever gets no answer is mute and still there");
        prop_assert!(faults.mute_share > 0.0 || open == 0);
    }

    #[test]
    fn without_scarcity_no_work_is_lost_or_done_twice(rolling in any::<bool>(), operations in operations()) {
        let session = if rolling { SessionModel::Rolling } else { SessionModel::Resident };
        let params = Params { session, ..Params::default() };
        let operations: Vec<_> = operations.into_iter().filter(|(_, operation)| !matches!(operation, Operation::Drop(_))).collect();
        let (model, said, _) = play(&params, 1, &operations);
        let rest = model.counters();
        prop_assert_eq!(rest.preemptions, 0);
        let windows: Vec<_> = said.iter().filter_map(|output| match output.kind {
            OutputKind::Window { new_tokens, .. } => Some(u64::from(new_tokens)),
            _ => None,
        }).collect();
        prop_assert_eq!(windows.len() as u64, rest.ttft.count);
        let text = windows.iter().sum::<u64>();
        let least = text + windows.len() as u64 * u64::from(params.preface_tokens);
        if rolling {
            let most = least + windows.len() as u64 * u64::from(params.rollback_tokens);
            prop_assert!((least..=most).contains(&rest.generation_tokens));
        } else {
            prop_assert_eq!(rest.generation_tokens, least, "a preface a window, and the text");
        }
    }
}
