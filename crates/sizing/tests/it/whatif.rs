//! Ladders whose truth is known: how well they are fitted, and what is predicted from them.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use tapedeck_engine_model::reference_capacity::{
    ReferenceRules, TapeCall, find_reference_capacity, long_tape, play_tier, short_tape,
};
use tapedeck_engine_model::{Faults, Params, SessionModel, SlowBatch, StepCost};
use tapedeck_l10n::{Localize, LocalizedText};
use tapedeck_sizing::whatif::{
    Fit, FitNote, Grade, Known, Ladder, PREDICTED, Prediction, Scenario, TierSeen, fit, predict,
};
use tapedeck_sizing::{Card, Topology, whatif};

const TIERS: [u32; 9] = [3, 6, 12, 18, 24, 30, 36, 48, 60];

/// The ladder that an engine shows. What is fitted is taken out of what is known.
fn ladder(truth: &Params, tape: Vec<TapeCall>, rules: &ReferenceRules, tiers: &[u32]) -> Ladder {
    let seen = tiers.iter().map(|&n| TierSeen::played(&play_tier(truth, 3, &tape, rules, n, 11).unwrap()));
    let n_star = tiers
        .iter()
        .copied()
        .take_while(|&n| play_tier(truth, 3, &tape, rules, n, 11).unwrap().stopped_by.is_none());
    let mut params = truth.clone();
    params.step = StepCost::default();
    params.intake_ns = Params::default().intake_ns;
    params.faults = Faults::default();
    #[expect(clippy::cast_precision_loss, reason = "a pool")]
    let pool = truth.kv_tokens() as f64;
    Ladder {
        tiers: seen.collect(),
        n_star: n_star.last(),
        tape,
        rules: rules.clone(),
        instances: 3,
        known: Known { params, pool_tokens: Some(pool) },
        age_slope_ms_per_min: None,
    }
}

fn short(truth: &Params) -> Ladder {
    ladder(truth, short_tape(), &ReferenceRules::default().tenth(), &TIERS)
}

fn with_step(base_us: u64, stream_us: u64, token_us: u64) -> Params {
    let step = StepCost {
        base_ns: base_us * 1_000,
        per_stream_ns: stream_us * 1_000,
        per_prefill_token_ns: token_us * 1_000,
        per_context_token_ns: 400,
    };
    Params { step, ..Params::default() }
}

fn scenario(instances: u32, pool_tokens: f64) -> Scenario {
    Scenario {
        name: format!("{instances} instances").into(),
        instances,
        pool_tokens: Some(pool_tokens),
        step_factor: 1.0,
        tape: None,
        window_ms: None,
        session: None,
    }
}

/// Holds a prediction against the truth of the same circumstances.
fn holds(prediction: &Prediction, truth: &Params, tape: &[TapeCall], rules: &ReferenceRules) {
    let rules = ReferenceRules { max_streams: 150, ..rules.clone() };
    let truth = find_reference_capacity(truth, prediction.instances, tape, &rules, 5).unwrap();
    let step = prediction.instances;
    assert!(
        prediction.low <= truth.capacity + step && truth.capacity <= prediction.high + step,
        "{} but the truth is {}",
        prediction.text(),
        truth.capacity
    );
    assert_eq!(prediction.kind, PREDICTED);
    assert!(prediction.low <= prediction.n_star && prediction.n_star <= prediction.high);
}

#[test]
fn ladders_of_the_same_law_are_fitted_well_and_predict_other_topologies() {
    for truth in [Params::demo(), with_step(40_000, 7_000, 300), with_step(8_000, 5_000, 100)] {
        let ladder = short(&truth);
        let fitted = fit(&ladder, 1).unwrap();
        assert_eq!(fitted.grade, Grade::Good, "{:?}", fitted.notes);
        assert!(fitted.error < 0.08 && fitted.error_left_out < 0.12, "{:?}", fitted.notes);
        assert_eq!(fitted.left_out.len(), fitted.tiers);
        // What a step costs is known well; what shares its effect with something else is not, and says so.
        let base = fitted.costs.base_ms * 1e6 / truth.step.base_ns as f64;
        assert!((0.75..1.33).contains(&base), "base is off by {base}: {:?}", fitted.costs);
        for instances in [1, 2, 3, 6] {
            let scenario = scenario(instances, ladder.known.pool_tokens.unwrap());
            holds(&predict(&ladder, &fitted, &scenario).unwrap(), &truth, &ladder.tape, &ladder.rules);
        }
    }
}

