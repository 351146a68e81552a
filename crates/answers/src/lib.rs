//! What each test case answers, as types that are written to a run directory and read back from it.
//!
//! A case fills its answer and leaves it as JSON; the report, the calculators and later cases read it as the same
//! type. Nothing here decides anything but an exit code.
//!
//! ```
//! use tapedeck_answers::{AnswerFile, SoakAnswer, read};
//!
//! let dir = tempfile::tempdir().unwrap();
//! assert_eq!(SoakAnswer::FILE, "tc05.json");
//! // No soak was played here, which is no error.
//! assert!(read::<SoakAnswer>(dir.path()).unwrap().is_none());
//! ```
//!
//! Read on in [`files`] (which answer is kept where) and in the module of each case.

pub mod arrivals;
pub mod campaign;
pub mod decision;
pub mod fault;
pub mod files;
pub mod footprint;
pub mod ladder;
pub mod long_calls;
pub mod n_star;
pub mod pools;
pub mod quality;
pub mod rate;
pub mod repeatability;
pub mod single_stream;
pub mod soak;
pub mod topology;

pub use arrivals::{ArrivalFigures, ArrivalRate, ArrivalsAnswer, Caveat, Compared, Growth, Little, Measured};
pub use campaign::{
    CampaignAnswer, CampaignStop, LeftOut, NStarBound, Part, PartAnswer, PartDone, Rerun, RerunReason,
};
pub use decision::Decision;
pub use fault::{Fault, FaultAnswer, FaultReason, Incident, Pinned, Timeline, Toll};
pub use files::{AnswerFile, Answers, read};
pub use footprint::{FootprintAnswer, Level, NoGpu, TableRow};
pub use ladder::{Ceiling, LadderAnswer, Repeats};
pub use long_calls::LongCallsAnswer;
pub use n_star::{NStar, NStarSource};
pub use pools::{InstancePool, Occupation, OccupationSource};
pub use quality::{QualityAnswer, QualityFinding, QualityPoint, Rates, Rise, RiseFinding};
pub use rate::ErrorRate;
pub use repeatability::RepeatabilityAnswer;
pub use single_stream::{
    Few, Floor, SingleStreamAnswer, SingleStreamCall, SingleStreamFigures, SingleStreamReason,
};
pub use soak::{Drift, Liveness, Memory, Soak, SoakAnswer, SoakContent, SoakReason, SoakRestart};
pub use topology::{Advantage, Candidate, Predicted, TopologyAnswer, TopologyReason};
