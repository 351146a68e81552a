//! How the reasons of cases are written, read back, and told in both languages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tapedeck_answers::{
    Advantage, CampaignStop, Caveat, FaultReason, LeftOut, NStarBound, NStarSource, NoGpu, OccupationSource,
    PartAnswer, PartDone, QualityFinding, Rerun, RerunReason, SingleStreamReason, SoakContent, SoakReason,
    SoakRestart, TopologyAnswer, TopologyReason,
};
use tapedeck_l10n::{Localize, localized};
use tapedeck_record::{ControlRefusal, Outcome};
use tapedeck_sizing::whatif::{Figure, FitNote, Grade, Supposition};
use tapedeck_sizing::{CalibrationNote, PoolSource};
use tapedeck_slo::{CapacityState, Leak, LeakVerdict, Reason, Repeatability, TtftBasis, Verdict};

/// Is written with its English text, read back as it was, and told in Chinese; the bare text of an earlier version stays.
#[track_caller]
fn holds<R>(reasons: Vec<R>)
where
    R: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + Localize,
{
    for reason in reasons {
        let text = reason.text();
        let json = serde_json::to_value(&reason).unwrap();
        assert_eq!(json["text"], Value::String(text.en.clone()));
        assert_eq!(serde_json::from_value::<R>(json).unwrap(), reason);
        assert!(text.en.is_ascii(), "{}", text.en);
        assert!(text.zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{reason:?}: {}", text.zh);
        let old: R = serde_json::from_value(json!(text.en)).unwrap();
        assert_eq!((old.text().en, serde_json::to_value(&old).unwrap()), (text.en.clone(), json!(text.en)));
    }
}

fn better() -> TopologyReason {
    let by = Advantage::NStar {
        n_star: Some(57),
        state: CapacityState::Censored,
        other_n_star: Some(48),
        other_state: CapacityState::Exact,
    };
    TopologyReason::Better { name: "1x0.92".into(), than: "3x0.30".into(), by }
}

fn refusal() -> ControlRefusal {
    ControlRefusal::NoRestart { instance: "inst1".into(), action: "start".into() }
}

#[test]
fn reasons_of_single_cases() {
    holds(vec![
        SingleStreamReason::CallEnded { call: 2, outcome: Outcome::ClosedEarly, words: Some("bye".into()) },
        SingleStreamReason::CallEnded { call: 2, outcome: Outcome::ClosedEarly, words: None },
        SingleStreamReason::Violations { times: 3 },
        SingleStreamReason::LimitBelowFloor { limit_s: 1.0, basis: TtftBasis::Wire, floor_s: 2.04 },
        SingleStreamReason::FirstTextBeyond { max_s: 1.2, limit_s: 1.0 },
        SingleStreamReason::RealTimeFactorBeyond { max: 0.7, limit: 0.5 },
        SingleStreamReason::FinalBeyond { max_s: 2.5, limit_s: 2.0 },
        SingleStreamReason::FirstTextUnknown { basis: TtftBasis::Speech },
        SingleStreamReason::WindowUnknown,
    ]);
    holds(vec![NoGpu::NoSource, NoGpu::NotTold]);
    holds(vec![
        CalibrationNote::PoolUnknown,
        CalibrationNote::NeedsTopology,
        CalibrationNote::TokensTimesBytes,
        CalibrationNote::BelowZero,
        CalibrationNote::MemoryLeft,
        CalibrationNote::NoGpu,
        CalibrationNote::NeedsPools { upper_bound: true },
        CalibrationNote::Slope { upper_bound: false },
        CalibrationNote::NeedsLevels { upper_bound: true },
        CalibrationNote::Intercept,
    ]);
    holds(vec![
        TopologyReason::NoneBetter { than: "3x0.30".into() },
        better(),
        TopologyReason::NothingProven { name: "2x0.45".into() },
    ]);
    holds(vec![
        FaultReason::NotInTime { streams: 24 },
        FaultReason::InTimeUnknown { streams: 24 },
        FaultReason::LagStayed { streams: 24 },
        FaultReason::NewCallsLost { streams: 24 },
        FaultReason::NotServing { streams: 24 },
    ]);
}

#[test]
fn where_figures_come_from_and_what_keeps_a_theory_from_them() {
    holds(vec![NStarSource::Ladder { state: CapacityState::Exact }, NStarSource::LongCalls]);
    holds(vec![PoolSource::Log, PoolSource::NoPage, PoolSource::NotTold]);
    holds(vec![CalibrationNote::PoolFrom { sources: vec![PoolSource::Log] }]);
    holds(vec![
        OccupationSource::Measured { ratio: 1.25 },
        OccupationSource::Theory { session: "plan".into() },
    ]);
    holds(vec![
        Caveat::Dependent { law: "regular".into() },
        Caveat::NotExponential,
        Caveat::NoTheory { why: localized!("unstable", "不稳定") },
    ]);
    holds(vec![Supposition::Independent, Supposition::Shared]);
    holds(vec![
        FitNote::Error { tiers: 5, grade: Grade::Fair, seen: 0.1, left_out: 0.3, usual: 0.2 },
        FitNote::Bias { figure: Figure::RtfP95, by: -0.2 },
        FitNote::OtherLaw,
        FitNote::AgeLag { ms_per_min: 600.0, error: 0.4, with_it: 0.1 },
        FitNote::AgeSlope { ms_per_min: 90.0 },
        FitNote::KvRatio { ratio: 1.4 },
        FitNote::PoolFitted,
        FitNote::NoKv,
        FitNote::KvSpread { off: 0.5 },
        FitNote::NotPredicted { why: localized!("no tape", "没有带") },
    ]);
}

/// Of a run of commit b1e4290, where suppositions were plain words.
#[test]
fn an_older_topology_is_read() {
    let old = r#"{"n_star": {"streams": 48, "source": "capacity.json (exact)"}, "candidates": [], "recommended": null,
        "why": "none is better than 3x0.30", "foretold": ["nothing was predicted: no manifest"], "better": false,
        "run": "r", "simulated": true, "interrupted": false}"#;
    let read: TopologyAnswer = serde_json::from_str(old).unwrap();
    assert_eq!(read.n_star.source.to_string(), "capacity.json (exact)");
    assert_eq!(read.prediction_notes, [FitNote::Recorded("nothing was predicted: no manifest".into())]);
    let predicted = r#"{"given": "", "n_star": 45, "low": 42, "high": 48, "agrees": true}"#;
    let predicted: tapedeck_answers::Predicted = serde_json::from_str(predicted).unwrap();
    let text = predicted.text();
    assert_eq!(text.en, "N* = 45 (42 to 48), predicted, not measured; the measurement agrees");
    assert_eq!(text.zh, "N* = 45（42 至 48），预测，非实测；与实测相符");
}

