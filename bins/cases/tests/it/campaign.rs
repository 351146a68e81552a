//! The campaign and its last three cases as their users start them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use assert_cmd::Command;

fn command(name: &str) -> Command {
    let mut command = Command::cargo_bin(name).unwrap();
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

/// Exit code, standard output and standard error.
fn run(name: &str, args: &[&str]) -> (i32, String, String) {
    let output = command(name).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_dry_run_prints_the_plan_with_times_and_plays_nothing() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let (code, plan, _) = run("campaign", &["--rehearse", "--dry-run", "--n-star", "39", "--out", folder]);
    assert_eq!(code, 0);
    let order: Vec<&str> =
        plan.lines().filter(|l| l.starts_with("tc")).filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(order, ["tc01", "tc02", "tc03", "tc03b", "tc08", "tc04", "tc05", "tc06", "tc07"]);
    let last = plan.lines().last().unwrap();
    let hours: u32 = last.split_whitespace().last().unwrap().split(':').next().unwrap().parse().unwrap();
    assert!((10..16).contains(&hours), "{last}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn the_plan_is_json_on_request() {
    let (code, plan, _) = run("campaign", &["--rehearse", "--dry-run", "--json"]);
    assert_eq!(code, 0);
    let plan: serde_json::Value = serde_json::from_str(plan.trim()).unwrap();
    assert_eq!(plan["answer"]["parts"].as_array().unwrap().len(), 9);
    assert_eq!(plan["answer"]["guessed"], true);
}

#[test]
fn a_rehearsed_campaign_ends_with_every_verdict_in_plain_lines() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let args = [
        "--rehearse",
        "--config",
        "fixtures/plans/demo-tenth.toml",
        "--out",
        folder,
        "--on-better",
        "accept",
    ];
    let (code, said, error) = run("campaign", &args);
    assert!([0, 1].contains(&code), "{code}: {said}{error}");
    assert!(!said.contains('\u{1b}') && !error.contains('\u{1b}'), "{said}{error}");
    for part in ["tc01", "tc02", "tc03", "tc03b", "tc08", "tc04", "tc05", "tc06", "tc07"] {
        let verdict =
            said.lines().rev().find(|l| l.split_whitespace().next() == Some(part)).unwrap_or_default();
        let word = verdict.split_whitespace().nth(1);
        assert!(word == Some("good") || word == Some("no"), "{part}: {verdict}\n{said}");
    }
    let run = out.path().join("campaign-rehearsal-seed1");
    assert!(said.contains(&format!("tape-report {}", run.display())), "{said}");
    // Asked again, it answers from its books and plays nothing.
    let journal = std::fs::read(run.join("steps.jsonl")).unwrap();
    let again = [&args[..5], &["--into", run.to_str().unwrap()]].concat();
    let (_, said, _) = self::run("campaign", &again);
    assert!(said.contains("[9/9] tc07") && said.contains("(played before)"), "{said}");
    assert_eq!(std::fs::read(run.join("steps.jsonl")).unwrap(), journal);
}

#[test]
fn what_cannot_be_is_named_with_the_mend() {
    let (code, _, error) = run("campaign", &["--rehearse", "--skip", "tc99"]);
    assert!(code == 2 && error.contains("tc99") && error.contains("tc03b"), "{error}");
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    for case in ["tc05", "tc06", "tc07"] {
        let (code, _, error) = run(case, &["--rehearse", "--out", folder, "--quiet"]);
        assert!(code == 2 && error.contains("--n-star"), "{case}: {code} {error}");
    }
    // Nothing was made for it.
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}
