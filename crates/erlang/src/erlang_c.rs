//! Erlang C: a call that finds every line busy waits, however long it takes.
//!
//! Call lengths must be exponential for these figures to hold; for others the mean wait is about
//! `(1 + CV^2) / 2` times as long, where CV is the standard deviation of the call length over its mean.

use crate::erlang_b::{float, whole};
use crate::error::{self, ErlangError};
use crate::math::{LOG10_E, exp, exp_m1, floor, ln, ln_1p, sqrt};
use crate::poisson::inverse_b;
use crate::solve;

/// Everything that Erlang C says of one group. Times are in mean call lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Queue {
    /// Share of calls that wait.
    pub waiting: f64,
    /// Mean wait of all calls, those that do not wait included.
    pub mean_wait: f64,
    /// Mean wait of the calls that wait.
    pub mean_wait_of_waiting: f64,
    /// Mean number of calls in the queue.
    pub queue: f64,
    /// Share of time in which a line is busy.
    pub occupancy: f64,
}

/// Share of calls that wait.
///
/// # Errors
///
/// Traffic that is not positive and finite, no lines, or [`ErlangError::Unstable`] where the traffic is not
/// below the lines.
pub fn waiting(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    let (n, a) = checked(traffic_erl, lines)?;
    Ok(raw(n, a))
}

/// The logarithm to the base 10 of [`waiting`], which goes on below the smallest float.
///
/// # Errors
///
/// As [`waiting`].
pub fn log10_waiting(traffic_erl: f64, lines: u64) -> Result<f64, ErlangError> {
    let (n, a) = checked(traffic_erl, lines)?;
    Ok(ln_raw(n, a) * LOG10_E)
}

/// All figures of one group.
///
/// # Errors
///
/// As [`waiting`].
pub fn queue(traffic_erl: f64, lines: u64) -> Result<Queue, ErlangError> {
    let (n, a) = checked(traffic_erl, lines)?;
    let waiting = raw(n, a);
    Ok(Queue {
        waiting,
        mean_wait: waiting / (n - a),
        mean_wait_of_waiting: 1.0 / (n - a),
        queue: waiting * a / (n - a),
        occupancy: a / n,
    })
}

/// Share of calls that are answered within `within` mean call lengths.
///
/// # Errors
///
/// As [`waiting`], and a time that is negative or not a number.
pub fn service_level(traffic_erl: f64, lines: u64, within: f64) -> Result<f64, ErlangError> {
    let (n, a) = checked(traffic_erl, lines)?;
    let within = time(within)?;
    let ln_late = ln_late(n, a, within);
    Ok(-exp_m1(ln_late))
}

/// Fewest lines at which at most the share `target` of calls waits.
///
/// # Errors
///
/// Traffic that is not positive and finite, or a target that is not a share between 0 and 1.
pub fn lines_for_waiting(traffic_erl: f64, target: f64) -> Result<u64, ErlangError> {
    let (a, target) =
        (error::traffic(traffic_erl)?, error::share("target for the share that waits", target)?);
    smallest(a, |n| raw(n, a) <= target)
}

/// Fewest lines at which at least the share `target` of calls is answered within `within` mean call lengths.
///
/// # Errors
///
/// Traffic that is not positive and finite, a target that is not a share between 0 and 1, or a time that is
/// negative or not a number.
pub fn lines_for_service_level(traffic_erl: f64, target: f64, within: f64) -> Result<u64, ErlangError> {
    let a = error::traffic(traffic_erl)?;
    let (target, within) = (error::share("service level", target)?, time(within)?);
    let late = ln_1p(-target);
    smallest(a, |n| ln_late(n, a, within) <= late)
}

/// Fewest lines at which the mean wait of all calls is at most `wait` mean call lengths.
///
/// # Errors
///
/// Traffic or a wait that is not positive and finite.
pub fn lines_for_mean_wait(traffic_erl: f64, wait: f64) -> Result<u64, ErlangError> {
    let (a, wait) = (error::traffic(traffic_erl)?, error::positive("mean wait (mean call lengths)", wait)?);
    smallest(a, |n| raw(n, a) / (n - a) <= wait)
}

