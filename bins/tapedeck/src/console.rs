//! What a case shows on a terminal, in a log file or to another program.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tapedeck_cases::{Decision, Observer, Phase, Progress};
use tapedeck_slo::{Limit, LimitResult, Limits, Spread, TierReport, Verdict};

/// How progress is shown.
#[derive(Debug)]
enum Show {
    /// A table that grows on standard output, and a bar on standard error where that is a terminal.
    Table(ProgressBar),
    /// One JSON object per event on standard output.
    Json,
    /// Nothing.
    Nothing,
}

/// Shows progress as the user asked for it.
#[derive(Debug)]
pub struct Console {
    show: Show,
    terminal: bool,
    out: Mutex<Vec<u8>>,
}

impl Console {
    /// As the flags ask: `--json`, `--quiet`, or a table.
    #[must_use]
    pub fn new(json: bool, quiet: bool) -> Self {
        let show = match (json, quiet) {
            (true, _) => Show::Json,
            (_, true) => Show::Nothing,
            _ if std::io::stderr().is_terminal() => {
                // Not drawn before there is a step to draw: a campaign has a screen of its own.
                let bar = ProgressBar::hidden();
                let template = "{spinner} {prefix} [{bar:24}] {pos}/{len} calls  {msg}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style.progress_chars("=> "));
                }
                Show::Table(bar)
            }
            _ => Show::Table(ProgressBar::hidden()),
        };
        Self { show, terminal: std::io::stderr().is_terminal(), out: Mutex::default() }
    }

    /// Prints a line on standard output, above the bar.
    pub fn line(&self, text: &str) {
        let print = || {
            // A reader that went away (`| head`) is no reason to lose a measurement.
            let _ = writeln!(std::io::stdout().lock(), "{text}");
        };
        match &self.show {
            Show::Table(bar) => bar.suspend(print),
            Show::Json | Show::Nothing => print(),
        }
    }

    /// Prints the head of the table, with the limits that decide.
    pub fn head(&self, limits: &Limits) {
        if !matches!(self.show, Show::Table(_)) {
            return;
        }
        self.line(&format!(
            "Limits: TTFT p95 <= {} s (from {}), RTF p95 <= {}, final p95 <= {} s, KV pool p95 < {} %, no preemption, no errors",
            limits.ttft_p95_s,
            match limits.ttft_basis {
                tapedeck_slo::TtftBasis::Wire => "the first chunk sent",
                tapedeck_slo::TtftBasis::Speech => "the first speech",
                tapedeck_slo::TtftBasis::Window => "the end of the first window with speech",
            },
            limits.rtf_p95,
            limits.final_p95_s,
            (limits.kv_pool_p95 * 100.0).round(),
        ));
        if limits.ttft_basis == tapedeck_slo::TtftBasis::Window {
            self.line(
                "        Not from the first chunk: a server that decodes whole windows cannot answer it any sooner, \
                 so that limit would fail by design",
            );
        }
        self.line(
            "streams  verdict     TTFT p95    RTF p95  final p95   KV p95  preempted  errors  calls  why",
        );
    }

    /// Whether a table is shown, rather than JSON or nothing.
    #[must_use]
    pub const fn is_table(&self) -> bool {
        matches!(self.show, Show::Table(_))
    }

    /// Prints a case's whole answer as one JSON object.
    pub fn answer<A: serde::Serialize>(&self, case: &str, answer: &A) {
        if let Ok(answer) = serde_json::to_value(answer) {
            let object = serde_json::json!({ "progress": "answer", "case": case, "answer": answer });
            self.line(&object.to_string());
        }
    }

    /// Prints a case's answer as the user asked for it: one JSON object, or its last lines.
    pub fn conclude<A: serde::Serialize>(&self, case: &str, answer: &A, lines: fn(&A) -> Vec<String>) {
        if matches!(self.show, Show::Json) {
            self.answer(case, answer);
            return;
        }
        for line in lines(answer) {
            self.line(&line);
        }
    }

    /// Prints the end of the table.
    pub fn finish(&self) {
        if let Show::Table(bar) = &self.show {
            bar.finish_and_clear();
        }
    }

    fn json(&self, progress: &Progress<'_>) {
        // A poisoned buffer only held a line that was never printed.
        let mut line = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        line.clear();
        if serde_json::to_writer(&mut *line, progress).is_ok() {
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    fn table(&self, bar: &ProgressBar, progress: &Progress<'_>) {
        match progress {
            Progress::Run { path, simulated } => {
                let what = if *simulated { "simulated run" } else { "run" };
                self.line(&format!("Writing this {what} to {path}"));
            }
            Progress::StepBegins { step, counted_calls, expected_s, .. } => {
                if self.terminal && bar.is_hidden() {
                    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
                }
                bar.reset();
                bar.set_prefix((*step).to_string());
                bar.set_length(*counted_calls);
                let about = Duration::try_from_secs_f64(expected_s.round()).unwrap_or_default();
                bar.set_message(format!("about {about:?} in all"));
                if bar.is_hidden() {
                    let _ = writeln!(
                        std::io::stderr().lock(),
                        "{step}: {counted_calls} calls will count, about {about:?} in all"
                    );
                }
            }
            Progress::Phase { phase, .. } => bar.set_message(match phase {
                Phase::Preflight => "preflight",
                Phase::Load => "ramp and warm-up",
                Phase::Drain => "draining",
                Phase::CoolDown => "cooling down",
            }),
            Progress::Call { counted, errors, .. } => {
                bar.set_position(*counted);
                if *errors > 0 {
                    bar.set_message(format!("{errors} errors"));
                }
            }
            Progress::Live { kv_pool, waiting, .. } => {
                let kv = kv_pool.map_or_else(String::new, |kv| format!("KV {:.0} %", kv * 100.0));
                let waiting = waiting.map_or_else(String::new, |w| format!("  waiting {w:.0}"));
                bar.set_message(format!("{kv}{waiting}"));
            }
            Progress::StepDone { report, .. } => self.line(&row(report)),
            Progress::Note { text } => self.line(&format!("note: {text}")),
            Progress::Part { part, title, .. } => self.line(&format!("{part}: {title}")),
            Progress::PartDone { part, sentence, .. } => self.line(&format!("{part}: {sentence}")),
        }
    }
}

impl Observer for Console {
    fn on(&self, progress: &Progress<'_>) {
        match &self.show {
            Show::Table(bar) => self.table(bar, progress),
            Show::Json => self.json(progress),
            Show::Nothing => {}
        }
    }
}

/// The command that goes on with a run: this one, with `--into` and the run's folder.
#[must_use]
pub fn go_on(run: &Path) -> String {
    let args = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
    going_on(args, &run.display().to_string())
}

/// These arguments without what says where the run is, and with where it is now. Unlike `--resume`, `--into` also goes
/// on with a case that was played into another one's run.
fn going_on(args: impl IntoIterator<Item = String>, run: &str) -> String {
    let mut command: Vec<String> = Vec::new();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--into" | "--resume" | "--out" => {
                args.next_if(|value| !value.starts_with('-'));
            }
            other if ["--into=", "--resume=", "--out="].iter().any(|flag| other.starts_with(flag)) => {}
            _ => command.push(quoted(&arg)),
        }
    }
    command.extend(["--into".into(), quoted(run)]);
    command.join(" ")
}

