//! The page itself, in Prometheus' text format.

use tapedeck_cases::Phase;
use tapedeck_metrics::{Exposition, Kind, count};
use tapedeck_record::OutcomeClass;

use super::state::{Buckets, State, Step};

/// Writes the page.
pub(super) fn write(state: &State) -> String {
    let Some(run) = &state.run else { return "# The run has not begun.\n".into() };
    let mut page =
        Page { text: Exposition::default(), simulated: if state.simulated { "true" } else { "false" } };
    let info = [("case", state.case.as_str()), ("run", run.as_str()), ("version", env!("CARGO_PKG_VERSION"))];
    page.text.family("tapedeck_run_info", Kind::Gauge, "What runs here.");
    page.sample("tapedeck_run_info", &info, 1.0);
    now(&mut page, state);
    steps(&mut page, state);
    page.text.finish()
}

fn now(page: &mut Page, state: &State) {
    let current = state.now.as_ref().and_then(|(name, phase)| Some((name, phase, state.steps.get(name)?)));
    if let Some((name, phase, step)) = current {
        let labels = [("step", name.as_str()), ("phase", phase_name(*phase))];
        page.text.family("tapedeck_step_info", Kind::Gauge, "The step that is being played, and its phase.");
        page.sample("tapedeck_step_info", &labels, 1.0);
        page.one(
            "tapedeck_streams",
            "Concurrent streams of the step that is being played.",
            Some(step.streams.into()),
        );
        let help = "Seconds since that step began.";
        page.one("tapedeck_step_elapsed_seconds", help, Some(state.elapsed_s));
        let help = "Seconds that the step is expected to take.";
        page.one("tapedeck_step_expected_seconds", help, Some(step.expected_s));
    }
    let help = "CPU that the load generator uses / cores of its machine.";
    page.one("tapedeck_loadgen_cpu_ratio", help, state.cpu_share);
    page.one("tapedeck_kv_pool_ratio", "Fill of the KV pool of the worst instance.", state.kv_pool);
    page.one("tapedeck_waiting_requests", "Requests that wait for room, over all instances.", state.waiting);
    page.one("tapedeck_open_sessions", "Sessions that the instances hold open.", state.open_sessions);
}

fn steps(page: &mut Page, state: &State) {
    page.text.family(
        "tapedeck_calls_total",
        Kind::Counter,
        "Calls that ended, by how; counted=\"true\" decide.",
    );
    for (name, step) in &state.steps {
        for ((outcome, class, counted), n) in &step.calls {
            let counted = if *counted { "true" } else { "false" };
            let labels = [
                ("step", name.as_str()),
                ("outcome", outcome.name()),
                ("class", class_name(*class)),
                ("counted", counted),
            ];
            page.sample("tapedeck_calls_total", &labels, count(*n));
        }
    }
    page.each(state, "tapedeck_calls_planned", "Calls that will count in the step.", |s| {
        Some(count(s.planned))
    });
    let help = "First-text p95 of the counted calls so far, on the limits' basis.";
    page.each(state, "tapedeck_ttft_p95_seconds", help, |s| s.ttft_p95_s);
    let help = "Our own lateness at p99 over all chunks so far.";
    page.each(state, "tapedeck_wake_late_p99_seconds", help, |s| s.wake_late_p99_s);
    page.histogram(state, "tapedeck_connect_seconds", "Time to connect of counted calls.", |s| &s.connect);
    page.histogram(
        state,
        "tapedeck_ttft_seconds",
        "First text of counted calls, on the limits' basis.",
        |s| &s.ttft,
    );
    page.histogram(state, "tapedeck_final_seconds", "Final of counted calls, on the limits' basis.", |s| {
        &s.final_
    });
    page.histogram(state, "tapedeck_rtf_ratio", "Real-time factor of counted calls.", |s| &s.rtf);
    page.text.family("tapedeck_step_verdict", Kind::Gauge, "The verdict on a step that is decided.");
    for (name, step) in &state.steps {
        if let Some(verdict) = step.verdict {
            page.sample("tapedeck_step_verdict", &[("step", name.as_str()), ("verdict", verdict)], 1.0);
        }
    }
}

struct Page {
    text: Exposition,
    simulated: &'static str,
}

impl Page {
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = [&[("simulated", self.simulated)][..], labels].concat();
        self.text.sample(name, &labels, value);
    }

    /// A gauge without further labels; what is not known is not there.
    fn one(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.text.family(name, Kind::Gauge, help);
            self.sample(name, &[], value);
        }
    }

    /// A gauge of every step that knows it.
    fn each(&mut self, state: &State, name: &str, help: &str, of: impl Fn(&Step) -> Option<f64>) {
        let known: Vec<_> = state.steps.iter().filter_map(|(step, s)| Some((step, of(s)?))).collect();
        if known.is_empty() {
            return;
        }
        self.text.family(name, Kind::Gauge, help);
        for (step, value) in known {
            self.sample(name, &[("step", step)], value);
        }
    }

    fn histogram(&mut self, state: &State, name: &str, help: &str, of: impl Fn(&Step) -> &Buckets) {
        if state.steps.is_empty() {
            return;
        }
        self.text.family(name, Kind::Histogram, help);
        for (step, buckets) in state.steps.iter().map(|(step, s)| (step.as_str(), of(s))) {
            let bounds = buckets.bounds.iter().map(f64::to_string).chain(["+Inf".into()]);
            for (bound, n) in bounds.zip(&buckets.counts) {
                self.sample(&format!("{name}_bucket"), &[("step", step), ("le", &bound)], count(*n));
            }
            self.sample(&format!("{name}_sum"), &[("step", step)], buckets.sum);
            let all = buckets.counts.last().copied().unwrap_or(0);
            self.sample(&format!("{name}_count"), &[("step", step)], count(all));
        }
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Preflight => "preflight",
        Phase::Load => "load",
        Phase::Drain => "drain",
        Phase::CoolDown => "cool_down",
    }
}

const fn class_name(class: OutcomeClass) -> &'static str {
    match class {
        OutcomeClass::Ok => "ok",
        OutcomeClass::Error => "error",
        OutcomeClass::Quality => "quality",
        OutcomeClass::Excluded => "excluded",
    }
}
