//! Erlang A (Palm): a call that finds every line busy waits, and gives up when its patience is at an end.
//!
//! Call lengths and patience are exponential. There is always an equilibrium, even where the traffic is more
//! than the lines can carry, because impatience sheds what is too much.

use crate::erlang_b::{self, float, whole};
use crate::error::{self, ErlangError};
use crate::integral::Density;
use crate::math::{ceil, exp, ln, sqrt};
use crate::poisson::inverse_b;
use crate::solve;

/// Everything that Erlang A says of one group. Times are in mean call lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impatient {
    /// Share of calls that find every line busy and so wait or give up.
    pub waiting: f64,
    /// Share of calls that give up.
    pub abandoning: f64,
    /// Mean time in the queue of all calls, those that give up included.
    pub mean_wait: f64,
    /// Mean number of calls in the queue.
    pub queue: f64,
    /// Share of time in which a line is busy.
    pub occupancy: f64,
}

/// What becomes of calls within a stated time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Within {
    /// Share of all calls that are answered within the time (the service level).
    pub answered: f64,
    /// Share of all calls that are still waiting when the time is over.
    pub still_waiting: f64,
    /// Share of all calls that give up within the time.
    pub given_up: f64,
}

/// All figures of one group; `patience` is the mean patience in mean call lengths.
///
/// # Errors
///
/// Traffic or patience that is not positive and finite, or no lines.
pub fn queue(traffic_erl: f64, lines: u64, patience: f64) -> Result<Impatient, ErlangError> {
    let group = Group::new(error::traffic(traffic_erl)?, error::lines(lines)?, self::patience(patience)?);
    let waits = group.density.integrate(0.0, f64::INFINITY);
    let total = group.below + waits.whole;
    let abandoning = waits.lost / total;
    Ok(Impatient {
        waiting: waits.whole / total,
        abandoning,
        mean_wait: abandoning * patience,
        queue: abandoning * patience * traffic_erl,
        occupancy: (group.below + waits.patient) / total * (traffic_erl / float(lines)),
    })
}

/// What becomes of calls within `within` mean call lengths.
///
/// # Errors
///
/// As [`queue`], and a time that is negative or not a number.
pub fn within(traffic_erl: f64, lines: u64, patience: f64, within: f64) -> Result<Within, ErlangError> {
    let group = Group::new(error::traffic(traffic_erl)?, error::lines(lines)?, self::patience(patience)?);
    let end = crate::erlang_c::time(within)? / patience;
    let (early, late) = (group.density.integrate(0.0, end), group.density.integrate(end, f64::INFINITY));
    let total = group.below + early.whole + late.whole;
    // Those offered a later line have either lost patience before the end or are still there.
    let still_waiting = exp(-end) * late.whole / total;
    let given_up = (early.lost - crate::math::exp_m1(-end) * late.whole) / total;
    Ok(Within { answered: (group.below + early.patient) / total, still_waiting, given_up })
}

/// A target that [`lines`] and [`traffic`] can meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At most this share of calls gives up.
    Abandoning(f64),
    /// At most this share of calls finds every line busy.
    Waiting(f64),
    /// At least this share of all calls is answered within the time, in mean call lengths.
    Answered {
        /// The share.
        share: f64,
        /// The time.
        within: f64,
    },
}

/// Fewest lines that meet the target; `patience` is the mean patience in mean call lengths.
///
/// # Errors
///
/// Traffic or patience that is not positive and finite, or a target out of range.
pub fn lines(traffic_erl: f64, patience: f64, target: Target) -> Result<u64, ErlangError> {
    let (a, patience) = (error::traffic(traffic_erl)?, self::patience(patience)?);
    target.check()?;
    let meets = |n: u64| target.miss(a, float(n), patience) <= 0.0;
    let near = whole(ceil(a)).max(1);
    let stride = whole(sqrt(a));
    // Impatience lets fewer lines than Erlang do, so the search goes down as well as up.
    let mut least = near;
    let mut step = stride.max(1);
    while least > 1 && meets(least) {
        least = least.saturating_sub(step).max(1);
        step = step.saturating_mul(2);
    }
    solve::smallest(least, stride, meets)
        .ok_or(ErlangError::OutOfReach { why: "no number of lines up to 1e12 meets the target" })
}

