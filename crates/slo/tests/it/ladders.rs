//! From tiers to N*, refinement, the end of a ladder, and its lines.

use crate::common::{Tier, words};
use proptest::prelude::*;
use tapedeck_l10n::Localize;
use tapedeck_record::GpuReading;
use tapedeck_slo::{
    CapacityState, GpuReport, LADDER_COLUMNS, LadderStop, Limit, LimitResult, LimitVerdict, Limits,
    QualityReport, RepeatRules, TierReport, Verdict, capacity, judge, ladder_row, ladder_should_stop,
    next_refinement, repeatability, spread_between,
};

/// A judged tier whose verdict is then set by hand.
fn tier(streams: u32, verdict: Verdict) -> TierReport {
    let made = Tier::closed(1, 1, 1);
    let mut rules = Limits { bootstrap_resamples: 10, ..Limits::default() };
    rules.stationarity.resamples = 10;
    let mut report = judge(&made.evidence(), &rules);
    report.streams = streams;
    report.verdict = verdict;
    report.point_only = false;
    report.reasons.clear();
    if verdict == Verdict::Fail { breaks(report, Limit::Ttft) } else { report }
}

fn breaks(mut report: TierReport, limit: Limit) -> TierReport {
    for result in &mut report.limits {
        if result.limit == limit {
            result.verdict = LimitVerdict::Fail;
        }
    }
    report
}

fn ladder(tiers: &[(u32, Verdict)]) -> Vec<TierReport> {
    tiers.iter().map(|&(n, v)| tier(n, v)).collect()
}

use Verdict::{Fail, Invalid, Pass, Suspect, Unknown, Unstable};

fn display(tiers: &[(u32, Verdict)]) -> (String, Option<u32>) {
    let c = capacity(&ladder(tiers), &Limits::default());
    (c.display(), c.published)
}

#[test]
fn every_state_of_n_star() {
    assert_eq!(display(&[(3, Pass), (6, Pass), (12, Fail), (18, Fail)]), ("6".into(), Some(4)));
    assert_eq!(display(&[(3, Fail), (6, Fail)]), ("none".into(), None));
    assert_eq!(display(&[(3, Pass), (6, Pass)]), (">= 6, censored".into(), Some(4)));
    for verdict in [Invalid, Suspect, Unstable, Unknown] {
        let c = capacity(&ladder(&[(3, Pass), (6, verdict), (12, Fail)]), &Limits::default());
        assert_eq!((c.state, c.display().as_str()), (CapacityState::AtLeastUnproven, ">= 3, unproven above"));
        assert_eq!(c.undecided, [(6, verdict)]);
        assert!(c.text().en.contains(&format!("6 is {}", verdict.name())), "{}", c.text().en);
        // At the top of a ladder too, and at its bottom nothing is known from below.
        assert_eq!(display(&[(3, Pass), (6, verdict)]).0, ">= 3, unproven above");
        assert_eq!(display(&[(3, verdict), (6, Fail)]), ("undecided".into(), None));
        assert_eq!(display(&[(3, verdict)]), ("undecided".into(), None));
    }
    assert_eq!(display(&[]), ("undecided".into(), None));
}

#[test]
fn an_undecided_tier_below_a_pass_does_not_matter() {
    assert_eq!(display(&[(3, Pass), (6, Unstable), (12, Pass), (18, Fail)]), ("12".into(), Some(8)));
    assert_eq!(display(&[(3, Pass), (6, Fail), (12, Invalid)]), ("3".into(), Some(2)));
}

#[test]
fn a_pass_above_a_failure_is_reported_and_does_not_count() {
    let c = capacity(&ladder(&[(3, Pass), (6, Fail), (12, Pass), (18, Fail)]), &Limits::default());
    assert_eq!((c.n_star, c.non_monotonic.as_slice()), (Some(3), &[12][..]));
    assert!(c.text().en.contains("not monotonic: 12 passed above a failure"));
}

#[test]
fn the_order_of_tiers_does_not_matter_and_repetitions_count_once() {
    assert_eq!(display(&[(12, Fail), (3, Pass), (9, Pass), (6, Pass)]).0, "9");
    // A repetition that failed outweighs the one that passed.
    assert_eq!(display(&[(3, Pass), (6, Pass), (6, Fail), (12, Fail)]).0, "3");
    assert_eq!(display(&[(3, Pass), (6, Pass), (6, Invalid), (12, Fail)]).0, ">= 3, unproven above");
}

