//! The rules that end a tier while it runs.

use std::collections::BTreeMap;

use crate::common::{call, end_with};
use tapedeck_l10n::Localize;
use tapedeck_record::{CallRecord, GpuReading, Metric, Outcome, Sample, SampleBody, Scrape};
use tapedeck_slo::{Abort, Alert, Limits, LiveWatch, PercentileOrInfinite};

fn watch(streams: u32) -> LiveWatch {
    LiveWatch::new(Limits::default(), streams, BTreeMap::new())
}

fn done(stream: u32, done_s: f64, ttft_s: f64) -> CallRecord {
    CallRecord { done_s, ttft_wire_s: Some(ttft_s), ..call(stream, 0) }
}

fn failed(stream: u32, done_s: f64) -> CallRecord {
    let mut c = done(stream, done_s, 0.4);
    end_with(&mut c, Outcome::ServerError);
    c
}

#[test]
fn slow_first_texts_end_a_tier_once_there_are_twenty_calls() {
    let mut watch = watch(90);
    for i in 0..19 {
        assert_eq!(watch.push(&done(i, f64::from(i), 9.0)), None);
    }
    assert_eq!(
        watch.push(&done(19, 19.0, 9.0)),
        Some(Abort::Ttft { p95_s: PercentileOrInfinite::At(9.0), limit_s: 5.0 })
    );
}

#[test]
fn only_the_last_minute_counts() {
    let mut watch = watch(90);
    for i in 0..19 {
        assert_eq!(watch.push(&done(i, f64::from(i), 9.0)), None);
    }
    // Later, everything is quick again: the slow calls are forgotten.
    for i in 0..40 {
        assert_eq!(watch.push(&done(i, 100.0 + f64::from(i), 0.4)), None);
    }
}

#[test]
fn failures_are_infinitely_late() {
    // Two of 30 calls failed, on 2 of 90 streams: too few streams for the error rule, but p95 lies among them.
    let mut watch = watch(90);
    let mut last = None;
    for i in 0..30 {
        let c = if i % 15 == 0 { failed(i, f64::from(i)) } else { done(i, f64::from(i), 0.4) };
        last = watch.push(&c);
        if last.is_some() {
            break;
        }
    }
    let abort = last.unwrap();
    assert_eq!(abort, Abort::Ttft { p95_s: PercentileOrInfinite::Never, limit_s: 5.0 });
    assert!(abort.text().en.contains("failed"));
    let json = serde_json::to_string(&abort).unwrap();
    assert_eq!(serde_json::from_str::<Abort>(&json).unwrap(), abort, "{json}");
}

#[test]
fn more_than_five_percent_of_the_streams_erroring_ends_a_tier() {
    let mut watch = watch(60);
    for i in 0..57 {
        assert_eq!(watch.push(&done(i, f64::from(i), 0.4)), None);
    }
    // One stream that fails again and again is one stream.
    assert_eq!(watch.push(&failed(1, 57.1)), None);
    assert_eq!(watch.push(&failed(1, 57.2)), None);
    let mut many = LiveWatch::new(Limits::default(), 60, BTreeMap::new());
    let mut last = None;
    for i in 0..120 {
        let at = f64::from(i) / 2.0;
        let c = if (110..114).contains(&i) { failed(i % 60, at) } else { done(i % 60, at, 0.4) };
        if let Some(abort) = many.push(&c) {
            last = Some(abort);
            break;
        }
    }
    // 4 of 114 calls: p95 does not notice, but 4 of 60 streams are too many.
    assert_eq!(last, Some(Abort::Errors { streams: 4, of: 60 }));
}

#[test]
fn ramp_warm_up_and_excluded_calls_are_not_looked_at() {
    let mut watch = watch(30);
    for i in 0..60 {
        let mut c = done(i % 30, f64::from(i) / 2.0, 20.0);
        c.counted = false;
        assert_eq!(watch.push(&c), None);
        let mut c = done(i % 30, f64::from(i) / 2.0, 20.0);
        end_with(&mut c, Outcome::Cancelled);
        assert_eq!(watch.push(&c), None);
    }
}

