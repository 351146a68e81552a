//! `tape-sizing` as its users run it.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn sizing(args: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("tape-sizing").unwrap().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(args: &[&str]) -> Value {
    let (code, out, err) = sizing(&[args, &["--json"]].concat());
    assert!(code == 0 || code == 1 || code == 4, "{code}: {err}");
    serde_json::from_str(&out).unwrap()
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

#[test]
fn without_flags_it_reckons_as_the_plan_does() {
    let value = json(&["kv"]);
    assert_eq!(value["token_bytes"], 114_688);
    assert_eq!(value["calls"][4]["peak"], 10_530.0);
    let (code, out, _) = sizing(&["supply"]);
    assert_eq!(code, 0);
    for figure in ["40.36", "18.28", "10.92", "7.24", "  68  ", "  30  ", "  18  "] {
        assert!(out.contains(figure), "{figure}: {out}");
    }
    let (_, out, _) = sizing(&["tape"]);
    assert!(out.contains("187.1") && out.contains("393.6"), "{out}");
}

#[test]
fn a_plan_file_is_read_and_flags_win_over_it() {
    let plan = fixture("plans/a40-3x030.toml");
    let plan = plan.to_str().unwrap();
    let value = json(&["--plan", plan, "supply", "--topology", "3x0.30"]);
    let pool = value["rows"][0]["supply"]["pool_gb"].as_f64().unwrap();
    assert!((pool - 10.6).abs() < 1e-9);
    let value = json(&["supply", "--plan", plan, "--topology", "3x0.30", "--overhead-gb", "3"]);
    let pool = value["rows"][0]["supply"]["pool_gb"].as_f64().unwrap();
    assert!((pool - 9.6).abs() < 1e-9);
}

#[test]
fn a_model_s_config_json_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    std::fs::write(
        &file,
        r#"{"num_hidden_layers": 2, "num_key_value_heads": 4, "head_dim": 64, "dtype": "float16"}"#,
    )
    .unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(json(&["kv", "--model-config", file])["token_bytes"], 2 * 2 * 4 * 64 * 2);
    assert_eq!(json(&["kv", "--model-config", file, "--dtype", "fp8"])["token_bytes"], 2 * 2 * 4 * 64);
    std::fs::write(file, "{}").unwrap();
    let (code, _, err) = sizing(&["kv", "--model-config", file]);
    assert_eq!(code, 2);
    assert!(err.contains("num_hidden_layers") && err.contains("num_key_value_heads"), "{err}");
}

#[test]
fn the_plan_s_example_needs_seven_lines() {
    let value = json(&["statement", "--n-star", "10", "--calls-per-hour", "50", "--mean-s", "180"]);
    let own = &value["carried"][1];
    assert_eq!(
        (&own["demand_erl"], &own["lines_needed"], &own["lines"]),
        (&2.5.into(), &7.into(), &7.into())
    );
    assert_eq!(value["enough"], true);
    let (code, out, _) = sizing(&["statement", "--n-star", "9", "--calls-per-hour", "50", "--mean-s", "180"]);
    assert_eq!(code, 1, "six lines are too few: {out}");
    assert!(out.contains("there are too few") && out.contains("What is uncertain:"), "{out}");
}

#[test]
fn a_histogram_tells_the_business_s_own_calls() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.csv");
    std::fs::write(&file, "duration_s,calls\n60,80\n280,20\n").unwrap();
    let file = file.to_str().unwrap();
    let value = json(&["statement", "--n-star", "42", "--n-star-long", "24", "--histogram", file]);
    assert_eq!(value["carried"][2]["n_star"], 24, "calls longer than Tape-A's take the other N*");
    std::fs::write(file, "duration_s,calls\n60,eighty\n").unwrap();
    let (code, _, err) = sizing(&["statement", "--n-star", "42", "--histogram", file]);
    assert_eq!(code, 2);
    assert!(err.contains("calls.csv") && err.contains("line 2") && err.contains("eighty"), "{err}");
}

