//! The question that a fit answers: which costs make the model show what the ladder showed?

use tapedeck_engine_model::reference_capacity::{Evidence, ReferenceError, ReferenceRules, play_tier};
use tapedeck_engine_model::{Params, StepCost};

use super::ladder::{Figure, Ladder, TierSeen};

/// What is fitted, in logarithms: base, stream, prompt token, context token, intake; and the lag by age, for the
/// alternative only.
pub(super) const COSTS: usize = 5;

/// What is believed beforehand of each cost: its middle, and the factor that covers two thirds of engines. Wide, so that it
/// matters only for a cost that the ladder does not tell apart from another.
pub(super) const BELIEFS: [(f64, f64); COSTS + 1] = [
    (15e6, 3.0),  // base, ns
    (2e6, 5.0),   // stream, ns
    (100e3, 5.0), // prompt token, ns
    (400.0, 3.0), // context token, ns
    (15e6, 2.5),  // intake, ns
    (60.0, 6.0),  // lag by age, ms per minute
];

/// How far a perfect model may still be off: it plays by chance, and so did the ladder.
const CHANCE: f64 = 0.04;
/// A residual counts no more than this, in logarithms: a model that is stuck where the ladder was not.
const FARTHEST: f64 = 1.5;

/// The model with costs given by logarithms.
pub(super) fn with_costs(known: &Params, theta: &[f64]) -> Params {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
    let whole = |at: usize| theta.get(at).map_or(0, |t| t.exp().round().clamp(0.0, 1e13) as u64);
    let mut params = known.clone();
    params.step = StepCost {
        base_ns: whole(0).max(1),
        per_stream_ns: whole(1),
        per_prefill_token_ns: whole(2),
        per_context_token_ns: whole(3),
    };
    params.intake_ns = whole(4);
    if theta.len() > COSTS {
        params.faults.age_lag_ms_per_minute = u32::try_from(whole(COSTS)).unwrap_or(u32::MAX);
    }
    params
}

/// A ladder, and the model that is to show the same.
#[derive(Clone)]
pub(super) struct Problem<'a> {
    pub(super) ladder: &'a Ladder,
    pub(super) tiers: Vec<&'a TierSeen>,
    pub(super) known: Params,
    pub(super) rules: ReferenceRules,
    pub(super) seed: u64,
}

/// Tiers that are enough to find the way by.
const FEW: usize = 5;

impl Problem<'_> {
    /// The same with a few tiers, evenly chosen, the lowest and the highest among them, and no tier longer than the others.
    pub(super) fn thinned(&self) -> Self {
        let last = self.tiers.len().saturating_sub(1);
        let mut places: Vec<usize> = (0..FEW).map(|i| i * last / (FEW - 1)).collect();
        places.dedup();
        let tiers = places.iter().filter_map(|&at| self.tiers.get(at).copied()).collect();
        let rules =
            ReferenceRules { loops_few: self.rules.loops.min(self.rules.loops_few), ..self.rules.clone() };
        Self { tiers, rules, ..self.clone() }
    }

    /// Plays the tiers; a tier that the model cannot play has no figures.
    pub(super) fn play(&self, theta: &[f64], tiers: &[&TierSeen]) -> Result<Vec<Evidence>, ReferenceError> {
        let params = with_costs(&self.known, theta);
        let (instances, tape) = (self.ladder.instances, &self.ladder.tape);
        tiers
            .iter()
            .map(|tier| play_tier(&params, instances, tape, &self.rules, tier.streams, self.seed))
            .collect()
    }

    /// Weighted residuals of the tiers and of the beliefs: model over measurement, in logarithms.
    pub(super) fn residuals(&self, theta: &[f64], tiers: &[&TierSeen]) -> Result<Vec<f64>, ReferenceError> {
        let played = self.play(theta, tiers)?;
        let mut all: Vec<f64> =
            tiers.iter().zip(&played).flat_map(|(tier, model)| weighted(tier, model)).collect();
        all.extend(theta.iter().zip(BELIEFS).map(|(t, (middle, factor))| (t - middle.ln()) / factor.ln()));
        Ok(all)
    }
}

/// Log ratios of a tier's figures, unweighted: model / measured.
pub(super) fn log_ratios(tier: &TierSeen, model: &Evidence) -> [Option<f64>; 6] {
    Figure::ALL.map(|figure| {
        let measured = tier.figures.get(figure.place()).copied().flatten()?;
        Some(match figure.of(model) {
            Some(value) if value > 0.0 => (value / measured).ln().clamp(-FARTHEST, FARTHEST),
            // The model did not get through: slower than anything.
            _ => FARTHEST,
        })
    })
}

fn weighted<'t>(tier: &'t TierSeen, model: &Evidence) -> impl Iterator<Item = f64> + use<'t> {
    let ratios = log_ratios(tier, model);
    ratios.into_iter().zip(tier.relative_se).filter_map(|(ratio, se)| {
        let se = se.filter(|se| se.is_finite() && *se >= 0.0).unwrap_or(CHANCE);
        ratio.map(|r| r / se.hypot(CHANCE))
    })
}

pub(super) fn cost(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

pub(super) fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v * v));
    if n > 0.0 { (sum / n).sqrt() } else { 0.0 }
}

/// Blocks of a pool of so many tokens.
pub(super) fn blocks(tokens: f64, block_tokens: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
    let blocks = (tokens / f64::from(block_tokens.max(1))).clamp(1.0, f64::from(u32::MAX)) as u32;
    blocks
}