#[test]
fn a_small_tier_never_has_enough_calls_and_is_never_aborted() {
    let mut watch = watch(3);
    for i in 0..60 {
        assert_eq!(watch.push(&failed(i % 3, f64::from(i) * 12.0)), None);
    }
}

fn engine(at_s: f64, kv: f64, preemptions: f64) -> Sample {
    let values = [(Metric::KvPool, kv), (Metric::Preemptions, preemptions)].into();
    Sample {
        at_s,
        source: "inst1".into(),
        body: SampleBody::Engine(Scrape { values, histograms: BTreeMap::new() }),
    }
}

#[test]
fn a_full_pool_or_a_preemption_stops_the_climb_once() {
    let mut full = watch(3);
    assert_eq!(full.push_sample(&engine(0.0, 0.97, 5.0)), None);
    let alert = full.push_sample(&engine(1.0, 0.985, 5.0));
    assert!(
        matches!(&alert, Some(Alert::StopClimbing { why }) if why.text().en.contains("98.5 % full")),
        "{alert:?}"
    );
    assert_eq!(full.push_sample(&engine(2.0, 0.99, 6.0)), None);
    let mut preempted = watch(3);
    assert_eq!(preempted.push_sample(&engine(0.0, 0.5, 5.0)), None);
    assert_eq!(preempted.push_sample(&engine(1.0, 0.5, 5.0)), None);
    assert!(matches!(preempted.push_sample(&engine(2.0, 0.5, 6.0)), Some(Alert::StopClimbing { .. })));
}

#[test]
fn an_instance_is_silent_after_five_gaps_in_a_row() {
    let mut watch = watch(3);
    let gap =
        |at_s: f64| Sample { at_s, source: "inst1".into(), body: SampleBody::Gap { why: "refused".into() } };
    for at in 0..4 {
        assert_eq!(watch.push_sample(&gap(f64::from(at))), None);
    }
    assert_eq!(watch.push_sample(&engine(4.0, 0.1, 0.0)), None);
    let alerts: Vec<_> = (5..15).filter_map(|at| watch.push_sample(&gap(f64::from(at)))).collect();
    assert_eq!(alerts, [Alert::Silent { instance: "inst1".into() }]);
}

fn gpu(used: u64, celsius: f64) -> Sample {
    let reading = GpuReading {
        memory_used_bytes: Some(used),
        memory_total_bytes: Some(48 << 30),
        temperature_c: Some(celsius),
        ..GpuReading::default()
    };
    Sample { at_s: 0.0, source: "GPU-a".into(), body: SampleBody::Gpu(reading) }
}

#[test]
fn memory_and_heat() {
    let baseline: BTreeMap<String, u64> = [("GPU-a".into(), 40 << 30)].into();
    let mut watch = LiveWatch::new(Limits::default(), 3, baseline);
    assert_eq!(watch.push_sample(&gpu(41 << 30, 60.0)), None);
    assert!(matches!(
        watch.push_sample(&gpu((41 << 30) + 1, 60.0)),
        Some(Alert::Abort(Abort::VramGrowth { .. }))
    ));
    let mut unknown_baseline = LiveWatch::new(Limits::default(), 3, BTreeMap::new());
    assert_eq!(unknown_baseline.push_sample(&gpu(46 << 30, 60.0)), None);
    assert!(matches!(
        unknown_baseline.push_sample(&gpu((48 << 30) - (400 << 20), 60.0)),
        Some(Alert::Abort(Abort::VramFree { .. }))
    ));
    assert_eq!(watch.push_sample(&gpu(40 << 30, 87.0)), None);
    assert!(matches!(watch.push_sample(&gpu(40 << 30, 87.5)), Some(Alert::PauseForHeat { .. })));
    assert_eq!(watch.push_sample(&gpu(40 << 30, 88.0)), None);
    assert_eq!(watch.push_sample(&gpu(40 << 30, 83.0)), None);
    assert_eq!(watch.push_sample(&gpu(40 << 30, 79.9)), None, "the tier was ended; who plays it again waits");
    let blind = Sample { body: SampleBody::Gpu(GpuReading::default()), ..gpu(0, 0.0) };
    assert_eq!(watch.push_sample(&blind), None);
}
