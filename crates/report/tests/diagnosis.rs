//! Diagnosis from data: calls that really waited somewhere, judged as a case would judge them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use tapedeck_answers::QualityAnswer;
use tapedeck_record::{
    CallMeta, Case, Evidence, FinalKind, Interval, Message, MessageKind, Outcome, OutcomeDetail, SpeechMap,
    StepId, Trace,
};
use tapedeck_report::Run;
use tapedeck_report::answer::Answer;
use tapedeck_report::diagnose::{Diagnosis, diagnose};
use tapedeck_report::latency_breakdown::Part;
use tapedeck_report::read::Step;
use tapedeck_report::samples::Samples;
use tapedeck_report::series::Series;
use tapedeck_report::symptoms::Symptom;
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Limits, StepBounds, TierEvidence, TtftBasis, Verdict, judge};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn meta(index: u32) -> CallMeta {
    CallMeta {
        index,
        id: format!("call{index}.wav"),
        duration_ms: 10_000,
        bucket_s: 10,
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(vec![Interval { start_ms: 500, end_ms: 9_500 }]),
    }
}

/// A call of ten seconds whose windows of two seconds are each answered after 100 ms, by one of two instances.
fn trace(stream: u32, seq: u32) -> Trace {
    let c1_ns = u64::from(seq) * 12 * SECOND + 5 * SECOND;
    let message = |window: u64| Message {
        at_ns: c1_ns + (window + 1) * 2 * SECOND + 100 * MS,
        kind: MessageKind::Partial,
        bytes: 40,
        chars: 10,
        revised: 0,
        position_ms: u32::try_from((window + 1) * 2000).ok(),
        window: None,
    };
    let final_ns = c1_ns + 10 * SECOND + 120 * MS;
    let end = Message { at_ns: final_ns, kind: MessageKind::End, chars: 0, position_ms: None, ..message(4) };
    Trace {
        stream,
        seq,
        call: seq % 3,
        tape: None,
        counted: true,
        c0_ns: c1_ns - 20 * MS,
        c1_ns: Some(c1_ns),
        chunk_ns: SECOND / 10,
        audio_ns: 10 * SECOND,
        tail_silence_ns: 0,
        wake_late_us: vec![100; 100],
        blocked_us: vec![0; 100],
        end_ns: Some(c1_ns + 10 * SECOND),
        messages: (0..5).map(message).chain([end]).collect(),
        final_ns: Some(final_ns),
        final_kind: Some(FinalKind::Marker),
        kept_from_ns: None,
        done_ns: final_ns,
        rtt_us: vec![200],
        instance: Some(format!("inst{}", stream % 2 + 1)),
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Ok),
    }
}

/// Makes the final come so much later.
fn later_final(trace: &mut Trace, by_ns: u64) {
    let end = trace.messages.last_mut().unwrap();
    end.at_ns += by_ns;
    trace.final_ns = trace.final_ns.map(|f| f + by_ns);
    trace.done_ns += by_ns;
}

fn ended(trace: &mut Trace, outcome: Outcome) {
    trace.outcome = OutcomeDetail::plain(outcome);
}

/// A judged tier whose calls are those of [`trace`], changed.
fn step(streams: u32, wake_late_ms: f64, change: &dyn Fn(&mut Trace)) -> Step {
    let limits = limits();
    let rules = Rules::new(Evidence::Position, Some(2000));
    let mut calls = Vec::new();
    for stream in 0..streams {
        for seq in 0..(180 / streams) {
            let mut trace = trace(stream, seq);
            change(&mut trace);
            calls.push(score(&trace, &meta(trace.call), &rules, &Words::default()));
        }
    }
    let bounds = StepBounds { ramp_from_s: 0.0, window_from_s: 0.0, window_to_s: 60.0, drain_to_s: 60.0 };
    let evidence = TierEvidence {
        calls_expected: Some(180),
        window_ms: Some(2000),
        wake_late_p99_ms: Some(wake_late_ms),
        client_drift_ppm: Some(2.5),
        client_cpu_share: Some(0.1),
        drain_s: Some(2.0),
        drained: Some(true),
        ..TierEvidence::new(streams, "tape-a", &calls, bounds)
    };
    let report = judge(&evidence, &limits);
    Step {
        name: StepId::new(Case::Ladder, streams).to_string(),
        id: StepId::new(Case::Ladder, streams),
        superseded: false,
        partial: false,
        series: Series::new((0.0, 60.0)),
        evidence: Some(evidence.kept()),
        report,
        calls,
        calls_agree: true,
    }
}

