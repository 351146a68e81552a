//! Erlang B: a call that finds every line busy is lost.

use crate::error::{self, ErlangError};
use crate::math::{LOG10_E, ceil, exp, floor, ln, sqrt};
use crate::poisson::{below, inverse_b, ln_factorial};
use crate::solve;

/// Share of calls that find every line busy; equally the share of time in which all lines are busy. It
/// holds for any distribution of call lengths. Below 1e-300 use [`log10_blocking`].
///
/// # Errors
///
/// Traffic that is not positive and finite, or no lines.
pub fn blocking(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    Ok(raw(error::lines(lines)?, error::traffic(traffic_erl)?))
}

/// The logarithm to the base 10 of [`blocking`], which goes on below the smallest float.
///
/// # Errors
///
/// As [`blocking`].
pub fn log10_blocking(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    Ok(-inverse_b(error::lines(lines)?, error::traffic(traffic_erl)?).ln * LOG10_E)
}

/// Traffic that is carried: offered traffic less what is lost, Erlang; the mean number of busy lines.
///
/// # Errors
///
/// As [`blocking`].
pub fn carried(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    Ok(raw_carried(error::lines(lines)?, error::traffic(traffic_erl)?))
}

/// Share of time in which a line is busy.
///
/// # Errors
///
/// As [`blocking`].
pub fn occupancy(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    Ok(carried(traffic_erl, lines)? / error::lines(lines)?)
}

/// Fewest lines at which the blocking is at most `target`.
///
/// # Errors
///
/// Traffic that is not positive and finite, or a target that is not a share between 0 and 1.
pub fn lines(traffic_erl: f64, target: f64) -> Result<u64, ErlangError> {
    let (a, target) = (error::traffic(traffic_erl)?, error::share("blocking target", target)?);
    // n lines carry at most n Erlang, so at least a (1 - target) lines are needed.
    let least = whole(floor(a * (1.0 - target))).saturating_sub(1).max(1);
    solve::smallest(least, whole(sqrt(a)), |n| raw(float(n), a) <= target)
        .ok_or(ErlangError::OutOfReach { why: "no number of lines up to 1e12 meets the blocking target" })
}

/// Most traffic, in Erlang, that this many lines take at a blocking of `target`.
///
/// # Errors
///
/// No lines, or a target that is not a share between 0 and 1.
pub fn traffic(lines: u64, target: f64) -> Result<f64, ErlangError> {
    let (n, target) = (error::lines(lines)?, error::share("blocking target", target)?);
    let a = raw_traffic(n, target);
    if a > error::MOST {
        return Err(ErlangError::OutOfReach {
            why: "the traffic that reaches this blocking is above 1e12 Erlang",
        });
    }
    Ok(a)
}

pub(crate) fn raw(n: f64, a: f64) -> f64 {
    let inverse = inverse_b(n, a);
    if inverse.value < 1e300 { 1.0 / inverse.value } else { exp(-inverse.ln) }
}

pub(crate) fn ln_raw(n: f64, a: f64) -> f64 {
    -inverse_b(n, a).ln
}

/// The carried traffic without cancellation under overload, where nearly everything is lost.
pub(crate) fn raw_carried(n: f64, a: f64) -> f64 {
    if n <= a {
        let below = below(n, a);
        a * (below / (1.0 + below))
    } else {
        a * (1.0 - raw(n, a))
    }
}

/// The traffic whose blocking is `target`, by Newton's method on logarithms: `d ln B / d ln a = n - a (1 -
/// B)`, and `ln B` is concave in `ln a`. Kept inside bounds that are halved where a step would leave them.
pub(crate) fn raw_traffic(n: f64, target: f64) -> f64 {
    let goal = ln(target);
    // a^n / n! >= B >= 1 - n / a.
    let (mut low, mut high) =
        ((goal + ln_factorial(n)) / n - 1e-9, ln(n) - crate::math::ln_1p(-target) + 1e-9);
    let mut z = low.max(ln(n)).min(high);
    for _ in 0..100 {
        let a = exp(z);
        let off = ln_raw(n, a) - goal;
        if off > 0.0 {
            high = z
        } else {
            low = z
        }
        let slope = n - raw_carried(n, a);
        let newton = z - off / slope;
        let next = if newton >= low && newton <= high { newton } else { 0.5 * (low + high) };
        let done = (next - z).abs() <= 4e-16 * (1.0 + z.abs());
        z = next;
        if done {
            break;
        }
    }
    // One step more, on the traffic itself: a digit that the logarithm cannot hold comes back.
    let a = exp(z);
    let off = ln_raw(n, a) - goal;
    let slope = n - raw_carried(n, a);
    let step = off / slope;
    if step.abs() < 1e-6 { a * (1.0 - step) } else { a }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1e12 and not negative")]
pub(crate) fn whole(x: f64) -> u64 {
    ceil(x) as u64
}

#[expect(clippy::cast_precision_loss, reason = "at most 1e12")]
pub(crate) const fn float(n: u64) -> f64 {
    n as f64
}