#[test]
fn published_capacity_is_rounded_down_and_never_by_a_rounding_error() {
    for (n, published) in [(90, 63), (30, 21), (33, 23), (10, 7), (1, 0), (100, 70)] {
        assert_eq!(display(&[(n, Pass), (n + 3, Fail)]).1, Some(published), "{n}");
    }
}

#[test]
fn a_word_error_alarm_caps_what_is_published() {
    let mut tiers = ladder(&[(3, Pass), (6, Pass), (12, Pass), (18, Pass), (24, Fail)]);
    let alarm = |on| QualityReport { alarm: Some(on), ..QualityReport::default() };
    tiers[1].quality = Some(alarm(false));
    tiers[2].quality = Some(alarm(true));
    let c = capacity(&tiers, &Limits::default());
    assert_eq!((c.n_star, c.quality_cap, c.published), (Some(18), Some(6), Some(6)));
    assert!(c.text().en.contains("capped at 6 streams"));
    // An alarm above N* changes nothing.
    tiers[2].quality = None;
    tiers[4].quality = Some(alarm(true));
    let c = capacity(&tiers, &Limits::default());
    assert_eq!((c.quality_cap, c.published), (None, Some(12)));
}

#[test]
fn the_sentence_names_the_limits_the_points_and_the_simulation() {
    let mut tiers = ladder(&[(3, Pass), (6, Pass), (12, Fail)]);
    tiers[2] = breaks(tiers[2].clone(), Limit::Final);
    tiers[1].point_only = true;
    tiers[0].simulated = true;
    // What proves nothing has no point verdict either.
    tiers.push(tier(18, Unstable));
    tiers[3].point_only = true;
    let c = capacity(&tiers, &Limits::default());
    assert_eq!(c.limited_by, [Limit::Ttft, Limit::Final]);
    assert_eq!(c.point_verdict_tiers, [6]);
    assert_eq!(
        c.text().en,
        "N* = 6 (exact: 12 streams broke ttft and final); published capacity 4 (0.7 x N*, rounded down); only point verdicts at 6; \
         simulated"
    );
    let back: tapedeck_slo::Capacity = serde_json::from_str(&serde_json::to_string(&c).unwrap()).unwrap();
    assert_eq!(back, c);
}

#[test]
fn refinement_bisects_in_multiples_of_the_instances() {
    let next = |tiers: &[(u32, Verdict)]| next_refinement(&ladder(tiers), 3);
    assert_eq!(next(&[(30, Pass), (36, Fail), (48, Fail)]), Some(33));
    assert_eq!(next(&[(30, Pass), (33, Fail), (36, Fail)]), None);
    assert_eq!(next(&[(36, Pass), (48, Fail)]), Some(42));
    assert_eq!(next(&[(60, Pass), (75, Fail)]), Some(66));
    // A level that proved nothing is not tried again: the nearest one takes its place.
    assert_eq!(next(&[(36, Pass), (42, Invalid), (48, Fail)]), Some(39));
    // Nothing failed, or nothing passed above the first failure.
    assert_eq!(next(&[(36, Pass), (48, Pass)]), None);
    assert_eq!(next(&[(3, Fail)]), None);
    assert_eq!(next(&[(12, Fail)]), Some(6));
    assert_eq!(next_refinement(&ladder(&[(1, Pass), (2, Pass), (4, Fail)]), 1), Some(3));
    assert_eq!(next_refinement(&ladder(&[(1, Pass), (4, Fail)]), 0), Some(2));
}

#[test]
fn three_refinements_are_enough() {
    let mut tiers = ladder(&[(3, Pass), (90, Fail)]);
    for _ in 0..3 {
        let next = next_refinement(&tiers, 3).unwrap();
        let mut report = tier(next, Pass);
        report.refinement = true;
        tiers.push(report);
    }
    assert_eq!(next_refinement(&tiers, 3), None);
}

