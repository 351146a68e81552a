//! Limits, tier verdicts and N*, decided from records alone.
//!
//! A tier is judged from its calls, the samples of its servers and what is known of our own client; a ladder of
//! judged tiers has one capacity, with a state that says how far it can be trusted. Everything here is a pure
//! function: the same records give the same answer, years later.
//!
//! ```
//! use tapedeck_record::CallRecord;
//! use tapedeck_slo::{StepBounds, Limits, TierEvidence, TierReport, capacity, judge, ladder_row};
//!
//! fn tier(streams: u32, calls: &[CallRecord], bounds: StepBounds) -> TierReport {
//!     let mut evidence = TierEvidence::new(streams, "Tape-A", calls, bounds);
//!     evidence.wake_late_p99_ms = Some(1.3); // without it nothing shows that audio was sent in time
//!     judge(&evidence, &Limits::default())
//! }
//!
//! let bounds = StepBounds { ramp_from_s: 0.0, window_from_s: 120.0, window_to_s: 600.0, drain_to_s: 640.0 };
//! let report = tier(3, &[], bounds);
//! assert_eq!(report.verdict.name(), "unknown"); // no call was counted: never a silent pass
//! assert_eq!(ladder_row(&report, &[])[..3], ["3", "Tape-A", ""]);
//! assert_eq!(capacity(&[report], &Limits::default()).display(), "undecided");
//! ```
//!
//! Read on in [`judge()`] (the order in which a tier is judged), [`report`] (all that is known of a judged tier),
//! [`mod@capacity`] (N*, refinement, the end of a ladder), [`live`] (what ends a tier while it runs), [`plan`] (how many
//! calls a verdict needs), [`reason`] (why a tier has its verdict), [`figure`] (every figure there is), [`assertion`]
//! (limits in one line, read from text with the feature `assertions`), [`repeat`], [`mod@leak`] and [`mod@recovery`].
//!
//! Limits: intervals assume that streams are independent of each other; a tier of one stream has only its order
//! statistics. Stationarity needs at least four blocks of a minute.

pub mod assertion;
pub mod capacity;
pub mod evidence;
pub mod figure;
mod figures;
mod judge;
pub mod leak;
pub mod limits;
pub mod live;
mod measure;
pub mod plan;
mod quality;
pub mod reason;
mod recorded;
pub mod recovery;
pub mod repeat;
pub mod report;
pub mod row;
mod servers;
pub mod split;
mod stationarity;
mod step_figure;
pub mod table;

#[cfg(feature = "assertions")]
pub use assertion::AssertionError;
pub use assertion::{Assertion, AssertionResult, answered, meant_to_fail};
pub use capacity::{Capacity, CapacityState, LadderStop, capacity, ladder_should_stop, next_refinement};
pub use evidence::{
    CacheSetting, CallErrors, Expected, InstanceFacts, PooledErrors, QualityBaseline, StepBounds,
    StepEvidence, TierEvidence,
};
pub use figure::Figure;
pub use judge::judge;
pub use leak::{Leak, LeakRules, LeakVerdict, leak};
pub use limits::{Limits, LiveRules, StationarityRules, TtftBasis};
pub use live::{Abort, Alert, HardLimit, LiveWatch};
pub use plan::{CallPlan, plan_calls};
pub use reason::{CutShort, Latency, Reason};
pub use recovery::{Recovery, RecoveryRules, RecoveryStep, recovery};
pub use repeat::{RepeatRules, Repeatability, RepeatedFigure, repeatability, spread_between};
pub use report::{
    Estimate, FinalBasis, GpuReport, InstanceReport, Limit, LimitResult, LimitVerdict, PercentileOrInfinite,
    QualityReport, StationarityResult, Summary, TierReport, Verdict,
};
pub use row::{LADDER_COLUMNS, ladder_row};
pub use split::{Period, Split, periods, split};
pub use stationarity::adjust_by_holm;
pub use step_figure::StepFigure;
pub use table::tier_columns;

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
