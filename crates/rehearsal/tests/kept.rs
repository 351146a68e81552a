//! What a run directory keeps of a ladder: the case and the report tell the same of it, and it can be judged again.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use std::fs;
use std::path::Path;

use common::{climb, tenth};
use tapedeck_answers::LadderAnswer;
use tapedeck_config::Config;
use tapedeck_report::rescore::{Changes, RescoreError, rescore};
use tapedeck_report::{Answer, Run};
use tapedeck_slo::{Capacity, TierReport, Verdict};

/// Climbs a ladder and holds what the case answers against what its files say.
fn told_alike(config: Config) -> (LadderAnswer, Run, tempfile::TempDir) {
    let tmp = tempfile::tempdir().unwrap();
    let answer = climb(config, tmp.path());
    let run = Run::read(&answer.run).unwrap();
    // The rehearsed run was made without a preflight that writes down the tapes; nothing else may be odd.
    assert_eq!(run.warnings, []);
    let file = fs::read(answer.run.join("capacity.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Capacity>(&file).unwrap(), answer.capacity);
    assert_eq!(Answer::of(&run).short.as_ref(), Some(&answer.capacity));
    let mut tiers: Vec<&TierReport> = answer.tiers.iter().collect();
    tiers.sort_by_key(|t| t.streams);
    assert_eq!(run.ladder().iter().map(|s| &s.report).collect::<Vec<_>>(), tiers);
    for step in run.ladder() {
        let counted = step.calls.iter().filter(|c| c.counted).count() as u64;
        assert!(step.calls_agree && counted == step.report.calls_counted, "{}", step.name);
    }
    let rows = fs::read_to_string(answer.run.join("ladder.csv")).unwrap();
    let rows = rows.lines().skip(1).filter(|row| !row.contains(",superseded; ")).count();
    assert_eq!(rows, answer.tiers.len());
    (answer, run, tmp)
}

#[test]
fn every_repetition_of_a_tier_counts_in_the_case_and_in_the_report() {
    let mut config = tenth(1, &[3, 60]);
    config.ladder.repeat = 2;
    config.ladder.refine = false;
    let (answer, run, _tmp) = told_alike(config);
    assert_eq!(answer.tiers.len(), 4);
    let names: Vec<&str> = run.ladder().iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["N003", "N003-r2", "N060", "N060-r2"]);
}

#[test]
fn of_a_tier_that_was_played_until_it_was_sure_the_last_one_counts_and_it_can_be_judged_again() {
    let mut config = tenth(1, &[3, 6]);
    config.ladder.until_sure = true;
    config.ladder.refine = false;
    // Few loops, so that an estimate alone decides at first.
    (config.load.loops, config.load.loops_small, config.ladder.max_loops) = (1, 1, 8);
    let (answer, run, tmp) = told_alike(config);
    let superseded: Vec<&str> = run.steps.iter().filter(|s| s.superseded).map(|s| s.name.as_str()).collect();
    assert!(!superseded.is_empty(), "nothing was played again: {:?}", answer.tiers.len());
    assert!(run.ladder().iter().all(|s| s.id.loops.is_some() || !superseded.contains(&s.name.as_str())));

    // Judged again by the same limits, every step says the same: nothing is guessed.
    let same = tmp.path().join("same");
    rescore(&run, &Changes::default(), &same).unwrap();
    let again = Run::read(&same).unwrap();
    assert_eq!(again.steps.len(), run.steps.len());
    for (before, after) in run.steps.iter().zip(&again.steps) {
        assert_eq!((&before.id, &before.report), (&after.id, &after.report));
    }
    assert_eq!(Answer::of(&again).short, Answer::of(&run).short);
    // By a limit that nobody meets, every tier fails.
    let strict = tmp.path().join("strict");
    let changes = Changes { settings: vec!["slo.rtf_p95=0.001".parse().unwrap()], ..Changes::default() };
    rescore(&run, &changes, &strict).unwrap();
    let strict = Run::read(&strict).unwrap();
    assert!(strict.ladder().iter().all(|s| s.report.verdict == Verdict::Fail));

    without_evidence(&run, tmp.path());
}

/// As a run of schema 1 has it: the name alone tells a step, and nothing tells what it was judged from.
fn without_evidence(run: &Run, tmp: &Path) {
    let journal = fs::read_to_string(run.path.join("steps.jsonl")).unwrap();
    let lines = journal.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("id").is_some() && fields.remove("evidence").is_some());
        line.to_string() + "\n"
    });
    let lines: String = lines.collect();
    fs::write(run.path.join("steps.jsonl"), lines).unwrap();
    let old = Run::read(&run.path).unwrap();
    assert_eq!(old.ladder().len(), run.ladder().len());
    for (now, then) in run.steps.iter().zip(&old.steps) {
        assert_eq!((&now.id, now.superseded), (&then.id, then.superseded));
    }
    let refused = rescore(&old, &Changes::default(), &tmp.join("none")).unwrap_err();
    assert!(matches!(refused, RescoreError::NoEvidence { .. }));
    assert!(refused.to_string().contains("0.1.0 (commit 13300b5)"), "{refused}");
    assert!(!tmp.join("none").exists());
}
