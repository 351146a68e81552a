//! TC-07: topology. The same card cut in other ways: which carries the load best?

use tapedeck_answers::{Advantage, Candidate, LeftOut, NStar, Predicted, TopologyAnswer, TopologyReason};
use tapedeck_config::{ConfigError, TopologyConfig, TopologyRules, key};
use tapedeck_fleet::{Action, WaitRules, wait_healthy};
use tapedeck_l10n::{Localize, localized};
use tapedeck_record::{CallFigure, Case, Schema, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_sizing::whatif::FitNote;
use tapedeck_slo::{CapacityState, TierReport, capacity};
use tokio::sync::OnceCell;

use crate::control::act;
use crate::environment;
use crate::error::CaseError;
use crate::point::Point;
use crate::prediction::Prediction;
use crate::prior_results;
use crate::progress::{Observer, Progress};
use crate::steps::Steps;
use crate::world::{World, endpoint, instance};

/// What became of a topology that was played at these tiers, and how that stands against what had been predicted.
fn candidate(
    name: &str,
    instances: usize,
    tiers: Vec<TierReport>,
    predicted: &[Predicted],
    world: &World,
) -> Candidate {
    let common = tiers.first();
    let p95 = |figure| Some(common?.summary(figure)?.p95.value);
    let capacity = capacity(&tiers, &world.config.slo);
    let mut predicted = predicted.to_vec();
    for one in &mut predicted {
        one.hold_against(&capacity);
    }
    Candidate {
        name: name.into(),
        instances: u32::try_from(instances).unwrap_or(u32::MAX),
        rtf_p95: p95(CallFigure::Rtf),
        lag_p95_s: p95(CallFigure::LagMaxS),
        kv_room: common.and_then(|t| t.kv_pool_p95).map(|kv| 1.0 - kv),
        err_streams: common.map_or(0, |t| t.err_streams),
        capacity,
        tiers,
        predicted,
    }
}

/// Why one topology is better than another, if it is.
fn better(one: &Candidate, other: &Candidate, rules: &TopologyRules) -> Option<Advantage> {
    let n = |c: &Candidate| c.capacity.n_star.unwrap_or(0);
    let step = one.instances.max(other.instances);
    if n(one).abs_diff(n(other)) >= step {
        return (n(one) > n(other)).then_some(Advantage::NStar {
            n_star: one.capacity.n_star,
            state: one.capacity.state,
            other_n_star: other.capacity.n_star,
            other_state: other.capacity.state,
        });
    }
    if let (Some(lag_p95_s), Some(other_lag_p95_s)) = (one.lag_p95_s, other.lag_p95_s) {
        let gain_s = other_lag_p95_s - lag_p95_s;
        let larger_s = other_lag_p95_s.max(lag_p95_s);
        if gain_s.abs() > rules.lag_floor_s && gain_s.abs() > rules.lag_share * larger_s {
            return (gain_s > 0.0).then_some(Advantage::Lag { lag_p95_s, other_lag_p95_s });
        }
    }
    match (one.kv_room, other.kv_room) {
        (Some(free), Some(other_free)) if free - other_free > rules.kv_room => {
            Some(Advantage::KvRoom { free, other_free })
        }
        _ => None,
    }
}

/// Compares the topologies of the config. `n_star` overrides what the ladder of this run found.
///
/// # Errors
/// No N*, no topologies, commands that are missing or fail, a failed preflight, a run directory that cannot be written.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    n_star: Option<NStar>,
    watch: &dyn Observer,
) -> Result<TopologyAnswer, CaseError> {
    let n_star = prior_results::n_star(dir, n_star)?;
    environment::record(world, dir).await?;
    let topologies = &world.config.topologies;
    if topologies.len() < 2 {
        let why = localized!(
            "there is nothing to compare: give at least two [[topologies]] blocks",
            "没有可比较的：请至少给出两个 [[topologies]]"
        );
        return Err(ConfigError::value(key!(topologies), why).into());
    }
    // Before anything is measured: a prediction that knows the answer is none.
    let predicted_before = prediction(world, dir, watch)?;
    let mut compared = Compared { world, dir, watch, now: None };
    let mut candidates = Vec::new();
    let mut interrupted = false;
    for topology in topologies {
        let there = world.on(topology)?;
        let points = points(world, topology, &n_star);
        if points.iter().any(|p| compared.dir.finished(&p.step).is_none()) {
            compared.switch(Some(topology)).await?;
        }
        let mut steps = Steps::new(&there, compared.dir, watch);
        let mut tiers = Vec::new();
        for point in &points {
            tiers.extend(steps.play(point).await?);
        }
        interrupted = steps.interrupted;
        if interrupted {
            break;
        }
        let predicted = predicted_before.of.get(&topology.name).map_or(&[][..], Vec::as_slice);
        candidates.push(candidate(&topology.name, there.instances.len(), tiers, predicted, world));
    }
    compared.switch(None).await?;
    let answer = conclude(candidates, n_star, predicted_before.notes, world, dir, interrupted);
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// Has the topologies predicted from the ladder of this run, and says what comes of it. That nothing can be predicted (there is
/// no ladder here, or too short a one) is no error.
fn prediction(world: &World, dir: &RunDir, watch: &dyn Observer) -> Result<Prediction, CaseError> {
    let Some(prediction) = &world.prediction else { return Ok(Prediction::default()) };
    let topologies = &world.config.topologies;
    let asked = topologies.iter().map(|t| {
        let instances = world.on(t)?.instances.len();
        Ok((t.name.clone(), u32::try_from(instances).unwrap_or(u32::MAX)))
    });
    let asked = asked.collect::<Result<Vec<_>, CaseError>>()?;
    let predicted_before = prediction.prediction(dir.path(), &asked).unwrap_or_else(|why| Prediction {
        notes: vec![FitNote::NotPredicted { why }],
        ..Prediction::default()
    });
    for note in &predicted_before.notes {
        watch.on(&Progress::Note { text: &note.to_string() });
    }
    for (name, predicted) in &predicted_before.of {
        for one in predicted {
            watch.on(&Progress::Note { text: &format!("{name}: {}", one.text()) });
        }
    }
    Ok(predicted_before)
}

/// The mini-ladder of one topology, the common load first. Every topology gets the same loads, multiples of the first
/// one's instance count.
fn points(world: &World, topology: &TopologyConfig, n_star: &NStar) -> Vec<Point> {
    let rules = &world.config.topology;
    let mut points: Vec<Point> = Vec::new();
    for &share in &rules.shares {
        let streams = load(n_star.streams, share, world.instances.len());
        let id = StepId::new(Case::Topology, streams).with_label(topology.name.as_str());
        if points.iter().all(|p| p.id != id) {
            let loops = Point::loops(&world.config.load, streams);
            let labels = vec![format!("topology {}", topology.name)];
            let planned = u32::try_from(rules.shares.len()).unwrap_or(u32::MAX);
            points.push(Point { labels, points_planned: planned, ..Point::new(id, loops) });
        }
    }
    points
}

/// A share of N*, which may be above 1, as the nearest multiple of the instance count.
pub(crate) fn load(n_star: u32, share: f64, instances: usize) -> u32 {
    let step = u32::try_from(instances).unwrap_or(u32::MAX).max(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small multiple of a u32")]
    let steps = (f64::from(n_star) * share / f64::from(step)).round().max(1.0) as u32;
    steps.saturating_mul(step)
}

fn conclude(
    candidates: Vec<Candidate>,
    n_star: NStar,
    prediction_notes: Vec<FitNote>,
    world: &World,
    dir: &RunDir,
    interrupted: bool,
) -> TopologyAnswer {
    let rules = &world.config.topology;
    let undecided = candidates.iter().find(|c| c.capacity.state == CapacityState::Undecided);
    let mut best = candidates.first();
    let none_better = |b: &Candidate| TopologyReason::NoneBetter { than: b.name.clone() };
    let mut why = best.map_or(TopologyReason::NothingCompared, none_better);
    for other in candidates.iter().skip(1) {
        if let Some((than, by)) = best.and_then(|best| Some((best, better(other, best, rules)?))) {
            why = TopologyReason::Better { name: other.name.clone(), than: than.name.clone(), by };
            best = Some(other);
        }
    }
    if let Some(c) = undecided {
        why = TopologyReason::NothingProven { name: c.name.clone() };
        best = None;
    }
    TopologyAnswer {
        schema: Schema::CURRENT,
        n_star,
        recommended: best.map(|b| b.name.clone()).filter(|_| !interrupted),
        better: best.map(|b| &b.name) != candidates.first().map(|c| &c.name) && best.is_some(),
        why,
        prediction_notes,
        candidates,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted,
    }
}

impl World {
    /// The same world with another topology in it.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn on(&self, topology: &TopologyConfig) -> Result<Self, CaseError> {
        let mut there = self.clone();
        let bearer = self.target.bearer.as_ref();
        if let Some(url) = &topology.url {
            there.target.endpoint = endpoint(&key!(topologies[topology.name].url), url)?;
        }
        if !topology.instances.is_empty() {
            there.instances =
                topology.instances.iter().map(|i| instance(i, bearer)).collect::<Result<_, ConfigError>>()?;
            there.config.instances.clone_from(&topology.instances);
        }
        there.vram_baseline = OnceCell::new();
        Ok(there)
    }
}

/// Stops the topology that is there and starts another; nothing is the one that all other cases measure.
///
/// # Errors
/// Commands that are missing or fail, instances that do not become well, a run directory that cannot be written.
pub async fn switch(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    from: Option<&TopologyConfig>,
    to: Option<&TopologyConfig>,
) -> Result<(), CaseError> {
    Compared { world, dir, watch, now: from }.switch(to).await
}

/// Goes from topology to topology.
struct Compared<'a> {
    world: &'a World,
    dir: &'a mut RunDir,
    watch: &'a dyn Observer,
    /// Where we are; nothing is where we came from.
    now: Option<&'a TopologyConfig>,
}

