//! What a measured run says of loads, calls and topologies that were not measured.
//!
//! [`Run`] reads a run directory for calculators, [`ladder`] gives its tiers to the engine model of `tapedeck-sizing`, and
//! [`WhatIf`] predicts the topologies of TC-07 before they are played.
//!
//! ```
//! use tapedeck_what_if::Run;
//!
//! assert!(Run::read("nowhere".as_ref()).is_err());
//! ```

mod error;
mod ladder;
mod prediction;
mod run;

pub use error::RunError;
pub use ladder::{Told, calls, ladder, ms};
pub use prediction::WhatIf;
pub use run::Run;