/// The same step under another name.
fn named(name: &str, step: Step) -> Step {
    Step { name: name.into(), id: StepId::parse(name), ..step }
}

fn limits() -> Limits {
    Limits { ttft_basis: TtftBasis::Window, bootstrap_resamples: 50, ..Limits::default() }
}

fn run(steps: Vec<Step>) -> Run {
    Run {
        path: PathBuf::from("made"),
        info: None,
        config: None,
        limits: Some(limits()),
        promise: Default::default(),
        environment: None,
        steps,
        steps_unread: 0,
        answers: Default::default(),
        derived: None,
        events: Vec::new(),
        ladder_csv: None,
        warnings: Vec::new(),
    }
}

/// A calm tier and one whose calls are changed.
fn beside_calm(change: &dyn Fn(&mut Trace)) -> Run {
    let calm = step(3, 1.0, &|_| {});
    assert_eq!(calm.report.verdict, Verdict::Pass, "{:?}", calm.report.reasons);
    run(vec![calm, step(60, 1.0, change)])
}

fn found(diagnosis: &Diagnosis<'_>) -> Vec<Symptom> {
    diagnosis.findings.iter().map(|f| f.symptom).collect()
}

/// What the rules say of a tier whose calls are changed; it must not pass.
fn seen(change: &dyn Fn(&mut Trace)) -> (Option<Part>, Vec<Symptom>) {
    let run = beside_calm(change);
    let all = diagnose(&run);
    assert_eq!(all.len(), 1, "the changed tier passes");
    (all[0].grew, found(&all[0]))
}

#[test]
fn tiers_that_pass_are_left_alone() {
    assert!(diagnose(&beside_calm(&|_| {})).is_empty());
}

#[test]
fn the_part_of_the_wait_that_grew_is_found_in_the_calls() {
    // The final alone is what fails each of these tiers; what grew more than it is named.
    assert_eq!(seen(&|t| later_final(t, 3 * SECOND)), (Some(Part::Tail), vec![Symptom::SlowTail]));
    let slow_connect = |t: &mut Trace| {
        later_final(t, 3 * SECOND);
        t.c0_ns -= 4 * SECOND;
    };
    assert_eq!(seen(&slow_connect), (Some(Part::Connect), vec![Symptom::SlowTail, Symptom::SlowConnect]));
    let blocked = |t: &mut Trace| {
        later_final(t, 3 * SECOND);
        t.blocked_us[40] = 4_000_000;
    };
    assert_eq!(seen(&blocked).0, Some(Part::BackPressure));
    // Only the first window is late: text came later, and nothing else did.
    let first_late = |t: &mut Trace| t.messages[0].at_ns += 1_500 * MS;
    assert_eq!(seen(&first_late), (Some(Part::Inference), vec![Symptom::LateFirstText]));
    // Windows one to three are only answered with the last one.
    let stall = |t: &mut Trace| {
        t.messages.drain(1..4);
    };
    let (_, symptoms) = seen(&stall);
    assert_eq!(symptoms, [Symptom::MidStall, Symptom::ComputeBound]);
}

#[test]
fn a_tier_with_nothing_beside_it_is_looked_into_by_its_own_figures() {
    let run = run(vec![step(60, 1.0, &|t| later_final(t, 3 * SECOND))]);
    let all = diagnose(&run);
    assert_eq!((all[0].grew, found(&all[0])), (None, vec![Symptom::SlowTail]));
    assert!(all[0].findings[0].seen.en.contains("from unknown to 3.12 s"), "{:?}", all[0].findings[0].seen);
    let tail = all[0].parts.iter().find(|p| p.part == Part::Tail).unwrap();
    assert!(tail.before_s.is_none() && tail.after_s.unwrap() > 3.0, "{tail:?}");
    assert_eq!(all[0].heading().en, "N060 (fail); nothing else was played that it could be held against");
}