impl<'a> Compared<'a> {
    /// Stops what runs and starts another topology; nothing is the one that was there at the beginning.
    async fn switch(&mut self, to: Option<&'a TopologyConfig>) -> Result<(), CaseError> {
        let name = |t: Option<&TopologyConfig>| t.map(|t| t.name.clone());
        if name(self.now) == name(to) {
            return Ok(());
        }
        // No stream is open while topologies change.
        let label = to.map_or("back", |t| &t.name);
        let step = StepId::new(Case::Topology, 0).with_label(label).to_string();
        self.watch.on(&Progress::Note {
            text: &to.map_or_else(
                || "going back to the topology that was there".into(),
                |t| format!("starting topology {}", t.name),
            ),
        });
        for (name, action) in self.names(self.now, Action::Stop) {
            self.must(&step, &name, action).await?;
        }
        for (name, action) in self.names(to, Action::Start) {
            self.must(&step, &name, action).await?;
        }
        let there = match to {
            Some(topology) => self.world.on(topology)?.instances,
            None => self.world.instances.clone(),
        };
        wait_healthy(&*self.world.connector, &there, WaitRules::default(), |_| {}).await.map_err(|e| {
            CaseError::Preflight {
                what: e.to_string(),
                hint: "mend the topology's commands, or its addresses".into(),
            }
        })?;
        self.now = to;
        Ok(())
    }

