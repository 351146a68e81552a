//! The fit: costs at which the model shows what the ladder showed.

use serde::Serialize;
use tapedeck_engine_model::truth::{Evidence, TruthError, TruthRules, play_tier};
use tapedeck_engine_model::{Params, SessionModel, StepCost};
use tapedeck_stats::rng::Draws;

use super::in_parallel;
use super::ladder::{Figure, Ladder, TierSeen};
use super::solve::Factored;
use crate::calibrate::as_float;
use crate::error::SizingError;

/// What is fitted, in logarithms: base, stream, prompt token, context token, intake; and the lag by age, for the
/// alternative only.
const COSTS: usize = 5;

/// What is believed beforehand of each cost: its middle, and the factor that covers two thirds of engines. Wide, so that it
/// matters only for a cost that the ladder does not tell apart from another.
const BELIEFS: [(f64, f64); COSTS + 1] = [
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

/// The fitted costs of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// Of every step, ms.
    pub base_ms: f64,
    /// Of every stream in it, ms.
    pub per_stream_ms: f64,
    /// Of every prompt token in it, us.
    pub per_prompt_token_us: f64,
    /// Of every token of context in it, us.
    pub per_context_token_us: f64,
    /// From the last audio of a window to the scheduler, ms.
    pub intake_ms: f64,
}

/// How far the model can be trusted for this ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Figures are met within about a tenth, those of left-out tiers too.
    Good,
    /// Within about a fifth, or one figure is off on one side.
    Fair,
    /// The engine's costs follow another law: predictions are not to be used.
    Poor,
}

impl Grade {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
        }
    }
}

/// A tier, predicted by a fit to the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Streams.
    pub streams: u32,
    /// What was measured, in the order of [`Figure::ALL`].
    pub measured: [Option<f64>; 6],
    /// What a fit without this tier predicts for it.
    pub predicted: [Option<f64>; 6],
    /// Root mean square of the relative errors (of logarithms).
    pub error: f64,
}

/// A law that would fit better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Lag that each minute of a call's age adds, ms.
    pub age_lag_ms_per_min: f64,
    /// Root mean square of the relative errors with it.
    pub error: f64,
}

/// The fit, with how good it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The costs.
    pub costs: Costs,
    /// The factor that each cost may be off either way (one standard error).
    pub factors: [f64; COSTS],
    /// Tiers that it was fitted to.
    pub tiers: usize,
    /// Root mean square of the relative errors on those tiers.
    pub error: f64,
    /// The same over tiers that were left out, each in turn.
    pub error_left_out: f64,
    /// The error of the middle one of the left-out tiers: what is usual, whatever one tier beyond the knee does.
    pub usual_error: f64,
    /// Each tier, left out.
    pub left_out: Vec<LeftOut>,
    /// Mean relative error of each figure over the tiers (of logarithms): above 0, the model is slower.
    pub bias: Vec<(Figure, f64)>,
    /// KV in use, measured / modelled with the pool that is known (or with one of a million tokens); empty without KV figures.
    pub kv_ratio: Option<f64>,
    /// The same ratio's largest deviation over tiers, relative.
    pub kv_spread: Option<f64>,
    /// How far to trust it.
    pub grade: Grade,
    /// A law that would fit much better, looked for where this one fits badly.
    pub alternative: Option<Alternative>,
    /// What a reader should know of the fit, in plain sentences.
    pub sentences: Vec<String>,
    #[serde(skip)]
    pub(super) theta: Vec<f64>,
    #[serde(skip)]
    pub(super) information: Option<Factored>,
    #[serde(skip)]
    pub(super) scale: f64,
    #[serde(skip)]
    pub(super) seed: u64,
    /// Relative error of the KV in use, from the spread over tiers.
    #[serde(skip)]
    pub(super) kv_error: f64,
    /// Streams of the highest tier that was fitted.
    #[serde(skip)]
    pub(super) highest: f64,
}

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

