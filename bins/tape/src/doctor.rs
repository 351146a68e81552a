//! `tape-doctor`: can this machine and this config work?

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use serde_json::json;
use tapedeck_cases::Seams;
use tapedeck_cases::doctor::{Check, State, examine};
use tapedeck_config::{Config, STARTER, annotated_config};
use tapedeck_record::ExitCode;
use tokio::sync::watch;

use tapedeck_cli::Failure;

mod metrics;

pub use metrics::{Args as MetricsArgs, Kind};

const EXAMPLES: &str = "\
Examples:
  tape-doctor --init                            write a commented config, tapedeck.toml
  tape-doctor --config tapedeck.toml            can this machine and this config work?
  tape-doctor --config tapedeck.toml --streams 90 --json
  tape-doctor --print-config                    every key with its default and unit
  tape-doctor metrics http://gpu-host:9001/metrics

Exit codes: 0 nothing stands in the way (warnings may remain); 2 a flag or the config is wrong; 3 a check failed, and
its line says how to mend it. `tape-doctor metrics` has its own: see its help.";

/// Looks before a run does: can this machine and this config work? One line a check, a mend for each failure.
#[derive(Debug, Parser)]
#[command(name = "tape-doctor", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Config file (TOML) to examine; see docs/config.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Streams that shall be possible [default: the largest tier of the ladder]
    #[arg(long, value_name = "N")]
    pub streams: Option<u32>,
    /// Print one JSON object instead of lines
    #[arg(long)]
    pub json: bool,
    /// Write a commented config to begin with; never over a file that is there
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "tapedeck.toml")]
    #[arg(conflicts_with_all = ["config", "streams", "json", "print_config"])]
    pub init: Option<PathBuf>,
    /// Print every key of the config with its default and unit
    #[arg(long, conflicts_with_all = ["config", "streams", "json"])]
    pub print_config: bool,
    /// Look at something else
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What else to look at.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what is understood of metrics pages and GPU read-outs
    ///
    /// Exit codes: 0 all is read and the red lines (KV pool, preemptions) can be watched; 1 a page is read, but they
    /// cannot; 2 a file or a flag is wrong; 3 a server does not answer, or not with metrics.
    Metrics(MetricsArgs),
}

/// Runs the command and writes what it finds to `out`.
///
/// # Errors
/// Wrong flags, files that cannot be read, a system that refuses a runtime.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    if let Some(Command::Metrics(args)) = &cli.command {
        return metrics::run(args, out);
    }
    if cli.print_config {
        say(out, annotated_config())?;
        return Ok(ExitCode::Ok);
    }
    if let Some(path) = &cli.init {
        return init(path, out);
    }
    let Some(path) = &cli.config else {
        return Err(Failure::Usage(
            "nothing to examine: give --config FILE, or --init to write one to begin with".into(),
        ));
    };
    check(path, cli, out)
}

fn init(path: &Path, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    made.and_then(|mut file| file.write_all(STARTER.as_bytes())).map_err(|error| {
        let path = path.display();
        Failure::Usage(format!(
            "cannot write {path}: {error}; give --init another name, or move the file away"
        ))
    })?;
    let path = path.display();
    say(out, &format!("Wrote {path}. Put your own names in, then: tape-doctor --config {path}\n"))?;
    Ok(ExitCode::Ok)
}

fn check(path: &Path, cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let config = Config::read(path)?;
    let refused = |source| Failure::System { what: "start a runtime", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
    let (_nobody, interrupt) = watch::channel(false);
    let mut checks: Vec<Check> = Vec::new();
    let mut told = Ok(());
    runtime.block_on(async {
        let seams = Seams::real(&config, interrupt)?;
        let tell = |check: Check| {
            if !cli.json && told.is_ok() {
                told = say(out, &format!("{check}\n"));
            }
            checks.push(check);
        };
        examine(&config, &seams, cli.streams, tell).await
    })?;
    told?;
    let count = |state: State| checks.iter().filter(|check| check.state == state).count();
    let (failed, warned) = (count(State::Fail), count(State::Warn));
    if cli.json {
        let all = json!({
            "config": path.display().to_string(),
            "ok": failed == 0,
            "failed": failed,
            "warnings": warned,
            "checks": checks,
        });
        say(out, &format!("{all:#}\n"))?;
    } else {
        let words = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let text = match (failed, warned) {
            (0, 0) => "Nothing stands in the way.".to_owned(),
            (0, _) => format!("A run is possible; {}.", words(warned, "warning", "warnings")),
            _ => format!(
                "{} and {}: mend the failures first.",
                words(failed, "failure", "failures"),
                words(warned, "warning", "warnings")
            ),
        };
        say(out, &format!("{text}\n"))?;
    }
    Ok(if failed == 0 { ExitCode::Ok } else { ExitCode::Environment })
}

fn say(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| Failure::System { what: "write the findings", source })
}
