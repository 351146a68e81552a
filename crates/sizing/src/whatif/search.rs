//! The search for the costs, and how well the ladder determines them.

use tapedeck_engine_model::reference_capacity::ReferenceError;
use tapedeck_stats::rng::Draws;

use super::in_parallel;
use super::ladder::TierSeen;
use super::problem::{BELIEFS, Problem, cost};
use super::solve::Factored;
use crate::calibrate::as_float;

/// Where the search ended.
pub(super) struct Minimum {
    pub(super) theta: Vec<f64>,
    pub(super) residuals: Vec<f64>,
    /// One column for each parameter.
    jacobian: Vec<Vec<f64>>,
    /// What chance alone puts into `JT J`, for each row of `J` that is kept.
    chance: Vec<f64>,
}

impl Minimum {
    /// `JT J` without what chance put into it, as far as it stays positive.
    pub(super) fn factored(&self, keep: impl Fn(usize) -> bool) -> Option<Factored> {
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

    pub(super) fn gradient(&self, keep: impl Fn(usize) -> bool) -> Vec<f64> {
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

/// Slopes of the residuals by differences, a column for each parameter.
fn slopes(problem: &Problem<'_>, theta: &[f64], residuals: &[f64]) -> Result<Vec<Vec<f64>>, ReferenceError> {
    let columns: Vec<usize> = (0..theta.len()).collect();
    in_parallel(&columns, |&column| {
        let mut moved = theta.to_vec();
        if let Some(t) = moved.get_mut(column) {
            *t += STEP;
        }
        problem.residuals(&moved, &problem.tiers)
    })
    .into_iter()
    .map(|moved| Ok(moved?.iter().zip(residuals).map(|(m, r)| (m - r) / STEP).collect()))
    .collect()
}

/// Levenberg and Marquardt's search from a start. The slopes are those of where its last round began.
pub(super) fn search(
    problem: &Problem<'_>,
    start: Vec<f64>,
    rounds: usize,
) -> Result<Minimum, ReferenceError> {
    let mut theta = start;
    let mut residuals = problem.residuals(&theta, &problem.tiers)?;
    let mut damping = 0.03;
    let mut jacobian = Vec::new();
    for _ in 0..rounds {
        jacobian = slopes(problem, &theta, &residuals)?;
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
            let residuals = problem.residuals(&moved, &problem.tiers).ok()?;
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
            break;
        }
    }
    Ok(Minimum { theta, residuals, jacobian, chance: Vec::new() })
}

/// Points of the two clouds around the optimum that slopes are taken from. The first, on a few tiers, only says how wide the second
/// has to be.
const CLOUDS: [usize; 2] = [14, 22];

/// Slopes that chance does not drown: each residual is regressed on the parameters over a cloud of plays around the optimum,
/// first a small round one, then one as wide in every direction as the data leave it. What a residual varies by besides is
/// chance, of the model's play and as much again of the ladder's, and its weight falls by that. The optimum stays where
/// the search found it.
pub(super) fn settle(problem: &Problem<'_>, found: Minimum) -> Result<Minimum, ReferenceError> {
    let mut draws = Draws::new(problem.seed, 33);
    let few = problem.thinned();
    let raw = few.residuals(&found.theta, &few.tiers)?;
    let first = cloud(&few, &found.theta, &raw, None, CLOUDS[0], &mut draws)?;
    let spread = first.and_then(|first| first.factored(|_| true));
    let second = cloud(problem, &found.theta, &found.residuals, spread.as_ref(), CLOUDS[1], &mut draws)?;
    Ok(second.unwrap_or(found))
}

/// Slopes over a cloud of so many plays; empty where the points do not span it.
fn cloud(
    problem: &Problem<'_>,
    centre: &[f64],
    raw: &[f64],
    spread: Option<&Factored>,
    points: usize,
    draws: &mut Draws,
) -> Result<Option<Minimum>, ReferenceError> {
    let mut plays: Vec<(u64, Vec<f64>)> = Vec::with_capacity(points);
    for number in (1..).take(points) {
        let z: Vec<f64> = centre.iter().map(|_| draws.normal().clamp(-2.0, 2.0)).collect();
        let off = spread.map_or_else(|| z.iter().map(|z| 0.15 * z).collect(), |f| f.back(&z));
        plays.push((number, centre.iter().zip(off).map(|(t, o)| t + o.clamp(-0.7, 0.7)).collect()));
    }
    let played = in_parallel(&plays, |(number, theta)| {
        // Each play has chance of its own, as the ladder had.
        let own = Problem { seed: problem.seed.wrapping_add(*number), ..problem.clone() };
        own.residuals(theta, &own.tiers)
    })
    .into_iter()
    .collect::<Result<Vec<_>, _>>()?;
    let thetas: Vec<&[f64]> = plays.iter().map(|(_, theta)| theta.as_slice()).collect();
    Ok(regress(centre, &thetas, &played, raw))
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
pub(super) fn start(
    problem: &Problem<'_>,
    starts: usize,
    parameters: usize,
) -> Result<Vec<f64>, ReferenceError> {
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
