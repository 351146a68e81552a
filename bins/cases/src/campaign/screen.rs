//! The campaign on one screen, or as plain log lines where nobody looks at a screen.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tapedeck_answers::{Decision, Part};
use tapedeck_cases::{Observer, Phase, Progress};

use crate::console::{Console, figures, row, span};

/// Sentences that stay on the screen.
const NOTES: usize = 4;

/// Shows a campaign.
#[derive(Debug)]
pub(crate) struct Screen<'a> {
    console: &'a Console,
    live: Option<Live>,
    state: Mutex<State>,
}

/// Lines of the screen, from top to bottom.
#[derive(Debug)]
struct Live {
    all: MultiProgress,
    head: ProgressBar,
    parts: Vec<ProgressBar>,
    step: ProgressBar,
    figures: ProgressBar,
    last: ProgressBar,
    notes: Vec<ProgressBar>,
}

#[derive(Debug, Default)]
struct State {
    notes: VecDeque<String>,
}

impl<'a> Screen<'a> {
    /// A live screen on a terminal; log lines elsewhere. With `plain`, whatever the console shows.
    pub(crate) fn new(console: &'a Console, plain: bool) -> Self {
        let live = (!plain && std::io::stderr().is_terminal()).then(Live::new);
        Self { console, live, state: Mutex::default() }
    }

    /// Clears the screen: the last lines of the campaign say it all.
    pub(crate) fn finish(&self) {
        if let Some(live) = &self.live {
            // A terminal that refuses keeps the lines; nothing is lost by that.
            let _ = live.all.clear();
            live.all.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    fn log(&self, progress: &Progress<'_>) {
        match progress {
            // What is left out takes no time and is told when it is done.
            Progress::Part { expected_s, .. } if *expected_s <= 0.0 => {}
            Progress::Part { part, title, number, of, expected_s, remaining_s } => {
                self.console.line(&format!(
                    "[{number}/{of}] {part} {title}: about {}, {} to the end",
                    span(*expected_s),
                    span(*remaining_s)
                ));
            }
            Progress::PartDone { part, number, of, decision, sentence, resumed, .. } => {
                let before = if *resumed { " (played before)" } else { "" };
                let answer = decision.map_or_else(String::new, |_| format!(" {}", word(*decision)));
                self.console.line(&format!("[{number}/{of}] {part}{answer}{before}: {sentence}"));
            }
            Progress::StepBegins { step, streams, counted_calls, expected_s, .. } => {
                self.console.line(&format!(
                    "{step}: {streams} streams, {counted_calls} calls will count, about {}",
                    span(*expected_s)
                ));
            }
            Progress::StepDone { report, .. } => self.console.line(&row(report)),
            other => self.console.display(other),
        }
    }

    fn show(live: &Live, progress: &Progress<'_>, state: &mut State) {
        match progress {
            Progress::Run { path, simulated, .. } => {
                let what = if *simulated { "simulated campaign" } else { "campaign" };
                live.head.set_message(format!("{what} in {path}"));
            }
            Progress::Part { part, number, remaining_s, title, .. } => {
                live.head.set_message(format!("campaign: {} to the end", span(*remaining_s)));
                live.part(*number, format!("  >>  {part:<6} {title}"));
            }
            Progress::PartDone { part, number, decision, sentence, .. } => {
                live.part(*number, format!("{:>4}  {part:<6} {sentence}", word(*decision)));
            }
            Progress::StepBegins { step, streams, expected_s, .. } => {
                live.step.set_message(format!("{step}: {streams} streams, about {}", span(*expected_s)));
                live.figures.set_message("");
            }
            Progress::Phase { step, phase } => {
                let phase = match phase {
                    Phase::Preflight => "preflight",
                    Phase::Load => "ramp, warm-up and load",
                    Phase::Drain => "draining",
                    Phase::CoolDown => "cooling down",
                };
                live.step.set_message(format!("{step}: {phase}"));
            }
            Progress::Call { .. } => {}
            Progress::Live { .. } => live.figures.set_message(figures(progress)),
            Progress::StepDone { report, .. } => live.last.set_message(row(report)),
            Progress::Note { text } => {
                state.notes.push_back((*text).to_string());
                while state.notes.len() > NOTES {
                    state.notes.pop_front();
                }
                for (bar, note) in live.notes.iter().zip(&state.notes) {
                    bar.set_message(note.clone());
                }
            }
        }
    }
}

impl Live {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        let line = || {
            let bar = all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        };
        let head = line();
        let parts = Part::ALL.map(|part| {
            let bar = line();
            bar.set_message(format!("      {:<6} {}", part.name(), part.title()));
            bar
        });
        let (step, figures, last) = (line(), line(), line());
        let notes = (0..NOTES).map(|_| line()).collect();
        Self { head, parts: parts.into(), step, figures, last, notes, all }
    }

    /// Puts a text on the line of a part, numbered from 1.
    fn part(&self, number: usize, text: String) {
        if let Some(bar) = self.parts.get(number.saturating_sub(1)) {
            bar.set_message(text);
        }
    }
}

impl Observer for Screen<'_> {
    fn on(&self, progress: &Progress<'_>) {
        self.console.watch(progress);
        // A poisoned state only held what is shown.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.live {
            Some(live) => Self::show(live, progress, &mut state),
            None if self.console.is_table() => self.log(progress),
            None => self.console.display(progress),
        }
    }
}

/// A part's answer in one word, as the last lines of a campaign have it.
pub(super) const fn word(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Yes) => "good",
        Some(Decision::No) => "no",
        Some(Decision::Undecidable) => "open",
        None => "-",
    }
}
