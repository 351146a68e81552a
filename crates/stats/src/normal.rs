//! The standard normal distribution, as exactly as a test needs it.

/// P(Z <= x).
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    // Phi(x) = 1/2 + phi(x) (x + x^3 / 3 + x^5 / (3 * 5) + ...); the series converges everywhere.
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs().max(1e-300) {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + density * sum
}

/// The x with P(Z <= x) = p, to 1e-9 for p between 1e-12 and 1 - 1e-12; infinite at 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal_cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.norm.cdf and .ppf, SciPy 1.17.1.
        for (x, want) in [(0.0, 0.5), (1.5, 0.933_192_798_7), (-3.0, 0.001_349_898_0)] {
            assert!((normal_cdf(x) - want).abs() < 1e-9, "{x}");
        }
        for (p, want) in [
            (0.5, 0.0),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_900_4),
            (0.0001, -3.719_016_485_455_680_4),
        ] {
            assert!((normal_quantile(p) - want).abs() < 1e-9, "{p}");
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