/// Most traffic, in Erlang, that meets the target; `patience` is the mean patience in mean call lengths.
///
/// # Errors
///
/// No lines, patience that is not positive and finite, or a target out of range.
pub fn traffic(lines: u64, patience: f64, target: Target) -> Result<f64, ErlangError> {
    let (n, patience) = (error::lines(lines)?, self::patience(patience)?);
    target.check()?;
    let miss = |z: f64| target.miss(exp(z), n, patience);
    // Whatever the target, the answer is most often within a few deviations of as much traffic as there are lines, which
    // for many lines is close: steps begin there and double.
    let (mut low, mut high) = (ln(n), ln(n));
    let mut step = (3.0 / sqrt(n)).min(1.0);
    if miss(low) > 0.0 {
        const LEAST: f64 = -690.0;
        while miss(low) > 0.0 {
            if low <= LEAST {
                return Err(ErlangError::OutOfReach { why: "no traffic, however small, meets the target" });
            }
            (low, high) = ((low - step).max(LEAST), low);
            step *= 2.0;
        }
    } else {
        let most = ln(error::MOST);
        while miss(high) < 0.0 {
            if high >= most {
                return Err(ErlangError::OutOfReach {
                    why: "every traffic up to 1e12 Erlang meets the target",
                });
            }
            (low, high) = (high, (high + step).min(most));
            step *= 2.0;
        }
    }
    Ok(exp(solve::root(low, high, miss)))
}

impl Target {
    fn check(self) -> Result<(), ErlangError> {
        match self {
            Self::Abandoning(share) => error::share("target for the share that gives up", share)?,
            Self::Waiting(share) => error::share("target for the share that waits", share)?,
            Self::Answered { share, within } => {
                crate::erlang_c::time(within)?;
                error::share("service level", share)?
            }
        };
        Ok(())
    }

    /// How far the target is missed: positive where it is, and increasing with the traffic.
    fn miss(self, a: f64, n: f64, patience: f64) -> f64 {
        let group = Group::new(a, n, patience);
        match self {
            Self::Abandoning(share) => {
                let waits = group.density.integrate(0.0, f64::INFINITY);
                ln(waits.lost / (group.below + waits.whole)) - ln(share)
            }
            Self::Waiting(share) => {
                let waits = group.density.integrate(0.0, f64::INFINITY);
                ln(waits.whole / (group.below + waits.whole)) - ln(share)
            }
            Self::Answered { share, within } => {
                let end = within / patience;
                let early = group.density.integrate(0.0, end);
                let late = group.density.integrate(end, f64::INFINITY);
                let total = group.below + early.whole + late.whole;
                // From the side that is small, so that its digits count.
                if share < 0.5 {
                    ln(share) - ln((group.below + early.patient) / total)
                } else {
                    ln((early.lost + late.whole) / total) - ln(1.0 - share)
                }
            }
        }
    }
}

fn patience(given: f64) -> Result<f64, ErlangError> {
    error::positive("mean patience (mean call lengths)", given)
}

/// A group in equilibrium, relative to the density of the wait at its peak.
struct Group {
    /// Weight of all states with a free line.
    below: f64,
    density: Density,
}

impl Group {
    fn new(a: f64, n: f64, patience: f64) -> Self {
        let density = Density::new(n * patience, a * patience);
        let scale = density.ln_scale();
        // The states below `n` relative to the one with `n` busy and none waiting.
        let below = if n <= a {
            crate::poisson::below(n, a) * exp(-scale)
        } else {
            let inverse = inverse_b(n - 1.0, a);
            if inverse.value < 1e300 { n / a * inverse.value } else { exp(inverse.ln + ln(n / a)) }
        };
        Self { below, density }
    }
}

/// Traffic that is carried, Erlang.
///
/// # Errors
///
/// As [`queue`].
pub fn carried(traffic_erl: f64, lines: u64, patience: f64) -> Result<f64, ErlangError> {
    Ok(queue(traffic_erl, lines, patience)?.occupancy * erlang_b::float(lines))
}
