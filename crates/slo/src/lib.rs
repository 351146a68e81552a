//! Limits, tier verdicts and N*, decided from records alone.

pub mod capacity;
pub mod evidence;
mod judge;
pub mod limits;
pub mod live;
pub mod report;
pub mod row;

pub use capacity::{Capacity, CapacityState, LadderStop, capacity, ladder_should_stop, next_refinement};
pub use evidence::{Bounds, CacheSetting, Expected, InstanceFacts, QualityBaseline, TierEvidence};
pub use judge::judge;
pub use limits::{LimitError, Limits, LiveRules, StationarityRules, TtftBasis};
pub use live::{Abort, Alert, LiveWatch};
pub use report::{
    Estimate, FinalBasis, GpuReport, InstanceReport, Limit, LimitResult, LimitVerdict, QualityReport,
    Reached, Spread, StationarityResult, TierReport, Verdict,
};
pub use row::{LADDER_HEADER, ladder_row};