#[test]
fn the_ladder_runs_one_tier_beyond_the_first_failure() {
    let stop = |tiers: &[TierReport]| ladder_should_stop(tiers, &Limits::default());
    assert_eq!(stop(&ladder(&[(3, Pass), (6, Pass)])), None);
    assert_eq!(stop(&ladder(&[(3, Pass), (6, Fail)])), None);
    assert_eq!(stop(&ladder(&[(3, Pass), (6, Fail), (12, Pass)])), Some(LadderStop::OneBeyondFailure));
    assert_eq!(stop(&ladder(&[(3, Pass), (6, Unstable), (12, Invalid)])), None);
    let red = breaks(tier(6, Fail), Limit::KvPool);
    assert_eq!(stop(&[tier(3, Pass), red]), Some(LadderStop::HardLimit));
    let mut errors = tier(20, Fail);
    errors.err_streams = 1;
    assert_eq!(stop(&[errors.clone()]), None);
    errors.err_streams = 2;
    assert_eq!(stop(&[errors]), Some(LadderStop::Errors));
}

#[test]
fn a_line_has_the_header_s_cells_and_empty_ones_for_what_is_unknown() {
    let made = Tier::closed(3, 3, 1);
    let report = judge(&made.evidence(), &Limits::default());
    let cells = ladder_row(&report, &["repeat, of 3"]);
    let cell = |name: &str| {
        let at = LADDER_COLUMNS.iter().position(|h| *h == name).unwrap();
        cells[at].as_str()
    };
    assert_eq!(
        (cell("N_total"), cell("tape"), cell("err_streams"), cell("calls_clean")),
        ("3", "Tape-A", "0", "81")
    );
    for unknown in
        ["kv_pool_p95", "preempt_delta", "drain_s", "gpu_util_avg", "gpu_util_max", "vram_used_gb", "cer"]
    {
        assert_eq!(cell(unknown), "", "{unknown}");
    }
    assert!(cell("ttft_p95").parse::<f64>().unwrap() > 0.0);
    assert!(cell("notes").starts_with("repeat, of 3; pass"), "{}", cell("notes"));
    let mut full = report.clone();
    full.tape = "odd, \"name\"\n".into();
    full.kv_pool_p95 = Some(0.12345);
    full.preempt_delta = Some(0.0);
    full.gpu = Some(GpuReport { gpus: 1, vram_used_bytes: Some(46_123_456_789), ..GpuReport::default() });
    let row = ladder_row(&full, &[]);
    assert_eq!(row[..2], ["3", "odd, \"name\""]);
    assert_eq!((&row[9..12], row[15].as_str()), (["0.123", "0", "81"].map(String::from).as_slice(), "46.12"));
    assert_eq!(GpuReading::default().utilisation, None);
}

