//! One instance, watched closely.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use tapedeck_engine_model::{
    Counters, Failure, Heard, Model, Output, OutputKind, Params, Refused, SessionModel, StepCost, Vram,
};

const MS: u64 = 1_000_000;

/// Steps of 10 ms, 1 ms a request and 0.1 ms a prompt token, without jitter: times can be reckoned by hand.
fn plain() -> Params {
    let step = StepCost {
        base_ns: 10 * MS,
        per_stream_ns: MS,
        per_prefill_token_ns: MS / 10,
        per_context_token_ns: 0,
    };
    Params { step, jitter: 0.0, ..Params::default() }
}

fn rolling() -> Params {
    Params { session: SessionModel::Rolling, ..plain() }
}

fn speech(total_ms: u32) -> Heard {
    Heard { total_ms, speech_ms: total_ms, digest: u64::from(total_ms) }
}

/// Lets the engine run until nothing more happens by itself; what was said, and when it came to rest.
fn rest(engine: &mut Model) -> Vec<Output> {
    let mut said = Vec::new();
    while let Some(next) = engine.next_event_ns() {
        engine.advance(next, &mut said);
    }
    said
}

/// Plays a whole call of nothing but speech from `start_ns`, in chunks of 100 ms, and ends it.
fn call(engine: &mut Model, id: u64, start_ns: u64, length_ms: u32) -> Vec<Output> {
    let mut said = Vec::new();
    engine.open(start_ns, id).unwrap();
    for total_ms in (100..=length_ms).step_by(100) {
        let now = start_ns + u64::from(total_ms) * MS;
        engine.audio(now, id, speech(total_ms));
        engine.advance(now, &mut said);
    }
    engine.end(start_ns + u64::from(length_ms) * MS, id);
    said.extend(rest(engine));
    said
}

fn final_at(said: &[Output], id: u64) -> Option<u64> {
    said.iter()
        .find(|output| output.session == id && matches!(output.kind, OutputKind::Final { .. }))
        .map(|output| output.at_ns)
}

#[test]
fn a_renewed_engine_keeps_its_age_and_nothing_else() {
    let vram = Vram { leak_bytes_per_hour: 1e9, noise_bytes: 1e8, ..Vram::default() };
    let params = Params { jitter: 0.2, prefix_cache: true, vram, ..plain() };
    let mut used = Model::new(params.clone(), 1).unwrap();
    let mut idle = Model::new(params, 2).unwrap();
    call(&mut used, 0, 0, 7_300);
    call(&mut used, 1, 20_000 * MS, 7_300);
    assert!(used.counters().prompt_tokens > 0);
    let hour_ns = 3_600_000 * MS;
    for engine in [&mut used, &mut idle] {
        engine.advance(hour_ns, &mut Vec::new());
        engine.renew(hour_ns, 7);
    }
    assert_eq!((used.counters().prompt_tokens, used.counters().opened), (0, 0));
    let mut young = Model::new(used.params().clone(), 7).unwrap();
    young.advance(0, &mut Vec::new());
    assert_eq!(used.counters().vram_bytes - young.counters().vram_bytes, 1_000_000_000, "the leak goes on");
    // The same call now meets the same engine, whatever either of them did before.
    let again = call(&mut used, 0, hour_ns + 1_000 * MS, 7_300);
    assert!(again.len() > 3);
    assert_eq!(again, call(&mut idle, 0, hour_ns + 1_000 * MS, 7_300));
    assert_eq!(used.counters(), idle.counters());
}

#[test]
fn a_window_takes_what_the_cost_law_says() {
    let mut engine = Model::new(plain(), 0).unwrap();
    let said = call(&mut engine, 1, 0, 2_000);
    // 35 prompt tokens in one step, which also gives the first of 14 tokens; 15 ms of intake before it.
    let first_step = 15 * MS + 10 * MS + MS + 35 * MS / 10;
    let token = 11 * MS;
    let at = |i: usize| said[i].at_ns - 2_000 * MS;
    assert_eq!(said.len(), 3);
    assert!(matches!(said[0].kind, OutputKind::FirstText { window: 0, covered_ms: 0, text_tokens: 1 }));
    assert_eq!(at(0), first_step + 4 * token, "four tokens of preface come first");
    let OutputKind::Window { covered_ms: 2_000, text_tokens: 10, new_tokens: 10, .. } = said[1].kind else {
        panic!()
    };
    assert_eq!(at(1), first_step + 13 * token);
    assert!(matches!(said[2].kind, OutputKind::Final { covered_ms: 2_000, text_tokens: 10 }));
    assert_eq!(at(2), at(1));
    let counters = engine.counters();
    assert_eq!((counters.prompt_tokens, counters.generation_tokens), (35, 14));
    assert_eq!((counters.ttft.count, counters.ttft.sum_ns), (1, first_step));
    assert_eq!(counters.busy_ns, first_step - 15 * MS + 13 * token);
}

