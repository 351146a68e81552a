//! Ladders over the built-in engine, as every test here climbs them.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use tapedeck_answers::LadderAnswer;
use tapedeck_cases::{Quiet, ladder};
use tapedeck_config::{Config, LadderConfig, LoadConfig};
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::{Limits, TtftBasis};
use tokio::sync::watch;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The demo on the tape a tenth as long: ramp and warm-up shrink with it.
pub(crate) fn tenth(seed: u64, tiers: &[u32]) -> Config {
    let mut config = Config {
        load: LoadConfig { ramp_s: 0.05, warm_up_s: 12.0, cool_down_s: 6.0, ..LoadConfig::default() },
        ladder: LadderConfig { tiers: tiers.to_vec(), ..LadderConfig::default() },
        slo: Limits { ttft_basis: TtftBasis::Window, ..Limits::default() },
        ..Config::default()
    };
    config.server.window_ms = Some(2000);
    config.tape.manifest = fixtures().join("tapes/tape-a-tenth.json");
    config.tape.pool = fixtures().join("pool-tenth");
    config.run.seed = seed;
    config
}

/// Climbs the ladder in a run directory of its own under `out`.
pub(crate) fn climb(config: Config, out: &Path) -> LadderAnswer {
    let seed = config.run.seed;
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let world = world(config, interrupt).unwrap();
        let info = RunInfo {
            run_id: format!("seed{seed}"),
            case: "tc03".into(),
            simulated: true,
            seed,
            ..RunInfo::default()
        };
        let mut dir = RunDir::create(out, &info, &world.config.to_toml().unwrap()).unwrap();
        ladder::run(&world, &mut dir, &Quiet).await.unwrap()
    })
    .unwrap()
}
