//! The flags that every case shares, and what they come to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use tapedeck_answers::{NStar, NStarSource};
use tapedeck_cases::{CaseError, Observer, Progress, Role, World};
use tapedeck_cli::{Failure, address, signals};
use tapedeck_config::{Config, Setting};
use tapedeck_record::Schema;
use tapedeck_rundir::{RunDir, RunDirError, RunInfo, read_run};
use tapedeck_slo::assertion::{Assertion, told};
use tapedeck_what_if::WhatIf;

use crate::assertions;
use crate::console::Console;

/// The demo config, used by `--rehearse` when no other is given.
const DEMO: &str = include_str!("../../../fixtures/plans/demo.toml");
/// Where the demo config stands in a checkout; its paths are relative to it.
const DEMO_PATH: &str = "fixtures/plans/demo.toml";

/// Flags that every case shares.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Config file (TOML); see docs/config.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set a key of the config, e.g. slo.rtf_p95=0.6; may be given several times; see docs/config.md
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<Setting>,
    /// Folder under which the run makes its own [default: results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Play against the built-in engine under a paused clock; everything is then simulated
    #[arg(long)]
    pub rehearse: bool,
    /// Seed of everything random [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Go on with an interrupted run; without a folder, with the newest one of this case
    #[arg(long, value_name = "RUN_DIR", num_args = 0..=1)]
    pub resume: Option<Option<PathBuf>>,
    /// Write into this run, also one of another case, and use what earlier cases left there
    #[arg(long, value_name = "RUN_DIR", conflicts_with = "resume")]
    pub into: Option<PathBuf>,
    /// Exit with 0 only if the capacity reaches N streams
    #[arg(long, value_name = "N")]
    pub require: Option<u32>,
    /// Exit with 1 unless this limit is kept, e.g. 'final_s:p95<=2 by instance'; may be given several times; see
    /// docs/figures.md
    #[arg(long, value_name = "LIMIT")]
    pub fail: Vec<Assertion>,
    /// Show Prometheus what the client measures, at http://ADDR/metrics; port 0 takes a free one and tells it
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Print the answer only
    #[arg(long)]
    pub quiet: bool,
    /// Print one JSON object per event instead of a table
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}

impl Common {
    /// The config that the flags name, with single keys overridden.
    ///
    /// # Errors
    /// A config that cannot be read, none where one is needed, a setting that does not fit.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None if self.rehearse => demo()?,
            None => {
                return Err(Failure::Usage(
                    "nothing to speak to: give --config FILE, or --rehearse to use the built-in engine"
                        .into(),
                ));
            }
        };
        for Setting { key, value } in &self.settings {
            config.set(key, value)?;
        }
        if let Some(out) = &self.out {
            config.run.out.clone_from(out);
        }
        if let Some(seed) = self.seed {
            config.run.seed = seed;
        }
        Ok(config)
    }

    /// Whether the command writes into a run that is there already.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        self.into.is_some() || self.resume.is_some()
    }

    /// Carries out a case: makes its world (rehearsed or real, with Tape-A and the tapes it `needs`), opens its run
    /// directory, shows its progress, and hands all of it to `script`.
    ///
    /// # Errors
    /// A config, tape or run directory that cannot be used, and whatever the script gives up for.
    pub fn carry_out<A>(
        &self,
        config: Config,
        case: &str,
        needs: &[Role],
        script: impl AsyncFnOnce(&mut World, &mut RunDir, &Console) -> Result<A, CaseError>,
    ) -> Result<(A, Console), Failure> {
        config.check()?;
        let interrupt = signals::interrupt()?;
        if self.rehearse && self.listen.is_some() {
            return Err(Failure::Usage(
                "--listen shows a run while it happens, and in a rehearsal an hour passes in moments: nothing could be \
                 scraped in time; play against `tape-engine` over real sockets instead (--config, see docs/prometheus.md)"
                    .into(),
            ));
        }
        let console = Console::new(self.json, self.quiet).exposing(self.listen, case)?;
        let refused = |source| Failure::System { what: "start a runtime", source };
        let answer = if self.rehearse {
            let played = tapedeck_rehearsal::run(async {
                let world = tapedeck_rehearsal::world_with(config, needs, interrupt)?;
                self.within(world, case, &console, script).await
            });
            played.map_err(refused)??
        } else {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
            runtime.block_on(async {
                let mut world = World::real(config, needs, interrupt)?;
                world.recognise_engines().await;
                self.within(world, case, &console, script).await
            })?
        };
        console.finish();
        Ok((answer, console))
    }

    async fn within<A>(
        &self,
        mut world: World,
        case: &str,
        console: &Console,
        script: impl AsyncFnOnce(&mut World, &mut RunDir, &Console) -> Result<A, CaseError>,
    ) -> Result<A, Failure> {
        let info = RunInfo {
            schema: Schema::CURRENT,
            run_id: run_id(case, &world),
            case: case.into(),
            simulated: world.simulated,
            seed: world.config.run.seed,
            origin_unix_s: world.machine.unix_s(),
            tapes: world.tape_digests(),
        };
        world.prediction = Some(Arc::new(WhatIf));
        let mut dir = self.run_dir(&info, &world.config)?;
        if self.has_run() {
            world.resume_clock(&dir).await;
        }
        let path = dir.path().display().to_string();
        console.on(&Progress::Run { path, simulated: world.simulated, paused: world.paused });
        let answer = script(&mut world, &mut dir, console).await?;
        let findings = assertions::check(&self.fail, &console.steps(), &dir)?;
        console.found(told(&self.fail, &findings), findings);
        Ok(answer)
    }

    /// The run directory: a new one, the one to go on with, or the one to write into.
    ///
    /// # Errors
    /// A folder that cannot be made or is no run of this case.
    pub fn run_dir(&self, info: &RunInfo, config: &Config) -> Result<RunDir, Failure> {
        let text = config.to_toml()?;
        if let Some(path) = &self.into {
            return Ok(RunDir::join(path, info, &text, |was| config.differs(was))?);
        }
        let Some(resume) = &self.resume else {
            return Ok(RunDir::create(&config.run.out, info, &text)?);
        };
        let path = match resume {
            Some(path) => path.clone(),
            None => newest(&config.run.out, &info.case)?,
        };
        let (was, _) = read_run(&path)?;
        let other_tape = info.tapes.iter().any(|(name, md5)| was.tapes.get(name) != Some(md5));
        if was.case != info.case || other_tape {
            let what = format!("case {} on tapes {:?}", was.case, was.tapes);
            return Err(RunDirError::OtherSettings { path, what }.into());
        }
        Ok(RunDir::resume(&path, &text)?)
    }
}

