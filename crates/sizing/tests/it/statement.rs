//! The worked example of the plan, and what a statement must not hide.
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "the helpers are part of the tests")]

use tapedeck_l10n::LocalizedText;
use tapedeck_sizing::Durations;
use tapedeck_sizing::kv::{TAPE_A_S, TAPE_B_S};
use tapedeck_sizing::statement::{Basis, Firmness, Measured, Promise, state};
use tapedeck_slo::{Capacity, CapacityState};

fn exact(n_star: u32, tape: &str, calls_s: &[f64]) -> Measured {
    let played = Durations::of_calls(tape, calls_s).unwrap();
    Measured { firmness: Firmness::Exact, ..Measured::said(n_star, played) }
}

fn basis(n_star: u32) -> Basis {
    Basis {
        short: exact(n_star, "Tape-A", &TAPE_A_S),
        long: None,
        hard_ceiling: None,
        safety: 0.7,
        instances: 3,
        topology: None,
        round_robin: false,
        promise: Promise::Blocking(0.01),
        own: None,
        demand_per_h: None,
        simulated: false,
    }
}

fn english(texts: &[LocalizedText]) -> String {
    LocalizedText::join(texts, "\n", "\n").en
}

#[test]
fn fifty_calls_an_hour_of_three_minutes_need_seven_lines() {
    let asked = Basis {
        own: Some(Durations::of_mean("the plan's example", 180.0).unwrap()),
        demand_per_h: Some(50.0),
        ..basis(10)
    };
    let statement = state(&asked).unwrap();
    let own = statement.carried.last().unwrap();
    assert_eq!((own.demand_erl, own.lines_needed, own.lines), (Some(2.5), Some(7), 7));
    assert_eq!((own.enough, statement.enough), (Some(true), Some(true)));
    let fewer = state(&Basis { safety: 0.6, ..asked }).unwrap();
    assert_eq!(fewer.enough, Some(false), "six lines block 2.8 %");
}

#[test]
fn the_factor_does_not_lose_a_line_to_rounding() {
    // 0.7 x 90 is 62.999... in floats.
    assert_eq!(state(&basis(90)).unwrap().carried[0].lines, 63);
}

#[test]
fn long_calls_take_the_n_star_of_the_long_tape() {
    let long = exact(24, "Tape-B", &TAPE_B_S);
    let own = Durations::weighted("our calls", vec![(60.0, 80.0), (280.0, 20.0)]).unwrap();
    let with = state(&Basis { long: Some(long), own: Some(own.clone()), ..basis(42) }).unwrap();
    assert_eq!(with.carried.iter().map(|c| c.n_star).collect::<Vec<_>>(), [42, 24, 24]);
    let without = state(&Basis { own: Some(own), ..basis(42) }).unwrap();
    assert_eq!(without.carried.last().unwrap().n_star, 42);
    assert!(
        without.caveats.iter().any(|d| d.en.contains("20 % of the calls of our calls")),
        "{:?}",
        without.caveats
    );
}

#[test]
fn every_doubt_is_said() {
    let mut uncertain = basis(42);
    uncertain.short.firmness = Firmness::AtLeast;
    uncertain.simulated = true;
    uncertain.round_robin = true;
    let caveats = english(&state(&uncertain).unwrap().caveats);
    for word in [
        "lower bound",
        "hard ceiling is unknown",
        "dealt out in turn",
        "arrive independently",
        "long calls",
        "simulated",
    ] {
        assert!(caveats.contains(word), "{word}: {caveats}");
    }
    let waiting = Basis { promise: Promise::ServiceLevel { share: 0.8, within_s: 20.0 }, ..basis(42) };
    let waiting = state(&waiting).unwrap();
    assert!(waiting.caveats.iter().any(|d| d.en.contains("exponential")), "{:?}", waiting.caveats);
    assert!(waiting.sentences[1].en.contains("80 % of calls are taken within 20 s"));
    let ceiling = state(&Basis { hard_ceiling: Some(120), ..basis(42) }).unwrap();
    assert!(ceiling.caveats.iter().any(|d| d.en.contains("91 below")), "{:?}", ceiling.caveats);
}

