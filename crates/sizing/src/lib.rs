//! Memory per call, instances per card, what to promise, and what if.
//!
//! Pure arithmetic, and one fitted model; no file, clock or socket. It begins at what a token costs, goes on to calls,
//! tapes and cards, and ends at a sentence that can be signed:
//!
//! ```
//! use tapedeck_sizing::{Architecture, Card, Session, Topology, kv, supply, units};
//!
//! let token = Architecture::qwen3_asr_0_6b().kv_bytes_per_token()?;
//! assert_eq!(token, 114_688);
//! let call = kv::call(&Session::plan(), token, 300.0)?;
//! assert_eq!(units::plan_mb(call.peak_bytes).round(), 591.0);
//! let three = supply(&Card::a40_qwen3_asr_0_6b(), Topology::split(0.92, 3), call.peak_bytes)?;
//! assert_eq!((three.calls_each, three.calls_all), (18, 54));
//! # Ok::<(), tapedeck_sizing::SizingError>(())
//! ```
//!
//! Read on at [`Architecture`] (bytes of a token), [`Session`] (tokens of a call), [`kv`] (bytes of a call and of a tape),
//! [`supply`](supply()) and [`how_many`] (what a card gives, and how many instances), [`calibrate()`] (theory
//! beside a run), [`statement`] (from N* to lines and calls an hour) and [`whatif`] (predictions, with intervals).
//!
//! # Limits
//! Whole blocks of the pool are not rounded up for each call; at 16 tokens a block that is less than 1 MB a call.
//! Encoder memory, CUDA graphs and activations are one figure, the overhead, which only a measurement knows.

mod arch;
mod calibrate;
mod durations;
mod error;
mod instances;
pub mod kv;
mod plan;
mod promise;
mod session;
pub mod statement;
mod supply;
pub mod units;
pub mod whatif;

pub use arch::{Architecture, Dtype};
pub use calibrate::{
    Calibration, CalibrationNote, InstanceSeen, LoadPoint, PoolSource, Row, Seen, Theory, calibrate,
};
pub use durations::Durations;
pub use error::SizingError;
pub use instances::{HowMany, Need, how_many};
pub use plan::SizingPlan;
pub use promise::{BLOCKING, PromisePlan};
pub use session::{CallTokens, LengthBound, Session, SessionModel};
pub use supply::{Card, SupplyRow, Topology, supply};
