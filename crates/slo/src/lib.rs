//! Limits, tier verdicts and N*, decided from records alone.

pub mod capacity;
pub mod evidence;
mod figures;
mod judge;
pub mod leak;
pub mod limits;
pub mod live;
mod measure;
pub mod plan;
mod quality;
pub mod recovery;
pub mod repeat;
pub mod report;
pub mod row;
mod servers;
mod stationarity;

pub use capacity::{Capacity, CapacityState, LadderStop, capacity, ladder_should_stop, next_refinement};
pub use evidence::{Bounds, CacheSetting, Expected, InstanceFacts, QualityBaseline, TierEvidence};
pub use judge::judge;
pub use leak::{Leak, LeakRules, LeakVerdict, leak};
pub use limits::{LimitError, Limits, LiveRules, StationarityRules, TtftBasis};
pub use live::{Abort, Alert, LiveWatch};
pub use plan::{CallPlan, plan_calls};
pub use recovery::{Recovery, RecoveryRules, RecoveryStep, recovery};
pub use repeat::{RepeatRules, Repeatability, RepeatedFigure, repeatability, spread_between};
pub use report::{
    Estimate, FinalBasis, GpuReport, InstanceReport, Limit, LimitResult, LimitVerdict, QualityReport,
    Reached, Spread, StationarityResult, TierReport, Verdict,
};
pub use row::{LADDER_HEADER, ladder_row};
pub use stationarity::settle;
