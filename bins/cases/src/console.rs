//! What a case shows on a terminal, in a log file or to another program.

mod paint;
pub(crate) mod terminal;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tapedeck_answers::Decision;
use tapedeck_cases::{Observer, Phase, Progress};
use tapedeck_record::{CallFigure, ExitCode};
use tapedeck_slo::{AssertionResult, Figure, Limit, LimitResult, Limits, TierReport, Verdict};

use crate::expose::Exposed;
use tapedeck_cli::Failure;
use terminal::NoEcho;

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
    exposed: Option<Exposed>,
    seen: Mutex<Seen>,
    /// While something is drawn on a terminal.
    no_echo: Mutex<Option<NoEcho>>,
}

/// What is remembered of what was shown.
#[derive(Debug, Default)]
struct Seen {
    /// Steps that were decided, played or taken over.
    steps: Vec<String>,
    /// How the limits of the command line fared, and what to print of it.
    findings: Vec<AssertionResult>,
    told: Vec<String>,
    /// Whether an hour of the run passes in moments.
    paused: bool,
    /// When the running step began and how long it should take, seconds on the run's clock.
    begun_s: f64,
    expected_s: f64,
    /// When the next line is due where no bar is shown.
    due_s: f64,
    /// The phase, where it is not the load itself.
    phase: Option<&'static str>,
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
                let template = "{spinner} {prefix} [{bar:12}] {wide_msg}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style.progress_chars("=> "));
                }
                Show::Table(bar)
            }
            _ => Show::Table(ProgressBar::hidden()),
        };
        let terminal = std::io::stderr().is_terminal();
        let drawn = terminal && matches!(show, Show::Table(_));
        Self {
            show,
            terminal,
            out: Mutex::default(),
            exposed: None,
            seen: Mutex::default(),
            no_echo: Mutex::new(drawn.then(NoEcho::begin)),
        }
    }

    /// Also shows Prometheus what is measured, where an address is given, and tells where the page is.
    ///
    /// # Errors
    /// An address that cannot be had.
    pub fn exposing(mut self, at: Option<SocketAddr>, case: &str) -> Result<Self, Failure> {
        let Some(at) = at else { return Ok(self) };
        let exposed = Exposed::serve(at, case)?;
        if matches!(self.show, Show::Json) {
            let object = serde_json::json!({ "progress": "listening", "url": exposed.url() });
            self.line(&object.to_string());
        } else {
            // On standard error, where it neither disturbs a table nor is kept from a quiet run.
            let _ = writeln!(std::io::stderr().lock(), "Metrics for Prometheus at {}", exposed.url());
        }
        self.exposed = Some(exposed);
        Ok(self)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        // Poisoned or not, it holds what was seen.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps that were decided so far, played or taken over.
    pub(crate) fn steps(&self) -> Vec<String> {
        self.seen().steps.clone()
    }

    /// How the limits of the command line fared.
    pub(crate) fn found(&self, told: Vec<String>, findings: Vec<AssertionResult>) {
        let mut seen = self.seen();
        (seen.told, seen.findings) = (told, findings);
    }

    /// The exit code of the command: what the case answered, and what the limits of the command line make of it, which
    /// is printed.
    #[must_use]
    pub fn exit(&self, answer: ExitCode) -> ExitCode {
        let Seen { findings, told, .. } = &*self.seen();
        if matches!(self.show, Show::Json) {
            if !findings.is_empty() {
                let object = serde_json::json!({ "progress": "limits", "limits": findings });
                self.line(&object.to_string());
            }
        } else if !told.is_empty() {
            self.line("Limits on the command line:");
            told.iter().for_each(|line| self.line(&format!("  {line}")));
        }
        tapedeck_slo::answered(answer, findings)
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
        drop(self.no_echo.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Shows it as the user asked for it.
    pub(crate) fn display(&self, progress: &Progress<'_>) {
        match &self.show {
            Show::Table(bar) => self.table(bar, progress),
            Show::Json => self.json(progress),
            Show::Nothing => {}
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

    /// Remembers what is needed later, and passes it on to Prometheus.
    pub(crate) fn watch(&self, progress: &Progress<'_>) {
        if let Some(exposed) = &self.exposed {
            exposed.on(progress);
        }
        let mut seen = self.seen();
        match progress {
            Progress::Run { paused, .. } => seen.paused = *paused,
            Progress::StepBegins { expected_s, at_s, .. } => {
                (seen.begun_s, seen.expected_s) = (*at_s, *expected_s);
                seen.due_s = at_s + between_lines_s(*expected_s);
            }
            Progress::Phase { phase, .. } => {
                seen.phase = match phase {
                    Phase::Preflight => Some("preflight"),
                    Phase::Load => None,
                    Phase::Drain => Some("draining"),
                    Phase::CoolDown => Some("cooling down"),
                }
            }
            Progress::StepDone { step, .. } => seen.steps.push((*step).to_string()),
            _ => {}
        }
    }

    fn table(&self, bar: &ProgressBar, progress: &Progress<'_>) {
        match progress {
            Progress::Run { path, simulated, .. } => {
                let what = if *simulated { "simulated run" } else { "run" };
                self.line(&format!("Writing this {what} to {path}"));
            }
            Progress::StepBegins { step, streams, counted_calls, expected_s, .. } => {
                let about = span(*expected_s);
                if self.terminal && bar.is_hidden() {
                    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
                }
                bar.reset();
                bar.set_prefix((*step).to_string());
                bar.set_length(tenths(*expected_s));
                let s = if *streams == 1 { "" } else { "s" };
                let what = format!("{streams} stream{s}, {counted_calls} calls will count, about {about}");
                if bar.is_hidden() {
                    let _ = writeln!(std::io::stderr().lock(), "{step}: {what}");
                }
                bar.set_message(what);
            }
            Progress::Phase { .. } => {
                let phase = self.seen().phase;
                if let Some(phase) = phase {
                    bar.set_message(phase);
                }
            }
            Progress::Call { .. } => {}
            Progress::Live { step, at_s, .. } => self.live(bar, step, *at_s, &figures(progress)),
            Progress::StepDone { report, .. } => self.line(&row(report)),
            Progress::Note { text } => self.line(&format!("note: {text}")),
            Progress::Part { part, title, .. } => self.line(&format!("{part}: {title}")),
            Progress::PartDone { part, sentence, .. } => self.line(&format!("{part}: {sentence}")),
        }
    }

    /// Moves the bar; where there is none, writes a line now and then.
    fn live(&self, bar: &ProgressBar, step: &str, at_s: f64, figures: &str) {
        let mut seen = self.seen();
        let elapsed_s = at_s - seen.begun_s;
        bar.set_position(tenths(elapsed_s).min(bar.length().unwrap_or(0)));
        let phase = seen.phase.map_or_else(String::new, |phase| format!("{phase}  "));
        // A rehearsal's clock runs ahead: what is left of it tells nobody how long to wait.
        let left = match seen.paused {
            true => String::new(),
            false => format!("about {} left  ", span(seen.expected_s - elapsed_s)),
        };
        bar.set_message(format!("{left}{phase}{figures}"));
        if bar.is_hidden() && !seen.paused && at_s >= seen.due_s {
            seen.due_s = at_s + between_lines_s(seen.expected_s);
            let _ = writeln!(std::io::stderr().lock(), "{step}: {left}{phase}{figures}");
        }
    }
}

impl Observer for Console {
    fn on(&self, progress: &Progress<'_>) {
        self.watch(progress);
        self.display(progress);
    }
}

/// Seconds on the run's clock between two lines where no bar is shown: a few a step, and one every five minutes of a
/// long one.
const fn between_lines_s(expected_s: f64) -> f64 {
    (expected_s / 4.0).clamp(30.0, 300.0)
}

fn tenths(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the length of a bar")]
    let tenths = (seconds.max(0.0) * 10.0) as u64;
    tenths
}

/// The figures that decide, in a few words; what is not known is left out.
#[must_use]
pub(crate) fn figures(progress: &Progress<'_>) -> String {
    let Progress::Live {
        counted,
        of,
        errors,
        ttft_p95_s,
        wake_late_p99_ms,
        kv_pool,
        waiting,
        open_sessions,
        ..
    } = progress
    else {
        return String::new();
    };
    let mut parts = vec![format!("{counted}/{of} calls"), format!("{errors} errors")];
    parts.extend(ttft_p95_s.map(|s| format!("TTFT p95 {s:.3} s")));
    parts.extend(kv_pool.map(|kv| format!("KV {:.0} %", kv * 100.0)));
    parts.extend(wake_late_p99_ms.map(|ms| format!("late p99 {ms:.1} ms")));
    parts.extend(waiting.filter(|n| *n > 0.0).map(|n| format!("{n:.0} waiting")));
    parts.extend(open_sessions.map(|n| format!("{n:.0} open")));
    parts.join("  ")
}

/// `65 min`, rounded to something a person plans with.
pub(crate) fn span(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default().as_secs();
    match whole {
        0..90 => format!("{whole} s"),
        90..5400 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
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
    let p95 = |figure: Figure, unit: &str| {
        figure.estimate(report).map_or_else(dash, |e| format!("{:.3}{unit}", e.value))
    };
    let verdict = format!("{}{}", report.verdict.name(), if report.point_only { "*" } else { "" });
    // Padded first: what colours it takes no room.
    let verdict = paint::verdict(report.verdict, &format!("{verdict:<9}"));
    let line = format!(
        "{:>7}  {} {:>10} {:>10} {:>10} {:>8} {:>10} {:>7} {:>6}  {}",
        report.streams,
        verdict,
        p95(Figure::Ttft, " s"),
        p95(Figure::Call(CallFigure::Rtf), ""),
        p95(Figure::Final, " s"),
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
        true => report.reasons.first().map(ToString::to_string).unwrap_or_default(),
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

    #[test]
    fn spans_are_told_in_the_unit_that_fits() {
        let spans = [-3.0, 0.4, 75.0, 100.0, 3_600.0, 43_500.0].map(span);
        assert_eq!(spans, ["0 s", "0 s", "75 s", "2 min", "60 min", "12 h 05 min"]);
    }

    #[test]
    fn live_figures_leave_out_what_is_not_known() {
        let live = |wake_late_p99_ms, waiting, kv_pool| Progress::Live {
            step: "N048",
            at_s: 60.0,
            counted: 17,
            of: 432,
            errors: 2,
            ttft_p95_s: Some(0.1564),
            ttft_n: 15,
            wake_late_p99_ms,
            cpu_share: None,
            kv_pool,
            waiting,
            open_sessions: Some(48.0),
        };
        assert_eq!(
            figures(&live(Some(1.25), Some(3.0), Some(0.327))),
            "17/432 calls  2 errors  TTFT p95 0.156 s  KV 33 %  late p99 1.2 ms  3 waiting  48 open"
        );
        assert_eq!(figures(&live(None, None, None)), "17/432 calls  2 errors  TTFT p95 0.156 s  48 open");
    }

    #[test]
    fn long_steps_speak_every_five_minutes() {
        let every = [60.0, 480.0, 14_400.0].map(|s| format!("{} s", between_lines_s(s)));
        assert_eq!(every, ["30 s", "120 s", "300 s"]);
    }
}
