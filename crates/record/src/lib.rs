//! The words every room of Tapedeck shares: types only, no I/O.
//!
//! A virtual caller leaves a [`Trace`] of each call it played; scoring turns the trace and the call's
//! [`CallMeta`] into a [`CallRecord`]; the sampler leaves [`Sample`]s beside it; everything that decides
//! works from those three alone.
//!
//! ```
//! use tapedeck_record::{Outcome, OutcomeClass};
//!
//! assert_eq!(Outcome::RefusedBusy.class(true), OutcomeClass::Error);
//! // A call without speech owes no words, so an empty final is not its fault.
//! assert_eq!(Outcome::EmptyFinal.class(false), OutcomeClass::Excluded);
//! ```
//!
//! Read on in [`trace`] (what happened), [`call`] (what it means), [`figure`] (what is known of a
//! figure besides its value), [`sample`] (what the servers said), [`engine`] (their kinds) and
//! [`exit`] (what the command line answers). Nothing here reads a clock, a file or a socket.

pub mod call;
pub mod control;
pub mod crash;
pub mod drain;
pub mod engine;
pub mod exit;
pub mod figure;
pub mod outcome;
pub mod sample;
pub mod schema;
pub mod speech;
pub mod step;
pub mod trace;

pub use call::{CallFigure, CallMeta, CallRecord, WordCounts};
pub use control::ControlRefusal;
pub use crash::CrashCause;
pub use drain::DrainReason;
pub use engine::EngineKind;
pub use exit::{ExitCode, HasExitCode};
pub use figure::{Better, FigureSpec, Glossary, Summarised, Unit};
pub use outcome::{Outcome, OutcomeClass, OutcomeDetail};
pub use sample::{GpuReading, Histogram, Metric, Sample, SampleBody, Scrape};
pub use schema::Schema;
pub use speech::{Interval, SpeechMap};
pub use step::{Case, ContentKind, PaceKind, StepId, ladder_tiers};
#[doc(no_inline)]
pub use tapedeck_l10n::StaticText;
pub use trace::{Evidence, FinalKind, Message, MessageKind, Texts, Trace};