#[test]
fn nonsense_is_refused_with_one_clear_error() {
    for (args, word) in [
        (&["kv", "--call-s", "-3"][..], "call length (s)"),
        (&["kv", "--call-s", "nan"], "call length (s)"),
        (&["kv", "--layers", "0"], "layers"),
        (&["kv", "--dtype", "int3"], "int3"),
        (&["kv", "--session", "x"], "session preset"),
        (&["kv", "--text-tokens-per-s", "-1"], "text tokens"),
        (&["supply", "--card-gb", "inf"], "memory of the card"),
        (&["supply", "--weights-gb", "60"], "leave nothing"),
        (&["supply", "--split", "0"], "at least one"),
        (&["supply", "--share", "1.2", "--split", "1"], "share"),
        (&["supply", "--topology", "3x0.5"], "must not exceed 1"),
        (&["instances", "--calls", "0"], "calls"),
        (&["instances", "--calls", "4", "--latency-calls", "-1"], "latency"),
        (&["tape", "--tape", "c"], "give a or b"),
        (&["statement", "--n-star", "0"], "N* is 0"),
        (&["statement", "--n-star", "10", "--hard-ceiling", "5"], "hard ceiling"),
        (&["statement", "--n-star", "10", "--blocking", "1.5"], "blocking"),
        (&["statement", "--n-star", "10", "--safety", "0"], "safety"),
        (&["statement", "--n-star", "10", "--calls-per-hour", "nan"], "calls per hour"),
        (&["statement", "--from", "/nowhere"], "/nowhere"),
        (&["what-if", "--from", "/nowhere", "--topology", "1y0.9"], "topology"),
        (&["kv", "--plan", "/nowhere.toml"], "/nowhere.toml"),
    ] {
        let (code, out, err) = sizing(args);
        assert_eq!(code, 2, "{args:?}: {out}{err}");
        assert!(err.starts_with("error: ") && err.contains(word), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    }
}

#[test]
fn the_pages_show_real_answers() {
    let program = env!("CARGO_BIN_EXE_tape-sizing");
    assert!(crate::pages::ask_again("docs/sizing.md", "tape-sizing", program) >= 3);
    assert!(crate::pages::ask_again("docs/from-n-star-to-a-sentence.md", "tape-sizing", program) >= 1);
}

#[test]
fn help_has_examples_and_exit_codes() {
    let (code, out, _) = sizing(&["--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Examples:") && out.contains("Exit codes:") && out.contains("what-if"), "{out}");
}

/// A rehearsed ladder on the short tape, against the built-in engines.
fn rehearsed(folder: &Path) -> String {
    let config = folder.join("config.toml");
    let text = format!(
        "[server]\nwindow_ms = 2000\n[tape]\nmanifest = {:?}\npool = {:?}\n[load]\nramp_s = 0.05\nwarm_up_s = 12.0\n\
         cool_down_s = 1.0\n[ladder]\ntiers = [3, 6, 12, 18, 24, 30, 36]\nrefine = false\n[slo]\nttft_basis = \"window\"\n",
        fixture("tapes/tape-a-tenth.json"),
        fixture("pool-tenth"),
    );
    std::fs::write(&config, text).unwrap();
    let run = Command::cargo_bin("tc03")
        .unwrap()
        .args(["--rehearse", "--quiet", "--config"])
        .arg(&config)
        .arg("--out")
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let found =
        std::fs::read_dir(folder).unwrap().flatten().find(|entry| entry.path().join("run.json").is_file());
    found.unwrap().path().to_str().unwrap().to_owned()
}

/// TC-07 in the run of the ladder: two engines instead of three, each like one of the three.
fn topologies_are_predicted_before_they_are_measured(folder: &Path, run: &str) {
    let config = folder.join("topologies.toml");
    let text = std::fs::read_to_string(folder.join("config.toml")).unwrap();
    let topologies = "[[topologies]]\nname = \"3x0.30\"\n[[topologies]]\nname = \"2x0.46\"\nrehearsal = { instances = 2 }\n\
                      [topology]\nshares = [0.6, 0.8, 1.0, 1.2]\n";
    std::fs::write(&config, format!("{text}{topologies}")).unwrap();
    let compared = Command::cargo_bin("tc07")
        .unwrap()
        .args(["--rehearse", "--into", run, "--config"])
        .arg(&config)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&compared.stdout);
    assert_eq!(compared.status.code(), Some(0), "{out}{}", String::from_utf8_lossy(&compared.stderr));
    assert!(out.contains("if instances of a card share its time, predicted, not measured"), "{out}");
    let answer: Value =
        serde_json::from_str(&std::fs::read_to_string(Path::new(run).join("tc07.json")).unwrap()).unwrap();
    assert!(answer["foretold"][0].as_str().unwrap().contains("tiers is"), "{}", answer["foretold"]);
    let predicted = |at: usize| answer["candidates"][at]["predicted"].as_array().unwrap().clone();
    assert_eq!((predicted(0).len(), predicted(1).len()), (1, 2));
    // The two are as independent of each other as the three were, so the first supposition is the true one.
    for one in [&predicted(0)[0], &predicted(1)[0]] {
        assert_eq!(one["agrees"], true, "{}", answer["candidates"]);
    }
}