struct Problem<'a> {
    ladder: &'a Ladder,
    tiers: Vec<&'a TierSeen>,
    known: Params,
    rules: TruthRules,
    seed: u64,
}

impl Problem<'_> {
    /// Plays the tiers; a tier that the model cannot play has no figures.
    fn play(&self, theta: &[f64], tiers: &[&TierSeen]) -> Result<Vec<Evidence>, TruthError> {
        let params = with_costs(&self.known, theta);
        let (instances, tape) = (self.ladder.instances, &self.ladder.tape);
        tiers
            .iter()
            .map(|tier| play_tier(&params, instances, tape, &self.rules, tier.streams, self.seed))
            .collect()
    }

    /// Weighted residuals of the tiers and of the beliefs: model over measurement, in logarithms.
    fn residuals(&self, theta: &[f64], tiers: &[&TierSeen]) -> Result<Vec<f64>, TruthError> {
        let played = self.play(theta, tiers)?;
        let mut all: Vec<f64> =
            tiers.iter().zip(&played).flat_map(|(tier, model)| weighted(tier, model)).collect();
        all.extend(theta.iter().zip(BELIEFS).map(|(t, (middle, factor))| (t - middle.ln()) / factor.ln()));
        Ok(all)
    }
}

/// Log ratios of a tier's figures, unweighted: model / measured.
fn log_ratios(tier: &TierSeen, model: &Evidence) -> [Option<f64>; 6] {
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

fn cost(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v * v));
    if n > 0.0 { (sum / n).sqrt() } else { 0.0 }
}

/// Where the search ended.
struct Minimum {
    theta: Vec<f64>,
    residuals: Vec<f64>,
    /// One column for each parameter.
    jacobian: Vec<Vec<f64>>,
    /// What chance alone puts into `JT J`, for each row of `J` that is kept.
    chance: Vec<f64>,
}

impl Minimum {
    /// `JT J` without what chance put into it, as far as it stays positive.
    fn factored(&self, keep: impl Fn(usize) -> bool) -> Option<Factored> {
        let n = self.jacobian.len();
        let all = self.information(&keep);
        let rows = as_float((0..self.residuals.len().saturating_sub(n)).filter(|&row| keep(row)).count());
        [1.0, 0.7, 0.4, 0.0].into_iter().find_map(|share| {
            let less: Vec<f64> = if self.chance.len() == all.len() {
                all.iter().zip(&self.chance).map(|(a, c)| a - share * rows * c).collect()
            } else {
                all.clone()
            };
            // The beliefs alone are worth this much in each direction; chance must not take that away.
            let floored = Factored::new(n, &minus_beliefs(&less, n));
            floored.and_then(|_| Factored::new(n, &less))
        })
    }

    /// `JT J` over the residuals for which `keep` holds.
    fn information(&self, keep: impl Fn(usize) -> bool) -> Vec<f64> {
        let n = self.jacobian.len();
        let mut a = Vec::with_capacity(n * n);
        for left in &self.jacobian {
            for right in &self.jacobian {
                let products = left.iter().zip(right).enumerate().filter(|(row, _)| keep(*row));
                a.push(products.map(|(_, (l, r))| l * r).sum());
            }
        }
        a
    }

    fn gradient(&self, keep: impl Fn(usize) -> bool) -> Vec<f64> {
        self.jacobian
            .iter()
            .map(|column| {
                column
                    .iter()
                    .zip(&self.residuals)
                    .enumerate()
                    .filter(|(row, _)| keep(*row))
                    .map(|(_, (j, r))| j * r)
                    .sum()
            })
            .collect()
    }
}

/// Step of the differences, in logarithms: wide enough that chance does not drown the slope.
const STEP: f64 = 0.12;

