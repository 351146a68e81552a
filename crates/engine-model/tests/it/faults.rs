//! Every fault does what it says, in the dose it was given, and nothing else.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::collections::BTreeMap;

use tapedeck_engine_model::reference_capacity::{
    Family, Limit, ReferenceRules, find_reference_capacity, play_tier, short_tape,
};
use tapedeck_engine_model::{
    Failure, Faults, Heard, Model, Outage, Output, OutputKind, Params, Refused, SlowBatch, StepCost,
};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn ill(faults: Faults) -> Params {
    Params { faults, ..Params::default() }
}

/// Sessions of 5 s, one after another, each of nothing but speech; what was said to each.
fn calls(params: &Params, n: u64) -> (Model, BTreeMap<u64, Vec<Output>>) {
    let mut engine = Model::new(params.clone(), 3).unwrap();
    let mut said = Vec::new();
    for id in 0..n {
        let start = id * 6 * S;
        let _ = engine.open(start, id);
        for total_ms in [2_000, 4_000, 5_000] {
            let now = start + u64::from(total_ms) * MS;
            engine.advance(now - 1, &mut said);
            engine.audio(
                now,
                id,
                Heard { total_ms, speech_ms: total_ms, digest: u64::from(total_ms) + (id << 20) },
            );
        }
        engine.end(start + 5 * S, id);
        engine.advance(start + 6 * S - 1, &mut said);
    }
    let mut by_session: BTreeMap<u64, Vec<Output>> = BTreeMap::new();
    for output in said {
        by_session.entry(output.session).or_default().push(output);
    }
    (engine, by_session)
}

fn final_of(said: &[Output]) -> Option<(u32, u32)> {
    said.iter().find_map(|output| match output.kind {
        OutputKind::Final { covered_ms, text_tokens } => Some((covered_ms, text_tokens)),
        _ => None,
    })
}

#[test]
fn a_healthy_engine_answers_everybody_in_full() {
    let (engine, said) = calls(&ill(Faults::default()), 50);
    assert_eq!(said.len(), 50);
    assert!(said.values().all(|said| final_of(said) == Some((5_000, 25))));
    assert!(engine.is_up());
}

#[test]
fn mute_sessions_stay_silent_and_open() {
    let (engine, said) = calls(&ill(Faults { mute_share: 0.1, ..Faults::default() }), 500);
    let mute = 500 - said.len();
    assert!((30..=70).contains(&mute), "{mute} of 500");
    assert_eq!(engine.counters().open_sessions as usize, mute);
    assert!(said.values().all(|said| final_of(said) == Some((5_000, 25))), "the others notice nothing");
}

#[test]
fn lost_tails_end_a_window_early() {
    let params = ill(Faults { tail_lost_share: 0.1, ..Faults::default() });
    let (_, said) = calls(&params, 500);
    let lost = said.values().filter(|said| final_of(said) == Some((4_000, 20))).count();
    let whole = said.values().filter(|said| final_of(said) == Some((5_000, 25))).count();
    assert_eq!(lost + whole, 500);
    assert!((30..=70).contains(&lost), "{lost} of 500");
    // Switching on another fault moves nothing.
    let both = ill(Faults { mute_share: 0.2, ..params.faults });
    let (_, said_both) = calls(&both, 500);
    assert!(said_both.iter().all(|(id, output)| final_of(output) == final_of(&said[id])));
}

#[test]
fn a_crash_fails_everybody_and_a_restart_begins_at_nought() {
    let crash = Some(Outage { at_ms: 10_500, for_ms: Some(10_000) });
    let mut engine = Model::new(ill(Faults { crash, ..Faults::default() }), 0).unwrap();
    let mut said = Vec::new();
    engine.open(0, 1).unwrap();
    engine.audio(10_000 * MS, 1, Heard { total_ms: 10_000, speech_ms: 10_000, digest: 0 });
    engine.advance(10_400 * MS, &mut said);
    assert!(engine.counters().kv_blocks_used > 0 && engine.counters().steps > 0);
    said.clear();
    engine.advance(11 * S, &mut said);
    let last = said.last().unwrap();
    assert_eq!((last.at_ns, last.kind), (10_500 * MS, OutputKind::Failed(Failure::Crashed)));
    assert!(!engine.is_up());
    assert_eq!(engine.open(12 * S, 2), Err(Refused::Down));
    engine.advance(20_500 * MS, &mut said);
    assert!(engine.is_up());
    let counters = engine.counters();
    assert_eq!((counters.steps, counters.opened, counters.kv_blocks_used), (0, 0, 0));
    assert!(counters.vram_bytes > 0);
    engine.open(21 * S, 2).unwrap();
    engine.end(21 * S, 2);
    assert_eq!(engine.next_event_ns(), Some(21 * S));
}

