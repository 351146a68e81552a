//! What a case tells whoever watches it, while it runs.

use serde::Serialize;
use tapedeck_record::{Outcome, OutcomeClass};
use tapedeck_slo::TierReport;

use tapedeck_answers::Decision;

/// Part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Are all instances there?
    Preflight,
    /// Streams start one after another, then play until the window opens.
    Load,
    /// Streams are closed; the engines become idle.
    Drain,
    /// Rest before the next step.
    CoolDown,
}

/// One thing worth showing. Serialised as one object with a `progress` tag.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "progress", rename_all = "snake_case")]
pub enum Progress<'a> {
    /// A run directory is ready.
    Run {
        /// Its path.
        path: String,
        /// Whether the engines are the built-in ones.
        simulated: bool,
        /// Whether the clock is paused, so that an hour of the run passes in moments.
        paused: bool,
    },
    /// A step begins.
    StepBegins {
        /// Its name.
        step: &'a str,
        /// Concurrent streams.
        streams: u32,
        /// Calls that will count.
        counted_calls: u64,
        /// Expected length of the whole step, seconds.
        expected_s: f64,
        /// Seconds from the run's origin.
        at_s: f64,
    },
    /// A step enters another phase.
    Phase {
        /// Its name.
        step: &'a str,
        /// The phase.
        phase: Phase,
    },
    /// A call ended.
    Call {
        /// The step.
        step: &'a str,
        /// Whether the call counts.
        counts: bool,
        /// Counted calls so far.
        counted: u64,
        /// Counted calls in all.
        of: u64,
        /// Calls so far whose outcome is an error.
        errors: u64,
        /// How this one ended.
        outcome: Outcome,
        /// What that does to the verdict.
        class: OutcomeClass,
        /// Time to connect, seconds.
        connect_s: Option<f64>,
        /// First text on the limits' basis, seconds.
        ttft_s: Option<f64>,
        /// Final on the limits' basis, seconds.
        final_s: Option<f64>,
        /// Real-time factor.
        rtf: Option<f64>,
    },
    /// The figures that decide, as far as they are known; about once a second on the run's clock.
    Live {
        /// The step.
        step: &'a str,
        /// Seconds from the run's origin.
        at_s: f64,
        /// Counted calls so far.
        counted: u64,
        /// Counted calls in all.
        of: u64,
        /// Calls so far whose outcome is an error.
        errors: u64,
        /// First-text p95 of the counted calls so far, on the limits' basis, seconds.
        ttft_p95_s: Option<f64>,
        /// Calls behind it.
        ttft_n: u64,
        /// Our own lateness at p99 over all chunks so far, milliseconds; empty under a paused clock.
        wake_late_p99_ms: Option<f64>,
        /// CPU that we used / this machine's cores, 0..1.
        cpu_share: Option<f64>,
        /// Worst KV use among the instances, 0..1.
        kv_pool: Option<f64>,
        /// Capacity-waiting requests over all instances.
        waiting: Option<f64>,
        /// Sessions that the instances hold open.
        open_sessions: Option<f64>,
    },
    /// A step is decided and written down.
    StepDone {
        /// Its name.
        step: &'a str,
        /// Everything about it.
        report: &'a TierReport,
        /// Whether it was taken over from an earlier, resumed run.
        resumed: bool,
    },
    /// A part of a campaign begins.
    Part {
        /// The case.
        part: &'a str,
        /// What it is, in a few words.
        title: &'a str,
        /// Its place among the parts, from 1.
        number: usize,
        /// How many parts there are.
        of: usize,
        /// About how long it takes, seconds.
        expected_s: f64,
        /// About how long everything takes from here on, this part included, seconds.
        remaining_s: f64,
    },
    /// A part of a campaign has its answer.
    PartDone {
        /// The case.
        part: &'a str,
        /// What it is, in a few words.
        title: &'a str,
        /// Its place among the parts, from 1.
        number: usize,
        /// How many parts there are.
        of: usize,
        /// The answer; empty where the part was left out.
        decision: Option<Decision>,
        /// The answer in one plain sentence, or why it was left out.
        sentence: &'a str,
        /// Whether it was played before, and taken over from the run.
        resumed: bool,
    },
    /// A sentence for the reader.
    Note {
        /// The sentence.
        text: &'a str,
    },
}

/// Somebody who watches.
pub trait Observer: Send + Sync {
    /// Takes notice; must not block.
    fn on(&self, progress: &Progress<'_>);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn on(&self, _: &Progress<'_>) {}
}
