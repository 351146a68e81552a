//! What survives what: commits, kills, hand edits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tapedeck_record::{
    CallMeta, CallRecord, Evidence, Outcome, OutcomeDetail, Sample, SampleBody, Schema, SpeechMap, StepId,
    Trace, WordCounts,
};
use tapedeck_rundir::{
    DERIVED, Event, RunDir, RunDirError, RunInfo, events_of, ladder_of, read_json, read_run,
};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Limits, Reason, StepBounds, TierEvidence, TierReport, judge};

const CONFIG: &str = "[load]\nchunk_ms = 100\n";

fn info() -> RunInfo {
    RunInfo { run_id: "run".into(), case: "tc03".into(), simulated: true, seed: 1, ..RunInfo::default() }
}

fn trace(stream: u32) -> Trace {
    Trace {
        stream,
        seq: 0,
        call: 0,
        tape: None,
        counted: true,
        c0_ns: 0,
        c1_ns: Some(1_000_000),
        chunk_ns: 100_000_000,
        audio_ns: 300_000_000,
        tail_silence_ns: 0,
        wake_late_us: vec![1100, 1200, 1300],
        blocked_us: vec![10, 10, 10],
        end_ns: Some(301_000_000),
        messages: vec![],
        final_ns: None,
        final_kind: None,
        kept_from_ns: None,
        done_ns: 400_000_000,
        rtt_us: vec![],
        instance: None,
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::FinalTimeout),
    }
}

fn record(trace: &Trace) -> CallRecord {
    let meta = CallMeta {
        index: 0,
        id: "a.wav".into(),
        duration_ms: 300,
        bucket_s: 30,
        channel: None,
        tags: Default::default(),
        speech: SpeechMap::new(vec![(0, 300).into()]),
    };
    score(trace, &meta, &Rules::new(Evidence::Position, None), &Words::default())
}

fn evidence(streams: u32) -> TierEvidence<'static> {
    let bounds = StepBounds { ramp_from_s: 0.0, window_from_s: 1.0, window_to_s: 2.0, drain_to_s: 3.0 };
    TierEvidence::new(streams, "A", &[], bounds)
}

fn report(streams: u32) -> TierReport {
    judge(&evidence(streams), &Limits::default())
}

fn play(dir: &mut RunDir, step: &str, streams: u32, partial: bool) {
    let mut writer = dir.begin(&StepId::parse(step)).unwrap();
    for stream in 0..streams {
        let trace = trace(stream);
        writer.call(&record(&trace), &trace).unwrap();
    }
    let gap = Sample { at_s: 1.0, source: "inst1".into(), body: SampleBody::Gap { why: "refused".into() } };
    writer.sample(&gap).unwrap();
    assert_eq!(writer.wake_late_p99_us(), Some(1300));
    dir.commit(writer, report(streams), evidence(streams).kept(), partial).unwrap();
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn a_committed_step_can_be_read_by_anybody() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    dir.event(&Event { at_s: 0.5, step: None, what: "begin".into(), detail: None }).unwrap();
    play(&mut dir, "N003", 3, false);

    let run = tmp.path().join("run");
    assert_eq!(lines(&run.join("calls.jsonl")).len(), 3);
    assert_eq!(lines(&run.join("series.jsonl")).len(), 1);
    assert_eq!(lines(&run.join("events.jsonl")).len(), 1);
    assert_eq!(lines(&run.join("ladder.csv")).len(), 2);
    let mut raw = String::new();
    let packed = fs::File::open(run.join("trace/N003.jsonl.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut raw).unwrap();
    let back: Vec<Trace> = raw.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(back, [trace(0), trace(1), trace(2)]);
    assert!(fs::read_to_string(run.join("hdr/N003.hlog")).unwrap().contains("wake_late_us"));
    // Every row has as many cells as the header.
    let tiers = lines(&run.join("tiers.csv"));
    assert_eq!(tiers[0].split(',').count(), tiers[1].split(',').count());
    assert!(tiers[0].starts_with("step,partial,streams,tape,"), "{}", tiers[0]);
}

#[test]
fn what_was_not_committed_is_cut_off_when_the_run_is_taken_up() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    let run = dir.path().to_path_buf();
    drop(dir);
    // As a kill in the middle of a commit leaves it: data appended, the journal line half written.
    for (file, text) in [("calls.jsonl", "{\"step\":\"N006\""), ("steps.jsonl", "{\"step\":\"N006\",\"par")] {
        OpenOptions::new().append(true).open(run.join(file)).unwrap().write_all(text.as_bytes()).unwrap();
    }
    let mut dir = RunDir::resume(&run, CONFIG).unwrap();
    assert!(dir.finished("N003").is_some());
    assert!(dir.finished("N006").is_none());
    play(&mut dir, "N006", 6, false);
    assert_eq!(lines(&run.join("calls.jsonl")).len(), 9);
    assert_eq!(lines(&run.join("ladder.csv")).len(), 3);
    let (_, steps) = read_run(&run).unwrap();
    assert_eq!(steps.iter().map(|s| s.step.as_str()).collect::<Vec<_>>(), ["N003", "N006"]);
}

#[test]
fn a_partial_step_stands_until_its_repetition_replaces_it() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, true);
    assert!(dir.finished("N003").is_none());
    assert!(lines(&dir.path().join("ladder.csv"))[1].contains("partial"));
    play(&mut dir, "N003", 3, false);
    let ladder = lines(&dir.path().join("ladder.csv"));
    assert_eq!(ladder.len(), 2);
    assert!(!ladder[1].contains("partial"));
}

