//! How reasons are written, read back, and told in both languages.

use serde_json::{Value, json};
use tapedeck_l10n::Localize;
use tapedeck_record::{CrashCause, Outcome};
use tapedeck_slo::reason::Cache;
use tapedeck_slo::{
    Abort, CutShort, Estimate, FinalBasis, Latency, Leak, LeakVerdict, PercentileOrInfinite, Reason,
    Repeatability, RepeatedFigure, TtftBasis,
};

/// One of every kind.
fn all() -> Vec<Reason> {
    let instance = || "inst1".to_owned();
    let p95 = Estimate { value: 0.505, low: Some(0.503), high: None, n: 432 };
    let latencies = [
        Latency::FirstText { basis: TtftBasis::Speech },
        Latency::RealTimeFactor,
        Latency::Final { basis: FinalBasis::Audio },
        Latency::Final { basis: FinalBasis::Speech },
    ];
    let abort = Abort::Ttft { p95_s: PercentileOrInfinite::Never, limit_s: 5.0 };
    let down = CutShort::InstanceDown {
        instance: instance(),
        why: "connection refused".into(),
        cause: Some(CrashCause::OutOfMemory { line: "CUDA out of memory".into() }),
    };
    let mut all = vec![
        Reason::ClientNotJudged,
        Reason::ClientLate { late_ms: 12.0, limit_ms: 10.0 },
        Reason::ClientLatenessUnknown,
        Reason::ClientBusy { share: 0.7, limit: 0.5 },
        Reason::ClientCpuUnknown,
        Reason::Preempted { instance: instance(), requests: 3.0 },
        Reason::PreemptionsUnknown { instance: instance() },
        Reason::KvPoolFull { instance: instance(), share: 0.99, limit: 0.98 },
        Reason::KvPoolGaps { instance: instance(), gaps: 9, pages: 12 },
        Reason::KvPoolUnknown { instance: instance() },
        Reason::HardLimitNotApplicable,
        Reason::StreamsErrored {
            streams: 3,
            of: 60,
            outcomes: [(Outcome::ClosedEarly, 2), (Outcome::RefusedBusy, 1)].into(),
        },
        Reason::WindowUnknown,
        Reason::FirstTextsMissing { calls: 4, basis: TtftBasis::Wire },
        Reason::Aborted { abort: abort.clone() },
        Reason::Aborted { abort: Abort::Errors { streams: 3, of: 60 } },
        Reason::Aborted { abort: Abort::VramFree { gpu: "GPU-1".into(), bytes: 1 << 28 } },
        Reason::CutShort { why: CutShort::Interrupted },
        Reason::CutShort { why: CutShort::Aborted { abort } },
        Reason::CutShort { why: down },
        Reason::CallsMissing { counted: 5, expected: 9 },
        Reason::NoCalls,
        Reason::CallsCutOff { calls: 2 },
        Reason::NothingProven,
        Reason::TooShort { block_s: 60.0 },
        Reason::KeptRising { series: "ttft".into(), rise: 0.21, blocks: 9, p_adjusted: 0.001 },
        Reason::LagGrows { ms_per_min: 700.0, rise_s: 2.1, longest_s: 180.0 },
        Reason::CacheHits { cache: Cache::Prefix, instance: instance(), share: 0.079, limit: 0.01 },
        Reason::PrefixCacheUnknown { instance: instance() },
        Reason::MultimodalCacheUnknown { instances: vec![instance(), "inst2".into()] },
        Reason::Restarted { instance: instance(), times: 1 },
        Reason::PagesMissing { instance: instance(), pages: 3 },
        Reason::CallsEnded { calls: 1, outcome: Outcome::TailLost },
        Reason::CallsEnded { calls: 1, outcome: Outcome::EmptyFinal },
        Reason::CallsEnded { calls: 1, outcome: Outcome::ClientLate },
        Reason::QualityAlarm { cer: Some(0.1), wer: None },
        Reason::ErrorsOutside { calls: 1 },
        Reason::Violations { times: 1 },
        Reason::NotDrained,
        Reason::OpenSessions { streams: 9, sessions: 12.0 },
        Reason::OneStream,
    ];
    for figure in latencies {
        all.push(Reason::LatencyBeyond { figure, p95, limit: 0.5, by_estimate: false });
        all.push(Reason::LatencyBeyond { figure, p95, limit: 0.5, by_estimate: true });
        all.push(Reason::LatencyWithinByEstimate { figure, p95, limit: 0.6 });
        all.push(Reason::LatencyNotApplicable { figure });
        all.push(Reason::LatencyUnknown { figure });
    }
    all
}

