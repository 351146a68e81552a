//! Does a series get worse while it runs? A block bootstrap of its slope.

use crate::rng::Draws;

/// Result of a test for a rising trend.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Trend {
    /// Points used.
    pub n: usize,
    /// Blocks they fell into.
    pub blocks: usize,
    /// Fitted rise from the middle of the first block to the middle of the last, in the unit of the values.
    pub rise: f64,
    /// One-sided p-value: how often blocks in random order rise at least as steeply.
    pub p: f64,
}

/// Points of one block, put together.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Mean instant.
    at_s: f64,
    /// Mean value.
    mean: f64,
    /// Points.
    weight: f64,
}

impl Block {
    fn of(points: &[(f64, f64)]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "blocks hold far fewer than 2^53 points")]
        let weight = points.len() as f64;
        let sum = points.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        Self { at_s: sum.0 / weight, mean: sum.1 / weight, weight }
    }
}

/// Cuts points into blocks of `block_s`; a block with less than half the usual number of points (the edges of a
/// window, where few calls begin or end) joins its neighbour, lest a single point bends the line.
fn blocks(points: &[(f64, f64)], block_s: f64) -> Vec<Block> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(start) = sorted.first().map(|p| p.0) else { return Vec::new() };
    let mut cut: Vec<Vec<(f64, f64)>> = sorted
        .chunk_by(|a, b| ((a.0 - start) / block_s).floor() >= ((b.0 - start) / block_s).floor())
        .map(<[_]>::to_vec)
        .collect();
    let mut sizes: Vec<usize> = cut.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    let enough = sizes.get(sizes.len() / 2).copied().unwrap_or(0).div_ceil(2);
    let mut at = 0;
    while at < cut.len() && cut.len() > 1 {
        if cut[at].len() >= enough {
            at += 1;
            continue;
        }
        let thin = cut.remove(at);
        if at == 0 {
            cut[0].splice(0..0, thin);
        } else {
            cut[at - 1].extend(thin);
        }
    }
    cut.iter().map(|b| Block::of(b)).collect()
}

/// Weighted least-squares slope of block means over block instants.
fn slope(at_s: &[f64], values: &[(f64, f64)]) -> f64 {
    let (mut w, mut wx, mut wy) = (0.0, 0.0, 0.0);
    for (x, (y, weight)) in at_s.iter().zip(values) {
        w += weight;
        wx += weight * x;
        wy += weight * y;
    }
    let (mean_x, mean_y) = (wx / w, wy / w);
    let (mut sxx, mut sxy) = (0.0, 0.0);
    for (x, (y, weight)) in at_s.iter().zip(values) {
        sxx += weight * (x - mean_x) * (x - mean_x);
        sxy += weight * (x - mean_x) * (y - mean_y);
    }
    if sxx > 0.0 { sxy / sxx } else { 0.0 }
}

