//! The campaign: every case, one after the other, unattended. What one case finds flows into the next.
//!
//! All parts share one run directory. Each finished part is noted in `campaign.json`, each finished step in the journal
//! of the run, so that a campaign that was cut goes on at the step that was cut.

pub mod plan;

use tapedeck_answers::{
    CampaignAnswer, CampaignStop, Decision, Fault, LeftOut, NStar, NStarBound, NStarSource, Part, PartAnswer,
    PartDone, Rerun, RerunReason, TopologyAnswer,
};
use tapedeck_config::{CampaignConfig, Config, Policy};
use tapedeck_l10n::Localize;
use tapedeck_record::{ExitCode, HasExitCode, Schema};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::Capacity;

use crate::control::restart;
use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::progress::{Observer, Progress};
use crate::world::World;
use crate::{
    fault, footprint, ladder, long_calls, prior_results, quality, repeatability, single_stream, soak,
    topology,
};

pub use plan::{Estimate, Plan};

/// What to do in doubt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policies {
    /// Where TC-08 finds drift.
    pub on_drift: Policy,
    /// Where TC-07 finds a better topology.
    pub on_better: Policy,
}

impl From<&CampaignConfig> for Policies {
    fn from(config: &CampaignConfig) -> Self {
        Self { on_drift: config.on_drift, on_better: config.on_better }
    }
}

/// Tapes that the campaign plays beside Tape-A, as far as the config names them.
#[must_use]
pub fn needs(config: &Config) -> Vec<Role> {
    let labelled = (!config.labelled.manifest.as_os_str().is_empty()).then_some(Role::Labelled);
    soak::needs(config).into_iter().chain(labelled).collect()
}

/// Plays every part that is left. `policies` stand in for those of the config: they may differ when a campaign goes on.
///
/// # Errors
/// A failed preflight, an instance that went down twice, a run directory that cannot be written. What is missing in
/// the config leaves its part out and is no error.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    policies: Policies,
    watch: &dyn Observer,
) -> Result<CampaignAnswer, CaseError> {
    let mut answer: CampaignAnswer = prior_results::read(dir)?.unwrap_or_default();
    answer.schema = Schema::CURRENT;
    answer.simulated = world.simulated;
    answer.run = dir.path().to_path_buf();
    answer.stopped = None;
    let mut campaign = Campaign { world, dir, policies, watch, answer };
    campaign.play().await?;
    Ok(campaign.answer)
}

struct Campaign<'a> {
    world: &'a World,
    dir: &'a mut RunDir,
    policies: Policies,
    watch: &'a dyn Observer,
    answer: CampaignAnswer,
}

/// A part's answer: what was decided, in words, and whether the user stopped it.
type Outcome = (Decision, PartAnswer, bool);

