//! Limits in one line, held against tiers made up call by call.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use crate::common::{call, end_with};
use tapedeck_record::{CallRecord, ExitCode, Outcome, StepId};
use tapedeck_slo::{
    Assertion, AssertionResult, LimitVerdict, Limits, PercentileOrInfinite, StepBounds, TierEvidence,
    TierReport, answered, judge, meant_to_fail,
};

const BOUNDS: StepBounds =
    StepBounds { ramp_from_s: 0.0, window_from_s: 10.0, window_to_s: 600.0, drain_to_s: 640.0 };

fn report(calls: &[CallRecord]) -> TierReport {
    judge(&TierEvidence::new(3, "Tape-A", calls, BOUNDS), &Limits::default())
}

fn check(assertion: &str, calls: &[CallRecord]) -> Vec<AssertionResult> {
    assertion.parse::<Assertion>().unwrap().check("N003", &report(calls), calls)
}

/// A hundred calls whose finals take 0.01, 0.02 ... 1.00 s, spread over two instances.
fn hundred() -> Vec<CallRecord> {
    let one = |k: u32| CallRecord {
        final_s: Some(f64::from(k + 1) / 100.0),
        instance: Some(if k < 90 { "inst1" } else { "inst2" }.into()),
        ..call(k % 3, k)
    };
    (0..100).map(one).collect()
}

#[test]
fn a_percentile_is_the_one_of_the_order_statistics_with_n_and_interval() {
    let found = check("final_s:p95<=2", &hundred());
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((only.verdict, only.value), (LimitVerdict::Pass, Some(PercentileOrInfinite::At(0.95))));
    assert_eq!((only.n, only.calls, only.errors), (100, 100, 0));
    assert!(only.low.is_some_and(|low| (0.88..0.95).contains(&low)), "{only:?}");
    assert!(only.sentence().contains("N003 final_s:p95 <= 2: 0.950"), "{}", only.sentence());
    assert!(only.sentence().ends_with("n = 100"), "{}", only.sentence());
}

#[test]
fn the_estimate_decides_where_the_interval_straddles() {
    assert_eq!(check("final_s:p95<=0.96", &hundred())[0].verdict, LimitVerdict::PointPass);
    assert_eq!(check("final_s:p95<=0.94", &hundred())[0].verdict, LimitVerdict::PointFail);
    assert_eq!(check("final_s:p95<=0.5", &hundred())[0].verdict, LimitVerdict::Fail);
    assert_eq!(check("final_s:p50>=0.3", &hundred())[0].verdict, LimitVerdict::Pass);
    assert_eq!(check("final_s:p50>=0.49", &hundred())[0].verdict, LimitVerdict::PointPass);
    // At the bound itself, <= holds and < does not.
    assert!(!check("final_s:max<=1", &hundred())[0].verdict.failed());
    assert!(check("final_s:max<1", &hundred())[0].verdict.failed());
}

#[test]
fn every_part_has_to_keep_it() {
    let found = check("final_s:max<=0.95 by instance", &hundred());
    let verdicts: Vec<_> = found.iter().map(|f| (f.part.as_deref().unwrap(), f.verdict, f.n)).collect();
    assert_eq!(verdicts, [("inst1", LimitVerdict::Pass, 90), ("inst2", LimitVerdict::Fail, 10)]);
    assert_eq!(check("final_s:max<=2 by bucket", &hundred())[0].part.as_deref(), Some("30 s"));
    assert_eq!(check("final_s:max<=2 by stream", &hundred()).len(), 3);
    assert_eq!(check("final_s:max<=2 by tape", &hundred())[0].part.as_deref(), Some("Tape-A"));
}

#[test]
fn an_errored_call_never_helps() {
    let mut calls = hundred();
    for call in calls.iter_mut().take(6) {
        end_with(call, Outcome::ClosedEarly);
    }
    let found = &check("final_s:p95<=2", &calls)[0];
    assert_eq!((found.value, found.errors), (Some(PercentileOrInfinite::Never), 6));
    assert!(found.verdict.failed() && found.sentence().contains("6 of 100 calls errored"), "{found:?}");
    // On the other side, too: the smallest pace of all is that of a call that failed.
    assert!(check("pace:min>=0.5", &calls)[0].verdict.failed());
    assert!(check("final_s:mean<=2", &calls)[0].verdict.failed());
    let shares = ["errors<=6", "error_share<=0.06", "clean_share>=0.94", "calls>=100"];
    assert!(shares.iter().all(|d| check(d, &calls)[0].verdict == LimitVerdict::Pass));
    assert!(check("errors<=5", &calls)[0].verdict.failed());
}