/// Levenberg and Marquardt's search from a start.
fn search(problem: &Problem<'_>, start: Vec<f64>, rounds: usize) -> Result<Minimum, TruthError> {
    let tiers = &problem.tiers;
    let mut theta = start;
    let mut residuals = problem.residuals(&theta, tiers)?;
    let mut damping = 0.03;
    let mut jacobian = Vec::new();
    for round in 0..=rounds {
        let columns: Vec<usize> = (0..theta.len()).collect();
        jacobian = in_parallel(&columns, |&column| {
            let mut moved = theta.clone();
            if let Some(t) = moved.get_mut(column) {
                *t += STEP;
            }
            problem.residuals(&moved, tiers)
        })
        .into_iter()
        .map(|moved| Ok(moved?.iter().zip(&residuals).map(|(m, r)| (m - r) / STEP).collect()))
        .collect::<Result<Vec<Vec<f64>>, TruthError>>()?;
        if round == rounds {
            break;
        }
        let here = Minimum {
            theta: theta.clone(),
            residuals: residuals.clone(),
            jacobian: jacobian.clone(),
            chance: Vec::new(),
        };
        let (information, gradient) = (here.information(|_| true), here.gradient(|_| true));
        let n = theta.len();
        let before = cost(&residuals);
        let dampings: Vec<f64> = [0.1, 1.0, 20.0].iter().map(|f| damping * f).collect();
        let tried = in_parallel(&dampings, |&damping| {
            let mut damped = information.clone();
            for i in 0..n {
                if let Some(d) = damped.get_mut(i * n + i) {
                    *d *= 1.0 + damping;
                }
            }
            let step = Factored::new(n, &damped)?.solve(&gradient);
            let longest = step.iter().fold(0.0_f64, |most, s| most.max(s.abs()));
            let shrink = if longest > 1.0 { 1.0 / longest } else { 1.0 };
            let moved: Vec<f64> = theta.iter().zip(&step).map(|(t, s)| t - s * shrink).collect();
            let residuals = problem.residuals(&moved, tiers).ok()?;
            Some((damping, moved, residuals))
        });
        let best = tried.into_iter().flatten().min_by(|a, b| cost(&a.2).total_cmp(&cost(&b.2)));
        let Some((with, moved, found)) = best.filter(|(_, _, found)| cost(found) < before) else {
            break;
        };
        damping = with;
        let after = cost(&found);
        theta = moved;
        residuals = found;
        if before - after < 0.005 * before {
            // The slopes belong to where the search was; they are taken once more where it ended.
            let again = search(problem, theta, 0)?;
            return Ok(again);
        }
    }
    Ok(Minimum { theta, residuals, jacobian, chance: Vec::new() })
}

/// Points of the two clouds around the optimum that slopes are taken from.
const CLOUDS: [usize; 2] = [16, 26];

/// Slopes that chance does not drown: each residual is regressed on the parameters over a cloud of plays around the optimum,
/// first a small round one, then one as wide in every direction as the data leave it. What a residual varies by besides is
/// chance, of the model's play and as much again of the ladder's, and its weight falls by that. The optimum stays where
/// the search found it.
fn settle(problem: &Problem<'_>, found: Minimum) -> Result<Minimum, TruthError> {
    let n = found.theta.len();
    let mut draws = Draws::new(problem.seed, 33);
    let mut at = found;
    let mut spread: Option<Factored> = None;
    let raw = at.residuals.clone();
    for points in CLOUDS {
        let cloud: Vec<Vec<f64>> = (0..points)
            .map(|_| {
                let z: Vec<f64> = (0..n).map(|_| draws.normal().clamp(-2.0, 2.0)).collect();
                let off =
                    spread.as_ref().map_or_else(|| z.iter().map(|z| 0.15 * z).collect(), |f| f.back(&z));
                at.theta.iter().zip(off).map(|(t, o)| t + o.clamp(-0.7, 0.7)).collect()
            })
            .collect();
        let plays: Vec<(u64, Vec<f64>)> = (1..).zip(cloud).collect();
        let played = in_parallel(&plays, |(number, theta)| {
            // Each play has chance of its own, as the ladder had.
            let own = Problem {
                ladder: problem.ladder,
                tiers: problem.tiers.clone(),
                known: problem.known.clone(),
                rules: problem.rules.clone(),
                seed: problem.seed.wrapping_add(*number),
            };
            own.residuals(theta, &own.tiers)
        })
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
        let thetas: Vec<&[f64]> = plays.iter().map(|(_, theta)| theta.as_slice()).collect();
        let Some(slopes) = regress(&at.theta, &thetas, &played, &raw) else { break };
        spread = slopes.factored(|_| true);
        at = slopes;
    }
    Ok(at)
}

