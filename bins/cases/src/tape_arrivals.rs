//! `tape-arrivals`: callers who come when they come, on the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use jiff::{Timestamp, civil::DateTime};
use tapedeck_answers::{ArrivalRate, ArrivalsAnswer, Compared, Measured};
use tapedeck_cases::arrivals::{self, Asked};
use tapedeck_cases::{Observer, Progress, Role};
use tapedeck_config::Config;
use tapedeck_load::arrivals::{ArrivalProcess, Lengths, Trunks};
use tapedeck_record::ExitCode;
use tapedeck_tape::Table;

use tapedeck_cli::Failure;

use crate::common::Common;
use crate::console::go_on;

/// Let callers come when they come, and hold blocking and waiting against Erlang B and C.
#[derive(Debug, Parser)]
#[command(
    name = "tape-arrivals",
    version,
    after_help = "Examples:\n  tape-arrivals --rehearse --rate 300 --lines 7\n  \
                  tape-arrivals --rehearse --rate 300 --lines 7 --when-busy waits --lengths exponential --mean-s 60\n  \
                  tape-arrivals --config site.toml --rate 100,200,400 --max-blocking 0.01\n  \
                  tape-arrivals --config site.toml --replay starts.csv\n\n\
                  Exit codes: 0 measured, 1 the answer is no (the lowest rate is unstable, calls failed, more blocked than \
                  --max-blocking), 2 usage or config, 3 environment, 4 not decidable (we were late), 130 interrupted."
)]
pub struct Cli {
    /// Calls an hour; several ascending rates are played one after the other until one is unstable
    #[arg(
        long,
        value_name = "CALLS,...",
        value_delimiter = ',',
        allow_negative_numbers = true,
        required_unless_present = "replay"
    )]
    pub rate: Vec<f64>,
    /// CSV of recorded starts instead of a rate: seconds or times of day (2026-01-31T09:00:00), ascending
    #[arg(long, value_name = "CSV", conflicts_with_all = ["rate", "arrivals"])]
    pub replay: Option<PathBuf>,
    /// Column of the CSV that holds the starts [default: the first]
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub start_column: Option<String>,
    /// How the calls are spread
    #[arg(long, value_enum, default_value_t)]
    pub arrivals: Spread,
    /// Calls in a burst, with --arrivals bursty
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub burst: u32,
    /// How long the calls are
    #[arg(long, value_enum, default_value_t)]
    pub lengths: LengthsFrom,
    /// Mean audio of a call, seconds, with --lengths exponential
    #[arg(
        long,
        value_name = "SECONDS",
        required_if_eq("lengths", "exponential"),
        allow_negative_numbers = true
    )]
    pub mean_s: Option<f64>,
    /// Trunks: each carries one call
    #[arg(long, value_name = "N")]
    pub lines: Option<u32>,
    /// What becomes of a caller who finds all lines busy [default: lost with --lines, server without]
    #[arg(long, value_enum)]
    pub when_busy: Option<WhenBusy>,
    /// Callers that count at each rate
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub calls: u32,
    /// Arrivals before those, seconds: several call lengths, so that the lines have filled
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, allow_negative_numbers = true)]
    pub warm_up_s: f64,
    /// Exit with 1 if a larger share of the callers was blocked
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub max_blocking: Option<f64>,
    /// What every case understands.
    #[command(flatten)]
    pub common: Common,
}

/// How the calls are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Independent of each other, as Erlang assumes
    #[default]
    Poisson,
    /// At even distances
    Uniform,
    /// Several at the same instant
    Bursty,
}

/// Where call lengths come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LengthsFrom {
    /// Whole calls of the config's tape, drawn at random
    #[default]
    Tape,
    /// Whole calls of the config's pool, drawn at random
    Pool,
    /// Exponential, as Erlang C assumes: cut from the tape's calls put together
    Exponential,
}

/// What becomes of a caller who finds all lines busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenBusy {
    /// Lost: Erlang B
    Lost,
    /// Waits for the first free line: Erlang C
    Waits,
    /// Every call is placed and the server refuses; --lines says how many it has
    Server,
}