#[test]
fn every_reason_is_read_back_as_it_was_written_and_carries_its_english_text() {
    for reason in all() {
        let json = serde_json::to_value(&reason).unwrap();
        assert_eq!(json["text"], Value::String(reason.to_string()));
        assert!(json["kind"].is_string(), "{json}");
        assert_eq!(serde_json::from_value::<Reason>(json).unwrap(), reason);
    }
}

#[test]
fn every_reason_has_a_chinese_text_and_no_comma_in_the_english_one() {
    for reason in all() {
        let text = reason.text();
        assert!(text.zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{reason:?}: {}", text.zh);
        assert!(text.en.is_ascii() && !text.en.contains(','), "{reason:?}: {}", text.en);
    }
}

#[test]
fn a_reason_that_holds_another_is_told_in_one_language_throughout() {
    let p95 = Estimate { value: 0.505, low: Some(0.503), high: None, n: 432 };
    let rtf = Reason::LatencyBeyond { figure: Latency::RealTimeFactor, p95, limit: 0.5, by_estimate: false };
    assert_eq!(
        rtf.text().en,
        "real-time factor p95 is 0.505 and 0.5 is the limit (interval 0.503 to no bound from 432 calls)"
    );
    assert_eq!(rtf.text().zh, "实时率 RTF p95 为 0.505，上限 0.5（区间 0.503 至 无界，432 通）");
    let aborted = Reason::Aborted { abort: Abort::Errors { streams: 3, of: 60 } };
    assert_eq!(aborted.text().zh, "本档被提前放弃：最近一分钟 60 路中有 3 路出错");
    let drift = |figure: &str, change| RepeatedFigure {
        figure: figure.into(),
        before: Some(1.0),
        after: Some(1.0 + change),
        change: Some(change),
        drift: Some(true),
    };
    let drifted =
        Repeatability { figures: vec![drift("ttft_p95", 0.31), drift("rtf_p95", 0.12)], drift: Some(true) };
    assert_eq!(drifted.text().en, "drift: ttft_p95 by +31 % and rtf_p95 by +12 %");
    assert_eq!(drifted.text().zh, "有漂移：ttft_p95 变化 +31 %、rtf_p95 变化 +12 %");
    let mib = |n: f64| Some(n * 1_048_576.0);
    let leak = Leak {
        verdict: LeakVerdict::Leak,
        per_h: mib(9.0),
        low_per_h: mib(5.0),
        high_per_h: None,
        threshold_per_h: 1.0,
        points: 48,
        hours: 2.0,
    };
    assert_eq!(leak.text().en, "memory leaks: 9 MiB per hour (interval 5 to unknown) over 2.0 h");
    assert_eq!(leak.text().zh, "存在内存泄漏：每小时 9 MiB（区间 5 至 未知），历时 2.0 h");
}

#[test]
fn what_earlier_versions_wrote_as_a_sentence_stays_as_it_is() {
    // From a run of commit 13300b5.
    let old = json!([
        "the tier was given up: 3 of 60 streams errored within the last minute",
        "final p95 (from the end of the audio) is 2.345 s and 2 s is the limit (interval 2.100 s to 2.500 s from 162 calls)"
    ]);
    let read: Vec<Reason> = serde_json::from_value(old.clone()).unwrap();
    assert_eq!(read[0], Reason::Recorded(old[0].as_str().unwrap().into()));
    assert_eq!(read[1].text().en, read[1].text().zh);
    assert_eq!(serde_json::to_value(&read).unwrap(), old, "and is written as it was");
    assert_eq!(
        serde_json::from_value::<CutShort>(json!("interrupted")).unwrap(),
        CutShort::Recorded("interrupted".into())
    );
}

#[test]
fn a_kind_that_is_not_known_keeps_its_text() {
    let newer = json!({"kind": "moon_was_full", "phase": 1.0, "text": "the moon was full"});
    assert_eq!(serde_json::from_value::<Reason>(newer).unwrap().to_string(), "the moon was full");
    assert!(serde_json::from_value::<Reason>(json!({"kind": "moon_was_full"})).is_err());
}