/// An argument as a shell reads it back.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    match !arg.is_empty() && arg.chars().all(plain) {
        true => arg.to_string(),
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

/// How every case ends: what its decision is, whether it is simulated, how to go on, where the evidence is.
#[must_use]
pub fn last_lines(decision: Decision, simulated: bool, interrupted: bool, run: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    if interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(run)));
    } else {
        lines.push(match decision {
            Decision::Yes => "Answer: yes".into(),
            Decision::No => "Answer: no".into(),
            Decision::Undecidable => "Answer: not decidable".into(),
        });
    }
    if simulated {
        lines.push("Simulated: measured on the built-in engine, not on your servers".into());
    }
    lines.push(format!("Evidence: {}", run.display()));
    lines
}

/// One row of the table; what is unknown or does not apply is a dash.
#[must_use]
pub fn row(report: &TierReport) -> String {
    let dash = || "-".to_string();
    let p95 = |s: &Option<Spread>, unit: &str| {
        s.as_ref().map_or_else(dash, |s| format!("{:.3}{unit}", s.p95.value))
    };
    let verdict = format!("{}{}", report.verdict.name(), if report.point_only { "*" } else { "" });
    let line = format!(
        "{:>7}  {:<9} {:>10} {:>10} {:>10} {:>8} {:>10} {:>7} {:>6}  {}",
        report.streams,
        verdict,
        p95(&report.ttft, " s"),
        p95(&report.rtf, ""),
        p95(&report.final_latency, " s"),
        report.kv_pool_p95.map_or_else(dash, |kv| format!("{:.1} %", kv * 100.0)),
        report.preempt_delta.map_or_else(dash, |n| format!("{n:.0}")),
        report.err_streams,
        report.calls_counted,
        why(report),
    );
    line.trim_end().to_string()
}

/// The broken limits in a few words; the whole sentences are in `tiers.csv`.
fn why(report: &TierReport) -> String {
    let broken: Vec<String> = report.limits.iter().filter(|l| l.verdict.failed()).map(broke).collect();
    match broken.is_empty() {
        true if report.verdict == Verdict::Pass => String::new(),
        true => report.reasons.first().cloned().unwrap_or_default(),
        false => broken.join(", "),
    }
}

fn broke(result: &LimitResult) -> String {
    let LimitResult { limit, value, threshold, .. } = result;
    match (limit, value) {
        (Limit::Errors, Some(streams)) => format!("{streams:.0} streams errored"),
        (Limit::Preemption, Some(n)) => format!("{n:.0} preemptions"),
        (_, Some(value)) => format!("{} {value:.3} > {threshold}", limit.name()),
        (_, None) => limit.name().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_is_the_one_that_was_typed() {
        let on = |typed: &str| going_on(typed.split('|').map(String::from), "results/my run");
        assert_eq!(on("tc05|--rehearse|--n-star|39"), "tc05 --rehearse --n-star 39 --into 'results/my run'");
        for typed in
            ["tc03|--resume|--seed|2|--out|there", "tc03|--resume|old|--seed|2", "tc03|--into=old|--seed|2"]
        {
            assert_eq!(on(typed), "tc03 --seed 2 --into 'results/my run'", "{typed}");
        }
        assert_eq!(on("tc03|it's"), r"tc03 'it'\''s' --into 'results/my run'");
    }
}
