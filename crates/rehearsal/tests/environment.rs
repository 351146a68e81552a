//! `environment.toml`: what is written down when a case begins, and what is added after the first load point.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::tenth;
use tapedeck_cases::shell::Told;
use tapedeck_cases::{Machine, Quiet, ladder};
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_transport::BoxFuture;
use tokio::sync::watch;
use toml::Table;

/// A machine that answers commands: it repeats what it was asked, but for the one that fails.
#[derive(Debug)]
struct Parrot;

impl Machine for Parrot {
    fn unix_s(&self) -> Option<f64> {
        None
    }

    fn disk_free_bytes(&self, _: &Path) -> Option<u64> {
        None
    }

    fn max_open_files(&self) -> Option<u64> {
        Some(4096)
    }

    fn ask<'a>(&'a self, command: &'a str, limit: Duration) -> BoxFuture<'a, Option<Told>> {
        let told =
            if command == "broken" { Err("exit 3".into()) } else { Ok(format!("{command} in {limit:?}")) };
        Box::pin(std::future::ready(Some(told)))
    }
}

fn read(run: &Path) -> Table {
    std::fs::read_to_string(run.join("environment.toml")).unwrap().parse().unwrap()
}

#[test]
fn commands_are_asked_and_the_first_load_point_is_added_and_kept() {
    let tmp = tempfile::tempdir().unwrap();
    let mut config = tenth(1, &[3, 6]);
    config.environment.load_balancer = Some("built in, round robin".into());
    config.environment.timeout_s = 4.0;
    config.environment.commands =
        [("versions", "pip show vllm"), ("broken", "broken")].map(|(k, v)| (k.into(), v.into())).into();
    let (answer, path) = run(async {
        let (_keep, interrupt) = watch::channel(false);
        let mut world = world(config, interrupt).unwrap();
        world.machine = Arc::new(Parrot);
        let info = RunInfo { run_id: "run".into(), case: "tc03".into(), seed: 1, ..RunInfo::default() };
        let mut dir = RunDir::create(tmp.path(), &info, &world.config.to_toml().unwrap()).unwrap();
        let answer = ladder::run(&world, &mut dir, &Quiet).await.unwrap();
        (answer, dir.path().to_path_buf())
    })
    .unwrap();
    assert_eq!(answer.tiers.len(), 2);
    let known = read(&path);
    let text = |table: &Table, key: &str| table.get(key).and_then(|v| v.as_str().map(str::to_owned));
    assert_eq!(text(&known, "load_balancer").as_deref(), Some("built in, round robin"));
    assert_eq!(known["client"]["max_open_files"].as_integer(), Some(4096));
    assert_eq!(known["commands"]["versions"]["output"].as_str(), Some("pip show vllm in 4s"));
    assert_eq!(known["commands"]["broken"]["error"].as_str(), Some("exit 3"));
    assert!(known["commands"]["broken"].get("output").is_none());
    for instance in ["inst1", "inst2", "inst3"] {
        assert!(known["instances"][instance]["kv_pool_tokens"].as_integer().is_some_and(|tokens| tokens > 0));
    }
    // The first point is what is kept; the second says nothing that the first did not.
    let measured = known["measured"].as_table().unwrap();
    assert!(
        text(measured, "step").is_some_and(|step| step.contains('3') && !step.contains('6')),
        "{measured:?}"
    );
    let rates = measured["prefix_hit_rate"].as_table().unwrap();
    assert_eq!(rates.keys().collect::<Vec<_>>(), ["inst1", "inst2", "inst3"]);
    for (instance, rate) in rates {
        let told = answer.tiers[0].instances[instance].prefix_hit_rate;
        assert_eq!(rate.as_float(), told, "{instance}");
    }
    let before = measured["vram_before_load_bytes"]["GPU-simulated"].as_integer().unwrap();
    let total = known["gpus"]["GPU-simulated"]["memory_total_bytes"].as_integer().unwrap();
    assert!(0 < before && before < total, "{before} of {total}");
}

#[test]
fn a_rehearsal_asks_no_command() {
    let tmp = tempfile::tempdir().unwrap();
    let mut config = tenth(1, &[3]);
    config.environment.commands = [("versions".to_owned(), "pip show vllm".to_owned())].into();
    let known = read(&common::climb(config, tmp.path()).run);
    assert_eq!(known["commands"].as_table().unwrap().len(), 0);
    assert!(known.contains_key("measured"));
}