/// Slopes of the residuals at `centre`, by least squares over plays at other points; residuals and slopes are weighted by the
/// chance in them.
fn regress(centre: &[f64], thetas: &[&[f64]], played: &[Vec<f64>], raw: &[f64]) -> Option<Minimum> {
    let n = centre.len();
    let size = n + 1;
    let rows = played.first()?.len();
    // Offsets from the centre, and a 1 for the residual at the centre.
    let x: Vec<Vec<f64>> = thetas
        .iter()
        .map(|theta| theta.iter().zip(centre).map(|(t, c)| t - c).chain([1.0]).collect())
        .collect();
    let mut xx = vec![0.0; size * size];
    for line in &x {
        for (i, left) in line.iter().enumerate() {
            for (j, right) in line.iter().enumerate() {
                if let Some(cell) = xx.get_mut(i * size + j) {
                    *cell += left * right;
                }
            }
        }
    }
    let factored = Factored::new(size, &xx)?;
    let freedom = as_float(played.len().saturating_sub(size).max(1));
    let beliefs = n;
    let mut residuals = Vec::with_capacity(rows);
    let mut jacobian = vec![Vec::with_capacity(rows); n];
    let mut noise = Vec::new();
    for row in 0..rows {
        let y = |play: usize| played.get(play).and_then(|p| p.get(row)).copied().unwrap_or(0.0);
        let xy: Vec<f64> = (0..size)
            .map(|i| {
                x.iter().enumerate().map(|(play, line)| line.get(i).copied().unwrap_or(0.0) * y(play)).sum()
            })
            .collect();
        let coefficients = factored.solve(&xy);
        let rest: f64 = x
            .iter()
            .enumerate()
            .map(|(play, line)| {
                (y(play) - line.iter().zip(&coefficients).map(|(a, b)| a * b).sum::<f64>()).powi(2)
            })
            .sum();
        let (chance, weight) = if row + beliefs < rows {
            (rest / freedom, 1.0 / (1.0 + rest / freedom).sqrt())
        } else {
            (0.0, 1.0)
        };
        if row + beliefs < rows {
            noise.push(chance * weight * weight);
        }
        residuals.push(weight * raw.get(row).copied().unwrap_or(0.0));
        for (column, slope) in jacobian.iter_mut().zip(&coefficients) {
            column.push(weight * slope);
        }
    }
    let mean_noise = noise.iter().sum::<f64>() / as_float(noise.len().max(1));
    let mut chance = Vec::with_capacity(n * n);
    for j in 0..n {
        let mut unit = vec![0.0; size];
        if let Some(one) = unit.get_mut(j) {
            *one = 1.0;
        }
        chance.extend(factored.solve(&unit).into_iter().take(n).map(|c| c * mean_noise));
    }
    Some(Minimum { theta: centre.to_vec(), residuals, jacobian, chance })
}

/// Takes most of what the beliefs are worth off the diagonal.
fn minus_beliefs(a: &[f64], n: usize) -> Vec<f64> {
    let mut less = a.to_vec();
    for (at, (_, factor)) in BELIEFS.iter().take(n).enumerate() {
        if let Some(d) = less.get_mut(at * n + at) {
            *d -= 0.9 / factor.ln().powi(2);
        }
    }
    less
}

