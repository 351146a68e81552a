//! The command `tape-report` as a library, so that tests can call it in process.
//!
//! ```
//! use clap::Parser;
//! use tapedeck_report_bins::Cli;
//!
//! let cli = Cli::parse_from(["tape-report", "results/demo", "--lang", "zh"]);
//! assert!(cli.command.is_none());
//! ```
//!
//! Read on in the crate `tapedeck-report`, which does the work. Limits: text goes to standard output line by line;
//! a reader that goes away ends nothing.

mod promise;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use tapedeck_config::Setting;
use tapedeck_record::{ExitCode, HasExitCode};
use tapedeck_report::compare::compare;
use tapedeck_report::data::Tables;
use tapedeck_report::diagnose::{Diagnosis, diagnose};
use tapedeck_report::latency_breakdown::{Growth, Part};
use tapedeck_report::merge::{MergeError, merge};
use tapedeck_report::rescore::{Changes, RescoreError, rescore};
use tapedeck_report::symptoms::Diagnosed as Symptoms;
use tapedeck_report::traces::TraceError;
use tapedeck_report::{Answer, Lang, ReadError, Reading, Run, Wanted, WriteError, riva, text, write_report};
use tapedeck_slo::assertion::{Assertion, AssertionResult, answered, meant_to_fail, told};
use thiserror::Error;

pub use promise::PromiseArgs;

/// Turn a run directory into a report: one HTML file, plots, tables.
#[derive(Debug, Parser)]
#[command(name = "tape-report", version, args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct Cli {
    /// What else to do than a report
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The report
    #[command(flatten)]
    pub report: ReportArgs,
}

const HELP: &str = "Examples:
  tape-report results/tc03-20260301T080000Z
  tape-report results/tc03-20260301T080000Z --lang both --require 30
  tape-report results/tc03-20260301T080000Z --fail 'final_s:p95<=2 by instance'
  tape-report results/tc03-20260301T080000Z --calls-per-hour 50 --histogram calls.csv
  tape-report results/tc03-20260301T080000Z --rescore --set slo.rtf_p95=0.6
  tape-report diagnose results/tc03-20260301T080000Z
  tape-report riva results/tc03-20260301T080000Z
  tape-report compare results/before results/after
  tape-report merge results/monday results/tuesday --out results/both

Exit codes:
  0  the report is written (compare: nothing got worse; merge: merged; diagnose, riva: shown)
  1  the capacity does not reach --require, a --fail limit is broken (compare: something got worse)
  2  wrong usage, a setting that does not exist, runs that must not be merged, a measured run in the
     place of the result
  3  the run cannot be read or the report cannot be written
  4  N* is not stated or not decided, a --fail figure is not known (compare: the runs must not be
     compared or leave open whether N* fell; diagnose, riva: there is no step to show)";

/// A language, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Languages {
    /// English
    #[default]
    En,
    /// Chinese
    Zh,
    /// A page in each
    Both,
}

impl Languages {
    const fn all(self) -> &'static [Lang] {
        match self {
            Self::En => &[Lang::En],
            Self::Zh => &[Lang::Zh],
            Self::Both => &Lang::ALL,
        }
    }
}

/// A language of what is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// English
    #[default]
    En,
    /// Chinese
    Zh,
}

impl Language {
    const fn one(self) -> Lang {
        match self {
            Self::En => Lang::En,
            Self::Zh => Lang::Zh,
        }
    }
}