#[test]
fn two_requests_share_their_steps() {
    let mut engine = Model::new(plain(), 0).unwrap();
    for id in [1, 2] {
        engine.open(0, id).unwrap();
        engine.audio(2_000 * MS, id, speech(2_000));
        engine.end(2_000 * MS, id);
    }
    let said = rest(&mut engine);
    let together = 2_000 * MS + 15 * MS + (10 * MS + 2 * MS + 7 * MS) + 13 * 12 * MS;
    assert_eq!((final_at(&said, 1), final_at(&said, 2)), (Some(together), Some(together)));
    assert_eq!(engine.counters().steps, 14);
}

#[test]
fn long_prompts_are_cut_to_the_budget_and_decodes_go_on_meanwhile() {
    let params = Params { max_batched_tokens: 16, max_num_seqs: 16, ..plain() };
    let mut engine = Model::new(params, 0).unwrap();
    call(&mut engine, 1, 0, 2_000);
    // 35 tokens of prompt in pieces of 16, 16 and 3, the last of which gives the first token.
    assert_eq!(engine.counters().steps, 3 + 13);
}

#[test]
fn silence_moves_the_position_and_says_nothing() {
    let mut engine = Model::new(Params { preface_tokens: 0, ..plain() }, 0).unwrap();
    engine.open(0, 1).unwrap();
    engine.audio(4_000 * MS, 1, Heard { total_ms: 4_000, speech_ms: 0, digest: 0 });
    engine.end(4_000 * MS, 1);
    let kinds: Vec<_> = rest(&mut engine).into_iter().map(|output| output.kind).collect();
    assert!(matches!(
        kinds[..],
        [
            OutputKind::Window { window: 0, covered_ms: 2_000, new_tokens: 0, .. },
            OutputKind::Window { window: 1, covered_ms: 4_000, new_tokens: 0, .. },
            OutputKind::Final { covered_ms: 4_000, text_tokens: 0 },
        ]
    ));
    assert_eq!(engine.counters().generation_tokens, 2, "one token a window even so");
}

#[test]
fn the_final_is_immediate_when_nothing_is_owed() {
    let mut engine = Model::new(plain(), 0).unwrap();
    engine.open(5, 1).unwrap();
    engine.end(7, 1);
    assert_eq!(engine.next_event_ns(), Some(7));
    let said = rest(&mut engine);
    assert_eq!(
        said,
        [Output { at_ns: 7, session: 1, kind: OutputKind::Final { covered_ms: 0, text_tokens: 0 } }]
    );
    engine.open(8, 1).unwrap();
}

#[test]
fn a_resident_session_keeps_its_blocks_a_rolling_one_does_not() {
    let between_windows = |params: Params| -> Counters {
        let mut engine = Model::new(params, 0).unwrap();
        engine.open(0, 1).unwrap();
        engine.audio(2_000 * MS, 1, speech(2_000));
        rest(&mut engine);
        engine.counters()
    };
    let resident = between_windows(plain());
    // 35 of prompt and 13 of the 14 generated: the last one is never read again.
    assert_eq!((resident.kv_blocks_used, resident.waiting_deferred, resident.finished.stop), (3, 1, 0));
    let rolling = between_windows(rolling());
    assert_eq!((rolling.kv_blocks_used, rolling.waiting_deferred, rolling.finished.stop), (0, 0, 1));
}