#[test]
fn other_windows_and_other_tapes_are_predicted() {
    let truth = with_step(40_000, 7_000, 300);
    let ladder = short(&truth);
    let fitted = fit(&ladder, 1).unwrap();
    let wider = Scenario { window_ms: Some(4_000), ..scenario(3, ladder.known.pool_tokens.unwrap()) };
    let prediction = predict(&ladder, &fitted, &wider).unwrap();
    holds(&prediction, &Params { window_ms: 4_000, ..truth.clone() }, &ladder.tape, &ladder.rules);
    let longer: Vec<TapeCall> = short_tape().into_iter().rev().take(4).collect();
    let other = Scenario { tape: Some(longer.clone()), ..scenario(3, ladder.known.pool_tokens.unwrap()) };
    holds(&predict(&ladder, &fitted, &other).unwrap(), &truth, &longer, &ladder.rules);
    let slower = Scenario { step_factor: 2.0, ..scenario(3, ladder.known.pool_tokens.unwrap()) };
    let slow = predict(&ladder, &fitted, &slower).unwrap();
    holds(&slow, &with_step(80_000, 14_000, 600), &ladder.tape, &ladder.rules);
    assert!(slow.n_star < predict(&ladder, &fitted, &Scenario::as_measured(&ladder)).unwrap().n_star);
}

#[test]
fn a_smaller_pool_is_predicted_to_stop_it() {
    let truth = Params { kv_blocks: 900, ..with_step(8_000, 500, 30) };
    let ladder = short(&truth);
    let fitted = fit(&ladder, 1).unwrap();
    let smaller = scenario(3, 16.0 * 180.0);
    let prediction = predict(&ladder, &fitted, &smaller).unwrap();
    assert_eq!(
        prediction.limited_by.map(|limit| limit.family()),
        Some(tapedeck_engine_model::reference_capacity::Family::Kv)
    );
    holds(&prediction, &Params { kv_blocks: 180, ..truth }, &ladder.tape, &ladder.rules);
}

#[test]
fn an_unknown_pool_is_fitted_to_the_use_of_it() {
    let truth = Params { kv_blocks: 280, ..with_step(8_000, 500, 30) };
    let mut ladder = short(&truth);
    ladder.known.pool_tokens = None;
    let fitted = fit(&ladder, 1).unwrap();
    assert!(fitted.notes.contains(&FitNote::PoolFitted));
    let prediction = predict(&ladder, &fitted, &Scenario::as_measured(&ladder)).unwrap();
    holds(&prediction, &truth, &ladder.tape, &ladder.rules);
}

/// A lag that grows with the age of a call needs calls that grow old: the long tape, a few tiers of it.
fn aged(lag_ms: u32) -> (Ladder, Fit) {
    let faults = Faults { age_lag_ms_per_minute: lag_ms, ..Faults::default() };
    let truth = Params { faults, ..Params::demo() };
    let rules = ReferenceRules { warm_up_ms: 30_000, loops_few: 1, ..ReferenceRules::default() };
    let ladder = ladder(&truth, long_tape(), &rules, &[3, 12, 21, 30, 36]);
    let fitted = fit(&ladder, 1).unwrap();
    (ladder, fitted)
}

#[test]
fn a_law_that_grows_with_age_is_reported_and_not_hidden() {
    let (ladder, fitted) = aged(600);
    assert_eq!(fitted.grade, Grade::Poor, "{:?}", fitted.notes);
    let words = LocalizedText::list(&fitted.notes).en;
    assert!(words.contains("do not use the predictions") && words.contains("final p95"), "{words}");
    let found = fitted.alternative.as_ref().expect("the law that was used is found").age_lag_ms_per_min;
    assert!((450.0..750.0).contains(&found), "{found}");
    let prediction = predict(&ladder, &fitted, &Scenario::as_measured(&ladder)).unwrap();
    assert!(prediction.text().en.contains("do not use it"));
}