/// The best of some random starts, judged on three tiers.
fn start(problem: &Problem<'_>, starts: usize, parameters: usize) -> Result<Vec<f64>, TruthError> {
    let mut draws = Draws::new(problem.seed, 31);
    let middle: Vec<f64> = BELIEFS.iter().take(parameters).map(|(middle, _)| middle.ln()).collect();
    let mut candidates = vec![middle.clone()];
    for _ in 1..starts {
        candidates.push(
            middle
                .iter()
                .zip(BELIEFS)
                .map(|(m, (_, factor))| m + 0.9 * draws.normal().clamp(-2.0, 2.0) * factor.ln())
                .collect(),
        );
    }
    let last = problem.tiers.len().saturating_sub(1);
    let few: Vec<&TierSeen> =
        [0, last / 2, last].iter().filter_map(|&at| problem.tiers.get(at).copied()).collect();
    let costs = in_parallel(&candidates, |theta| problem.residuals(theta, &few).map(|r| cost(&r)));
    let mut best = (f64::INFINITY, middle);
    for (theta, cost) in candidates.into_iter().zip(costs) {
        let cost = cost?;
        if cost < best.0 {
            best = (cost, theta);
        }
    }
    Ok(best.1)
}

/// Blocks of a pool of so many tokens.
pub(super) fn blocks(tokens: f64, block_tokens: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
    let blocks = (tokens / f64::from(block_tokens.max(1))).clamp(1.0, f64::from(u32::MAX)) as u32;
    blocks
}

/// Tokens of a pool that nobody knows: so large that nothing is preempted.
const UNKNOWN_POOL: f64 = 1e6;