#[test]
fn a_step_of_another_case_that_failed_at_no_more_than_n_star_is_said_beside_it() {
    let failing = |streams| step(streams, 1.0, &|t| later_final(t, 3 * SECOND));
    let ladder = || vec![step(3, 1.0, &|_| {}), failing(60)];
    let elsewhere = |more: Vec<Step>| {
        let run = run(ladder().into_iter().chain(more).collect());
        let answer = Answer::of(&run);
        let capacity = answer.short.clone().unwrap();
        assert_eq!(capacity.n_star, Some(3));
        let said = answer.sureness(&capacity).iter().any(|s| s.en.contains("tc02-N003 (fail)"));
        assert_eq!(said, !answer.elsewhere.is_empty());
        answer.elsewhere
    };
    assert_eq!(elsewhere(vec![named("tc02-N003", failing(3))]), [("tc02-N003".into(), Verdict::Fail)]);
    // One that passed, one above N*, one in which an instance was killed, one of other instances.
    let others = [
        named("tc02-N003", step(3, 1.0, &|_| {})),
        named("tc02-N060", failing(60)),
        named("tc06-kill-100", failing(3)),
        named("tc07-1x0.92-N003", failing(3)),
    ];
    for other in others {
        assert_eq!(elsewhere(vec![other]), []);
    }
}

#[test]
fn a_tier_that_proves_nothing_is_looked_into_as_well() {
    let calm = step(3, 1.0, &|_| {});
    let late = step(60, 40.0, &|_| {});
    assert_eq!(late.report.verdict, Verdict::Invalid);
    let run = run(vec![calm, late]);
    let all = diagnose(&run);
    assert_eq!((all[0].grew, found(&all[0])), (Some(Part::Client), vec![Symptom::ClientLate]));
}

#[test]
fn how_calls_ended_is_told_apart() {
    let all = |outcome: Outcome| {
        move |t: &mut Trace| {
            if t.stream == 7 && t.seq == 1 {
                ended(t, outcome);
            }
        }
    };
    for (outcome, symptom) in [
        (Outcome::ConnectRefused, Symptom::CutCalls),
        (Outcome::ConnectTimeout, Symptom::CutCalls),
        (Outcome::Tls, Symptom::CutCalls),
        (Outcome::Handshake, Symptom::CutCalls),
        (Outcome::ClosedEarly, Symptom::CutCalls),
        (Outcome::Mute, Symptom::Unanswered),
        (Outcome::IdleTimeout, Symptom::Unanswered),
        (Outcome::FinalTimeout, Symptom::Unanswered),
        (Outcome::RefusedBusy, Symptom::Refusing),
        (Outcome::Protocol, Symptom::BrokenOutput),
        (Outcome::ServerError, Symptom::BrokenOutput),
    ] {
        assert_eq!(seen(&all(outcome)).1, [symptom], "{outcome:?}");
    }
}

#[test]
fn a_slow_instance_is_told_from_a_slow_deployment() {
    let one = |t: &mut Trace| {
        if t.instance.as_deref() == Some("inst2") {
            t.messages[0].at_ns += 1_500 * MS;
        }
    };
    assert_eq!(seen(&one).1, [Symptom::LateFirstText, Symptom::Uneven]);
    let both = |t: &mut Trace| t.messages[0].at_ns += 1_500 * MS;
    assert!(!seen(&both).1.contains(&Symptom::Uneven));
}

#[test]
fn a_cold_start_is_held_against_the_same_calls_later_on() {
    let fail = |t: &mut Trace| later_final(t, 3 * SECOND);
    let cold = step(3, 1.0, &|t| {
        if t.seq == 0 {
            t.messages[0].at_ns += 1_500 * MS;
        }
    });
    let warm = step(3, 1.0, &|_| {});
    for (first, expected) in [(cold, true), (warm, false)] {
        let run = run(vec![first, step(60, 1.0, &fail)]);
        let all = diagnose(&run);
        assert_eq!(found(&all[0]).contains(&Symptom::ColdStart), expected);
    }
}

#[test]
fn the_queue_of_the_engines_is_taken_out_of_inference() {
    let late = |t: &mut Trace| t.messages[0].at_ns += 1_500 * MS;
    let mut run = beside_calm(&late);
    for (step, sums) in run.steps.iter_mut().zip([[0.0, 1.0], [0.0, 140.0]]) {
        for (at_s, sum) in [1, 50].into_iter().zip(sums) {
            let count = f64::from(at_s) * 2.0;
            let text = format!(
                r#"{{"step":"x","at_s":{at_s},"source":"inst1","kind":"engine","values":{{"kv_pool":0.2}},"histograms":{{"queue":{{"bounds":[1],"counts":[1,{count}],"sum":{sum}}}}}}}"#
            );
            let mut sample = Samples::default();
            sample.add(&serde_json::from_str(&text).unwrap());
            step.series.add(&sample);
        }
    }
    let all = diagnose(&run);
    assert_eq!(all[0].grew, Some(Part::Queue), "{:?}", all[0].parts);
    let said = &all[0].counters;
    assert!(said.iter().any(|s| s.en.starts_with("Queue time by the engines: 1.429 s")), "{said:?}");
}