/// Carries out the command.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let asked = cli.asked()?;
    let mut config = cli.common.config()?;
    let note = match (cli.common.rehearse, asked.lines, asked.server_lines) {
        (true, Trunks::Server, Some(lines)) => Some(give_lines(&mut config, lines)),
        _ => None,
    };
    let needs: &[Role] = if asked.role == Role::Pool { &[Role::Pool] } else { &[] };
    let (answer, console) =
        cli.common.carry_out(config, "arrivals", needs, async |world, dir, console| {
            if let Some(text) = &note {
                console.on(&Progress::Note { text });
            }
            console.head(&world.config.slo);
            arrivals::run(world, dir, &asked, console).await
        })?;
    console.conclude("arrivals", &answer, summary);
    Ok(console.exit(answer.exit_code()))
}

impl Cli {
    /// The question that the flags ask.
    ///
    /// # Errors
    /// Flags that make no question.
    pub fn asked(&self) -> Result<Asked, Failure> {
        let no = |why: String| Err(Failure::Usage(why));
        if self.common.require.is_some() {
            return no(
                "--require asks for a capacity, which is not measured here; did you mean --max-blocking?"
                    .into(),
            );
        }
        if self.lines == Some(0) {
            return no("--lines 0: without a line there is nothing to measure; give at least 1".into());
        }
        let when_busy = match (self.when_busy, self.lines) {
            (Some(when), _) => when,
            (None, Some(_)) => WhenBusy::Lost,
            (None, None) => WhenBusy::Server,
        };
        let lines = match (when_busy, self.lines) {
            (WhenBusy::Server, _) => Trunks::Server,
            (WhenBusy::Lost, Some(n)) => Trunks::Lose(n),
            (WhenBusy::Waits, Some(n)) => Trunks::Wait(n),
            (_, None) => {
                return no("--when-busy needs --lines N: how many calls may there be at once?".into());
            }
        };
        let lengths = match (self.lengths, self.mean_s) {
            (LengthsFrom::Exponential, Some(s)) => match Duration::try_from_secs_f64(s) {
                Ok(mean) if !mean.is_zero() => Lengths::Exponential { mean },
                _ => return no(format!("--mean-s {s}: give a number of seconds above 0")),
            },
            (_, Some(_)) => return no("--mean-s goes with --lengths exponential only".into()),
            _ => Lengths::PreparedCalls,
        };
        let Ok(warm_up) = Duration::try_from_secs_f64(self.warm_up_s) else {
            return no(format!("--warm-up-s {}: give 0 or more seconds", self.warm_up_s));
        };
        if let Some(share) = self.max_blocking.filter(|share| !(0.0..=1.0).contains(share)) {
            return no(format!("--max-blocking {share}: give a share between 0 and 1"));
        }
        let laws = match &self.replay {
            Some(path) => {
                vec![ArrivalProcess::Replay { starts: starts_of(path, self.start_column.as_deref())? }]
            }
            None => self.rate.iter().map(|&per_hour| self.law(per_hour)).collect(),
        };
        for law in &laws {
            if let Err(e) = law.check() {
                return no(e.to_string());
            }
        }
        if !self.rate.is_sorted_by(|a, b| a < b) {
            return no(format!("--rate {:?}: give ascending rates", self.rate));
        }
        Ok(Asked {
            laws,
            lengths,
            role: if self.lengths == LengthsFrom::Pool { Role::Pool } else { Role::A },
            lines,
            server_lines: self.lines.filter(|_| lines == Trunks::Server),
            calls: self.calls,
            warm_up,
            max_blocking: self.max_blocking,
        })
    }

    const fn law(&self, per_hour: f64) -> ArrivalProcess {
        match self.arrivals {
            Spread::Poisson => ArrivalProcess::Poisson { per_hour },
            Spread::Uniform => ArrivalProcess::Uniform { per_hour },
            Spread::Bursty => ArrivalProcess::Bursty { per_hour, burst: self.burst },
        }
    }
}

/// One built-in engine with so many lines: a group that a balancer splits would block more.
fn give_lines(config: &mut Config, lines: u32) -> String {
    config.rehearsal.insert("instances".into(), toml::Value::Integer(1));
    let engine = config.rehearsal.entry("engine").or_insert_with(|| toml::Value::Table(toml::Table::new()));
    if let Some(engine) = engine.as_table_mut() {
        engine.insert("max_sessions".into(), toml::Value::Integer(lines.into()));
    }
    format!("one built-in engine with {lines} lines")
}

