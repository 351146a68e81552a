//! What is known of a run so far.

use std::collections::BTreeMap;

use tapedeck_cases::{Phase, Progress};
use tapedeck_record::{Outcome, OutcomeClass};

/// Upper bounds of latencies, seconds; the limits of a usual deployment are among them.
pub(super) const SECONDS: &[f64] = &[0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];
/// Upper bounds of real-time factors.
pub(super) const RATIOS: &[f64] = &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0];

/// Observations by upper bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Buckets {
    pub(super) bounds: &'static [f64],
    /// Observations at or below each bound, and all of them last.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value.filter(|v| v.is_finite()) else { return };
        let from = self.bounds.partition_point(|bound| *bound < value);
        self.counts.iter_mut().skip(from).for_each(|n| *n += 1);
        self.sum += value;
    }
}

/// What one step has left so far.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) streams: u32,
    pub(super) planned: u64,
    pub(super) begun_s: f64,
    pub(super) expected_s: f64,
    /// Ended calls by outcome, and by whether they count.
    pub(super) calls: BTreeMap<(Outcome, OutcomeClass, bool), u64>,
    pub(super) connect: Buckets,
    pub(super) ttft: Buckets,
    pub(super) final_: Buckets,
    pub(super) rtf: Buckets,
    pub(super) ttft_p95_s: Option<f64>,
    pub(super) wake_late_p99_s: Option<f64>,
    pub(super) verdict: Option<&'static str>,
}

/// The latest of everything.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) case: String,
    /// Its name; before there is one, nothing is told.
    pub(super) run: Option<String>,
    pub(super) simulated: bool,
    pub(super) now: Option<(String, Phase)>,
    pub(super) elapsed_s: f64,
    pub(super) cpu_share: Option<f64>,
    pub(super) kv_pool: Option<f64>,
    pub(super) waiting: Option<f64>,
    pub(super) open_sessions: Option<f64>,
    pub(super) steps: BTreeMap<String, Step>,
}

impl State {
    pub(super) fn new(case: &str) -> Self {
        Self { case: case.into(), ..Self::default() }
    }

    /// Takes notice.
    pub(super) fn on(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Run { path, simulated, .. } => {
                let name = path.rsplit('/').next().unwrap_or(path);
                (self.run, self.simulated) = (Some(name.to_string()), *simulated);
            }
            Progress::StepBegins { step, streams, counted_calls, expected_s, at_s } => {
                let begun = Step {
                    streams: *streams,
                    planned: *counted_calls,
                    begun_s: *at_s,
                    expected_s: *expected_s,
                    calls: BTreeMap::new(),
                    connect: Buckets::new(SECONDS),
                    ttft: Buckets::new(SECONDS),
                    final_: Buckets::new(SECONDS),
                    rtf: Buckets::new(RATIOS),
                    ttft_p95_s: None,
                    wake_late_p99_s: None,
                    verdict: None,
                };
                // A step that is played once more begins anew, as it does in the files.
                self.steps.insert((*step).to_string(), begun);
                self.now = Some(((*step).to_string(), Phase::Preflight));
                self.elapsed_s = 0.0;
            }
            Progress::Phase { step, phase } => self.now = Some(((*step).to_string(), *phase)),
            Progress::Call { step, counts, outcome, class, connect_s, ttft_s, final_s, rtf, .. } => {
                let Some(step) = self.steps.get_mut(*step) else { return };
                *step.calls.entry((*outcome, *class, *counts)).or_default() += 1;
                if *counts && matches!(class, OutcomeClass::Ok | OutcomeClass::Quality) {
                    step.connect.add(*connect_s);
                    step.ttft.add(*ttft_s);
                    step.final_.add(*final_s);
                    step.rtf.add(*rtf);
                }
            }
            Progress::Live {
                step,
                at_s,
                ttft_p95_s,
                wake_late_p99_ms,
                cpu_share,
                kv_pool,
                waiting,
                open_sessions,
                ..
            } => {
                self.cpu_share = *cpu_share;
                (self.kv_pool, self.waiting, self.open_sessions) = (*kv_pool, *waiting, *open_sessions);
                let Some(step) = self.steps.get_mut(*step) else { return };
                self.elapsed_s = (*at_s - step.begun_s).max(0.0);
                step.ttft_p95_s = *ttft_p95_s;
                step.wake_late_p99_s = wake_late_p99_ms.map(|ms| ms / 1e3);
            }
            Progress::StepDone { step, report, .. } => {
                if let Some(step) = self.steps.get_mut(*step) {
                    step.verdict = Some(report.verdict.name());
                    // From here on the page says what the files say.
                    step.ttft_p95_s = report.ttft().map(|t| t.p95.value);
                    step.wake_late_p99_s = report.wake_late_p99_ms.map(|ms| ms / 1e3);
                }
            }
            Progress::Part { .. } | Progress::PartDone { .. } | Progress::Note { .. } => {}
        }
    }
}
