//! When calls arrive.

use std::time::Duration;

use tapedeck_stats::rng::Draws;
use thiserror::Error;

/// The process by which calls arrive. Rates are calls an hour.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrivalProcess {
    /// Independent callers: exponential gaps. What Erlang's formulas assume.
    Poisson {
        /// Calls an hour.
        per_hour: f64,
    },
    /// Evenly spaced calls, the first after one gap: the kindest load of that rate.
    Uniform {
        /// Calls an hour.
        per_hour: f64,
    },
    /// Bursts of calls at the same instant; the bursts themselves are independent of each other.
    Bursty {
        /// Calls an hour, over all bursts.
        per_hour: f64,
        /// Calls in a burst.
        burst: u32,
    },
    /// Recorded starts, counted from the first of them.
    Replay {
        /// The starts, ascending.
        starts: Vec<Duration>,
    },
}

/// A process that cannot be followed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ArrivalProcessError {
    /// A rate that is no rate.
    #[error("a rate of {0} calls an hour cannot be played: give a finite number above 0")]
    Rate(f64),
    /// A rate beyond what one process can place.
    #[error("{0} calls an hour are more than a thousand a second: too many for one load generator")]
    TooFast(f64),
    /// A burst without calls.
    #[error("a burst of 0 calls cannot arrive: give at least 1")]
    Burst,
    /// No recorded start.
    #[error("the recording holds no start; give at least two lines with one start each")]
    NoStarts,
    /// Recorded starts that are not ascending.
    #[error("start {at} of the recording lies before the one above it: sort the file by start")]
    Unsorted {
        /// Which, from 1.
        at: usize,
    },
}

/// Most calls an hour: a thousand a second.
const MOST_PER_HOUR: f64 = 3.6e6;