impl Campaign<'_> {
    async fn play(&mut self) -> Result<(), CaseError> {
        if self.answer.parts.is_empty() && self.dir.steps().is_empty() {
            self.fresh().await?;
        }
        for (i, part) in Part::ALL.into_iter().enumerate() {
            let resumed = self.answer.done(part).is_some();
            if !resumed {
                self.begins(part, i + 1);
                if !self.part(part).await? {
                    return Ok(());
                }
                self.keep()?;
            }
            self.ended(part, i + 1, resumed);
            // Asked again when a campaign goes on that stopped here, perhaps with another policy.
            if !self.consequence(part).await? {
                return Ok(());
            }
        }
        self.keep()
    }

    /// A campaign begins with engines that have just been started, where it may start them.
    async fn fresh(&mut self) -> Result<(), CaseError> {
        let restarted = restart(self.world, self.dir, "campaign", &self.world.instances, self.watch).await?;
        if let Err(why) = restarted {
            self.say(&format!("beginning with the engines as they are: {why}"));
        }
        Ok(())
    }

    /// Plays one part and notes how it ended; false where the user stopped it.
    async fn part(&mut self, part: Part) -> Result<bool, CaseError> {
        let from_s = self.world.now_s();
        let outcome = if self.world.config.campaign.skip.contains(&part) {
            Err(CaseError::Control { what: LeftOut::Asked })
        } else if part.needs_n_star() && self.answer.n_star.is_none() {
            Err(CaseError::Control { what: LeftOut::NoNStar })
        } else {
            self.case(part).await
        };
        let (decision, sentence) = match outcome {
            Ok((.., true)) => {
                self.answer.interrupted = true;
                return Ok(false);
            }
            Ok((decision, sentence, false)) => (Some(decision), sentence),
            // What the config does not give cannot be measured; the other parts can.
            Err(CaseError::Control { what }) => (None, PartAnswer::LeftOut { why: what }),
            Err(e) if e.exit_code() == ExitCode::Usage => {
                (None, PartAnswer::LeftOut { why: LeftOut::Error { message: e.text() } })
            }
            Err(e) => return Err(e),
        };
        let seconds = self.world.now_s() - from_s;
        self.answer.parts.push(PartDone { part, decision, sentence, seconds });
        Ok(true)
    }

    async fn case(&mut self, part: Part) -> Result<Outcome, CaseError> {
        let (world, watch) = (self.world, self.watch);
        // A rerun may have found another than this run's own ladder; the campaign's file names both.
        let n_star = self.answer.n_star.map(|streams| NStar::new(streams, NStarSource::Campaign));
        let dir = &mut *self.dir;
        Ok(match part {
            Part::Tc01 => {
                let a = single_stream::run(world, dir, watch).await?;
                let well = a.decision == Decision::Yes || a.reasons.is_empty();
                let answer = match well {
                    true => PartAnswer::SingleStream,
                    false => PartAnswer::SingleStreamReasons { reasons: a.reasons },
                };
                (a.decision, answer, a.interrupted)
            }
            Part::Tc02 => {
                let a = footprint::run(world, dir, watch).await?;
                let streams = |streams| PartAnswer::StreamsByMemory { streams };
                let answer = a.streams_by_memory.map_or(PartAnswer::MemoryUnknown, streams);
                (a.decision, answer, a.interrupted)
            }
            Part::Tc03 => {
                let a = ladder::run(world, dir, watch).await?;
                let Capacity { n_star, state, .. } = a.capacity;
                self.answer.n_star = n_star;
                (decision(a.exit_code(None)), PartAnswer::Ladder { n_star, state }, a.interrupted)
            }
            Part::Tc03b => {
                let a = long_calls::run(world, dir, watch, n_star).await?;
                let Capacity { n_star, state, .. } = a.capacity;
                (a.decision, PartAnswer::LongCalls { n_star, state }, a.interrupted)
            }
            Part::Tc08 => {
                let a = repeatability::run(world, dir, watch, None).await?;
                (a.decision, PartAnswer::Repeatability { repeatability: a.repeatability }, a.interrupted)
            }
            Part::Tc04 => {
                let a = quality::run(world, dir, watch, n_star).await?;
                (a.decision, PartAnswer::Quality { answer: a.finding() }, a.interrupted)
            }
            Part::Tc05 => {
                let a = soak::run(world, dir, n_star, None, watch).await?;
                let decision = decision(a.exit_code());
                let reasons = a.soak.map(|s| s.complaints.into_iter().chain(s.unknown).collect::<Vec<_>>());
                let answer = match reasons {
                    Some(reasons) if decision == Decision::Yes || reasons.is_empty() => PartAnswer::Soak,
                    reasons => PartAnswer::SoakReasons { reasons: reasons.unwrap_or_default() },
                };
                (decision, answer, a.interrupted)
            }
            Part::Tc06 => {
                let a = fault::run(world, dir, n_star, Fault::Kill, watch).await?;
                let decision = decision(a.exit_code());
                let reasons: Vec<_> = a.complaints.into_iter().chain(a.unknown).collect();
                let well = decision == Decision::Yes || reasons.is_empty();
                let answer = if well { PartAnswer::Fault } else { PartAnswer::FaultReasons { reasons } };
                (decision, answer, a.interrupted)
            }
            Part::Tc07 => {
                let a = topology::run(world, dir, n_star, watch).await?;
                (decision(a.exit_code()), PartAnswer::Topology { why: a.why }, a.interrupted)
            }
        })
    }

    /// What follows from a part that puts the ladder in doubt; false where the campaign waits for a decision.
    async fn consequence(&mut self, part: Part) -> Result<bool, CaseError> {
        let drifted =
            part == Part::Tc08 && self.answer.done(part).is_some_and(|d| d.decision == Some(Decision::No));
        let better = match part {
            Part::Tc07 => prior_results::read::<TopologyAnswer>(self.dir)?.filter(|a| a.better),
            _ => None,
        };
        let (policy, flag, why, name) = match (drifted, &better) {
            (true, _) => (self.policies.on_drift, "--on-drift", RerunReason::Drift, "restarted".to_string()),
            (_, Some(a)) => {
                let name = a.recommended.clone().unwrap_or_default();
                let why = RerunReason::BetterTopology { why: a.why.clone() };
                (self.policies.on_better, "--on-better", why, name)
            }
            _ => return Ok(true),
        };
        if self.answer.reruns.iter().any(|r| r.why == why) {
            return Ok(true);
        }
        match policy {
            Policy::Accept => {
                self.say(&format!("{why}; noted, and going on"));
                Ok(true)
            }
            Policy::Ask => {
                self.answer.stopped = Some(CampaignStop::Waits { why, flag: flag.into() });
                self.keep()?;
                Ok(false)
            }
            Policy::Rerun => self.rerun(why, &name, better.is_some()).await,
        }
    }

    /// Climbs the ladder anew in a run of its own; false where the user stopped it.
    async fn rerun(&mut self, why: RerunReason, name: &str, topology: bool) -> Result<bool, CaseError> {
        self.say(&format!("{why}: climbing the ladder anew"));
        let world = self.world;
        let topology = world.config.topologies.iter().find(|t| topology && t.name == name);
        let mut there = match topology {
            Some(t) => world.on(t)?,
            None => world.clone(),
        };
        there.config.ladder.restart_each_tier |= topology.is_none();
        if topology.is_some() {
            topology::switch(world, self.dir, self.watch, None, topology).await?;
        }
        let root = self.dir.path().parent().unwrap_or(self.dir.path()).to_path_buf();
        let info = RunInfo {
            run_id: format!("{}-{name}", self.dir.info().run_id),
            case: "tc03".into(),
            ..self.dir.info().clone()
        };
        // A rerun that was cut is taken up where it was.
        let path = root.join(&info.run_id);
        let text = there.config.to_toml()?;
        let mut dir =
            if path.is_dir() { RunDir::resume(&path, &text)? } else { RunDir::create(&root, &info, &text)? };
        let climbed = ladder::run(&there, &mut dir, self.watch).await?;
        if topology.is_some() {
            topology::switch(world, self.dir, self.watch, topology, None).await?;
        }
        if climbed.interrupted {
            self.answer.interrupted = true;
            return Ok(false);
        }
        self.say(&format!("{name}: N* = {}", climbed.capacity.display()));
        if topology.is_none() {
            self.answer.n_star = climbed.capacity.n_star;
        }
        self.answer.reruns.push(Rerun {
            why,
            n_star: climbed.capacity.n_star,
            capacity: NStarBound::from(&climbed.capacity),
            run: dir.path().to_path_buf(),
        });
        self.keep()?;
        Ok(true)
    }

    fn keep(&self) -> Result<(), CaseError> {
        prior_results::write(self.dir, &self.answer)
    }

    fn say(&self, text: &str) {
        self.watch.on(&Progress::Note { text });
    }

    /// Tells whoever watches which part begins, and how much is left.
    fn begins(&self, part: Part, number: usize) {
        let plan = Plan::of(self.world, self.answer.n_star);
        let left = plan.parts.iter().filter(|p| self.answer.done(p.part).is_none());
        self.watch.on(&Progress::Part {
            part: part.name(),
            title: part.title(),
            number,
            of: Part::ALL.len(),
            expected_s: plan.parts.iter().find(|p| p.part == part).map_or(0.0, |p| p.seconds),
            remaining_s: left.map(|p| p.seconds).sum(),
        });
    }

    /// Tells how a part ended.
    fn ended(&self, part: Part, number: usize, resumed: bool) {
        if let Some(done) = self.answer.done(part) {
            self.watch.on(&Progress::PartDone {
                part: part.name(),
                title: part.title(),
                number,
                of: Part::ALL.len(),
                decision: done.decision,
                sentence: &done.sentence.to_string(),
                resumed,
            });
        }
    }
}

fn decision(code: ExitCode) -> Decision {
    match code {
        ExitCode::Ok => Decision::Yes,
        ExitCode::No => Decision::No,
        _ => Decision::Undecidable,
    }
}
