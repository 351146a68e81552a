//! Limits that somebody states in one line: `final_s:p95<=2 by instance`.
//!
//! A assertion names a figure of the [catalogue](Figure), a statistic where the figure is one of single calls, a bound,
//! and perhaps the parts that each have to keep it. It is held against steps that were judged, and answers with one
//! [`AssertionResult`] a step and part. What is not known is never kept.
//!
//! ```
//! use tapedeck_slo::Assertion;
//!
//! let assertion: Assertion = "final_s:p95<=2 by instance".parse()?;
//! assert_eq!(assertion.to_string(), "final_s:p95 <= 2 by instance");
//! let typo = "finals:p95<=2".parse::<Assertion>().unwrap_err();
//! assert!(typo.to_string().contains("did you mean `final_s`?"));
//! # Ok::<(), tapedeck_slo::AssertionError>(())
//! ```

mod check;
#[cfg(feature = "assertions")]
mod parse;

use std::fmt;

pub use check::{AssertionResult, answered, meant_to_fail, told};
#[cfg(feature = "assertions")]
pub use parse::AssertionError;

use crate::figure::Figure;

/// Which side of the bound is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// As it is written.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Whether a value keeps the bound.
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Below => value < bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::AtLeast => value >= bound,
        }
    }

    /// Where an errored call stands: beyond every value, on the side that is not well.
    const fn worst(self) -> f64 {
        match self {
            Self::Below | Self::AtMost => f64::INFINITY,
            Self::Above | Self::AtLeast => f64::NEG_INFINITY,
        }
    }
}

/// What is taken of a figure of single calls.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Statistic {
    /// A percentile as an exact order statistic, 0..1.
    Quantile(f64),
    /// Arithmetic mean.
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // 0.999 x 100 is not quite 99.9.
            Self::Quantile(q) => write!(f, "p{}", (q * 1e8).round() / 1e6),
            Self::Mean => f.write_str("mean"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// Parts of a step that each have to keep a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The instance that served the call.
    Instance,
    /// The nominal duration bucket.
    Bucket,
    /// The stream.
    Stream,
    /// The call on the tape.
    Call,
    /// The tape, where the streams of a step play different ones.
    Tape,
}

impl Part {
    /// Every kind of part.
    pub const ALL: [Self; 5] = [Self::Instance, Self::Bucket, Self::Stream, Self::Call, Self::Tape];

    /// The word used in limits.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Bucket => "bucket",
            Self::Stream => "stream",
            Self::Call => "call",
            Self::Tape => "tape",
        }
    }
}

/// A limit stated in one line.
#[derive(Debug, Clone)]
pub struct Assertion {
    figure: Figure,
    statistic: Option<Statistic>,
    comparison: Comparison,
    bound: f64,
    by: Option<Part>,
}

impl Assertion {
    /// The figure that is held against the bound.
    #[must_use]
    pub const fn figure(&self) -> Figure {
        self.figure
    }

    /// The parts that each have to keep it.
    #[must_use]
    pub const fn by(&self) -> Option<Part> {
        self.by
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.figure.spec().id)?;
        if let Some(statistic) = self.statistic {
            write!(f, ":{statistic}")?;
        }
        write!(f, " {} {}", self.comparison.sign(), self.bound)?;
        if let Some(by) = self.by {
            write!(f, " by {}", by.name())?;
        }
        Ok(())
    }
}
