//! From a run directory to a report that a manager can sign and an engineer can argue with.
//!
//! A run is read as far as it can be read; what is missing or contradicts itself is said, and a number that would
//! follow from it is withheld. Everything is decided anew from the records, so the same run gives the same report
//! years later.
//!
//! ```
//! use tapedeck_report::{Answer, Lang, Run, write_html};
//!
//! fn report(run: &std::path::Path) -> Result<String, Box<dyn std::error::Error>> {
//!     let run = Run::read(run)?;
//!     for warning in &run.warnings {
//!         println!("{}", warning.said.text(Lang::En));
//!     }
//!     let answer = Answer::of(&run);
//!     Ok(write_html(&run, &answer, Lang::Zh, false))
//! }
//! ```
//!
//! Read on in [`read`] (what is read, and when it is questioned), [`answer`] (what is said first), [`diagnose`] and
//! [`symptoms`] (why a tier failed and what to try), [`compare`] and [`merge`] (two runs), [`rescore`] (other limits
//! on old traces), [`data`] (tables for other tools).
//!
//! Limits: nothing is measured here. Sentences that other rooms wrote down are said in Chinese by recognising them;
//! one that is not known stands as it was written.

pub mod answer;
mod cases;
pub mod compare;
mod csv;
pub mod data;
pub mod diagnose;
mod frame;
pub mod glossary;
mod html;
pub mod integrity;
pub mod latency_breakdown;
pub mod line;
pub mod merge;
pub mod messages;
mod newrun;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod plots;
#[cfg(feature = "png")]
mod png;
mod promise;
pub mod read;
pub mod rescore;
pub mod risks;
pub mod riva;
pub mod samples;
mod section;
pub mod series;
mod settings;
mod svg;
pub mod symptoms;
pub mod text;
pub mod traces;

pub use answer::Answer;
pub use integrity::{IntegrityWarning, Severity};
pub use messages::{Lang, LocalizedText};
pub use newrun::Derived;
pub use output::{Wanted, WriteError, Written, write_html, write_report};
pub use read::{ReadError, Reading, Run, Step};
