//! Extended Erlang B: of the calls that find every line busy, a share tries again.
//!
//! Repeated calls are taken to arrive as freshly and randomly as first ones, so they add to the traffic:
//! with recall factor `r`, the total traffic `x` satisfies `x = traffic + r x B(x, lines)`.

use crate::erlang_b;
use crate::error::{self, ErlangError};
use crate::math::{exp, ln, sqrt};
use crate::solve;

/// What becomes of a group whose callers try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    /// Share of attempts that find every line busy.
    pub blocking: f64,
    /// Traffic of first and repeated attempts, Erlang.
    pub total_traffic: f64,
    /// Traffic that is carried, Erlang.
    pub carried: f64,
    /// Share of callers that give up without ever having had a line.
    pub given_up: f64,
}

/// What becomes of `traffic_erl` of first attempts.
///
/// # Errors
///
/// Traffic that is not positive and finite, no lines, a recall factor that is not within 0..=1, or
/// [`ErlangError::Unstable`] where everybody tries again for ever and the lines cannot carry the traffic.
pub fn blocking(traffic_erl: f64, lines: u64, recall: f64) -> Result<Retries, ErlangError> {
    let (a, n) = (error::traffic(traffic_erl)?, error::lines(lines)?);
    let recall = share(recall)?;
    // At a recall of 1 all traffic is carried in the end, which needs more lines than Erlang.
    if recall >= 1.0 && a >= n {
        return Err(ErlangError::Unstable { traffic: a, lines });
    }
    let total_traffic = raw_total(n, a, recall);
    let blocking = erlang_b::raw(n, total_traffic);
    let carried = erlang_b::raw_carried(n, total_traffic);
    let given_up = (1.0 - recall) * total_traffic * blocking / a;
    Ok(Retries { blocking, total_traffic, carried, given_up })
}

/// Fewest lines at which at most the share `target` of attempts is blocked.
///
/// # Errors
///
/// Traffic that is not positive and finite, a target that is not a share between 0 and 1, or a recall factor
/// that is not within 0..=1.
pub fn lines(traffic_erl: f64, target: f64, recall: f64) -> Result<u64, ErlangError> {
    let (a, target) = (error::traffic(traffic_erl)?, error::share("blocking target", target)?);
    let recall = share(recall)?;
    // The total traffic at the target is known beforehand: x = a + r x target. More lines than that
    // blocking needs block less, and fewer block more.
    let total = a / (1.0 - recall * target);
    let least = erlang_b::whole(crate::math::floor(total * (1.0 - target))).saturating_sub(1).max(1);
    solve::smallest(least, erlang_b::whole(sqrt(total)), |n| {
        erlang_b::raw(erlang_b::float(n), total) <= target
    })
    .ok_or(ErlangError::OutOfReach { why: "no number of lines up to 1e12 meets the blocking target" })
}

/// Most traffic of first attempts, in Erlang, at which at most the share `target` of attempts is blocked.
///
/// # Errors
///
/// No lines, a target that is not a share between 0 and 1, or a recall factor that is not within 0..=1.
pub fn traffic(lines: u64, target: f64, recall: f64) -> Result<f64, ErlangError> {
    let recall = share(recall)?;
    Ok(erlang_b::traffic(lines, target)? * (1.0 - recall * target))
}

const fn share(recall: f64) -> Result<f64, ErlangError> {
    if recall >= 0.0 && recall <= 1.0 {
        Ok(recall)
    } else {
        Err(ErlangError::NotAShare { what: "recall factor", given: recall })
    }
}

/// The root of `(1 - r) x + r carried(x) = a`, which increases in `x`.
fn raw_total(n: f64, a: f64, recall: f64) -> f64 {
    if recall <= 0.0 {
        return a;
    }
    let left = |x: f64| (1.0 - recall) * x + recall * erlang_b::raw_carried(n, x);
    let mut high = 2.0 * a;
    while left(high) < a && high < 1e300 {
        high *= 4.0;
    }
    exp(solve::root(ln(a), ln(high), |z| ln(left(exp(z)) / a)))
}