#[test]
fn drift_needs_both_the_share_and_the_floor() {
    let base = |ttft: f64, rtf: f64, kv: Option<f64>| {
        let made = Tier::closed(9, 1, 1).each(|_, c| {
            c.ttft_wire_s = Some(ttft);
            c.rtf = Some(rtf);
            c.chars = words(10, 0);
        });
        let mut report = judge(&made.evidence(), &Limits::default());
        report.kv_pool_p95 = kv;
        report
    };
    let rules = RepeatRules::default();
    let before = base(0.30, 0.10, Some(0.40));
    let drift = |after: &TierReport| {
        let r = repeatability(&before, after, &rules);
        (r.drift, r.figures.iter().map(|f| f.drift).collect::<Vec<_>>())
    };
    assert_eq!(drift(&base(0.30, 0.10, Some(0.40))).0, Some(false));
    // 16.6 % but only 0.05: not beyond the floor of 50 ms. 20 % and 0.06 is drift.
    assert_eq!(drift(&base(0.349, 0.10, Some(0.40))).0, Some(false));
    assert_eq!(
        drift(&base(0.36, 0.10, Some(0.40))),
        (Some(true), vec![Some(true), Some(false), Some(false)])
    );
    // 19 % and 0.019; 30 % and 0.03.
    assert_eq!(drift(&base(0.30, 0.119, Some(0.40))).0, Some(false));
    assert_eq!(drift(&base(0.30, 0.13, Some(0.40))).0, Some(true));
    // Falling counts too; 0.05 of 0.40 is only 12.5 %.
    assert_eq!(drift(&base(0.30, 0.10, Some(0.35))).0, Some(false));
    assert_eq!(drift(&base(0.30, 0.10, Some(0.30))).0, Some(true));
    // Unknown is not equal.
    assert_eq!(drift(&base(0.30, 0.10, None)), (Some(false), vec![Some(false), Some(false), None]));
    let sentence = repeatability(&before, &base(0.36, 0.10, None), &rules).text().en;
    assert_eq!(sentence, "drift: ttft_p95 by +20 %");
    let spread = spread_between(&[before.clone(), base(0.36, 0.1, None)], |r| Some(r.ttft()?.p95.value));
    assert!((spread.unwrap().mean - 0.33).abs() < 1e-9);
    assert_eq!(spread_between(&[before], |r| r.kv_pool_p95), None);
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Pass), Just(Fail), Just(Invalid), Just(Unknown), Just(Suspect), Just(Unstable)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn n_star_is_a_pass_below_every_failure(verdicts in prop::collection::vec(verdict(), 0..8)) {
        let plain = tier(1, Pass);
        let tiers: Vec<TierReport> = verdicts
            .iter()
            .enumerate()
            .map(|(i, &verdict)| {
                let mut t = plain.clone();
                t.streams = 3 * (u32::try_from(i).unwrap() + 1);
                t.verdict = verdict;
                t
            })
            .collect();
        let c = capacity(&tiers, &Limits::default());
        let fails = || tiers.iter().filter(|t| t.verdict == Fail).map(|t| t.streams);
        if let Some(n) = c.n_star {
            prop_assert!(tiers.iter().any(|t| t.streams == n && t.verdict == Pass));
            prop_assert!(fails().all(|f| f > n));
            prop_assert!(c.published.is_some_and(|p| p <= n));
        } else {
            prop_assert!(c.published.is_none());
        }
        // Exact means that nothing lies undecided between N* and the first failure.
        if c.state == CapacityState::Exact {
            let (n, f) = (c.n_star.unwrap(), fails().min().unwrap());
            prop_assert!(tiers.iter().all(|t| t.streams <= n || t.streams >= f));
        }
        if let Some(next) = next_refinement(&tiers, 3) {
            prop_assert!(next % 3 == 0 && tiers.iter().all(|t| t.streams != next));
            prop_assert!(next > c.n_star.unwrap_or(0) && fails().all(|f| next < f));
        }
    }

    #[test]
    fn refinement_ends_within_the_gap_of_one_step(truth in 3..90_u32, instances in 1..4_u32) {
        // A deployment that fails above `truth`: the bracket always holds it and three tiers narrow it.
        let plain = tier(1, Pass);
        let judged = |n: u32, refinement: bool| {
            let mut t = plain.clone();
            t.streams = n;
            t.refinement = refinement;
            t.verdict = if n <= truth { Pass } else { Fail };
            t
        };
        let rungs = [3, 6, 12, 18, 24, 30, 36, 48, 60, 75, 90];
        let mut tiers: Vec<TierReport> = rungs.iter().map(|&n| judged(n, false)).collect();
        while let Some(next) = next_refinement(&tiers, instances) {
            tiers.push(judged(next, true));
        }
        let c = capacity(&tiers, &Limits::default());
        let n = c.n_star.unwrap();
        prop_assert!(n <= truth);
        // The widest rung, 60 to 75, is 15 wide: three tiers leave at most 3.
        let gap = c.first_fail.map_or(0, |f| f - n);
        prop_assert!(gap <= 3, "gap {gap} at {truth} with {instances} instances");
    }
}

#[test]
fn limit_results_are_looked_up_by_name() {
    let mut report = tier(3, Pass);
    report.limits = vec![LimitResult {
        limit: Limit::Rtf,
        verdict: LimitVerdict::PointFail,
        value: None,
        threshold: 0.5,
    }];
    assert_eq!(report.limit(Limit::Rtf), LimitVerdict::PointFail);
    assert_eq!(report.limit(Limit::Ttft), LimitVerdict::Unknown);
    assert_eq!(report.broken(), [Limit::Rtf]);
}