/// Fits the model to a ladder.
///
/// # Errors
/// Fewer than four usable tiers, figures that are no positive numbers, or an engine that cannot be played.
pub fn fit(ladder: &Ladder, seed: u64) -> Result<Fit, SizingError> {
    let tiers = ladder.usable()?;
    let mut known = ladder.known.params.clone();
    let pool = ladder.known.pool_tokens.unwrap_or(UNKNOWN_POOL);
    known.kv_blocks = blocks(pool, known.block_tokens);
    known.faults = tapedeck_engine_model::Faults::default();
    let problem = Problem { ladder, tiers, known, rules: ladder.rules.clone(), seed };
    let begin = start(&problem, 14, COSTS)?;
    let minimum = settle(&problem, search(&problem, begin, 5)?)?;
    let played = problem.play(&minimum.theta, &problem.tiers)?;

    let ratios: Vec<[Option<f64>; 6]> =
        problem.tiers.iter().zip(&played).map(|(tier, model)| log_ratios(tier, model)).collect();
    let error = rms(ratios.iter().flatten().flatten().copied());
    let left_out = leave_out(&problem, &minimum)?;
    let error_left_out = rms(left_out.iter().flat_map(|tier| {
        tier.measured.iter().zip(&tier.predicted).filter_map(|(m, p)| Some((p.as_ref()? / m.as_ref()?).ln()))
    }));
    let bias = Figure::ALL
        .into_iter()
        .filter_map(|figure| {
            let values: Vec<f64> =
                ratios.iter().filter_map(|r| r.get(figure.place()).copied().flatten()).collect();
            (!values.is_empty()).then(|| (figure, values.iter().sum::<f64>() / as_float(values.len())))
        })
        .collect::<Vec<_>>();
    let (kv_ratio, kv_spread, kv_error) = kv(&problem.tiers, &played);

    let information = minimum.factored(|_| true);
    let freedom = as_float(minimum.residuals.len().saturating_sub(2 * COSTS).max(1));
    let scale = (cost(&minimum.residuals) / freedom).max(1.0).sqrt();
    let factors = standard_errors(information.as_ref(), scale).map(f64::exp);
    let theta = &minimum.theta;
    let natural = |at: usize| theta.get(at).map_or(0.0, |t| t.exp());
    let costs = Costs {
        base_ms: natural(0) / 1e6,
        per_stream_ms: natural(1) / 1e6,
        per_prompt_token_us: natural(2) / 1e3,
        per_context_token_us: natural(3) / 1e3,
        intake_ms: natural(4) / 1e6,
    };
    let worst_bias = bias.iter().map(|(_, b)| b.abs()).fold(0.0, f64::max);
    let usual_error = middle(left_out.iter().map(|tier| tier.error).collect()).max(error);
    let grade = if error <= 0.12 && usual_error <= 0.12 && worst_bias <= 0.12 && error_left_out <= 0.35 {
        Grade::Good
    } else if error <= 0.18 && usual_error <= 0.25 && worst_bias <= 0.20 {
        Grade::Fair
    } else {
        Grade::Poor
    };
    let alternative = if grade == Grade::Good { None } else { by_age(&problem, &minimum, error)? };
    let mut fit = Fit {
        costs,
        factors,
        tiers: problem.tiers.len(),
        error,
        error_left_out,
        usual_error,
        left_out,
        bias,
        kv_ratio,
        kv_spread,
        grade,
        alternative,
        sentences: Vec::new(),
        theta: minimum.theta,
        information,
        scale,
        seed,
        kv_error,
        highest: problem.tiers.last().map_or(0.0, |tier| f64::from(tier.streams)),
    };
    fit.sentences = say(&fit, ladder);
    Ok(fit)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Each tier, predicted from the others: from the best fit to all, one step of the search without that tier. At the optimum
/// of all tiers their pulls cancel, so without one of them the rest pull with what it held against them.
fn leave_out(problem: &Problem<'_>, minimum: &Minimum) -> Result<Vec<LeftOut>, TruthError> {
    let mut first = 0;
    let rows: Vec<(usize, usize)> = problem
        .tiers
        .iter()
        .map(|tier| {
            let from = first;
            first += tier.figures.iter().flatten().count();
            (from, first)
        })
        .collect();
    let numbers: Vec<usize> = (0..problem.tiers.len()).collect();
    in_parallel(&numbers, |&at| {
        let (Some(tier), Some(&(from, to))) = (problem.tiers.get(at), rows.get(at)) else { return Ok(None) };
        let keep = |row: usize| !(from..to).contains(&row);
        let step = minimum
            .factored(keep)
            .map_or_else(|| vec![0.0; minimum.theta.len()], |f| f.solve(&minimum.gradient(|row| !keep(row))));
        let theta: Vec<f64> = minimum.theta.iter().zip(step).map(|(t, s)| t + s.clamp(-1.0, 1.0)).collect();
        let played = problem.play(&theta, &[tier])?;
        let Some(model) = played.first() else { return Ok(None) };
        Ok(Some(LeftOut {
            streams: tier.streams,
            measured: tier.figures,
            predicted: Figure::ALL.map(|figure| figure.of(model)),
            error: rms(log_ratios(tier, model).into_iter().flatten()),
        }))
    })
    .into_iter()
    .filter_map(Result::transpose)
    .collect()
}

/// Measured over modelled use of the KV pool: the median over tiers, the largest deviation from it, and the usual one over
/// the busier half of the tiers (of logarithms).
fn kv(tiers: &[&TierSeen], played: &[Evidence]) -> (Option<f64>, Option<f64>, f64) {
    let in_order: Vec<f64> = tiers
        .iter()
        .zip(played)
        .filter_map(|(tier, model)| {
            let (measured, modelled) = (tier.kv_p95?, model.kv_p95?);
            (measured > 0.0 && modelled > 0.0).then(|| measured / modelled)
        })
        .collect();
    let busier = in_order.get(in_order.len() / 2..).unwrap_or_default();
    let mut sorted = busier.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&middle) = sorted.get(sorted.len() / 2) else { return (None, None, 0.0) };
    let spread = in_order.iter().map(|r| (r / middle - 1.0).abs()).fold(0.0, f64::max);
    (Some(middle), Some(spread), rms(busier.iter().map(|r| (r / middle).ln())))
}

