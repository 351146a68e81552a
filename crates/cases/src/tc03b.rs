//! TC-03b: long calls. Does N* hold when calls go on for minutes, and if not, what does?

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{Capacity, CapacityState, TierReport, Verdict, capacity, next_refinement};

use crate::content::Content;
use crate::decision::Decision;
use crate::earlier::NStar;
use crate::error::CaseError;
use crate::point::Point;
use crate::pools::{Occupation, occupation};
use crate::progress::Observer;
use crate::reel::Role;
use crate::steps::Steps;
use crate::world::World;
use crate::{earlier, environment};

/// The file that the answer is kept in.
pub const FILE: &str = "tc03b.json";

/// What the tape with long calls answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// Yes: N* holds with long calls too.
    pub decision: Decision,
    /// N* on short calls.
    pub n_star: NStar,
    /// Streams on Tape-B: the highest that passed below the first that failed.
    pub capacity: Capacity,
    /// Streams on Tape-B / N*, at most 1; empty where the first is not known.
    pub correction: Option<f64>,
    /// What the pool was expected to hold, before anything was played.
    pub predicted: Vec<Occupation>,
    /// What was played, in that order.
    pub tiers: Vec<TierReport>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

/// Plays Tape-B at shares of N*; where all of N* is too much, bisects for what is not.
///
/// # Errors
/// [`CaseError::Missing`] where N* is not known, and whatever keeps a point from being played.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    n_star: Option<NStar>,
) -> Result<Answer, CaseError> {
    let n_star = earlier::n_star(dir, n_star)?;
    environment::record(world, dir).await?;
    let instances = world.instances.len();
    let mut loads: Vec<u32> =
        world.config.long_calls.shares.iter().map(|&s| n_star.share(s, instances)).collect();
    loads.dedup();
    let predicted = occupation(world, dir, Role::B, &loads).await?;

    let mut steps = Steps::new(world, dir, watch);
    for expected in &predicted {
        steps.say(&expected.sentence());
    }
    let mut tiers: Vec<TierReport> = Vec::new();
    for &streams in &loads {
        tiers.extend(steps.play(&point(world, streams, false)).await?);
        if tiers.last().is_some_and(TierReport::red_line) {
            steps.say("the KV pool filled up or a request was preempted, so nothing higher is tried");
            break;
        }
    }
    let step = u32::try_from(instances).unwrap_or(u32::MAX).max(1);
    while !steps.interrupted && tiers.iter().any(|t| t.verdict == Verdict::Fail) {
        let Some(streams) = next_refinement(&tiers, step) else { break };
        match steps.play(&point(world, streams, true)).await? {
            Some(report) => tiers.push(report),
            None => break,
        }
    }
    let interrupted = steps.interrupted;
    let capacity = capacity(&tiers, &world.config.slo);
    let answer = Answer {
        decision: decide(&capacity, n_star.streams),
        correction: correction(&capacity, n_star.streams),
        n_star,
        capacity,
        predicted,
        tiers,
        simulated: world.simulated,
        interrupted,
        run: dir.path().to_path_buf(),
    };
    if !interrupted {
        earlier::write(dir, FILE, &answer)?;
    }
    Ok(answer)
}

fn point(world: &World, streams: u32, refinement: bool) -> Point {
    Point {
        refinement,
        points_planned: u32::try_from(world.config.long_calls.shares.len()).unwrap_or(u32::MAX),
        content: Content::Tape(Role::B),
        labels: vec!["long calls".into()],
        ..Point::new(format!("tc03b-N{streams:03}"), streams, Point::loops(&world.config.load, streams))
    }
}

/// Whether the whole of N* passed: nothing above it is asked, so a capacity that is censored there is an answer.
fn decide(capacity: &Capacity, n_star: u32) -> Decision {
    match (capacity.n_star, capacity.state) {
        (Some(n), CapacityState::Censored | CapacityState::Exact) if n >= n_star => Decision::Yes,
        (_, CapacityState::Exact | CapacityState::None) => Decision::No,
        _ => Decision::Undecidable,
    }
}

/// Long calls / short calls: below 1 where the pool fills up with length.
fn correction(capacity: &Capacity, n_star: u32) -> Option<f64> {
    match (capacity.n_star, capacity.state) {
        (Some(n), CapacityState::Exact | CapacityState::Censored) => {
            Some((f64::from(n) / f64::from(n_star)).min(1.0))
        }
        (None, CapacityState::None) => Some(0.0),
        _ => None,
    }
}

impl Answer {
    /// The answer in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let NStar { streams, source } = &self.n_star;
        match self.decision {
            Decision::Yes => format!("N* = {streams} ({source}) holds with long calls"),
            Decision::No => format!(
                "N* = {streams} ({source}) does not hold with long calls: {} with them{}",
                self.capacity.display(),
                self.correction.map(|c| format!(", correction {c:.2}")).unwrap_or_default()
            ),
            Decision::Undecidable => {
                format!(
                    "not decidable with long calls: {} of N* = {streams} ({source})",
                    self.capacity.display()
                )
            }
        }
    }
}