#[test]
fn what_is_not_known_is_never_a_pass() {
    let silent: Vec<CallRecord> =
        hundred().into_iter().map(|c| CallRecord { rtf: None, instance: None, ..c }).collect();
    for assertion in [
        "rtf:p95<=0.5",
        "rtf:p95>=0",
        "final_s:p95<=9 by instance",
        "kv_pool_p95<=1",
        "kv_pool_p95<=1 by instance",
        "drain_s<=100",
        "wer<=1",
        "gpu_util_max<=1",
    ] {
        let found = check(assertion, &silent);
        assert!(found.iter().all(|f| f.verdict == LimitVerdict::Unknown && f.value.is_none()), "{found:?}");
        assert!(found[0].sentence().contains("not known"), "{}", found[0].sentence());
    }
    assert_eq!(check("final_s:p95<=2", &[])[0].verdict, LimitVerdict::Unknown);
    // Calls outside the window and calls that take no part are not judged.
    let outside: Vec<_> = hundred().into_iter().map(|c| CallRecord { counted: false, ..c }).collect();
    assert_eq!(check("final_s:p95<=2", &outside)[0].calls, 0);
}

#[test]
fn the_exit_code_follows_the_worst() {
    let pass = check("final_s:p95<=2", &hundred());
    let fail = check("final_s:p95<=0.1", &hundred());
    let unknown = check("drain_s<=2", &hundred());
    let both = [fail.clone(), unknown.clone()].concat();
    assert_eq!(answered(ExitCode::Ok, &pass), ExitCode::Ok);
    assert_eq!(answered(ExitCode::Ok, &fail), ExitCode::No);
    assert_eq!(answered(ExitCode::Ok, &unknown), ExitCode::Undecidable);
    assert_eq!(answered(ExitCode::Ok, &both), ExitCode::No);
    assert_eq!(answered(ExitCode::Undecidable, &fail), ExitCode::No);
    assert_eq!(answered(ExitCode::No, &pass), ExitCode::No);
    assert_eq!(answered(ExitCode::Interrupted, &fail), ExitCode::Interrupted);
    let nothing = AssertionResult::nothing_judged(&"errors<=0".parse().unwrap());
    assert_eq!(answered(ExitCode::Ok, &[nothing]), ExitCode::Undecidable);
}

#[test]
fn only_tiers_above_n_star_were_meant_to_fail() {
    let above = |step: &str, streams, n_star| meant_to_fail(&StepId::parse(step), streams, n_star);
    assert!(above("N048", 48, Some(45)) && above("pool-N048-r2", 48, Some(45)));
    assert!(!above("N045", 45, Some(45)) && !above("N048", 48, None));
    assert!(!above("tc07-2x0.46-N048", 48, Some(45)) && !above("Nobody", 48, Some(45)));
}

#[test]
fn a_refusal_is_no_error_where_callers_come_when_they_come() {
    let mut calls = hundred();
    calls.iter_mut().take(10).for_each(|c| end_with(c, Outcome::RefusedBusy));
    let assertion: Assertion = "errors<=0".parse().unwrap();
    let open = TierReport { labels: vec!["open".into()], ..report(&calls) };
    assert!(assertion.check("rate-300", &report(&calls), &calls)[0].verdict.failed());
    let found = &assertion.check("rate-300", &open, &calls)[0];
    assert_eq!((found.verdict, found.n), (LimitVerdict::Pass, 90));
}

#[test]
fn of_many_findings_the_broken_and_the_nearest_are_told() {
    let calls: Vec<CallRecord> =
        (0..40).map(|k| CallRecord { final_s: Some(f64::from(k + 1) / 100.0), ..call(k, 0) }).collect();
    let told = |limit: &str| {
        let assertion: Assertion = limit.parse().unwrap();
        let found = assertion.check("N040", &report(&calls), &calls);
        tapedeck_slo::assertion::told(&[assertion], &found)
    };
    let kept = told("final_s:max<=0.5 by stream");
    assert_eq!(kept.len(), 1);
    assert!(kept[0].contains("[39]: 0.400") && kept[0].ends_with("(the nearest of 40)"), "{kept:?}");
    let broken = told("final_s:max<=0.38 by stream");
    assert_eq!(broken.len(), 3);
    assert!(broken[0].starts_with("fail") && broken[2].contains("[37]: 0.380"), "{broken:?}");
    let low = told("final_s:min>=0.01 by stream");
    assert!(low[0].contains("[0]: 0.010"), "{low:?}");
    assert_eq!(told("final_s:max<=0.1 by stream").len(), 12 + 1 + 1);
}

#[test]
fn a_finding_survives_json() {
    for found in [check("final_s:p95<=2 by instance", &hundred()), check("drain_s<=2", &hundred())] {
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Vec<AssertionResult>>(&json).unwrap(), found);
    }
}