impl ArrivalProcess {
    /// Checks that there is something to follow.
    ///
    /// # Errors
    /// A rate that is not positive and finite or beyond a thousand calls a second, a burst of no calls, a
    /// recording without starts or with unsorted ones.
    pub fn check(&self) -> Result<(), ArrivalProcessError> {
        match self {
            Self::Poisson { per_hour } | Self::Uniform { per_hour } | Self::Bursty { per_hour, .. }
                if !(per_hour.is_finite() && *per_hour > 0.0) =>
            {
                Err(ArrivalProcessError::Rate(*per_hour))
            }
            Self::Poisson { per_hour } | Self::Uniform { per_hour } | Self::Bursty { per_hour, .. }
                if *per_hour > MOST_PER_HOUR =>
            {
                Err(ArrivalProcessError::TooFast(*per_hour))
            }
            Self::Bursty { burst: 0, .. } => Err(ArrivalProcessError::Burst),
            Self::Replay { starts } if starts.is_empty() => Err(ArrivalProcessError::NoStarts),
            Self::Replay { starts } => match starts.windows(2).position(|pair| pair.first() > pair.last()) {
                Some(at) => Err(ArrivalProcessError::Unsorted { at: at + 2 }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The word used in files and tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Poisson { .. } => "poisson",
            Self::Uniform { .. } => "uniform",
            Self::Bursty { .. } => "bursty",
            Self::Replay { .. } => "replay",
        }
    }

    /// The mean rate, calls an hour; of a recording, its own (none where it holds a single start).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a recording holds far fewer than 2^53 calls")]
    pub fn per_hour(&self) -> Option<f64> {
        match self {
            Self::Poisson { per_hour } | Self::Uniform { per_hour } | Self::Bursty { per_hour, .. } => {
                Some(*per_hour)
            }
            Self::Replay { starts } => {
                let span = starts.last()?.saturating_sub(*starts.first()?);
                let gaps = starts.len().checked_sub(1)? as f64;
                (!span.is_zero()).then(|| gaps * 3600.0 / span.as_secs_f64())
            }
        }
    }

    /// The moments of arrival, ascending, without end (a recording ends). The same seed gives the same moments.
    #[must_use]
    pub fn moments(&self, seed: u64) -> Box<dyn Iterator<Item = Duration> + Send> {
        let mut draws = Draws::new(seed, ARRIVALS);
        match self {
            Self::Poisson { per_hour } => Box::new(sums(per_s(*per_hour), move || exponential(&mut draws))),
            Self::Uniform { per_hour } => Box::new(sums(per_s(*per_hour), || 1.0)),
            Self::Bursty { per_hour, burst } => {
                let burst = (*burst).max(1);
                let bursts = sums(per_s(*per_hour) / f64::from(burst), move || exponential(&mut draws));
                Box::new(bursts.flat_map(move |at| (0..burst).map(move |_| at)))
            }
            Self::Replay { starts } => {
                let first = starts.first().copied().unwrap_or_default();
                Box::new(starts.clone().into_iter().map(move |at| at.saturating_sub(first)))
            }
        }
    }
}

/// Stream of randomness that belongs to the moments of arrival.
const ARRIVALS: u64 = 1 << 33;
/// Stream of randomness that belongs to which call, and how long.
pub(crate) const LENGTHS: u64 = ARRIVALS + 1;

fn per_s(per_hour: f64) -> f64 {
    per_hour / 3600.0
}

/// A standard exponential number.
pub(crate) fn exponential(draws: &mut Draws) -> f64 {
    -(1.0 - draws.unit()).ln()
}

/// Running sums of gaps, which are given in mean gaps.
fn sums(per_s: f64, mut gap: impl FnMut() -> f64 + Send + 'static) -> impl Iterator<Item = Duration> + Send {
    let mut at_s = 0.0;
    std::iter::from_fn(move || {
        at_s += gap() / per_s;
        Duration::try_from_secs_f64(at_s).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(process: &ArrivalProcess, n: usize) -> Vec<f64> {
        process.moments(7).take(n).map(|at| at.as_secs_f64()).collect()
    }

    #[test]
    fn a_seed_means_the_same_arrivals_for_ever() {
        let process = ArrivalProcess::Poisson { per_hour: 3600.0 };
        let a = first(&process, 5);
        assert_eq!(a, first(&process, 5));
        let shown: Vec<String> = a.iter().map(|s| format!("{s:.3}")).collect();
        assert_eq!(shown, SEED_7);
    }

    /// Pinned: a change of these numbers changes every experiment that was ever made with a seed.
    const SEED_7: [&str; 5] = ["0.613", "2.441", "3.091", "4.328", "5.760"];

    #[test]
    fn poisson_gaps_have_their_mean_and_deviation() {
        let at = first(&ArrivalProcess::Poisson { per_hour: 7200.0 }, 20_000);
        let gaps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
        let m = tapedeck_stats::Moments::of(&gaps).unwrap();
        assert!((m.mean - 0.5).abs() < 0.015 && (m.cv().unwrap() - 1.0).abs() < 0.03, "{m:?}");
    }

    #[test]
    fn even_bursty_and_recorded_arrivals() {
        assert_eq!(first(&ArrivalProcess::Uniform { per_hour: 1800.0 }, 3), [2.0, 4.0, 6.0]);
        let bursts = first(&ArrivalProcess::Bursty { per_hour: 3600.0, burst: 4 }, 40_000);
        assert!(bursts.chunks(4).all(|b| b[0].to_bits() == b[3].to_bits()));
        assert!((bursts.last().unwrap() / 40_000.0 - 1.0).abs() < 0.04);
        let s = Duration::from_secs;
        let replay = ArrivalProcess::Replay { starts: vec![s(100), s(101), s(101), s(130)] };
        assert_eq!(first(&replay, 9), [0.0, 1.0, 1.0, 30.0]);
        assert_eq!(replay.per_hour(), Some(360.0));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                ArrivalProcess::Poisson { per_hour: rate }.check(),
                Err(ArrivalProcessError::Rate(_))
            ));
        }
        assert!(matches!(
            ArrivalProcess::Uniform { per_hour: 1e9 }.check(),
            Err(ArrivalProcessError::TooFast(_))
        ));
        assert_eq!(
            ArrivalProcess::Bursty { per_hour: 60.0, burst: 0 }.check(),
            Err(ArrivalProcessError::Burst)
        );
        assert_eq!(ArrivalProcess::Replay { starts: vec![] }.check(), Err(ArrivalProcessError::NoStarts));
        let s = Duration::from_secs;
        let unsorted = ArrivalProcess::Replay { starts: vec![s(1), s(3), s(2)] }.check().unwrap_err();
        assert!(unsorted.to_string().contains("start 3"), "{unsorted}");
    }
}