fn standard_errors(information: Option<&Factored>, scale: f64) -> [f64; COSTS] {
    let mut variances = [0.0; COSTS];
    for at in 0..COSTS {
        let mut unit = vec![0.0; COSTS];
        if let Some(one) = unit.get_mut(at) {
            *one = 1.0;
        }
        let column = information.map(|f| f.solve(&unit));
        if let (Some(variance), Some(column)) = (variances.get_mut(at), column) {
            *variance = column.get(at).copied().unwrap_or(0.0).max(0.0);
        }
    }
    variances.map(|v| scale * v.sqrt())
}

/// Would a lag that grows with the age of a call explain what the plain law cannot?
fn by_age(
    problem: &Problem<'_>,
    plain: &Minimum,
    plain_error: f64,
) -> Result<Option<Alternative>, TruthError> {
    let mut begin = plain.theta.clone();
    begin.push(BELIEFS.get(COSTS).map_or(0.0, |(middle, _)| middle.ln()));
    let found = search(problem, begin, 5)?;
    let played = problem.play(&found.theta, &problem.tiers)?;
    let error =
        rms(problem.tiers.iter().zip(&played).flat_map(|(tier, model)| log_ratios(tier, model)).flatten());
    let age = found.theta.get(COSTS).map_or(0.0, |t| t.exp());
    Ok((plain_error > 0.08 && error < 0.7 * plain_error)
        .then_some(Alternative { age_lag_ms_per_min: age, error }))
}

fn say(fit: &Fit, ladder: &Ladder) -> Vec<String> {
    let percent = |x: f64| format!("{:.0} %", 100.0 * (x.exp() - 1.0));
    let mut all = vec![format!(
        "The fit to {} tiers is {}: its figures are off by {} on the tiers it saw, by {} on tiers left out (root mean square; {} for the middle one of them).",
        fit.tiers,
        fit.grade.name(),
        percent(fit.error),
        percent(fit.error_left_out),
        percent(fit.usual_error)
    )];
    for (figure, bias) in fit.bias.iter().filter(|(_, bias)| bias.abs() > 0.12) {
        let side = if *bias > 0.0 { "above" } else { "below" };
        all.push(format!(
            "{} of the model lies {} {side} what was measured, on average over the tiers.",
            figure.name(),
            percent(bias.abs())
        ));
    }
    if fit.grade == Grade::Poor {
        all.push(
            "The engine's costs follow another law than the model's: do not use the predictions.".into(),
        );
    }
    if let Some(alternative) = &fit.alternative {
        all.push(format!(
            "A lag that grows by about {:.0} ms with each minute of a call would explain it: the error falls from {} to {}. The plain law has no such term, so longer calls would be worse than predicted.",
            alternative.age_lag_ms_per_min,
            percent(fit.error),
            percent(alternative.error)
        ));
    }
    if let Some(slope) = ladder.age_slope_ms_per_min.filter(|s| *s > 60.0)
        && ladder.known.params.session == SessionModel::Resident
    {
        all.push(format!(
            "At the lowest load lag already grows by {slope:.0} ms with each minute of a call; the fitted law makes little of a call's age."
        ));
    }
    match (fit.kv_ratio, ladder.known.pool_tokens) {
        (Some(ratio), Some(_)) if (ratio - 1.0).abs() > 0.15 => all.push(format!(
            "Calls take {ratio:.2} x the KV that the model takes; predictions use the measured figure."
        )),
        (Some(_), None) => {
            all.push("The pool was not known; it was fitted to the measured use of it.".into())
        }
        (None, _) => {
            all.push("No KV figures: predictions know no memory limit but the model's own reckoning.".into())
        }
        _ => {}
    }
    if let Some(spread) = fit.kv_spread.filter(|s| *s > 0.35) {
        all.push(format!(
            "The KV in use does not follow the model over the tiers (up to {:.0} % off).",
            100.0 * spread
        ));
    }
    all
}