#[test]
fn the_latest_admission_gives_way_and_everybody_finishes() {
    // Two prompts of 30 tokens fit into five blocks of 16; two windows of 44 tokens do not.
    let mut engine = Model::new(Params { kv_blocks: 5, template_tokens: 5, ..plain() }, 0).unwrap();
    for id in [1, 2] {
        engine.open(0, id).unwrap();
        engine.audio(2_000 * MS, id, speech(2_000));
        engine.end(2_000 * MS, id);
    }
    let said = rest(&mut engine);
    let counters = engine.counters();
    assert_eq!((counters.preemptions, counters.kv_blocks_used), (1, 0));
    assert!(final_at(&said, 1).unwrap() < final_at(&said, 2).unwrap(), "the second lost its blocks");
    // What was generated before is not generated again, and its prompt is computed twice but asked once.
    assert_eq!((counters.generation_tokens, counters.prompt_tokens), (28, 60));
    let first_texts = said.iter().filter(|output| matches!(output.kind, OutputKind::FirstText { .. }));
    assert_eq!(first_texts.count(), 2);
}

#[test]
fn a_session_that_outgrows_the_pool_fails_and_makes_room() {
    let mut engine = Model::new(Params { kv_blocks: 4, max_num_seqs: 1, ..plain() }, 0).unwrap();
    engine.open(0, 1).unwrap();
    engine.open(0, 2).unwrap();
    engine.audio(2_000 * MS, 1, speech(2_000));
    engine.audio(2_100 * MS, 2, speech(100));
    engine.end(2_100 * MS, 2);
    engine.audio(4_000 * MS, 1, speech(4_000));
    let said = rest(&mut engine);
    let failed = said.iter().find(|output| matches!(output.kind, OutputKind::Failed(_))).unwrap();
    assert_eq!(failed.session, 1);
    assert_eq!(failed.kind, OutputKind::Failed(Failure::TooLong { tokens: 48 + 35 + 14, limit: 64 }));
    assert!(final_at(&said, 2) > Some(failed.at_ns), "the second had waited for the only seat");
}

#[test]
fn a_full_house_refuses_until_somebody_leaves() {
    let mut engine = Model::new(Params { max_sessions: Some(1), ..plain() }, 0).unwrap();
    engine.open(0, 1).unwrap();
    assert_eq!(engine.open(1, 1), Err(Refused::Duplicate(1)));
    assert_eq!(engine.open(1, 2), Err(Refused::Full { open: 1, limit: 1 }));
    engine.drop_session(2, 1);
    engine.open(2, 2).unwrap();
    assert_eq!((engine.counters().refused, engine.counters().open_sessions), (1, 1));
}

#[test]
fn a_client_that_leaves_takes_its_work_along() {
    let mut engine = Model::new(rolling(), 0).unwrap();
    let mut said = Vec::new();
    engine.open(0, 1).unwrap();
    engine.audio(2_000 * MS, 1, speech(2_000));
    engine.advance(2_050 * MS, &mut said);
    assert_eq!(engine.counters().running, 1);
    engine.drop_session(2_050 * MS, 1);
    assert!(rest(&mut engine).is_empty());
    let counters = engine.counters();
    assert_eq!((counters.kv_blocks_used, counters.running, counters.finished.abort), (0, 0, 1));
    engine.audio(3_000 * MS, 1, speech(4_000));
    engine.end(3_000 * MS, 1);
    assert_eq!(engine.next_event_ns(), None, "nobody answers a session that is gone");
}

#[test]
fn the_same_audio_is_computed_once_with_a_prefix_cache() {
    let play = |prefix_cache| {
        let mut engine = Model::new(Params { prefix_cache, ..rolling() }, 0).unwrap();
        let first = call(&mut engine, 1, 0, 4_000);
        let second = call(&mut engine, 2, 10_000 * MS, 4_000);
        let lag = |said: &[Output], id, end: u64| final_at(said, id).unwrap() - end;
        (lag(&first, 1, 4_000 * MS), lag(&second, 2, 14_000 * MS), engine.counters())
    };
    let (first, second, counters) = play(true);
    assert!(second < first);
    // Prompts of 35 and of 10 + 50 + 5 tokens, twice; the second time all whole blocks but the last token's are there.
    assert_eq!((counters.prefix_queries, counters.prefix_hits), (200, 32 + 64));
    let (first, second, counters) = play(false);
    assert_eq!(first, second);
    assert_eq!((counters.prefix_queries, counters.prefix_hits), (0, 0));
}

