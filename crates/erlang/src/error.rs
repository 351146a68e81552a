//! What can be wrong with a question.

use core::fmt;

/// Why a question has no answer. Each message names the quantity, what it was, and what it must be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ErlangError {
    /// A quantity that must be a positive, finite number is not.
    NotPositive {
        /// Which quantity, with its unit.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// A share is not between 0 and 1.
    NotAShare {
        /// Which share.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// A quantity is out of the range that is computed.
    TooLarge {
        /// Which quantity, with its unit.
        what: &'static str,
        /// What was given.
        given: f64,
        /// The largest value that is computed.
        most: f64,
    },
    /// There is not one line.
    NoLines,
    /// A queue that grows without end: the lines cannot carry the traffic.
    Unstable {
        /// Offered traffic, Erlang.
        traffic: f64,
        /// Lines.
        lines: u64,
    },
    /// There are not enough sources for the question.
    NeverBlocked {
        /// Sources.
        sources: u64,
        /// Lines.
        lines: u64,
    },
    /// No number of lines, or no traffic, meets the target.
    OutOfReach {
        /// Which target cannot be met, and why.
        why: &'static str,
    },
}

impl fmt::Display for ErlangError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotPositive { what, given } => {
                write!(f, "{what} is {given}: it must be a finite number above zero")
            }
            Self::NotAShare { what, given } => {
                write!(
                    f,
                    "{what} is {given}: it is a share and must lie between 0 and 1, such as 0.01 for 1 %"
                )
            }
            Self::TooLarge { what, given, most } => {
                write!(f, "{what} is {given:e}: more than {most:e} is not computed")
            }
            Self::NoLines => write!(f, "lines is 0: give at least one line"),
            Self::Unstable { traffic, lines } => write!(
                f,
                "unstable: {lines} lines cannot carry {traffic} Erlang, so the queue grows without end; \
                 give more lines than Erlang"
            ),
            Self::NeverBlocked { sources, lines } => write!(
                f,
                "{sources} sources can never find {lines} lines busy, so no traffic reaches the target; \
                 give fewer lines than sources"
            ),
            Self::OutOfReach { why } => f.write_str(why),
        }
    }
}

impl core::error::Error for ErlangError {}

/// Most lines, and most traffic in Erlang, that are computed.
pub(crate) const MOST: f64 = 1e12;
/// The same for lines.
pub(crate) const MOST_LINES: u64 = 1_000_000_000_000;

/// A finite number above zero and not above [`MOST`].
pub(crate) const fn positive(what: &'static str, given: f64) -> Result<f64, ErlangError> {
    if !given.is_finite() || given <= 0.0 {
        Err(ErlangError::NotPositive { what, given })
    } else if given > MOST {
        Err(ErlangError::TooLarge { what, given, most: MOST })
    } else {
        Ok(given)
    }
}

/// Traffic in Erlang.
pub(crate) const fn traffic(given: f64) -> Result<f64, ErlangError> {
    positive("traffic (Erlang)", given)
}

/// A number of lines, as a float too: below 2^53, so nothing is lost.
pub(crate) const fn lines(given: u64) -> Result<f64, ErlangError> {
    #[expect(clippy::cast_precision_loss, reason = "checked to be far below 2^53, or only shown")]
    let float = given as f64;
    if given == 0 {
        Err(ErlangError::NoLines)
    } else if given > MOST_LINES {
        Err(ErlangError::TooLarge { what: "lines", given: float, most: MOST })
    } else {
        Ok(float)
    }
}

/// A share, 0 and 1 excluded.
pub(crate) const fn share(what: &'static str, given: f64) -> Result<f64, ErlangError> {
    // A subnormal share has lost its digits, so it is no target either.
    if given.is_normal() && given > 0.0 && given < 1.0 {
        Ok(given)
    } else {
        Err(ErlangError::NotAShare { what, given })
    }
}