/// Most traffic, in Erlang, at which at most the share `target` of calls waits.
///
/// # Errors
///
/// No lines, or a target that is not a share between 0 and 1.
pub fn traffic_for_waiting(lines: u64, target: f64) -> Result<f64, ErlangError> {
    let (n, target) = (error::lines(lines)?, error::share("target for the share that waits", target)?);
    Ok(most_traffic(n, ln(target), |a| ln_raw(n, a)))
}

/// Most traffic, in Erlang, at which at least the share `target` of calls is answered within `within` mean
/// call lengths.
///
/// # Errors
///
/// No lines, a target that is not a share between 0 and 1, or a time that is negative or not a number.
pub fn traffic_for_service_level(lines: u64, target: f64, within: f64) -> Result<f64, ErlangError> {
    let n = error::lines(lines)?;
    let (target, within) = (error::share("service level", target)?, time(within)?);
    Ok(most_traffic(n, ln_1p(-target), |a| ln_late(n, a, within)))
}

/// Most traffic, in Erlang, at which the mean wait of all calls is at most `wait` mean call lengths.
///
/// # Errors
///
/// No lines, or a wait that is not positive and finite.
pub fn traffic_for_mean_wait(lines: u64, wait: f64) -> Result<f64, ErlangError> {
    let n = error::lines(lines)?;
    let wait = error::positive("mean wait (mean call lengths)", wait)?;
    Ok(most_traffic(n, ln(wait), |a| ln_raw(n, a) - ln(n - a)))
}

fn checked(traffic_erl: f64, lines: u64) -> Result<(f64, f64), ErlangError> {
    let (a, n) = (error::traffic(traffic_erl)?, error::lines(lines)?);
    if a < n { Ok((n, a)) } else { Err(ErlangError::Unstable { traffic: a, lines }) }
}

pub(crate) const fn time(within: f64) -> Result<f64, ErlangError> {
    if within.is_finite() && within >= 0.0 {
        Ok(within)
    } else {
        Err(ErlangError::NotPositive { what: "time (mean call lengths)", given: within })
    }
}

/// `n B / (n - a (1 - B))`, with the difference taken where nothing cancels.
fn raw(n: f64, a: f64) -> f64 {
    let inverse = inverse_b(n, a);
    if inverse.value < 1e300 { n / ((n - a) * inverse.value + a) } else { exp(ln_raw(n, a)) }
}

fn ln_raw(n: f64, a: f64) -> f64 {
    let inverse = inverse_b(n, a);
    if inverse.value < 1e300 {
        // Above one half the logarithm comes from the share that does not wait.
        let divisor = (n - a) * inverse.value + a;
        let not_waiting = (n - a) * (inverse.value - 1.0) / divisor;
        if not_waiting < 0.5 { ln_1p(-not_waiting) } else { ln(n / divisor) }
    } else {
        -inverse.ln - ln_1p(-a / n)
    }
}

fn ln_late(n: f64, a: f64, within: f64) -> f64 {
    ln_raw(n, a) - (n - a) * within
}

fn smallest(a: f64, mut meets: impl FnMut(f64) -> bool) -> Result<u64, ErlangError> {
    // The first whole number of lines above the traffic.
    let least = whole(floor(a)) + 1;
    solve::smallest(least, whole(sqrt(a) / 4.0), |n| meets(float(n)))
        .ok_or(ErlangError::OutOfReach { why: "no number of lines up to 1e12 meets the target" })
}

/// The traffic below `n` at which an increasing logarithm reaches its goal, sought in the logarithm of the
/// traffic where that is far below the lines, else in the head-room `n - a`.
fn most_traffic(n: f64, goal: f64, mut ln_of: impl FnMut(f64) -> f64) -> f64 {
    let half = 0.5 * n;
    if ln_of(half) >= goal {
        let low = goal.min(-1.0) + ln(half) - 1.0;
        exp(solve::root(low, ln(half), |z| ln_of(exp(z)) - goal))
    } else {
        let smallest_room = ln(n * f64::EPSILON);
        n - exp(-solve::root(-ln(half), -smallest_room, |z| ln_of(n - exp(-z)) - goal))
    }
}
