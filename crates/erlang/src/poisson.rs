//! Weights of the Poisson and binomial laws relative to the sums below or above them: what every blocking
//! formula is made of.
//!
//! A blocking probability is a weight divided by the sum of the weights up to it. Where the weights rise up
//! to it, the quotients of neighbours are summed directly: all terms are positive and fall. Where the peak
//! lies below it, the sum of *all* weights is known in closed form and only the sum above it is taken away,
//! which is at most about half. Either way about `8 sqrt(traffic)` terms suffice, without any factorial.

use crate::math::{bend, exp, ln, sqrt};

/// Half of `ln(2 pi)`.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;

/// A quotient of the sum below and the weight itself, so a number from 1 to infinity, and its logarithm
/// where it does not fit a float.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inverse {
    /// The quotient, perhaps infinite.
    pub(crate) value: f64,
    /// Its natural logarithm.
    pub(crate) ln: f64,
}

impl Inverse {
    pub(crate) fn of(value: f64) -> Self {
        Self { value, ln: ln(value) }
    }

    /// `whole - above`, both relative to the weight, the whole given by its logarithm.
    fn minus(ln_whole: f64, root: f64, exponent: f64, above: f64) -> Self {
        if ln_whole < 690.0 {
            // The square root is kept apart, because its logarithm would cost digits.
            Self::of(root * exp(exponent) - above)
        } else {
            Self { value: exp(ln_whole), ln: ln_whole }
        }
    }
}

/// `ln n! - (n + 1/2) ln n + n - ln(2 pi)/2`, for whole `n` above 0: what Stirling's formula leaves.
pub(crate) fn stirling_rest(n: f64) -> f64 {
    const SMALL: [f64; 16] = [
        f64::NAN,
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_093,
        0.016_644_691_189_821_193,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
        0.007_573_675_487_951_841,
        0.006_942_840_107_209_53,
        0.006_408_994_188_004_207,
        0.005_951_370_112_758_848,
        0.005_554_733_551_962_801,
    ];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 16")]
    let small = if n < 16.0 { SMALL.get(n as usize) } else { None };
    small.copied().unwrap_or_else(|| {
        let s = 1.0 / (n * n);
        (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / n
    })
}

/// `n ln(n/mean) + mean - n`: how far a Poisson law with this mean is from giving `n`.
pub(crate) fn deviance(n: f64, mean: f64) -> f64 {
    let d = (mean - n) / n;
    if d > -0.7 { n * bend(d) } else { n * (ln(n) - ln(mean)) + (mean - n) }
}

/// `ln n!`.
pub(crate) fn ln_factorial(n: f64) -> f64 {
    if n < 1.0 { 0.0 } else { stirling_rest(n) + (n + 0.5) * ln(n) - n + HALF_LN_TAU }
}

/// The sum of `(n/a) + (n/a)((n-1)/a) + ...`, the Poisson weights below `n` relative to the one at `n`.
/// Meant for `n <= a`; elsewhere the terms first rise.
pub(crate) fn below(n: f64, a: f64) -> f64 {
    let step = 1.0 / a;
    let (mut term, mut sum, mut left) = (1.0, 0.0, n);
    while left > 0.0 {
        term *= left * step;
        sum += term;
        left -= 1.0;
        if term < 1e-18 * sum {
            break;
        }
    }
    sum
}

/// The sum of `a/(n+1) + a/(n+1) a/(n+2) + ...`, the Poisson weights above `n` relative to the one at `n`.
/// Meant for `n > a`.
fn above(n: f64, a: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 0.0, n);
    loop {
        k += 1.0;
        term *= a / k;
        sum += term;
        if term <= 1e-18 * (1.0 + sum) {
            return sum;
        }
    }
}

/// `1 / B(n, a)` of Erlang's first formula, for whole `n` and positive `a`.
pub(crate) fn inverse_b(n: f64, a: f64) -> Inverse {
    if n <= 400.0 {
        let step = 1.0 / a;
        let (mut inverse, mut k) = (1.0, 0.0);
        while k < n {
            k += 1.0;
            inverse = 1.0 + k * step * inverse;
        }
        if inverse < 1e300 {
            return Inverse::of(inverse);
        }
    }
    if n <= a {
        return Inverse::of(1.0 + below(n, a));
    }
    let exponent = stirling_rest(n) + deviance(n, a);
    let root = sqrt(core::f64::consts::TAU * n);
    let ln_whole = exponent + 0.5 * ln(n) + HALF_LN_TAU;
    // Far above the peak the sum above is nothing beside the whole.
    let above = if ln_whole < 690.0 { above(n, a) } else { 0.0 };
    Inverse::minus(ln_whole, root, exponent, above)
}

/// The sum of the binomial weights up to `n` relative to the one at `n`, where the weight at `k` is
/// `C(sources, k) idle^k`; whole `n` below `sources`.
pub(crate) fn inverse_engset(n: f64, sources: f64, idle: f64) -> Inverse {
    if n <= 400.0 {
        let (mut inverse, mut k) = (1.0, 0.0);
        while k < n {
            k += 1.0;
            inverse = 1.0 + k / ((sources - k + 1.0) * idle) * inverse;
        }
        if inverse < 1e300 {
            return Inverse::of(inverse);
        }
    }
    if n <= (sources - n + 1.0) * idle {
        let (mut term, mut sum, mut k) = (1.0, 1.0, n);
        while k > 0.0 {
            term *= k / ((sources - k + 1.0) * idle);
            sum += term;
            k -= 1.0;
            if term < 1e-18 * sum {
                break;
            }
        }
        return Inverse::of(sum);
    }
    let (busy, free) = (idle / (1.0 + idle), 1.0 / (1.0 + idle));
    let rest = sources - n;
    let exponent =
        deviance(n, sources * busy) + deviance(rest, sources * free) + stirling_rest(n) + stirling_rest(rest)
            - stirling_rest(sources);
    let square = core::f64::consts::TAU * n * (rest / sources);
    let ln_whole = exponent + 0.5 * ln(square);
    let (mut term, mut above, mut k) = (1.0, 0.0, n);
    while k < sources && ln_whole < 690.0 {
        term *= (sources - k) * idle / (k + 1.0);
        above += term;
        k += 1.0;
        if term < 1e-18 * (1.0 + above) {
            break;
        }
    }
    Inverse::minus(ln_whole, sqrt(square), exponent, above)
}
