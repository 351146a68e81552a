//! `tape-erlang`: what it prints and what it answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use clap::Parser;
use serde_json::Value;
use tapedeck_calculators::tape_erlang::{Cli, run};
use tapedeck_record::ExitCode;

fn said(question: &str) -> Result<String, String> {
    let cli = Cli::try_parse_from(std::iter::once("tape-erlang").chain(question.split(' ')))
        .map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    match run(&cli, &mut out) {
        Ok(code) => assert_eq!(code, ExitCode::Ok),
        Err(failure) => {
            assert_eq!(failure.exit_code(), ExitCode::Usage);
            return Err(failure.to_string());
        }
    }
    Ok(String::from_utf8(out).unwrap())
}

fn figures(question: &str) -> Vec<Value> {
    let text = said(&format!("{question} --json")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn figure(question: &str, key: &str) -> f64 {
    let found = figures(question);
    assert_eq!(found.len(), 1);
    found[0][key].as_f64().unwrap_or_else(|| panic!("no {key} in {}", found[0]))
}

#[test]
fn each_figure_is_explained() {
    let text = said("b --traffic 2.5 --lines 7").unwrap();
    let expected =
        "blocking   0.009983 (0.9983 %)  share of calls that find every line busy and are lost (Erlang B)";
    assert!(text.lines().any(|line| line == expected), "{text}");
    assert_eq!(text.lines().count(), 5);
}

#[test]
fn every_question_has_an_answer() {
    for (question, key, expected) in [
        ("b --traffic 2.5 --lines 7", "blocking", 0.009_983_01),
        ("b --traffic 1 --lines 10000", "log10_blocking", -35_659.888_9),
        ("c --traffic 2.5 --lines 7", "waiting", 0.015_443_5),
        ("c --traffic 2.5 --lines 7 --mean-s 180 --within-s 20", "mean_wait_of_waiting_s", 40.0),
        ("lines --traffic 2.5 --blocking 0.01", "lines", 7.0),
        ("lines --traffic 2.5 --blocking 0.01 --recall 0.7", "lines", 8.0),
        ("lines --sources 10 --per-source 0.25 --blocking 0.01", "lines", 6.0),
        ("lines --sources 10 --traffic 2.5 --blocking 0.01", "lines", 6.0),
        ("lines --traffic 2.5 --waiting 0.05", "lines", 6.0),
        ("lines --traffic 0.8 --mean-wait-s 721 --mean-s 180", "lines", 1.0),
        ("traffic --lines 7 --blocking 0.01", "traffic", 2.500_94),
        ("traffic --lines 1 --mean-wait-s 720 --mean-s 180", "traffic", 0.8),
        ("traffic --lines 10 --sources 10000 --blocking 0.01", "per_source", 0.000_446_3),
        ("extended-b --traffic 2.5 --lines 7 --recall 0", "blocking", 0.009_983_01),
        ("engset --sources 2 --per-idle-source 1 --lines 1", "blocking", 0.5),
        ("a --traffic 2.5 --lines 7 --mean-s 180 --patience-s 1e9", "waiting", 0.015_443_5),
        ("busy-hour --calls-per-hour 50 --mean-s 180", "traffic", 2.5),
        ("busy-hour --calls-per-day 600 --mean-s 180", "calls_per_hour", 62.5),
        ("split --traffic 24 --groups 3 --lines-each 10", "lines_each_for_equal", 13.0),
    ] {
        let found = figure(question, key);
        assert!((found / expected - 1.0).abs() < 2e-4, "{question}: {key} is {found}, not {expected}");
    }
}

#[test]
fn the_inverse_agrees_with_the_forward_question() {
    let level = "--within-s 20 --mean-s 180";
    let lines = figure(&format!("lines --traffic 10 --service-level 0.8 {level}"), "lines");
    assert!(figure(&format!("c --traffic 10 --lines {lines} {level}"), "service_level") >= 0.8);
    assert!(figure(&format!("c --traffic 10 --lines {} {level}", lines - 1.0), "service_level") < 0.8);

    let patience = "--mean-s 180 --patience-s 60";
    let lines = figure(&format!("lines --traffic 10 --abandoning 0.05 {patience}"), "lines");
    assert!(figure(&format!("a --traffic 10 --lines {lines} {patience}"), "abandoning") <= 0.05);
    assert!(figure(&format!("a --traffic 10 --lines {} {patience}", lines - 1.0), "abandoning") > 0.05);
    let traffic =
        figure(&format!("traffic --lines 12 --service-level 0.9 --within-s 20 {patience}"), "traffic");
    let found =
        figure(&format!("a --traffic {traffic} --lines 12 --within-s 20 {patience}"), "service_level");
    assert!((found - 0.9).abs() < 1e-9, "{found}");
}

#[test]
fn a_table_marks_what_was_asked_and_leaves_out_what_is_unstable() {
    let text = said("lines --traffic 2.5 --blocking 0.01 --table").unwrap();
    let asked: Vec<&str> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert!(asked.len() == 1 && asked[0].contains(" 7 "), "{text}");
    let rows = figures("c --traffic 6.5 --lines 8 --table");
    let lines: Vec<u64> = rows.iter().map(|row| row["lines"].as_u64().unwrap()).collect();
    assert_eq!(lines, [7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(figures("split --traffic 24 --groups 3 --lines-each 10 --table").len(), 3);
    assert_eq!(figures("busy-hour --calls-per-hour 50 --mean-s 180 --table").len(), 6);
}

#[test]
fn what_cannot_be_answered_is_refused_in_words() {
    for (question, words) in [
        ("b --traffic -1 --lines 7", "traffic (Erlang) is -1: it must be a finite number above zero"),
        ("b --traffic nan --lines 7", "traffic (Erlang) is NaN"),
        ("b --traffic inf --lines 7", "traffic (Erlang) is inf"),
        ("b --traffic 0 --lines 7", "traffic (Erlang) is 0"),
        ("b --traffic 2.5 --lines 0", "at least one line"),
        ("b --traffic 2.5 --lines -3", "invalid value '-3'"),
        ("c --traffic 7 --lines 7", "unstable: 7 lines cannot carry 7 Erlang"),
        ("c --traffic 7.5 --lines 7 --table", "unstable: 7 lines cannot carry 7.5 Erlang"),
        ("c --traffic 2.5 --lines 7 --mean-s 0", "mean call length (s) is 0"),
        ("a --traffic 2.5 --lines 7 --mean-s 180 --patience-s -5", "mean patience"),
        ("extended-b --traffic 2.5 --lines 7 --recall 1.5", "recall factor is 1.5"),
        ("engset --sources 10 --per-source 1 --lines 7", "traffic per source (Erlang) is 1"),
        ("lines --traffic 2.5 --blocking 1", "blocking target is 1: it is a share"),
        ("lines --traffic 2.5 --blocking 0.01 --waiting 0.1", "cannot be used with"),
        ("lines --traffic 2.5", "--blocking <SHARE>|--waiting <SHARE>"),
        ("lines --traffic 2.5 --service-level 0.8", "--within-s"),
        ("lines --traffic 2.5 --abandoning 0.1", "--patience-s"),
        ("lines --sources 10 --blocking 0.01", "how busy is a source"),
        ("lines --sources 10 --traffic 12 --blocking 0.01", "below one Erlang a source"),
        ("traffic --lines 10 --sources 10 --blocking 0.01", "10 sources can never find 10 lines busy"),
        ("busy-hour --calls-per-day 600 --open-hours 30 --mean-s 180", "open hours is 3e1"),
        ("busy-hour --mean-s 180", "--calls-per-hour"),
    ] {
        let refusal = said(question).unwrap_err();
        assert!(refusal.contains(words), "{question}: {refusal}");
    }
}

#[test]
fn the_program_itself_says_no_with_the_code_of_a_wrong_question() {
    let run = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tape-erlang"))
        .args(["c", "--traffic", "7", "--lines", "7"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(run.stdout.is_empty() && String::from_utf8_lossy(&run.stderr).starts_with("error: unstable"));
}

#[test]
fn help_has_examples_that_work_and_exit_codes() {
    use clap::CommandFactory;
    let help = Cli::command().render_long_help().to_string();
    assert!(help.contains("Exit codes:"), "{help}");
    let examples: Vec<&str> = help.lines().filter_map(|l| l.strip_prefix("  tape-erlang ")).collect();
    assert!(examples.len() >= 5, "{help}");
    for example in examples {
        said(example).unwrap();
    }
}

#[test]
fn the_page_shows_real_answers() {
    assert!(crate::pages::ask_again("docs/erlang.md", "tape-erlang", env!("CARGO_BIN_EXE_tape-erlang")) >= 2);
}
