//! What a campaign will play, and about how long it takes.

use serde::{Deserialize, Serialize};
use tapedeck_answers::{NStar, NStarSource, Part};
use tapedeck_config::Config;

use crate::loaded_tape::Role;
use crate::point::Point;
use crate::topology::load;
use crate::world::World;

/// Lengths of a tape, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    /// The whole tape.
    pub tape_s: f64,
    /// Its longest call.
    pub longest_s: f64,
    /// How many calls it has.
    pub calls: u32,
}

impl Length {
    /// Of calls with these lengths, seconds.
    #[must_use]
    pub fn of(calls_s: impl IntoIterator<Item = f64>) -> Self {
        let mut length = Self { tape_s: 0.0, longest_s: 0.0, calls: 0 };
        for call_s in calls_s {
            length.tape_s += call_s;
            length.longest_s = length.longest_s.max(call_s);
            length.calls += 1;
        }
        length
    }
}

/// One part and its expected length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Which.
    pub part: Part,
    /// Loads that it plays, streams; with those that only perhaps become necessary.
    pub streams: Vec<u32>,
    /// About how long it takes at most, seconds.
    pub seconds: f64,
    /// Why it will be left out, where it will.
    pub left_out: Option<String>,
}

/// The whole campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// N* that the loads follow from: what is known, or a guess.
    pub n_star: u32,
    /// Whether N* is a guess: the middle of the ladder.
    pub guessed: bool,
    /// The parts, in the order of play.
    pub parts: Vec<Estimate>,
}

impl Plan {
    /// The plan for a world.
    #[must_use]
    pub fn of(world: &World, n_star: Option<u32>) -> Self {
        let length = |role: Role| {
            let tape = world.tape_of(role)?;
            Some(Length::of(tape.calls.iter().map(|c| f64::from(c.meta.duration_ms) / 1e3)))
        };
        Self::from_lengths(&world.config, length, world.instances.len(), n_star)
    }

