//! `campaign`: every case, unattended, on the command line.

mod screen;

use std::collections::BTreeMap;

use clap::{Parser, ValueEnum};
use tapedeck_answers::{CampaignAnswer, Part};
use tapedeck_cases::Role;
use tapedeck_cases::campaign::plan::Length;
use tapedeck_cases::campaign::{self, Plan, Policies};
use tapedeck_cases::loaded_tape::load;
use tapedeck_config::{Config, Policy};
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::{Console, go_on};
use screen::{Screen, word};

/// Play the whole plan: single stream, memory, ladder, long calls, repetition, words, soak, faults, topologies.
#[derive(Debug, Parser)]
#[command(
    name = "campaign",
    version,
    after_help = "Examples:\n  campaign --config site.toml --dry-run\n  campaign --config site.toml --on-drift rerun\n  \
                  campaign --config site.toml --into results/campaign-20260101T080000Z\n  campaign --rehearse\n\n\
                  Exit codes: 0 every answer is good, 1 an answer is no, 2 usage or config, 3 environment, 4 an answer is \
                  not decidable or a decision is waited for, 130 interrupted."
)]
pub struct Cli {
    /// Print the plan with times and play nothing
    #[arg(long)]
    pub dry_run: bool,
    /// N* to plan with, for --dry-run [default: the middle of the ladder]
    #[arg(long, value_name = "N", requires = "dry_run")]
    pub n_star: Option<u32>,
    /// What to do where the same load gives other figures the second time [default: ask]
    #[arg(long, value_enum)]
    pub on_drift: Option<InDoubt>,
    /// What to do where another topology is better [default: ask]
    #[arg(long, value_enum)]
    pub on_better: Option<InDoubt>,
    /// Parts to leave out, e.g. tc02,tc07
    #[arg(long, value_name = "PART,PART", value_delimiter = ',', value_parser = Part::ALL.map(Part::name))]
    pub skip: Vec<String>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// What to do where a result puts earlier ones in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InDoubt {
    /// Stop and tell how to go on
    Ask,
    /// Climb the ladder anew, in a run of its own, and go on
    Rerun,
    /// Note it and go on
    Accept,
}

impl From<InDoubt> for Policy {
    fn from(doubt: InDoubt) -> Self {
        match doubt {
            InDoubt::Ask => Self::Ask,
            InDoubt::Rerun => Self::Rerun,
            InDoubt::Accept => Self::Accept,
        }
    }
}

impl Cli {
    fn config(&self) -> Result<Config, Failure> {
        let mut config = self.common.config()?;
        for name in &self.skip {
            config.campaign.skip.extend(Part::ALL.into_iter().find(|p| p.name() == name));
        }
        Ok(config)
    }

    fn policies(&self, config: &Config) -> Policies {
        let of_config = Policies::from(&config.campaign);
        Policies {
            on_drift: self.on_drift.map_or(of_config.on_drift, Policy::from),
            on_better: self.on_better.map_or(of_config.on_better, Policy::from),
        }
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let config = cli.config()?;
    let needs = campaign::needs(&config);
    if cli.dry_run {
        return dry_run(cli, &config, &needs);
    }
    let policies = cli.policies(&config);
    let plain = cli.common.quiet || cli.common.json;
    let (answer, console) =
        cli.common.carry_out(config, "campaign", &needs, async |world, dir, console| {
            let screen = Screen::new(console, plain);
            let answer = campaign::run(world, dir, policies, &screen).await;
            screen.finish();
            answer
        })?;
    conclude(cli, &console, &answer);
    Ok(console.exit(answer.exit_code()))
}

fn dry_run(cli: &Cli, config: &Config, needs: &[Role]) -> Result<ExitCode, Failure> {
    config.check()?;
    let tapes = load(config, needs)?;
    let lengths: BTreeMap<Role, Length> = tapes
        .iter()
        .map(|(role, t)| (*role, Length::of(t.calls.iter().map(|c| f64::from(c.meta.duration_ms) / 1e3))))
        .collect();
    let instances = if cli.common.rehearse {
        tapedeck_rehearsal::Settings::of(config)?.instances as usize
    } else {
        config.instances.len()
    };
    let plan = Plan::from_lengths(config, |role| lengths.get(&role).copied(), instances, cli.n_star);
    let console = Console::new(cli.common.json, false);
    if cli.common.json {
        console.answer("plan", &plan);
        return Ok(ExitCode::Ok);
    }
    for line in planned(&plan) {
        console.line(&line);
    }
    Ok(ExitCode::Ok)
}

/// The plan as a table.
#[must_use]
pub fn planned(plan: &Plan) -> Vec<String> {
    let guess =
        if plan.guessed { " (a guess: the middle of the ladder; --n-star N plans with another)" } else { "" };
    let mut lines = vec![
        format!("Planned with N* = {}{guess}; times are upper bounds.", plan.n_star),
        "part   begins   takes    what                  streams".into(),
    ];
    let mut begin_s = 0.0;
    for part in &plan.parts {
        let streams = part.streams.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let what = part.left_out.as_ref().map_or(streams, |why| format!("left out: {why}"));
        let takes = if part.left_out.is_some() { "-".into() } else { hours(part.seconds) };
        let line = format!(
            "{:<6} {:>6}   {:>6}   {:<20}  {what}",
            part.part.name(),
            hours(begin_s),
            takes,
            part.part.title()
        );
        lines.push(line.trim_end().to_string());
        begin_s += part.seconds;
    }
    lines.push(format!("in all {:>8}", hours(plan.seconds())));
    lines
}

/// `4:05`: hours and minutes, rounded up to minutes.
fn hours(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes of a plan")]
    let minutes = (seconds.max(0.0) / 60.0).ceil() as u64;
    format!("{}:{:02}", minutes / 60, minutes % 60)
}

fn conclude(cli: &Cli, console: &Console, answer: &CampaignAnswer) {
    if cli.common.json {
        console.answer("campaign", answer);
        return;
    }
    for line in summary(answer) {
        console.line(&line);
    }
}

/// The last lines: every part's answer, and the command that goes on from here.
#[must_use]
pub fn summary(answer: &CampaignAnswer) -> Vec<String> {
    let simulated = if answer.simulated { "  [simulated]" } else { "" };
    let mut lines = vec![String::new(), format!("Campaign{simulated}")];
    for part in &answer.parts {
        let decision = word(part.decision);
        lines.push(format!(
            "{:<6} {decision:<5} {:>6}  {:<20} {}",
            part.part.name(),
            hours(part.seconds),
            part.part.title(),
            part.sentence
        ));
    }
    for rerun in &answer.reruns {
        lines.push(format!("Climbed anew: N* = {} ({}); {}", rerun.capacity, rerun.run.display(), rerun.why));
    }
    let run = answer.run.display();
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    } else if let Some(why) = &answer.stopped {
        lines.push(format!("Stopped: {why}"));
        lines.push(format!("Go on with: {} and one of these flags", go_on(&answer.run)));
    } else {
        lines.push(format!("Make the deliverables with: tape-report {run}"));
    }
    lines.push(format!("Evidence: {run}"));
    lines
}
