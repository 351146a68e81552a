//! A ladder that `tc03` rehearsed, in the hands of `tape-sizing` and `tc07`.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use crate::sizing::{fixture, json, sizing};

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
    assert!(
        answer["prediction_notes"][0]["text"].as_str().unwrap().contains("tiers is"),
        "{}",
        answer["prediction_notes"]
    );
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
