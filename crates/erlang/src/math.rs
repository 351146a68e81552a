//! The few functions of mathematics that the models need, from the platform or from `libm`.

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $std:ident, $libm:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(x: f64) -> f64 {
            #[cfg(feature = "libm")]
            { libm::$libm(x) }
            #[cfg(not(feature = "libm"))]
            { f64::$std(x) }
        }
    )*};
}

functions! {
    exp: exp, exp;
    ln: ln, log;
    ln_1p: ln_1p, log1p;
    exp_m1: exp_m1, expm1;
    sqrt: sqrt, sqrt;
    floor: floor, floor;
    ceil: ceil, ceil;
    sinh: sinh, sinh;
    cosh: cosh, cosh;
}

/// The logarithm of e to the base 10.
pub(crate) const LOG10_E: f64 = core::f64::consts::LOG10_E;

/// `e^-u - 1 + u`, without the cancellation for small `u`; never negative.
pub(crate) fn curve(u: f64) -> f64 {
    if u.abs() > 0.7 {
        return exp_m1(-u) + u;
    }
    // u^2/2 - u^3/6 + u^4/24 - ...
    let (mut term, mut sum, mut k) = (0.5 * u * u, 0.0, 2.0);
    while term.abs() > 1e-18 * sum {
        sum += term;
        k += 1.0;
        term *= -u / k;
    }
    sum
}

/// `d - ln(1 + d)`, without the cancellation for small `d`; never negative.
pub(crate) fn bend(d: f64) -> f64 {
    if !(-0.7..=1.5).contains(&d) {
        return d - ln_1p(d);
    }
    // With v = d / (2 + d): d = 2v / (1 - v) and ln(1 + d) = 2 (v + v^3/3 + v^5/5 + ...).
    let v = d / (2.0 + d);
    let square = v * v;
    let (mut power, mut sum, mut k) = (1.0, 0.0, 3.0);
    while power > 1e-18 {
        sum += power / k;
        power *= square;
        k += 2.0;
    }
    2.0 * square * (1.0 / (1.0 - v) - v * sum)
}