/// Recorded starts, counted from the first.
fn starts_of(path: &Path, column: Option<&str>) -> Result<Vec<Duration>, Failure> {
    let bad = |line: usize, why: String| Failure::Usage(format!("{}:{line}: {why}", path.display()));
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Usage(format!("cannot read {}: {e}", path.display())))?;
    let table = Table::parse(&text).map_err(|(line, why)| bad(line, why))?;
    let head = table.columns();
    let at = match column {
        Some(name) => head
            .iter()
            .position(|cell| cell == name)
            .ok_or_else(|| bad(1, format!("there is no column {name}; there are {}", head.join(", "))))?,
        None => 0,
    };
    // A file may do without a head: what could be one is the first start then.
    let first =
        (column.is_none() && head.first().is_some_and(|cell| instant(cell).is_some())).then_some((1, head));
    let mut starts: Vec<f64> = Vec::new();
    for (line, cells) in first.into_iter().chain(table.rows()) {
        let cell = cells.get(at).map_or("", |cell| cell.trim());
        let start = instant(cell)
            .ok_or_else(|| bad(line, format!("`{cell}` is neither a number of seconds nor a time of day")))?;
        if starts.last().is_some_and(|last| *last > start) {
            return Err(bad(line, "this start lies before the one above it: sort the file by start".into()));
        }
        starts.push(start);
    }
    let first = starts.first().copied().unwrap_or_default();
    Ok(starts.iter().filter_map(|s| Duration::try_from_secs_f64(s - first).ok()).collect())
}

/// Seconds of a cell: a plain number, a time stamp with its zone, or a date and time without one.
fn instant(cell: &str) -> Option<f64> {
    if let Ok(seconds) = cell.parse::<f64>() {
        return seconds.is_finite().then_some(seconds);
    }
    if let Ok(stamp) = cell.parse::<Timestamp>() {
        return Some(stamp.as_duration().as_secs_f64());
    }
    let civil: DateTime = cell.parse().ok()?;
    Some(civil.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs_f64())
}

/// What was found, rate by rate.
#[must_use]
pub fn summary(answer: &ArrivalsAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    for rate in &answer.rates {
        lines.extend(told(rate));
    }
    lines.push(String::new());
    if let Some(per_hour) = answer.unstable_from_per_h {
        lines.push(format!(
            "Unstable from {per_hour:.1} calls an hour on: the number of callers kept growing"
        ));
    } else if answer.rates.len() > 1 {
        lines.push("No rate was unstable".into());
    }
    if answer.simulated {
        lines.push("Simulated: measured on the built-in engine, not on your servers".into());
    }
    if answer.interrupted {
        lines.push(format!("Interrupted: go on with `{}`", go_on(&answer.run)));
    }
    lines.push(format!("Evidence: {}", answer.run.display()));
    lines
}