#[test]
fn a_rehearsed_ladder_is_calibrated_stated_and_extrapolated() {
    let folder = tempfile::tempdir().unwrap();
    let run = rehearsed(folder.path());

    let value = json(&["calibrate", "--from", &run, "--deployment", "3x0.30"]);
    let row = |figure: &str| {
        value["rows"].as_array().unwrap().iter().find(|r| r["figure"] == figure).unwrap().clone()
    };
    assert_eq!(row("pool_tokens")["measured"], 94_416.0);
    // The rehearsed card holds two gigabytes beside weights and pool.
    let overhead = row("overhead_gb")["measured"].as_f64().unwrap();
    assert!((1.9..2.1).contains(&overhead), "{overhead}");
    let stream = row("stream_tokens");
    let interval: Vec<f64> =
        stream["interval"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let tokens = stream["measured"].as_f64().unwrap();
    assert!(interval[0] < tokens && tokens < interval[1] && tokens > 50.0, "{stream}");

    let (code, out, err) = sizing(&["statement", "--from", &run, "--blocking", "0.02"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("tape-a-tenth") && out.contains("simulated") && out.contains("2 % of calls"),
        "{out}"
    );

    let what_if = ["what-if", "--from", &run, "--deployment", "3x0.30", "--topology", "1x0.92,2x0.46"];
    let value = json(&what_if);
    assert_ne!(value["fit"]["grade"], "poor", "{}", value["fit"]["sentences"]);
    let measured = value["n_star_measured"].as_u64().unwrap();
    for prediction in value["predictions"].as_array().unwrap() {
        assert_eq!(prediction["kind"], "predicted, not measured");
        // The built-in engines are independent of each other: each carries what one of three carried, give or take a tier.
        let instances = prediction["instances"].as_u64().unwrap();
        let wanted = measured * instances / 3;
        let bound = |key: &str| prediction[key].as_u64().unwrap();
        assert!(
            bound("low") <= wanted + instances && wanted <= bound("high") + 2 * instances,
            "{prediction}"
        );
    }
    assert_eq!(value["predictions"].as_array().unwrap().len(), 3, "as measured, and two topologies");

    topologies_are_predicted_before_they_are_measured(folder.path(), &run);
    let after = json(&what_if);
    assert_eq!(after["fit"], value["fit"], "tiers of TC-07 are no tiers of the ladder");

    let other = fixture("tapes/tape-a.json");
    let (code, _, err) = sizing(&["what-if", "--from", &run, "--run-manifest", other.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("is not the tape that the run played"), "{err}");
    let (code, _, err) = sizing(&["what-if", "--from", &run, "--deployment", "2x0.46"]);
    assert_eq!(code, 2);
    assert!(err.contains("the run has 3"), "{err}");
}