#[test]
fn reasons_of_a_soak() {
    let leak = Leak {
        verdict: LeakVerdict::Leak,
        per_h: Some(1e7),
        low_per_h: Some(5e6),
        high_per_h: None,
        threshold_per_h: 1e6,
        points: 48,
        hours: 3.5,
    };
    holds(vec![
        SoakReason::NoMemory,
        SoakReason::Memory { what: "vram".into(), of: "GPU-1".into(), leak },
        SoakReason::Drift { rise_s: 0.2, floor_s: 0.1 },
        SoakReason::TooFewPeriods,
        SoakReason::Silence { instance: "inst1".into(), seconds: 60.0 },
        SoakReason::Restarted { instance: "inst1".into(), times: 1 },
        SoakReason::Tier { verdict: Verdict::Unstable, reasons: vec![Reason::NothingProven] },
    ]);
    holds(vec![
        SoakContent::LongCalls { n_star_long: 30, n_star: 48 },
        SoakContent::Pool,
        SoakContent::NoPool,
    ]);
    holds(vec![
        SoakRestart::TakenOver,
        SoakRestart::NotWanted,
        SoakRestart::Restarted { seconds: 3.0 },
        SoakRestart::Refused { why: refusal() },
    ]);
}

#[test]
fn reasons_of_a_campaign() {
    let (n_star, state) = (Some(48), CapacityState::Censored);
    let repeatability = Repeatability { figures: vec![], drift: Some(false) };
    holds(vec![
        PartAnswer::SingleStream,
        PartAnswer::SingleStreamReasons { reasons: vec![SingleStreamReason::Violations { times: 3 }] },
        PartAnswer::StreamsByMemory { streams: 317.4 },
        PartAnswer::MemoryUnknown,
        PartAnswer::Ladder { n_star, state },
        PartAnswer::LongCalls { n_star, state },
        PartAnswer::Repeatability { repeatability },
        PartAnswer::Quality { answer: QualityFinding::Open { above: Some(12), limit_points: 1.0 } },
        PartAnswer::Soak,
        PartAnswer::SoakReasons { reasons: vec![SoakReason::TooFewPeriods] },
        PartAnswer::Fault,
        PartAnswer::FaultReasons { reasons: vec![FaultReason::NotInTime { streams: 24 }] },
        PartAnswer::Topology { why: better() },
        PartAnswer::LeftOut { why: LeftOut::Refused { why: refusal() } },
        PartAnswer::LeftOut { why: LeftOut::Error { message: localized!("no N*", "没有 N*") } },
    ]);
    holds(vec![RerunReason::Drift, RerunReason::BetterTopology { why: better() }]);
    holds(vec![CampaignStop::Waits { why: RerunReason::Drift, flag: "--on-drift".into() }]);
    holds(vec![NStarBound::Found { n_star, state }]);
    let long = PartAnswer::LongCalls { n_star, state }.text();
    assert_eq!(long.en, "N* with long calls >= 48, censored");
    assert_eq!(long.zh, "长通话 N* >= 48，未测到上限");
    let ladder = PartAnswer::Ladder { n_star, state: CapacityState::Exact };
    assert_eq!(ladder.to_string(), "N* = 48");
}

/// Of a campaign of commit 13300b5.
#[test]
fn the_books_of_an_older_campaign_are_read() {
    let part = json!({
        "part": "tc05",
        "decision": "no",
        "sentence": "first-text p95 rose by 0.13 s over the soak, more than 0.10 s; as a tier it is unstable: rtf kept \
                     rising while the tier ran: by 0.065 over 16 blocks (p = 0.0009 after correction)",
        "seconds": 1051.607
    });
    let read: PartDone = serde_json::from_value(part.clone()).unwrap();
    assert_eq!(read.sentence, PartAnswer::Recorded(part["sentence"].as_str().unwrap().into()));
    assert_eq!(serde_json::to_value(&read).unwrap(), part);
    let rerun = json!({
        "why": "1x0.92 is better than 3x0.30: N* >= 57, censored; the other's 48",
        "n_star": 57,
        "capacity": ">= 57, censored",
        "run": "runs/campaign-better"
    });
    let read: Rerun = serde_json::from_value(rerun.clone()).unwrap();
    assert_eq!(better().to_string(), read.why.to_string());
    assert_eq!(serde_json::to_value(&read).unwrap(), rerun);
}
