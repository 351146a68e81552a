//! `tape-sizing` as its users run it.

use crate::sizing::{fixture, json, sizing};

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