/// Tests `(seconds, value)` points for a rise over time, one-sided.
///
/// Points within `block_s` may depend on each other; whole blocks are exchangeable where there is no trend. So the
/// blocks are put into random order `resamples` times (drawn without replacement, which keeps the level of the
/// test exact for few blocks), and p is the share of orders, the observed one included, that rise as steeply. Empty
/// below 4 blocks; with B blocks no p-value can fall below 1 / B!.
#[must_use]
pub fn rising_trend(
    points: &[(f64, f64)],
    block_s: f64,
    resamples: u32,
    seed: u64,
    stream: u64,
) -> Option<Trend> {
    let blocks = blocks(points, block_s);
    if blocks.len() < 4 {
        return None;
    }
    let at_s: Vec<f64> = blocks.iter().map(|b| b.at_s).collect();
    let mut values: Vec<(f64, f64)> = blocks.iter().map(|b| (b.mean, b.weight)).collect();
    let observed = slope(&at_s, &values);
    let span = at_s.last()? - at_s.first()?;
    let mut draws = Draws::new(seed, stream);
    let tolerance = observed.abs() * 1e-12;
    let mut as_steep = 1_u32;
    for _ in 0..resamples {
        draws.shuffle(&mut values);
        if slope(&at_s, &values) >= observed - tolerance {
            as_steep += 1;
        }
    }
    Some(Trend {
        n: points.len(),
        blocks: blocks.len(),
        rise: observed * span,
        p: f64::from(as_steep) / (f64::from(resamples) + 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rise_per_min: f64, seed: u64, n: u32) -> Vec<(f64, f64)> {
        let mut draws = Draws::new(seed, 2);
        (0..n)
            .map(|i| {
                let at_s = 480.0 * f64::from(i) / f64::from(n);
                (at_s, 0.1 * draws.normal() + rise_per_min * at_s / 60.0)
            })
            .collect()
    }

    #[test]
    fn clean_series_alarm_as_often_as_stated() {
        let alarms = |alpha: f64| {
            (0..400).filter(move |&s| rising_trend(&series(0.0, s, 90), 60.0, 400, s, 0).unwrap().p <= alpha)
        };
        let at_5 = alarms(0.05).count();
        assert!((6..=36).contains(&at_5), "{at_5} of 400 at 5 %, 20 would be nominal");
        let at_1 = alarms(0.01).count();
        assert!(at_1 <= 11, "{at_1} of 400 at 1 %, 4 would be nominal");
    }

    #[test]
    fn p_values_agree_with_scipy() {
        // scipy.stats.permutation_test((v,), slope over 30, 90, ... 450, permutation_type="pairings",
        // alternative="greater", n_resamples=inf), SciPy 1.17.1: all 40,320 orders.
        for (values, p, rise) in [
            ([0.1, 0.3, 0.2, 0.5, 0.4, 0.6, 0.55, 0.7], 0.001_066_468, 0.545_833_333),
            ([0.3, 0.1, 0.5, 0.2, 0.4, 0.35, 0.6, 0.25], 0.207_911_706, 0.158_333_333),
        ] {
            let points: Vec<(f64, f64)> = (0..8).map(|i| 30.0 + 60.0 * f64::from(i)).zip(values).collect();
            let trend = rising_trend(&points, 60.0, 100_000, 1, 0).unwrap();
            assert_eq!(trend.blocks, 8);
            assert!((trend.rise - rise).abs() < 1e-6, "{trend:?}");
            // Five standard errors of 100,000 draws.
            let tolerance = 5.0 * (p * (1.0 - p) / 100_000.0_f64).sqrt();
            assert!((trend.p - p).abs() < tolerance, "{trend:?}, want {p}");
        }
    }

    #[test]
    fn a_rise_is_found_and_measured() {
        let found = (0..50)
            .filter(|&s| rising_trend(&series(0.05, s, 240), 60.0, 2_000, s, 0).unwrap().p <= 0.01)
            .count();
        assert!(found >= 48, "{found} of 50");
        let trend = rising_trend(&series(0.05, 1, 2_400), 60.0, 100, 1, 0).unwrap();
        assert!((trend.rise - 0.35).abs() < 0.03, "{trend:?}");
        assert_eq!((trend.n, trend.blocks), (2_400, 8));
    }

    #[test]
    fn a_fall_is_no_rise_and_a_flat_series_is_none() {
        assert!(rising_trend(&series(-0.05, 1, 240), 60.0, 1_000, 1, 0).unwrap().p > 0.9);
        let flat: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i) * 5.0, 1.0)).collect();
        assert!((rising_trend(&flat, 60.0, 100, 1, 0).unwrap().p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn thin_edges_join_their_neighbours() {
        let mut points = series(0.0, 1, 240);
        points.push((-1.0, 50.0));
        let got = blocks(&points, 60.0);
        assert!(got.iter().all(|b| b.weight >= 15.0), "{got:?}");
        assert_eq!(rising_trend(&points[..3], 60.0, 10, 1, 0), None);
        assert_eq!(rising_trend(&[], 60.0, 10, 1, 0), None);
    }

    #[test]
    fn one_wild_point_at_the_end_is_no_trend() {
        let mut points = series(0.0, 4, 90);
        points[89].1 = 20.0;
        // The wild block is the last one in an eighth of all orders, whatever its size.
        assert!(rising_trend(&points, 60.0, 1_000, 1, 0).unwrap().p > 0.02);
    }
}