/// Flags of a report.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Run directory, e.g. results/tc03-20260301T080000Z
    #[arg(required = true)]
    pub run: Option<PathBuf>,
    /// Folder to write into [default: the run directory; with --rescore, its folder `rescored`]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Language of the page: report.html (en), report.zh.html (zh)
    #[arg(long, value_enum, default_value_t)]
    pub lang: Languages,
    /// Show recognised texts, where the run kept them; calls are personal data
    #[arg(long)]
    pub texts: bool,
    /// Write the page only: no plots, no tables
    #[arg(long)]
    pub html_only: bool,
    /// Insist on tables as Parquet: an error where this program was built without them
    #[arg(long, conflicts_with = "html_only")]
    pub parquet: bool,
    /// Insist on plots as PNG: an error where this program was built without them
    #[arg(long, conflicts_with = "html_only")]
    pub png: bool,
    /// Exit with 0 only if the capacity reaches N streams
    #[arg(long, value_name = "N")]
    pub require: Option<u32>,
    /// Exit with 1 unless this limit is kept, e.g. 'final_s:p95<=2 by instance'; may be given several times; see
    /// docs/figures.md
    #[arg(long, value_name = "LIMIT")]
    pub fail: Vec<Assertion>,
    /// Score the traces anew, with other limits, anchors or rules
    #[arg(long)]
    pub rescore: bool,
    /// With --rescore: a setting to change, e.g. slo.rtf_p95=0.6, slo.ttft_basis=wire, server.window_ms=5000
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "rescore")]
    pub settings: Vec<Setting>,
    /// With --rescore: the manifest that was played, where it is not where the config says
    #[arg(long = "tape", value_name = "MANIFEST", requires = "rescore")]
    pub tapes: Vec<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// What the capacity statement promises.
    #[command(flatten)]
    pub promise: PromiseArgs,
}

