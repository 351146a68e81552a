//! `tape-erlang`: from traffic to lines and back, on the command line.

use std::io::Write;

use clap::{Args, Parser, Subcommand};
use tapedeck_erlang::engset::Source;
use tapedeck_record::ExitCode;

use tapedeck_cli::Failure;

mod answer;
mod figures;
mod target;

pub use target::Goal;

/// From traffic to lines and back: Erlang B and C, retries, finite sources, impatient callers.
///
/// Traffic is in Erlang: calls an hour x mean call length in hours. See docs/erlang.md.
#[derive(Debug, Parser)]
#[command(name = "tape-erlang", version, after_help = EXAMPLES)]
pub struct Cli {
    /// The question.
    #[command(subcommand)]
    pub command: Command,
    /// Show the neighbouring numbers of lines (or groups, or targets) as well
    #[arg(long, global = true)]
    pub table: bool,
    /// Print one JSON object per answer
    #[arg(long, global = true)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tape-erlang busy-hour --calls-per-hour 50 --mean-s 180
  tape-erlang b --traffic 2.5 --lines 7
  tape-erlang lines --traffic 2.5 --blocking 0.01 --table
  tape-erlang lines --traffic 10 --service-level 0.8 --within-s 20 --mean-s 180
  tape-erlang traffic --lines 30 --blocking 0.01 --json
  tape-erlang split --traffic 24 --groups 3 --lines-each 10

Exit codes: 0 answered; 2 a question without an answer (a figure out of range, more traffic than a queue can carry).";

/// The question.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Erlang B: a call that finds every line busy is lost
    B(Offered),
    /// Erlang C: a call that finds every line busy waits, however long it takes
    C {
        /// Traffic and lines.
        #[command(flatten)]
        offered: Offered,
        /// Mean call length in seconds; waits are then in seconds too
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        mean_s: Option<f64>,
        /// Also say which share of calls is answered within this many seconds
        #[arg(long, value_name = "SECONDS", requires = "mean_s", allow_negative_numbers = true)]
        within_s: Option<f64>,
    },
    /// Extended Erlang B: a share of the blocked calls tries again
    ExtendedB {
        /// Traffic and lines.
        #[command(flatten)]
        offered: Offered,
        /// Share of blocked attempts that are repeated, 0 to 1
        #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
        recall: f64,
    },
    /// Engset: few callers, each of whom is silent while connected
    Engset {
        /// The callers.
        #[command(flatten)]
        callers: Callers,
        /// Lines
        #[arg(long, allow_negative_numbers = true)]
        lines: u64,
    },
    /// Erlang A: a call that finds every line busy waits and may lose patience
    A {
        /// Traffic and lines.
        #[command(flatten)]
        offered: Offered,
        /// Mean call length, seconds
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        mean_s: f64,
        /// Mean patience, seconds
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        patience_s: f64,
        /// Also say what becomes of calls within this many seconds
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        within_s: Option<f64>,
    },
    /// Fewest lines that meet a target
    Lines {
        /// Traffic offered, Erlang
        #[arg(
            long,
            value_name = "ERLANG",
            allow_negative_numbers = true,
            required_unless_present = "sources"
        )]
        traffic: Option<f64>,
        /// How busy each source would be if never blocked, Erlang (with --sources)
        #[arg(
            long,
            value_name = "SHARE",
            allow_negative_numbers = true,
            requires = "sources",
            conflicts_with = "traffic"
        )]
        per_source: Option<f64>,
        /// The target.
        #[command(flatten)]
        goal: Goal,
    },
    /// Most traffic that meets a target
    Traffic {
        /// Lines
        #[arg(long, allow_negative_numbers = true)]
        lines: u64,
        /// The target.
        #[command(flatten)]
        goal: Goal,
    },
    /// From calls and seconds to Erlang
    BusyHour(BusyHour),
    /// Separate groups of lines beside one group of all of them
    Split {
        /// Traffic offered to all groups together, Erlang
        #[arg(long, value_name = "ERLANG", allow_negative_numbers = true)]
        traffic: f64,
        /// Groups, e.g. instances without a common queue
        #[arg(long, allow_negative_numbers = true)]
        groups: u64,
        /// Lines in each group
        #[arg(long, allow_negative_numbers = true)]
        lines_each: u64,
    },
}

/// Traffic and lines.
#[derive(Debug, Clone, Copy, Args)]
pub struct Offered {
    /// Traffic offered, Erlang
    #[arg(long, value_name = "ERLANG", allow_negative_numbers = true)]
    pub traffic: f64,
    /// Lines
    #[arg(long, allow_negative_numbers = true)]
    pub lines: u64,
}

/// Finitely many callers.
#[derive(Debug, Clone, Copy, Args)]
pub struct Callers {
    /// Callers that there are
    #[arg(long, allow_negative_numbers = true)]
    pub sources: u64,
    /// How busy each would be if never blocked, Erlang (0 to 1)
    #[arg(
        long,
        value_name = "SHARE",
        allow_negative_numbers = true,
        required_unless_present = "per_idle_source"
    )]
    pub per_source: Option<f64>,
    /// Calls of an idle caller per mean call length
    #[arg(long, value_name = "CALLS", allow_negative_numbers = true, conflicts_with = "per_source")]
    pub per_idle_source: Option<f64>,
}

impl Callers {
    fn source(self) -> Source {
        match (self.per_source, self.per_idle_source) {
            (Some(busy), _) => Source::Busy(busy),
            (None, idle) => Source::Idle(idle.unwrap_or(f64::NAN)),
        }
    }
}

/// Calls and seconds.
#[derive(Debug, Clone, Copy, Args)]
pub struct BusyHour {
    /// Calls in the hour
    #[arg(
        long,
        value_name = "CALLS",
        allow_negative_numbers = true,
        required_unless_present = "calls_per_day"
    )]
    pub calls_per_hour: Option<f64>,
    /// Calls in a day, of which the busiest hour is taken
    #[arg(long, value_name = "CALLS", allow_negative_numbers = true, conflicts_with = "calls_per_hour")]
    pub calls_per_day: Option<f64>,
    /// Hours of the day in which calls come in
    #[arg(long, value_name = "HOURS", default_value_t = 24.0, allow_negative_numbers = true)]
    pub open_hours: f64,
    /// Calls of the busiest hour over those of the mean hour
    #[arg(long, value_name = "RATIO", default_value_t = 2.5, allow_negative_numbers = true)]
    pub peak_to_mean: f64,
    /// Mean call length, seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub mean_s: f64,
}

/// Answers the question on `out`.
///
/// # Errors
/// A question without an answer, or an output that cannot be written.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let (rows, asked) =
        if cli.table { figures::table(&cli.command)? } else { (vec![figures::answer(&cli.command)?], 0) };
    let written = if cli.json {
        answer::json(out, &rows)
    } else if cli.table {
        answer::table(out, &rows, asked)
    } else {
        answer::explained(out, &rows)
    };
    match written {
        // Whoever reads has seen enough.
        Err(source) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::Ok),
        Err(source) => Err(Failure::System { what: "write the answer", source }),
        Ok(()) => Ok(ExitCode::Ok),
    }
}
