//! Every config that is shipped works.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use std::path::{Path, PathBuf};

use tapedeck_config::Config;
use tapedeck_tape::Manifest;

fn plans() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect()
}

#[test]
fn every_plan_parses_and_checks_and_its_tapes_are_there() {
    let plans = plans();
    assert!(plans.len() >= 2, "{plans:?}");
    for path in plans {
        let config = Config::read(&path).unwrap_or_else(|e| panic!("{e}"));
        config.check().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        config.dialect().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for tape in [&config.tape, &config.tape_b, &config.labelled] {
            if !tape.manifest.as_os_str().is_empty() {
                Manifest::read(&tape.manifest).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert!(tape.pool.is_dir(), "{}: {}", path.display(), tape.pool.display());
            }
        }
    }
}

#[test]
fn the_a40_plan_is_the_deployment_of_three_instances() {
    let plans = plans();
    let path = plans.iter().find(|path| path.ends_with("a40-3x030.toml")).unwrap();
    let config = Config::read(path).unwrap();
    let (default, slo) = (Config::default(), &config.slo);
    assert_eq!(config.instances.len(), 3);
    assert!(config.instances.iter().all(|i| i.metrics.is_some() && i.commands.kill.is_some()));
    assert_eq!(config.ladder.tiers, default.ladder.tiers);
    assert_eq!((slo.ttft_p95_s, slo.rtf_p95, slo.final_p95_s, slo.safety_factor), (1.0, 0.5, 2.0, 0.7));
    assert_eq!(config.sizing.topology.as_deref(), Some("3x0.30"));
    assert!(config.gpu.command.is_some() && config.environment.load_balancer.is_some());
}