fn told(rate: &ArrivalRate) -> Vec<String> {
    let f = &rate.figures;
    let row = |name: &str, value: String, meaning: &str| {
        format!("{name:<14} {value:<44} {meaning}").trim_end().to_owned()
    };
    let number = |v: Option<f64>, unit: &str| v.map_or_else(|| "unknown".into(), |v| format!("{v:.3}{unit}"));
    let lines =
        f.lines.map_or_else(|| "lines of the server, their number unknown".into(), |n| format!("{n} lines"));
    let busy = match f.when_busy.as_str() {
        "lost" => "callers who find all busy are lost",
        "waits" => "callers who find all busy wait",
        _ => "the server refuses",
    };
    let mut out = vec![
        String::new(),
        format!("{:.1} calls an hour ({}), {lines}, {busy}", f.per_hour, f.law),
        row(
            "callers",
            format!("{}, {} carried, {} blocked, {} failed", f.callers, f.carried, f.blocked, rate.failed),
            "that count",
        ),
        row(
            "holding time",
            format!("{:.3} s, CV {}", f.mean_hold_s, number(f.cv_hold, "")),
            "mean time for which a call keeps its line",
        ),
        row("offered", format!("{:.3} Erl", f.offered_erl), "planned rate x mean holding time"),
        row("carried", format!("{:.3} Erl", f.carried_erl), "mean number of busy lines"),
    ];
    if let Some(blocking) = &f.blocking {
        out.push(row("blocking", share(blocking), "share of callers that found no line, beside Erlang B"));
    }
    if let Some(waiting) = &f.waiting {
        out.push(row("waiting", share(waiting), "share of callers that waited, beside Erlang C"));
    }
    if let Some(wait) = &f.mean_wait_s {
        out.push(row(
            "mean wait",
            compared(wait, |v| format!("{v:.3} s")),
            "of all callers, beside Erlang C",
        ));
        out.push(row("wait p95", number(f.wait_p95_s, " s"), "of all callers"));
    }
    if let Some(guide) = f.mean_wait_guide_s {
        out.push(row("guide", format!("{guide:.3} s"), "Erlang C's mean wait x (1 + CV^2) / 2"));
    }
    if let Some(little) = f.little {
        let value =
            format!("{:.3} = {:.3} (ratio {:.3})", little.in_system, little.rate_times_stay, little.ratio);
        out.push(row("Little's law", value, "callers in the system = arrivals a second x mean stay"));
    }
    out.push(match f.growth {
        Some(g) => {
            let word = if g.unstable { "UNSTABLE" } else { "steady" };
            row("growth", format!("{word}: {:+.2} callers, p = {:.4}", g.rise, g.p), "over the window")
        }
        None => row("growth", "unknown: too short to tell".into(), ""),
    });
    let flow = |v: Option<f64>| v.map_or_else(|| "unknown".into(), |v| format!("{v:.1} calls an hour"));
    out.push(row("throughput", flow(rate.throughput_per_h), "that ended"));
    out.push(row("goodput", flow(rate.goodput_per_h), "that met every limit"));
    out.push(row("first text p95", number(rate.ttft_p95_s, " s"), "on the config's basis"));
    out.push(row("final p95", number(rate.final_p95_s, " s"), ""));
    if let Some(late) = f.late_p99_ms {
        out.push(row(
            "our lateness",
            format!("{late:.2} ms p99"),
            "of placing calls: planned against actual",
        ));
    }
    let why = rate.reasons.first().map(ToString::to_string).unwrap_or_default();
    out.push(row("verdict", rate.verdict.name().into(), &why));
    out.extend(f.caveats.iter().map(|caveat| format!("note: {caveat}")));
    out
}

fn share(compared_share: &Compared) -> String {
    compared(compared_share, |v| format!("{:.3} %", v * 100.0))
}

fn compared(c: &Compared, show: impl Fn(f64) -> String) -> String {
    let Measured { value, low, high, .. } = c.measured;
    let interval = match (low, high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", show(low), show(high)),
        _ => " [too short for an interval]".into(),
    };
    let theory = match (c.theory, c.agrees) {
        (None, _) => String::new(),
        (Some(t), Some(true)) => format!(", theory {} agrees", show(t)),
        (Some(t), Some(false)) => format!(", theory {} DIFFERS", show(t)),
        (Some(t), None) => format!(", theory {}, a guide", show(t)),
    };
    format!("{}{interval}{theory}", show(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Option<&str>) -> Result<Vec<f64>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.csv");
        std::fs::write(&path, text).unwrap();
        let starts = starts_of(&path, column).map_err(|e| e.to_string())?;
        Ok(starts.iter().map(Duration::as_secs_f64).collect())
    }

    #[test]
    fn starts_are_seconds_or_times_of_day() {
        assert_eq!(read("start_s,agent\n10,a\n12.5,b\n", None).unwrap(), [0.0, 2.5]);
        assert_eq!(read("7\n7\n9\n", None).unwrap(), [0.0, 0.0, 2.0]);
        let days = "id,\"begin\"\n1,2026-01-31T09:00:00\n2,2026-01-31 09:01:00\n";
        assert_eq!(read(days, Some("begin")).unwrap(), [0.0, 60.0]);
        let quoted = "agent,begin\n\"Doe, Jane\",10\n\"said \"\"hello\"\"\",12\n";
        assert_eq!(read(quoted, Some("begin")).unwrap(), [0.0, 2.0]);
        assert_eq!(read("2026-01-31T09:00:00+08:00\n2026-01-31T01:00:01Z\n", None).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn rows_that_are_no_start_are_named() {
        assert!(read("start\n5\nnoon\n", None).unwrap_err().contains("s.csv:3: `noon` is neither"));
        assert!(read("start\n5\n\"open\n", None).unwrap_err().contains("s.csv:3: a quote is never closed"));
        assert!(read("5\n4\n", None).unwrap_err().contains("s.csv:2: this start lies before"));
        assert!(read("a,b\n1,2\n", Some("c")).unwrap_err().contains("no column c; there are a, b"));
    }
}
