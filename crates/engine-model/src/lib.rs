//! A pure, seeded model of a continuously batching speech engine; computes in its own nanoseconds.

mod cache;
mod counters;
mod kv;
mod model;
mod output;
mod params;
mod session;
mod step;
pub mod truth;

pub use counters::{Counters, Finished, Histogram, TTFT_BOUNDS_NS};
pub use model::Model;
pub use output::{Failure, Heard, Output, OutputKind, Refused, SessionId};
pub use params::{Degradation, ParamError, Params, SessionModel, StepCost};