/// What else there is to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Say why tiers failed: which part of the wait grew, what the engines say, what to try next
    Diagnose {
        /// Run directory
        run: PathBuf,
        /// Language
        #[arg(long, value_enum, default_value_t)]
        lang: Language,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a table in the shape of NVIDIA's for Riva, from the traces
    Riva {
        /// Run directory
        run: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Lay two runs beside each other: settings that differ, figures that differ beyond their intervals
    Compare {
        /// The run before
        before: PathBuf,
        /// The run after
        after: PathBuf,
        /// Language
        #[arg(long, value_enum, default_value_t)]
        lang: Language,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put the ladders of several runs into one; what must not be mixed is refused
    Merge {
        /// Run directories
        #[arg(required = true, num_args = 2..)]
        runs: Vec<PathBuf>,
        /// Folder of the new run
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Why the command gave up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A run that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Traces that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A run that cannot be scored anew.
    #[error(transparent)]
    Rescore(#[from] RescoreError),
    /// Runs that cannot be merged.
    #[error("{error}{}", reasons(error))]
    Merge {
        /// Why.
        error: MergeError,
    },
    /// Flags that make no sense.
    #[error("{0}")]
    Usage(String),
}

fn reasons(error: &MergeError) -> String {
    match error {
        MergeError::Refused { why, .. } => why.iter().map(|w| format!("\n  {}", w.text(Lang::En))).collect(),
        _ => String::new(),
    }
}

impl HasExitCode for Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Read(_) | Self::Write(_) | Self::Trace(_) => ExitCode::Environment,
            Self::Rescore(RescoreError::Trace(_)) => ExitCode::Environment,
            Self::Rescore(RescoreError::Run(error)) | Self::Merge { error: MergeError::Run(error) }
                if error.of_system() =>
            {
                ExitCode::Environment
            }
            Self::Rescore(_) | Self::Merge { .. } | Self::Usage(_) => ExitCode::Usage,
        }
    }
}

fn print(out: &mut dyn Write, lines: &[String]) {
    for line in lines {
        // A reader that went away (`| head`) is no reason to fail.
        let _ = writeln!(out, "{line}");
    }
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    run_to(cli, &mut std::io::stdout().lock())
}

/// As [`run`], with what is printed to `out` instead of standard output.
///
/// # Errors
/// As [`run`].
pub fn run_to(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    match &cli.command {
        None => report(&cli.report, out),
        Some(Command::Diagnose { run, lang, json }) => {
            let run = Run::read(run)?;
            let all = diagnose(&run);
            if *json {
                let tiers: Vec<_> = all.iter().map(|d| diagnosis(d, lang.one())).collect();
                let value = serde_json::json!({ "simulated": run.simulated(), "tiers": tiers });
                print(out, &[value.to_string()]);
            } else {
                print(out, &text::diagnosis(&run, &all, lang.one()));
            }
            Ok(if run.steps.is_empty() { ExitCode::Undecidable } else { ExitCode::Ok })
        }
        Some(Command::Riva { run, json }) => {
            let run = Run::read(run)?;
            let rows = riva::riva(&run)?;
            if *json {
                let value = serde_json::json!({ "simulated": run.simulated(), "rows": rows });
                print(out, &[value.to_string()]);
            } else {
                print(out, &[riva::table(&rows, run.simulated()).trim_end().to_string()]);
            }
            Ok(if rows.is_empty() { ExitCode::Undecidable } else { ExitCode::Ok })
        }
        Some(Command::Compare { before, after, lang, json }) => {
            let comparison = compare(&Run::read(before)?, &Run::read(after)?);
            if *json {
                let refused: Vec<&str> = comparison.refused.iter().map(|r| r.text(lang.one())).collect();
                let value = serde_json::json!({
                    "names": comparison.names,
                    "refused": refused,
                    "changes": comparison.changes,
                    "differences": comparison.differences,
                    "n_star": comparison.n_star.each_ref().map(|n| n.as_ref().map(|n| n.text(lang.one()))),
                    "n_star_lower": comparison.n_star_lower,
                    "attribution": comparison.attribution.text(lang.one()),
                    "symptoms": symptoms(&comparison.findings, lang.one()),
                });
                print(out, &[value.to_string()]);
            } else {
                print(out, &text::comparison(&comparison, lang.one()));
            }
            Ok(comparison.exit_code())
        }
        Some(Command::Merge { runs, out: folder }) => {
            let runs: Vec<Run> = runs.iter().map(|r| Run::read(r)).collect::<Result<_, _>>()?;
            let merged = merge(&runs, folder).map_err(|error| Failure::Merge { error })?;
            print(out, &[format!("{} tiers in {}", merged.tiers, folder.display())]);
            for (name, changes) in &merged.changes {
                print(out, &[format!("{name} has other settings than the first run:")]);
                print(out, &changes.iter().map(|change| format!("  {change}")).collect::<Vec<_>>());
            }
            let merged = Run::read(folder)?;
            print(out, &text::answer(&merged, &Answer::of(&merged), Lang::En));
            Ok(ExitCode::Ok)
        }
    }
}

/// Symptoms as JSON.
fn symptoms(findings: &[Symptoms], lang: Lang) -> Vec<serde_json::Value> {
    let one = |f: &Symptoms| {
        let (seen, look, next) = (f.seen.text(lang), f.look.text(lang), f.next.text(lang));
        serde_json::json!({ "symptom": f.symptom, "seen": seen, "take_apart": look, "next": next })
    };
    findings.iter().map(one).collect()
}

/// One tier that does not pass, as JSON.
fn diagnosis(d: &Diagnosis<'_>, lang: Lang) -> serde_json::Value {
    let part = |g: &Growth| {
        serde_json::json!({
            "part": g.part.name(), "before_s": g.before_s, "after_s": g.after_s, "grown_s": g.grown_s(), "n": g.n,
        })
    };
    serde_json::json!({
        "step": d.step.name,
        "verdict": d.step.report.verdict.name(),
        "against": d.calm.map(|calm| &calm.name),
        "grew": d.grew.map(Part::name),
        "parts": d.parts.iter().map(part).collect::<Vec<_>>(),
        "engines": d.counters.iter().map(|said| said.text(lang)).collect::<Vec<_>>(),
        "symptoms": symptoms(&d.findings, lang),
    })
}

/// What was asked for and was not built in.
fn built_in(args: &ReportArgs) -> Result<(), Failure> {
    let missing =
        [("parquet", args.parquet, cfg!(feature = "parquet")), ("png", args.png, cfg!(feature = "png"))];
    match missing.into_iter().find(|(_, asked, built)| *asked && !built) {
        Some((feature, ..)) => Err(Failure::Usage(format!(
            "--{feature}: this program was built without the feature `{feature}`; build it anew with \
             `cargo build --release -p tapedeck-report-bins --features parquet,png`, or leave the flag out"
        ))),
        None => Ok(()),
    }
}

fn report(args: &ReportArgs, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    built_in(args)?;
    let given = args.run.as_deref().ok_or_else(|| Failure::Usage("give a run directory".into()))?;
    if args.rescore {
        let folder = args.out.clone().unwrap_or_else(|| given.join("rescored"));
        let changes = Changes { settings: args.settings.clone(), tapes: args.tapes.clone() };
        let rescored = rescore(&Run::read(given)?, &changes, &folder)?;
        if !args.quiet {
            print(out, &[format!("{} steps scored anew in {}", rescored.steps, folder.display())]);
            if !rescored.left_out.is_empty() {
                print(out, &[format!("left out, their tape is not known: {}", rescored.left_out.join(", "))]);
            }
        }
        return page(args, &folder, &folder, out);
    }
    page(args, given, args.out.as_deref().unwrap_or(given), out)
}

fn page(args: &ReportArgs, given: &Path, folder: &Path, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let mut run = if args.html_only {
        Run::read(given)?
    } else {
        // What is no run leaves no folder behind.
        Run::probe(given)?;
        let tables = Tables::create(&folder.join("data"))?;
        let run = Run::read_with(given, Some(&tables), Reading::default())?;
        tables.finish(&run)?;
        run
    };
    run.promise = run.promise.with(&args.promise.plan());
    run.promise.check().map_err(|e| Failure::Usage(e.to_string()))?;
    let answer = Answer::of(&run);
    for lang in args.lang.all() {
        let wanted = Wanted { lang: *lang, texts: args.texts, plots: !args.html_only };
        let written = write_report(&run, &answer, wanted, folder)?;
        if !args.quiet {
            print(out, &text::answer(&run, &answer, *lang));
            print(out, &[written.html.display().to_string()]);
        }
    }
    let findings = check(&run, &answer, &args.fail);
    if !findings.is_empty() {
        print(out, &["Limits on the command line:".into()]);
        print(out, &told(&args.fail, &findings).iter().map(|line| format!("  {line}")).collect::<Vec<_>>());
    }
    Ok(answered(exit_code(&answer, args.require), &findings))
}

/// Holds every limit against every whole step; of a ladder, only against the tiers up to its N*.
fn check(run: &Run, answer: &Answer, assertions: &[Assertion]) -> Vec<AssertionResult> {
    let n_star = answer.short.as_ref().and_then(|c| c.n_star);
    let steps = run.steps.iter().filter(|s| !s.partial && !meant_to_fail(&s.id, s.report.streams, n_star));
    let mut findings: Vec<AssertionResult> = steps
        .flat_map(|step| assertions.iter().map(move |assertion| (step, assertion)))
        .flat_map(|(step, assertion)| {
            if step.calls_agree {
                assertion.check(&step.name, &step.report, &step.calls)
            } else {
                // Which of the two was changed is not known, so neither is the figure.
                vec![AssertionResult {
                    step: step.name.clone(),
                    ..AssertionResult::nothing_judged(assertion)
                }]
            }
        })
        .collect();
    if findings.is_empty() {
        findings.extend(assertions.iter().map(AssertionResult::nothing_judged));
    }
    findings
}

fn exit_code(answer: &Answer, require: Option<u32>) -> ExitCode {
    let n_star = answer.short.as_ref().and_then(|c| c.n_star);
    match (require, n_star) {
        _ if !answer.withheld.is_empty() => ExitCode::Undecidable,
        (Some(require), Some(n)) if n < require => ExitCode::No,
        (Some(_), None) => ExitCode::Undecidable,
        _ => ExitCode::Ok,
    }
}
