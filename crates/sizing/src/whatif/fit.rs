//! The fit: costs at which the model shows what the ladder showed, and how well it does.

use serde::{Deserialize, Serialize};
use tapedeck_engine_model::reference_capacity::{Evidence, ReferenceError};
use tapedeck_l10n::{Localize, LocalizedText, localized};

use super::in_parallel;
use super::ladder::{Figure, Ladder, TierSeen};
use super::note::FitNote;
use super::problem::{BELIEFS, COSTS, Problem, blocks, cost, log_ratios, rms};
use super::search::{Minimum, search, settle, start};
use super::solve::Factored;
use crate::calibrate::as_float;
use crate::error::SizingError;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Figures are met within about a tenth, those of left-out tiers too.
    Good,
    /// Within about a fifth, or one figure is off on one side.
    Fair,
    /// The engine's costs follow another law: predictions are not to be used.
    Poor,
}

impl Localize for Grade {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Good => localized!("good", "良好"),
            Self::Fair => localized!("fair", "尚可"),
            Self::Poor => localized!("poor", "很差"),
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
    /// What a reader should know of the fit.
    pub notes: Vec<FitNote>,
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
    // A few tiers show the way; all of them say where it ends.
    let near = search(&problem.thinned(), begin, 5)?;
    let minimum = settle(&problem, search(&problem, near.theta, 2)?)?;
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
        notes: Vec::new(),
        theta: minimum.theta,
        information,
        scale,
        seed,
        kv_error,
        highest: problem.tiers.last().map_or(0.0, |tier| f64::from(tier.streams)),
    };
    fit.notes = super::note::notes(&fit, ladder);
    Ok(fit)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Each tier, predicted from the others: from the best fit to all, one step of the search without that tier. At the optimum
/// of all tiers their pulls cancel, so without one of them the rest pull with what it held against them.
fn leave_out(problem: &Problem<'_>, minimum: &Minimum) -> Result<Vec<LeftOut>, ReferenceError> {
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
) -> Result<Option<Alternative>, ReferenceError> {
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