#[test]
fn batches_that_stumble_are_a_misfit_too() {
    let slow_batch = Some(SlowBatch { from: 5, to: 8, factor: 2.5 });
    let fitted =
        fit(&short(&Params { faults: Faults { slow_batch, ..Faults::default() }, ..Params::demo() }), 1)
            .unwrap();
    assert_ne!(fitted.grade, Grade::Good, "{:?}", fitted.notes);
}

#[test]
fn a_session_model_that_is_wrong_shows() {
    let truth =
        Params { session: SessionModel::Rolling, template_tokens: 30, ..with_step(12_000, 1_500, 60) };
    let rules = ReferenceRules { warm_up_ms: 30_000, loops_few: 1, ..ReferenceRules::default() };
    let mut ladder = ladder(&truth, long_tape(), &rules, &[3, 12, 21, 30, 36]);
    ladder.known.params.session = SessionModel::Resident;
    let fitted = fit(&ladder, 1).unwrap();
    assert_ne!(fitted.grade, Grade::Good, "{:?}", fitted.notes);
}

#[test]
fn the_same_ladder_and_seed_give_the_same_answer() {
    let ladder = short(&Params::demo());
    let (one, two) = (fit(&ladder, 7).unwrap(), fit(&ladder, 7).unwrap());
    assert_eq!(one, two);
    let ask = scenario(2, ladder.known.pool_tokens.unwrap());
    assert_eq!(predict(&ladder, &one, &ask).unwrap(), predict(&ladder, &two, &ask).unwrap());
}

#[test]
fn ladders_that_say_too_little_are_refused() {
    let good = short(&Params::demo());
    let refused = |change: &dyn Fn(&mut Ladder)| {
        let mut ladder = good.clone();
        change(&mut ladder);
        fit(&ladder, 1).unwrap_err().to_string()
    };
    assert!(refused(&|l| l.tiers.truncate(3)).contains("at least 4"));
    assert!(refused(&|l| l.tiers.iter_mut().for_each(|t| t.broken = true)).contains("0 tiers"));
    assert!(refused(&|l| l.tape.clear()).contains("no tape"));
    assert!(refused(&|l| l.instances = 0).contains("instances"));
    assert!(refused(&|l| l.known.pool_tokens = Some(-1.0)).contains("KV pool"));
    assert!(refused(&|l| l.tiers[0].figures[0] = Some(f64::NAN)).contains("figure"));
    assert!(refused(&|l| l.tiers[0].figures[0] = Some(0.0)).contains("figure"));
    assert!(refused(&|l| l.tiers[0].kv_p95 = Some(1.5)).contains("KV pool"));
    assert!(refused(&|l| l.known.params.block_tokens = 0).contains("block_tokens"));
    let fitted = fit(&good, 1).unwrap();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(predict(&good, &fitted, &Scenario { step_factor: bad, ..scenario(3, 1e5) }).is_err());
        assert!(predict(&good, &fitted, &scenario(3, bad)).is_err());
    }
    assert!(predict(&good, &fitted, &scenario(0, 1e5)).is_err());
}

#[test]
fn a_pool_changes_by_the_difference_of_the_shares() {
    let card = Card::a40_qwen3_asr_0_6b();
    let (old, new): (Topology, Topology) = ("3x0.30".parse().unwrap(), "1x0.92".parse().unwrap());
    let tokens = whatif::pool_tokens(Some((90_000.0, old)), new, &card, 114_688).unwrap();
    assert!((tokens - (90_000.0 + 0.62 * 48e9 / 114_688.0)).abs() < 1e-6);
    let theory = whatif::pool_tokens(None, new, &card, 114_688).unwrap();
    assert!((theory - 40.36e9 / 114_688.0).abs() < 1e-6);
    let crowded: Topology = "20x0.05".parse().unwrap();
    assert!(whatif::pool_tokens(None, crowded, &card, 114_688).unwrap_err().to_string().contains("no room"));
}