#[test]
fn what_stands_beside_the_calls_is_read_too() {
    let fail = |t: &mut Trace| later_final(t, 3 * SECOND);
    let with = |change: &dyn Fn(&mut Run)| {
        let mut run = beside_calm(&fail);
        change(&mut run);
        let all = diagnose(&run);
        found(&all[0]).into_iter().filter(|s| *s != Symptom::SlowTail).collect::<Vec<_>>()
    };
    assert_eq!(with(&|_| {}), []);
    let report = |run: &mut Run, change: &dyn Fn(&mut tapedeck_slo::TierReport)| {
        change(&mut run.steps.last_mut().unwrap().report);
    };
    let throttled = |run: &mut Run| {
        report(run, &|r| {
            r.gpu =
                Some(tapedeck_slo::GpuReport { throttle: vec!["sw_thermal".into()], ..Default::default() });
        });
    };
    assert_eq!(with(&throttled), [Symptom::Throttled]);
    assert_eq!(with(&|run| report(run, &|r| r.prefix_hit_rate = Some(0.4))), [Symptom::CachesAnswer]);
    assert_eq!(with(&|run| report(run, &|r| r.kv_pool_p95 = Some(0.99))), [Symptom::MemoryBound]);
    assert_eq!(with(&|run| report(run, &|r| r.throughput_per_h = Some(1.0))), [Symptom::ThroughputFalls]);
    // Ten seconds of call: so many milliseconds a minute are a second over the longest.
    assert_eq!(
        with(&|run| report(run, &|r| r.age_slope_ms_per_min = Some(6_000.0))),
        [Symptom::GrowsWithAge]
    );
    let words = |run: &mut Run| {
        let step = run.steps.pop().unwrap();
        run.steps.push(named("tc04-N060", step));
        let mut answer: QualityAnswer = serde_json::from_str(include_str!("answers/tc04.json")).unwrap();
        for point in &mut answer.points {
            (point.streams, point.alarm) = (60, true);
        }
        run.answers.quality = Some(answer);
    };
    assert_eq!(with(&words), [Symptom::WorseWords]);
}

#[test]
fn steps_are_held_against_calls_of_the_same_tape() {
    let fail = |t: &mut Trace| later_final(t, 3 * SECOND);
    let of_tape_b = |streams, change: &dyn Fn(&mut Trace), per_h| {
        let mut step = step(streams, 1.0, change);
        step.report.tape = "tape-b".into();
        // Longer calls: fewer of them an hour, at any load.
        step.report.throughput_per_h = Some(per_h);
        named(&format!("tc03b-N{streams:03}"), step)
    };
    let steps = |failing_per_h| {
        vec![
            step(3, 1.0, &|_| {}),
            step(45, 1.0, &|_| {}),
            of_tape_b(30, &|_| {}, 400.0),
            of_tape_b(60, &fail, failing_per_h),
        ]
    };
    let run_of = |failing_per_h| run(steps(failing_per_h));
    let (fewer, more) = (run_of(300.0), run_of(700.0));
    let all = diagnose(&more);
    assert_eq!((all[0].calm.unwrap().name.as_str(), found(&all[0])), ("tc03b-N030", vec![Symptom::SlowTail]));
    assert_eq!(found(&diagnose(&fewer)[0]), [Symptom::ThroughputFalls, Symptom::SlowTail]);
}

#[test]
fn what_still_rises_at_the_end_is_said() {
    let mut run = beside_calm(&|_| {});
    let test = |series: &str, alarm| tapedeck_slo::StationarityResult {
        series: series.into(),
        n: 180,
        blocks: 8,
        rise: 0.4,
        floor: 0.1,
        p: 0.001,
        p_adjusted: 0.002,
        alarm,
    };
    let report = &mut run.steps[1].report;
    (report.verdict, report.stationarity) = (Verdict::Unstable, vec![test("ttft", true), test("rtf", false)]);
    let all = diagnose(&run);
    assert_eq!(found(&all[0]), [Symptom::StillRising]);
    assert!(all[0].findings[0].seen.en.contains("ttft +0.4 from its beginning"), "{:?}", all[0].findings[0]);
}