/// `tc03-<UTC>` for a real run; a rehearsal is named by its seed, so that the same seed gives the same files.
fn run_id(case: &str, world: &World) -> String {
    match world.machine.unix_s() {
        Some(unix_s) => {
            let at = Timestamp::from_duration(SignedDuration::from_secs_f64(unix_s)).unwrap_or_default();
            format!("{case}-{}", at.strftime("%Y%m%dT%H%M%SZ"))
        }
        None => format!("{case}-rehearsal-seed{}", world.config.run.seed),
    }
}

/// The demo config with its paths where the fixtures are: in the checkout around the working directory, or
/// around the program itself.
fn demo() -> Result<Config, Failure> {
    let from_here = std::env::current_dir().ok();
    let from_program = std::env::current_exe().ok();
    let found = [from_here, from_program]
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(DEMO_PATH))
        .find(|path| path.is_file());
    match found {
        Some(path) => Ok(Config::read(&path)?),
        None => Ok(Config::parse(DEMO, Path::new(DEMO_PATH))?),
    }
}

/// The newest run of a case under a folder, by the name's own order of time.
fn newest(root: &Path, case: &str) -> Result<PathBuf, Failure> {
    let runs = std::fs::read_dir(root).into_iter().flatten().flatten().filter_map(|entry| {
        let changed = entry.metadata().ok()?.modified().ok()?;
        let (info, _) = read_run(&entry.path()).ok()?;
        (info.case == case).then(|| (changed, entry.path()))
    });
    runs.max().map(|(_, path)| path).ok_or_else(|| {
        Failure::Usage(format!("there is no run of {case} under {} to resume", root.display()))
    })
}

/// The flag of the cases whose loads follow from N*.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct NStarFlag {
    /// N*, where the run directory holds none
    #[arg(long, value_name = "N")]
    pub n_star: Option<u32>,
}

impl NStarFlag {
    /// N* as far as the flag gives it. Refuses before anything is made where the case cannot have one.
    ///
    /// # Errors
    /// [`Failure::Usage`], naming what to do.
    pub fn given(self, common: &Common, case: &str) -> Result<Option<NStar>, Failure> {
        match self.n_star {
            None if !common.has_run() => Err(Failure::Usage(format!(
                "{case} needs N*: climb a ladder with `tc03` and name its folder with --into RUN_DIR, or give --n-star N"
            ))),
            given => Ok(given.map(|streams| NStar::new(streams, NStarSource::Flag))),
        }
    }
}

/// One of the numbers of a list.
///
/// # Errors
/// What is wrong, and how a list looks.
pub fn streams(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "give whole numbers with commas between them, e.g. 3,6,12".to_string())
}