#[test]
fn what_the_ladder_found_is_carried_over() {
    let ladder = Capacity {
        n_star: Some(36),
        state: CapacityState::Exact,
        published: Some(25),
        safety_factor: 0.7,
        first_fail: Some(39),
        limited_by: Vec::new(),
        point_verdict_tiers: vec![12, 36, 39],
        non_monotonic: Vec::new(),
        undecided: Vec::new(),
        quality_cap: Some(24),
        simulated: false,
    };
    let played = || Durations::of_calls("Tape-A", &TAPE_A_S).unwrap();
    let short = Measured::found(&ladder, played()).unwrap();
    let said = state(&Basis { short, topology: Some("3x0.30".into()), ..basis(36) }).unwrap();
    assert_eq!(said.sentences[0].en, "N* is 36 on Tape-A; instances: 3 (3x0.30).");
    assert_eq!(said.carried[0].lines, 24, "words get worse above 24");
    assert!(said.sentences[1].en.contains("24 lines (the most without an alarm"), "{}", said.sentences[1].en);
    let caveats = english(&said.caveats);
    for words in ["36 streams passed and 39 failed", "the verdict at 36, 39 rests", "worse above 24"] {
        assert!(caveats.contains(words), "{words}: {caveats}");
    }
    for state in [CapacityState::None, CapacityState::Undecided] {
        assert_eq!(Measured::found(&Capacity { state, ..ladder.clone() }, played()), None);
    }
    let censored = Capacity { state: CapacityState::Censored, first_fail: None, ..ladder };
    let lower = Measured::found(&censored, played()).unwrap();
    assert_eq!(lower.firmness, Firmness::AtLeast);
    let said = state(&Basis { long: Some(lower.clone()), ..basis(36) }).unwrap();
    assert_eq!(said.sentences[0].en, "N* is 36 on Tape-A and at least 36 on Tape-A; instances: 3.");
    let said = state(&Basis { short: lower, ..basis(36) }).unwrap();
    assert_eq!(said.sentences[0].en, "N* is at least 36 on Tape-A; instances: 3.");
}

#[test]
fn a_group_split_by_turns_blocks_more() {
    let carried = &state(&basis(42)).unwrap().carried[0];
    assert!(carried.blocking_in_turn.unwrap() > 0.01);
}

#[test]
fn nonsense_is_refused() {
    let words = |basis: Basis| state(&basis).unwrap_err().to_string();
    assert!(words(basis(0)).contains("N* is 0"));
    assert!(
        words(Basis { hard_ceiling: Some(20), ..basis(42) }).contains("hard ceiling (20) is below N* (42)")
    );
    assert!(words(basis(1)).contains("leaves no whole line"));
    for bad in [0.0, -0.1, 1.5, f64::NAN] {
        assert!(words(Basis { safety: bad, ..basis(42) }).contains("safety factor"));
    }
    for bad in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(words(Basis { promise: Promise::Blocking(bad), ..basis(42) }).contains("blocking"));
        let promise = Promise::ServiceLevel { share: bad, within_s: 20.0 };
        assert!(words(Basis { promise, ..basis(42) }).contains("service level"));
    }
    let promise = Promise::ServiceLevel { share: 0.8, within_s: -1.0 };
    assert!(words(Basis { promise, ..basis(42) }).contains("time"));
    for bad in [0.0, -5.0, f64::INFINITY, f64::NAN] {
        assert!(words(Basis { demand_per_h: Some(bad), ..basis(42) }).contains("calls per hour"));
        assert!(Durations::of_mean("x", bad).is_err());
    }
}

#[test]
fn a_histogram_file_is_read_and_its_mistakes_have_line_numbers() {
    let text = "duration_s,calls,note\n30,600,a\n60,200,b\n\n# long ones\n180,100,c\n";
    let calls = Durations::histogram("file", text).unwrap();
    assert!((calls.mean_s - 48_000.0 / 900.0).abs() < 1e-9 && calls.calls == 900.0);
    assert_eq!((calls.p95_s, calls.longest_s), (180.0, 180.0));
    assert!((calls.share_longer(60.0) - 100.0 / 900.0).abs() < 1e-12);
    assert_eq!(Durations::histogram("file", "\u{FEFF}calls;duration_s\r\n2;10\r\n").unwrap().mean_s, 10.0);
    for (text, word) in [
        ("", "duration_s"),
        ("a,b\n1,2\n", "no column `duration_s`"),
        ("duration_s\n1\n", "no column `calls`"),
        ("duration_s,calls\n30,x\n", "line 2"),
        ("duration_s,calls\n30,1\n-1,2\n", "line 3"),
        ("duration_s,calls\n30,-2\n", "line 2"),
        ("duration_s,calls\n30,nan\n", "line 2"),
        ("duration_s,calls\n30\n", "line 2"),
        ("duration_s,calls\n", "no call"),
        ("duration_s,calls\n30,0\n", "no call"),
    ] {
        let words = Durations::histogram("file", text).unwrap_err().to_string();
        assert!(words.contains(word), "{text:?}: {words}");
    }
}