#[test]
fn a_hang_shifts_what_falls_into_it_to_its_end() {
    let first_window = |hang| {
        let mut engine = Model::new(ill(Faults { hang, ..Faults::default() }), 0).unwrap();
        let mut said = Vec::new();
        engine.open(0, 1).unwrap();
        engine.audio(2 * S, 1, Heard { total_ms: 2_000, speech_ms: 2_000, digest: 0 });
        engine.advance(100 * S, &mut said);
        said.iter().find(|output| matches!(output.kind, OutputKind::Window { .. })).map(|output| output.at_ns)
    };
    let healthy = first_window(None).unwrap();
    let outage = |at_ms, for_ms| Some(Outage { at_ms, for_ms });
    assert_eq!(
        first_window(outage(2_100, Some(7_000))),
        Some(healthy + 7 * S),
        "in the middle of the window"
    );
    assert_eq!(first_window(outage(1_000, Some(7_000))), Some(healthy + 6 * S - 15 * MS), "before it");
    assert_eq!(first_window(outage(1_000, None)), None);
    assert_eq!(first_window(outage(2_100, None)), None);
    assert_eq!(first_window(outage(5_000, None)), Some(healthy));
}

/// Lag of each window of a call that starts at `start_ns` and lasts `windows` x 2 s. ns.
fn lags(params: &Params, start_ns: u64, windows: u32) -> Vec<u64> {
    let mut engine = Model::new(Params { jitter: 0.0, ..params.clone() }, 0).unwrap();
    let mut said = Vec::new();
    engine.open(start_ns, 1).unwrap();
    (1..=windows)
        .map(|window| {
            let now = start_ns + u64::from(window) * 2 * S;
            engine.audio(now, 1, Heard { total_ms: window * 2_000, speech_ms: window * 1_500, digest: 0 });
            said.clear();
            engine.advance(now + 2 * S - 1, &mut said);
            said.last().unwrap().at_ns - now
        })
        .collect()
}

#[test]
fn lag_grows_with_age_where_it_is_told_to() {
    let free =
        Params { step: StepCost { per_context_token_ns: 0, ..StepCost::default() }, ..Params::default() };
    let aged = Params { faults: Faults { age_lag_ms_per_minute: 60, ..Faults::default() }, ..free.clone() };
    let added: Vec<_> = lags(&aged, 0, 60).iter().zip(lags(&free, 0, 60)).map(|(a, b)| a - b).collect();
    assert_eq!((added[0], added[29], added[59]), (2 * MS, 60 * MS, 120 * MS));
}

#[test]
fn steps_grow_longer_by_the_hour_where_they_are_told_to() {
    let params = ill(Faults { slowdown_per_hour: 0.2, ..Faults::default() });
    let early = lags(&params, 0, 1)[0] - 15 * MS;
    let late = lags(&params, 3_600 * S, 1)[0] - 15 * MS;
    assert!((0.199..0.201).contains(&(late as f64 / early as f64 - 1.0)), "{early} {late}");
}

#[test]
fn a_prefix_hit_rate_of_three_hundredths() {
    let faults = Faults { prefix_hit_share: 0.032, ..Faults::default() };
    let (engine, _) = calls(&Params { prefix_cache: true, ..ill(faults) }, 1_000);
    let counters = engine.counters();
    let rate = counters.prefix_hits as f64 / counters.prefix_queries as f64;
    assert!((0.02..0.04).contains(&rate), "{rate}");
}

#[test]
fn batches_that_fit_no_graph_make_the_capacity_dip() {
    let slow_batch = Some(SlowBatch { from: 3, to: 5, factor: 4.0 });
    let step = StepCost { base_ns: 20 * MS, per_stream_ns: MS, ..StepCost::default() };
    let params = Params { step, ..ill(Faults { slow_batch, ..Faults::default() }) };
    let truth =
        find_reference_capacity(&params, 3, &short_tape(), &ReferenceRules::default().tenth(), 1).unwrap();
    assert!(
        !truth.monotonic,
        "{:?}",
        truth.tiers.iter().map(|t| (t.streams, t.stopped_by)).collect::<Vec<_>>()
    );
}

#[test]
fn the_truth_of_an_engine_that_dies_is_a_fault() {
    let crash = Some(Outage { at_ms: 20_000, for_ms: None });
    let params = ill(Faults { crash, ..Faults::default() });
    let tier = play_tier(&params, 3, &short_tape(), &ReferenceRules::default().tenth(), 9, 1).unwrap();
    assert_eq!(tier.stopped_by, Some(Limit::Crash));
    assert_eq!(Limit::Crash.family(), Family::Fault);
}

#[test]
fn doses_out_of_range_are_named() {
    let field = |faults| Model::new(ill(faults), 0).unwrap_err().field;
    assert_eq!(field(Faults { mute_share: 1.5, ..Faults::default() }), "faults.mute_share");
    let slow_batch = Some(SlowBatch { from: 1, to: 2, factor: 0.5 });
    assert_eq!(field(Faults { slow_batch, ..Faults::default() }), "faults.slow_batch.factor");
}