#[test]
fn the_same_audio_is_prepared_once_with_a_multimodal_cache() {
    let mut engine = Model::new(Params { mm_cache: true, ..rolling() }, 0).unwrap();
    let first = call(&mut engine, 1, 0, 2_000);
    let second = call(&mut engine, 2, 10_000 * MS, 2_000);
    assert_eq!(final_at(&first, 1).unwrap(), final_at(&second, 2).unwrap() - 10_000 * MS + 15 * MS);
    assert_eq!((engine.counters().mm_queries, engine.counters().mm_hits), (2, 1));
}

#[test]
fn a_session_that_fell_behind_catches_up_faster_when_windows_are_joined() {
    let windows = |coalesce| {
        let mut engine = Model::new(Params { coalesce, ..plain() }, 0).unwrap();
        engine.open(0, 1).unwrap();
        engine.audio(8_000 * MS, 1, speech(8_000));
        engine.end(8_000 * MS, 1);
        let said = rest(&mut engine);
        let windows: Vec<_> = said
            .iter()
            .filter_map(|output| match output.kind {
                OutputKind::Window { window, covered_ms, .. } => Some((window, covered_ms)),
                _ => None,
            })
            .collect();
        (windows, said.last().unwrap().at_ns)
    };
    let (one_by_one, slow) = windows(false);
    assert_eq!(one_by_one, [(0, 2_000), (1, 4_000), (2, 6_000), (3, 8_000)]);
    let (joined, quick) = windows(true);
    assert_eq!(joined, [(0, 2_000), (3, 8_000)], "three had gathered behind the first");
    assert!(quick < slow);
}

#[test]
fn words_suffer_when_the_engine_is_late() {
    let worst = |sessions: u64| {
        let mut engine = Model::new(plain(), 0).unwrap();
        for id in 0..sessions {
            engine.open(0, id).unwrap();
            engine.audio(2_000 * MS, id, speech(2_000));
        }
        let errors = rest(&mut engine).into_iter().filter_map(|output| match output.kind {
            OutputKind::Window { word_error, .. } => Some(word_error),
            _ => None,
        });
        errors.fold(0.0, f64::max)
    };
    assert!((worst(1) - 0.03).abs() < 1e-12, "nothing is late with one session");
    assert!(worst(200) > 0.05, "two hundred at once are seconds late");
}

#[test]
fn what_was_handed_in_for_an_instant_is_there_when_that_instant_begins() {
    // A window that arrives at the very end of a step belongs to the next one.
    let mut engine = Model::new(Params { intake_ns: 0, ..plain() }, 0).unwrap();
    let mut said = Vec::new();
    engine.open(0, 1).unwrap();
    engine.open(0, 2).unwrap();
    engine.audio(2_000 * MS, 1, speech(2_000));
    engine.advance(2_000 * MS, &mut said);
    let end = engine.next_event_ns().unwrap();
    engine.audio(end, 2, speech(2_000));
    engine.advance(end, &mut said);
    assert_eq!(engine.counters().running, 2);
}

#[test]
fn the_seed_moves_nothing_but_the_jitter() {
    let at = |seed, jitter| {
        let mut engine = Model::new(Params { jitter, ..plain() }, seed).unwrap();
        call(&mut engine, 1, 0, 6_000).iter().map(|output| output.at_ns).collect::<Vec<_>>()
    };
    assert_eq!(at(1, 0.0), at(2, 0.0));
    assert_eq!(at(1, 0.05), at(1, 0.05));
    assert_ne!(at(1, 0.05), at(2, 0.05));
}

#[test]
fn parameters_that_cannot_work_are_named() {
    let field = |params: Params| Model::new(params, 0).unwrap_err().field;
    assert_eq!(field(Params { kv_blocks: 0, ..plain() }), "kv_blocks");
    assert_eq!(field(Params { max_batched_tokens: 8, ..plain() }), "max_batched_tokens");
    assert_eq!(field(Params { jitter: f64::NAN, ..plain() }), "jitter");
    let error = serde_json::from_str::<Params>(r#"{"windows_ms": 5}"#).unwrap_err().to_string();
    assert!(error.contains("windows_ms") && error.contains("window_ms"), "{error}");
}
