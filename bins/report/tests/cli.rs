//! The command as its users run it.

use std::fs;

use assert_cmd::Command;

fn tape_report() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tape-report"))
}

#[test]
fn what_is_no_run_is_refused_and_leaves_nothing_behind() {
    let tmp = tempfile::tempdir().unwrap();
    let refused = tape_report().arg(tmp.path()).assert().code(3);
    let words = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(words.contains("holds nothing of a run") && words.contains("give the folder"), "{words}");
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    tape_report().arg(tmp.path().join("none")).assert().code(3);
}

#[test]
fn wrong_usage_is_two() {
    tape_report().assert().code(2);
    tape_report().args(["x", "--set", "slo.rtf_p95=1"]).assert().code(2);
    tape_report().args(["merge", "one", "--out", "x"]).assert().code(2);
}

#[test]
fn a_foreign_table_is_shown_without_a_number_of_ours() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("ladder.csv"), "N_total,tape\n30,tape-a\n").unwrap();
    tape_report().arg(tmp.path()).args(["--lang", "both"]).assert().code(0);
    for name in ["report.html", "report.zh.html", "data/calls.csv", "data/series.csv", "data/tiers.csv"] {
        assert!(tmp.path().join(name).is_file(), "{name} is missing");
    }
    // A number that is not there does not reach any other.
    tape_report().arg(tmp.path()).args(["--html-only", "--require", "1"]).assert().code(4);
}

#[test]
fn a_setting_that_does_not_exist_is_refused_with_the_nearest() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("run.toml"), "[slo]\n").unwrap();
    fs::write(tmp.path().join("ladder.csv"), "N_total\n").unwrap();
    let refused =
        tape_report().arg(tmp.path()).args(["--rescore", "--set", "slo.rtf_p59=0.6"]).assert().code(2);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("did you mean `slo.rtf_p95`?"));
}

#[test]
fn parquet_and_png_are_made_or_the_mend_is_said() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("ladder.csv"), "N_total,tape\n30,tape-a\n").unwrap();
    let asked = tape_report().arg(tmp.path()).args(["--parquet", "--png"]).assert();
    if cfg!(all(feature = "parquet", feature = "png")) {
        asked.code(0);
        for name in ["calls", "series", "tiers"] {
            assert!(fs::read(tmp.path().join(format!("data/{name}.parquet"))).unwrap().starts_with(b"PAR1"));
        }
    } else {
        let refused = asked.code(2);
        let words = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(words.contains("--features parquet,png"), "{words}");
        assert!(!tmp.path().join("data").exists());
    }
}

#[test]
fn a_limit_on_what_is_not_known_is_never_kept() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("ladder.csv"), "N_total,tape\n30,tape-a\n").unwrap();
    let limit = ["--html-only", "--fail", "final_s:p95<=2 by instance"];
    let open = tape_report().arg(tmp.path()).args(limit).assert().code(4);
    let words = String::from_utf8_lossy(&open.get_output().stdout).into_owned();
    assert!(words.contains("final_s:p95 <= 2 by instance: no step was judged"), "{words}");
    let refused = tape_report().arg(tmp.path()).args(["--fail", "finals:p95<=2"]).assert().code(2);
    let words = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(words.contains("did you mean `final_s`?") && words.contains("\n  ^^^^^^\n"), "{words}");
}

#[test]
fn a_promise_that_makes_no_sense_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("ladder.csv"), "N_total\n").unwrap();
    for (flags, words) in [
        (&["--blocking", "1.5"][..], "blocking"),
        (&["--blocking", "nan"], "blocking"),
        (&["--calls-per-hour", "-5"], "calls_per_hour"),
        (&["--mean-s", "0"], "mean_s"),
        (&["--service-level", "0.8"], "--within-s"),
        (&["--histogram", "a.csv", "--mean-s", "180"], "cannot be used with"),
    ] {
        let refused = tape_report().arg(tmp.path()).arg("--html-only").args(flags).assert().code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains(words), "{flags:?}: {said}");
    }
}