    /// Whom to command: the instances, and the balancer where the topology has one of its own.
    fn names(&self, topology: Option<&TopologyConfig>, action: Action) -> Vec<(String, Action)> {
        let base = &self.world.config.instances;
        let instances = topology.map(|t| &t.instances).filter(|i| !i.is_empty()).unwrap_or(base);
        let mut names: Vec<(String, Action)> = instances.iter().map(|i| (i.name.clone(), action)).collect();
        if let Some(topology) = topology.filter(|t| self.world.control.can(&t.balancer_name(), action)) {
            names.push((topology.balancer_name(), action));
        }
        names
    }

    async fn must(&mut self, step: &str, name: &str, action: Action) -> Result<(), CaseError> {
        // Where it cannot be stopped in good order, it can perhaps be killed.
        let action = match action {
            Action::Stop if !self.world.control.can(name, Action::Stop) => Action::Kill,
            other => other,
        };
        let done = act(self.world, self.dir, step, name, action).await?;
        done.map(|_| ())
            .map_err(|refusal| CaseError::Control { what: LeftOut::Refused { why: refusal.into_reason() } })
    }
}

#[cfg(test)]
mod tests {
    use tapedeck_slo::{Capacity, Limits};

    use super::*;

    #[test]
    fn loads_are_whole_numbers_of_streams_an_instance() {
        assert_eq!((load(30, 0.8, 3), load(30, 1.0, 3), load(30, 1.2, 3)), (24, 30, 36));
        // 8 of 10 streams are nearer to 9 than to 6; the least is one an instance.
        assert_eq!((load(10, 0.8, 3), load(1, 0.1, 3), load(30, 0.5, 0)), (9, 3, 15));
    }

    #[test]
    fn n_star_counts_first_then_lag_then_room() {
        let one = |n_star, lag_p95_s, kv_room| Candidate {
            name: "one".into(),
            instances: 3,
            capacity: Capacity { n_star, ..capacity(&[], &Limits::default()) },
            rtf_p95: None,
            lag_p95_s,
            kv_room,
            err_streams: 0,
            tiers: Vec::new(),
            predicted: Vec::new(),
        };
        let rules = TopologyRules::default();
        let plain = one(Some(30), Some(1.0), Some(0.3));
        let better = |other: &Candidate| better(other, &plain, &rules);
        assert!(matches!(better(&one(Some(33), Some(9.0), None)), Some(Advantage::NStar { .. })));
        // A lower N* is not made up for.
        assert!(better(&one(Some(27), Some(0.1), Some(0.9))).is_none());
        assert!(better(&one(None, Some(0.1), Some(0.9))).is_none());
        // Two streams more are less than one an instance: the same N*.
        assert!(matches!(better(&one(Some(32), Some(0.5), Some(0.1))), Some(Advantage::Lag { .. })));
        assert!(better(&one(Some(32), Some(2.0), Some(0.9))).is_none());
        // A tenth less lag is no difference, so room decides.
        assert!(matches!(better(&one(Some(30), Some(0.9), Some(0.5))), Some(Advantage::KvRoom { .. })));
        assert!(better(&one(Some(30), Some(0.9), Some(0.34))).is_none());
        assert!(better(&one(Some(30), None, None)).is_none());
    }
}