    /// The plan for a config, the lengths of its tapes and a number of instances.
    #[must_use]
    pub fn from_lengths(
        config: &Config,
        length: impl Fn(Role) -> Option<Length>,
        instances: usize,
        n_star: Option<u32>,
    ) -> Self {
        let guess = || config.ladder.tiers.get(config.ladder.tiers.len() / 2).copied().unwrap_or(30);
        let known = NStar::new(n_star.unwrap_or_else(guess), NStarSource::Campaign);
        let tape_a = length(Role::A).unwrap_or(Length { tape_s: 480.0, longest_s: 180.0, calls: 9 });
        let step = |streams: u32, tape: Length, loops: u32| {
            let load = &config.load;
            load.ramp_s * f64::from(streams)
                + load.warm_up_s
                + tape.longest_s
                + tape.tape_s * f64::from(loops)
                + load.cool_down_s
        };
        let tier = |streams: u32| step(streams, tape_a, Point::loops(&config.load, streams));
        let shares =
            |shares: &[f64]| -> Vec<u32> { shares.iter().map(|s| known.share(*s, instances)).collect() };
        let parts = Part::ALL.map(|part| {
            let mut left_out = config.campaign.skip.contains(&part).then(|| "the config says so".to_string());
            let (streams, seconds): (Vec<u32>, f64) = match part {
                Part::Tc01 => {
                    let calls = f64::from(config.single.calls.min(tape_a.calls) * config.single.passes);
                    let mean_s = tape_a.tape_s / f64::from(tape_a.calls.max(1));
                    (vec![1], calls * mean_s.max(tape_a.longest_s / 2.0))
                }
                Part::Tc02 => {
                    let levels = &config.footprint.levels;
                    let one = |n: &u32| {
                        config.footprint.steady_s
                            + config.load.warm_up_s
                            + config.load.cool_down_s
                            + config.load.ramp_s * f64::from(*n)
                            + tape_a.tape_s / 2.0
                    };
                    (levels.clone(), levels.iter().map(one).sum::<f64>() + config.footprint.steady_s)
                }
                Part::Tc03 => {
                    // One tier beyond the first failure, and three of refinement at most.
                    let tiers = &config.ladder.tiers;
                    let above = |n: &&u32| **n > known.streams;
                    let upto = tiers.len() - tiers.iter().filter(above).count().saturating_sub(2);
                    let climbed: Vec<u32> = tiers.iter().copied().take(upto).collect();
                    let refined = if config.ladder.refine { 3.0 * tier(known.streams) } else { 0.0 };
                    let seconds = climbed.iter().map(|n| tier(*n)).sum::<f64>() + refined;
                    (climbed, seconds)
                }
                Part::Tc03b => match length(Role::B) {
                    Some(tape) => {
                        let loads = shares(&config.long_calls.shares);
                        let seconds = loads.iter().map(|n| step(*n, tape, 1)).sum();
                        (loads, seconds)
                    }
                    None => {
                        left_out.get_or_insert("the config names no [tape_b]".into());
                        (Vec::new(), 0.0)
                    }
                },
                Part::Tc08 => {
                    let n = config.repeat.middle.min(known.streams);
                    (vec![n], tier(n))
                }
                Part::Tc04 => match length(Role::Labelled) {
                    Some(tape) => {
                        let loads = shares(&config.quality.shares);
                        let longest = Length { tape_s: tape.tape_s.max(tape_a.tape_s), ..tape_a };
                        let baseline_s = step(1, tape, config.quality.baseline_loops);
                        let seconds = baseline_s
                            + loads.iter().map(|n| step(*n, longest, config.quality.loops)).sum::<f64>();
                        ([1].into_iter().chain(loads).collect(), seconds)
                    }
                    None => {
                        left_out.get_or_insert("the config names no [labelled] tape".into());
                        (Vec::new(), 0.0)
                    }
                },
                Part::Tc05 => {
                    let n = known.share(config.soak.share, instances);
                    (vec![n], step(n, Length { tape_s: config.soak.hours * 3600.0, ..tape_a }, 1))
                }
                Part::Tc06 => {
                    let loads = shares(&config.fault.shares);
                    let fault = &config.fault;
                    let one = |n: &u32| {
                        config.load.ramp_s * f64::from(*n)
                            + config.load.warm_up_s
                            + fault.steady_s
                            + fault.down_s
                            + fault.after_s
                            + config.load.finish_s
                            + config.load.cool_down_s
                    };
                    let seconds = loads.iter().map(one).sum();
                    (loads, seconds)
                }
                Part::Tc07 => {
                    let loads: Vec<u32> =
                        config.topology.shares.iter().map(|s| load(known.streams, *s, instances)).collect();
                    let topologies = config.topologies.len();
                    if topologies < 2 {
                        left_out.get_or_insert("the config gives fewer than two [[topologies]]".into());
                    }
                    let all = f64::from(u32::try_from(topologies).unwrap_or(u32::MAX));
                    let seconds = all * loads.iter().map(|n| tier(*n)).sum::<f64>();
                    (loads, seconds)
                }
            };
            let seconds = if left_out.is_some() { 0.0 } else { seconds };
            Estimate { part, streams, seconds, left_out }
        });
        Self { n_star: known.streams, guessed: n_star.is_none(), parts: parts.into() }
    }

    /// About how long everything takes, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|p| p.seconds).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_is_planned_two_tiers_beyond_n_star() {
        let mut config = Config::default();
        config.ladder.tiers = vec![3, 6, 9, 12, 15];
        let plan = |n_star| Plan::from_lengths(&config, |_| None, 3, n_star);
        let loads = |plan: &Plan, part| plan.parts.iter().find(|p| p.part == part).unwrap().streams.clone();
        let known = plan(Some(6));
        assert_eq!((known.n_star, known.guessed), (6, false));
        assert_eq!(loads(&known, Part::Tc03), [3, 6, 9, 12]);
        assert_eq!(loads(&plan(Some(15)), Part::Tc03), [3, 6, 9, 12, 15]);
        assert_eq!(loads(&plan(Some(1)), Part::Tc03), [3, 6]);
        let guessed = plan(None);
        assert_eq!((guessed.n_star, guessed.guessed), (9, true));
        // Without long calls there is nothing to play of them, and it is said why.
        let long = guessed.parts.iter().find(|p| p.part == Part::Tc03b).unwrap();
        assert!(
            long.streams.is_empty() && long.left_out.as_deref().is_some_and(|why| why.contains("tape_b"))
        );
    }
}