#[test]
fn a_servers_words_and_word_errors_stand_side_by_side() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    let mut trace = trace(0);
    trace.outcome = OutcomeDetail::said(Outcome::ServerError, Some(1011), "out of memory");
    let mut call = record(&trace);
    call.words = Some(WordCounts { ref_tokens: 4, sub: 1, del: 0, ins: 0 });
    let mut writer = dir.begin(&StepId::parse("N001")).unwrap();
    writer.call(&call, &trace).unwrap();
    dir.commit(writer, report(1), evidence(1).kept(), false).unwrap();
    let line = fs::read_to_string(dir.path().join("calls.jsonl")).unwrap();
    assert_eq!(serde_json::from_str::<CallRecord>(&line).unwrap(), call);
}

#[test]
fn two_processes_cannot_write_one_run() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    assert!(matches!(RunDir::resume(dir.path(), CONFIG), Err(RunDirError::Busy { .. })));
}

#[test]
fn a_second_run_of_the_same_name_gets_its_own_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let first = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    let second = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    assert_ne!(first.path(), second.path());
    assert_eq!(second.info().run_id, "run-2");
}

#[test]
fn resuming_refuses_other_settings_and_other_folders() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    let run = dir.path().to_path_buf();
    drop(dir);
    let other = RunDir::resume(&run, "[load]\nchunk_ms = 160\n").unwrap_err();
    assert!(other.to_string().contains("chunk_ms = 160"), "{other}");
    assert!(matches!(RunDir::resume(tmp.path(), CONFIG), Err(RunDirError::NotARun { .. })));
}

#[test]
fn an_edited_journal_is_named_by_line() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    let run = dir.path().to_path_buf();
    drop(dir);
    fs::write(run.join("steps.jsonl"), "not json\n").unwrap();
    let error = read_run(&run).unwrap_err();
    assert!(matches!(error, RunDirError::BadLine { line: 1, .. }), "{error}");
}

#[test]
fn a_step_is_read_back_without_its_neighbours_and_without_what_was_cut_short() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    play(&mut dir, "N006", 2, true);
    play(&mut dir, "N006", 6, false);
    play(&mut dir, "tc08-N003", 4, false);
    let calls = |step: &str| dir.calls_of(step).unwrap().len();
    assert_eq!([calls("N003"), calls("N006"), calls("tc08-N003"), calls("N012")], [3, 6, 4, 0]);
    assert_eq!(dir.series_of("N006").unwrap().len(), 1);
}

#[test]
fn a_derived_run_gives_way_to_another_and_a_measured_one_does_not() {
    let tmp = tempfile::tempdir().unwrap();
    let mut measured = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut measured, "N003", 3, false);
    let refused = RunDir::derive(measured.path(), &info(), CONFIG, &["run"]).unwrap_err();
    assert!(matches!(refused, RunDirError::Measured { .. }) && !refused.of_system(), "{refused}");
    let out = tmp.path().join("derived");
    for names in [&["N003", "N006"][..], &["N003"]] {
        let mut dir = RunDir::derive(&out, &info(), CONFIG, &["run"]).unwrap();
        for name in names {
            let mut writer = dir.begin(&StepId::parse(name)).unwrap();
            let calls = measured.calls_of("N003").unwrap();
            calls.iter().try_for_each(|call| writer.record(call)).unwrap();
            let samples = measured.series_of("N003").unwrap();
            samples.iter().try_for_each(|sample| writer.sample(sample)).unwrap();
            dir.commit(writer, measured.steps()[0].report.clone(), None, false).unwrap();
        }
        dir.event(&Event { at_s: 1.0, step: None, what: "drained".into(), detail: None }).unwrap();
    }
    // Nothing is left of the first, and traces stay where they were measured.
    let (_, steps) = read_run(&out).unwrap();
    assert_eq!(steps.iter().map(|s| s.step.as_str()).collect::<Vec<_>>(), ["N003"]);
    assert_eq!(events_of(&out).unwrap().0.len(), 1);
    assert_eq!(read_json::<Vec<String>>(&out, DERIVED).unwrap().unwrap(), ["run"]);
    assert!(!out.join("trace").exists() && !out.join("hdr").exists());
    for file in ["calls.jsonl", "series.jsonl"] {
        let read = |run: &Path| fs::read(run.join(file)).unwrap();
        assert_eq!(read(&out), read(measured.path()));
    }
}

