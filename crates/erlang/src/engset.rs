//! Engset: few callers, so that each call in progress is one caller fewer who could make another.

use crate::erlang_b::float;
use crate::error::{self, ErlangError};
use crate::math::{LOG10_E, exp, ln};
use crate::poisson::{Inverse, inverse_engset};
use crate::solve;

/// How busy one source is, in either of the two usual ways of saying it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// Share of time that a source would be busy if it were never blocked, between 0 and 1.
    Busy(f64),
    /// Calls that an *idle* source makes per mean call length, above 0.
    Idle(f64),
}

/// What becomes of a group with finitely many sources.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Engset {
    /// Share of calls that find every line busy (call congestion).
    pub blocking: f64,
    /// Share of time in which every line is busy (time congestion): larger, because callers who are
    /// already connected do not call.
    pub time_congestion: f64,
    /// Traffic that is carried, Erlang.
    pub carried: f64,
    /// Traffic that would be carried if there were a line for every source, Erlang.
    pub intended: f64,
}

/// What becomes of `sources` callers on `lines` lines.
///
/// # Errors
///
/// No lines, no sources, or a source whose figure is out of range.
pub fn blocking(sources: u64, source: Source, lines: u64) -> Result<Engset, ErlangError> {
    let (s, n, idle) = (checked_sources(sources)?, error::lines(lines)?, idle(source)?);
    let blocking = call(n, s, idle).map_or(0.0, value);
    let time_congestion = if lines < sources {
        value(inverse_engset(n, s, idle))
    } else if lines == sources {
        // All lines are busy exactly when all sources are.
        exp(-s * crate::math::ln_1p(1.0 / idle))
    } else {
        0.0
    };
    let served = idle * (1.0 - blocking);
    Ok(Engset {
        blocking,
        time_congestion,
        carried: s * served / (1.0 + served),
        intended: s * idle / (1.0 + idle),
    })
}

/// The logarithm to the base 10 of the share of calls that find every line busy; minus infinity where
/// there are no fewer lines than sources.
///
/// # Errors
///
/// As [`blocking`].
pub fn log10_blocking(sources: u64, source: Source, lines: u64) -> Result<f64, ErlangError> {
    let (s, n, idle) = (checked_sources(sources)?, error::lines(lines)?, idle(source)?);
    Ok(call(n, s, idle).map_or(f64::NEG_INFINITY, |inverse| -inverse.ln * LOG10_E))
}

/// Fewest lines at which at most the share `target` of calls is blocked.
///
/// # Errors
///
/// No sources, a source whose figure is out of range, or a target that is not a share between 0 and 1.
pub fn lines(sources: u64, source: Source, target: f64) -> Result<u64, ErlangError> {
    let (s, idle) = (checked_sources(sources)?, idle(source)?);
    let target = error::share("blocking target", target)?;
    let (mut no, mut yes) = (0, sources);
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if call(float(middle), s, idle).map_or(0.0, value) <= target { yes = middle } else { no = middle }
    }
    Ok(yes)
}

/// Busiest sources, as [`Source::Idle`], at which at most the share `target` of calls is blocked.
///
/// # Errors
///
/// No sources or lines, a target that is not a share between 0 and 1, or [`ErlangError::NeverBlocked`]
/// where there are no fewer lines than sources.
pub fn traffic(sources: u64, lines: u64, target: f64) -> Result<Source, ErlangError> {
    let (s, n) = (checked_sources(sources)?, error::lines(lines)?);
    let goal = ln(error::share("blocking target", target)?);
    if lines >= sources {
        return Err(ErlangError::NeverBlocked { sources, lines });
    }
    let off = |z: f64| -inverse_engset(n, s - 1.0, exp(z)).ln - goal;
    let off = |z: f64| if lines == sources - 1 { -n * crate::math::ln_1p(exp(-z)) - goal } else { off(z) };
    let (mut low, mut high) = (-1.0, 1.0);
    while off(low) > 0.0 && low > -690.0 {
        low *= 2.0;
    }
    while off(high) < 0.0 && high < 690.0 {
        high *= 2.0;
    }
    Ok(Source::Idle(exp(solve::root(low, high, off))))
}

impl Source {
    /// The source as the share of time that it would be busy if it were never blocked.
    #[must_use]
    pub fn busy(self) -> f64 {
        match self {
            Self::Busy(busy) => busy,
            Self::Idle(idle) => idle / (1.0 + idle),
        }
    }
}

fn idle(source: Source) -> Result<f64, ErlangError> {
    match source {
        Source::Busy(busy) => {
            error::share("traffic per source (Erlang)", busy)?;
            Ok(busy / (1.0 - busy))
        }
        Source::Idle(idle) => error::positive("calls of an idle source per mean call length", idle),
    }
}

const fn checked_sources(sources: u64) -> Result<f64, ErlangError> {
    match error::lines(sources) {
        Err(ErlangError::NoLines) => Err(ErlangError::NotPositive { what: "sources", given: 0.0 }),
        Err(ErlangError::TooLarge { given, most, .. }) => {
            Err(ErlangError::TooLarge { what: "sources", given, most })
        }
        other => other,
    }
}

/// What a source that calls sees: the other sources. Nothing is blocked once there is a line for each.
fn call(n: f64, s: f64, idle: f64) -> Option<Inverse> {
    let others = s - 1.0;
    if n > others {
        None
    } else if n < others {
        Some(inverse_engset(n, others, idle))
    } else {
        let ln = others * crate::math::ln_1p(1.0 / idle);
        Some(Inverse { value: exp(ln), ln })
    }
}

fn value(inverse: Inverse) -> f64 {
    if inverse.value < 1e300 { 1.0 / inverse.value } else { exp(-inverse.ln) }
}
