//! The run directory: append, checkpoint, resume, atomic writes.
//!
//! A run is a folder that anybody can open with ordinary tools. What grows while a step runs is append-only
//! (`calls.jsonl`, `series.jsonl`, `events.jsonl`); what a step leaves is committed by one line in
//! `steps.jsonl`, which remembers how long the growing files were at that moment. A process that is killed
//! therefore loses at most the running step: opening the folder again cuts the growing files back to the
//! last commit. Tables (`ladder.csv`, `tiers.csv`) are made anew from the commits and replaced atomically.
//!
//! ```
//! use tapedeck_rundir::{RunDir, RunInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let tmp = tempfile::tempdir()?;
//! let info = RunInfo { run_id: "demo".into(), case: "tc03".into(), simulated: true, seed: 1, ..RunInfo::default() };
//! let dir = RunDir::create(tmp.path(), &info, "[load]\nchunk_ms = 100\n")?;
//! assert!(dir.path().join("run.toml").exists());
//! # Ok(())
//! # }
//! ```
//!
//! `examples/judge.rs` judges an existing run anew.
//!
//! Read on in [`dir`] (the folder and its journal), [`step`] (what a step writes), [`blocks`] (how a large run is
//! read) and [`tables`] (the CSV
//! files). Nothing here computes a figure: it writes down what `score` and `slo` decided.

pub mod atomic;
pub mod blocks;
mod delta;
pub mod dir;
pub mod error;
mod event;
mod lateness;
mod ordered_pool;
pub mod step;
pub mod tables;

pub use dir::{
    DERIVED, Event, Journal, RunDir, RunInfo, events_of, ladder_of, read_json, read_run, refuse_newer,
    samples_of,
};
pub use error::RunDirError;
pub use event::EventDetail;
pub use step::{CommittedStep, StepWriter};