#[test]
fn another_case_joins_a_run_and_adds_its_tapes() {
    let tmp = tempfile::tempdir().unwrap();
    let tape = |name: &str| [(name.to_string(), "0".to_string())];
    let mut dir = RunDir::create(tmp.path(), &RunInfo { tapes: tape("a").into(), ..info() }, CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    let path = dir.path().to_path_buf();
    let newcomer = RunInfo { case: "tc04".into(), tapes: tape("b").into(), ..info() };
    assert!(RunDir::join(&path, &newcomer, "x = 1\n", |_| None).is_err(), "it is in use");
    drop(dir);
    assert!(RunDir::join(&path, &newcomer, "", |was| Some(was.to_string())).is_err());
    let joined = RunDir::join(&path, &newcomer, "x = 1\n", |_| None).unwrap();
    assert_eq!(joined.info().case, "tc03");
    assert_eq!(joined.info().tapes.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(joined.finished("N003").is_some());
    assert_eq!(fs::read_to_string(path.join("run-tc04.toml")).unwrap(), "x = 1\n");
}

#[test]
fn a_verdict_that_is_revised_stands_in_journal_and_tables_and_the_data_stay() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, true);
    play(&mut dir, "N003", 3, false);
    play(&mut dir, "N006", 6, false);
    let calls = dir.calls_of("N006").unwrap();
    let mut report = dir.finished("N003").unwrap().report.clone();
    report.verdict = tapedeck_slo::Verdict::Unstable;
    report.reasons = vec![Reason::NothingProven];
    dir.revise([("N003", &report), ("N999", &report)]).unwrap();
    let unstable = |dir: &RunDir| {
        let row = lines(&dir.path().join("ladder.csv"))[1].clone();
        assert!(row.starts_with("3,") && row.contains("unstable"), "{row}");
    };
    unstable(&dir);
    // What is written afterwards follows the revised journal, and so does a run that is taken up again.
    play(&mut dir, "N012", 12, false);
    let run = dir.path().to_path_buf();
    drop(dir);
    let dir = RunDir::resume(&run, CONFIG).unwrap();
    unstable(&dir);
    assert_eq!(dir.steps().len(), 4);
    assert_eq!((dir.calls_of("N006").unwrap(), dir.calls_of("N012").unwrap().len()), (calls, 12));
}

/// A run that version 0.1.0 (commit 13300b5) recorded: two tiers, each played twice, again with more loops.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/run-0.1.0")
}

#[test]
fn a_run_of_schema_1_is_read_by_the_names_of_its_steps() {
    let (info, steps) = read_run(&recorded()).unwrap();
    assert_eq!((info.schema, info.case.as_str()), (Schema::FIRST, "tc03"));
    assert!(steps.iter().all(|s| s.evidence.is_none() && s.id.to_string() == s.step));
    let ids: Vec<_> = steps.iter().map(|s| (s.id.streams, s.id.loops, s.id.repetition)).collect();
    let of = |n| [(n, None, 1), (n, Some(2), 1), (n, None, 2), (n, Some(2), 2)];
    assert_eq!(ids, [of(3), of(4)].concat());
    // The case said N* >= 4: of each repetition the tier with more loops counts.
    let tiers: Vec<&str> =
        ladder_of(&steps.iter().collect::<Vec<_>>()).iter().map(|s| s.step.as_str()).collect();
    assert_eq!(tiers, ["N003-x2", "N003-x2-r2", "N004-x2", "N004-x2-r2"]);
}

#[test]
fn a_run_of_a_newer_version_is_refused_by_its_schema() {
    let tmp = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(tmp.path(), &info(), CONFIG).unwrap();
    play(&mut dir, "N003", 3, false);
    let run = dir.path().to_path_buf();
    drop(dir);
    let text = fs::read_to_string(run.join("run.json")).unwrap();
    assert!(text.starts_with("{\"schema\":2,"), "{text}");
    fs::write(run.join("run.json"), text.replace("\"schema\":2", "\"schema\":3,\"hue\":\"red\"")).unwrap();
    let refused = [read_run(&run).unwrap_err(), RunDir::resume(&run, CONFIG).unwrap_err()];
    for e in refused {
        assert!(matches!(e, RunDirError::Newer { schema: 3, .. }), "{e}");
        assert!(e.to_string().contains("schema 3") && e.to_string().contains("up to schema 2"), "{e}");
    }
}
