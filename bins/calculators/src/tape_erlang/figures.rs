//! The figures that answer each question.

use tapedeck_erlang::{ErlangError, busy_hour, engset, erlang_a, erlang_b, erlang_c, retries, split};

use super::answer::{Figure, Row, Shown, number, share, whole};
use super::target::{Goal, Model};
use super::{BusyHour, Callers, Command, Offered};
use tapedeck_record::{ExitCode, HasExitCode};
use thiserror::Error;

/// Blockings that a busy hour's table shows.
const USUAL: [f64; 6] = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1];
/// Lines to either side of the answer in a table.
const AROUND: u64 = 5;

/// A question that has no answer as it was asked.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Unanswered(pub(super) String);

impl From<ErlangError> for Unanswered {
    fn from(error: ErlangError) -> Self {
        Self(error.to_string())
    }
}

impl HasExitCode for Unanswered {
    fn exit_code(&self) -> ExitCode {
        ExitCode::Usage
    }
}

/// The answer to a question.
pub(super) fn answer(command: &Command) -> Result<Row, Unanswered> {
    Ok(match *command {
        Command::B(offered) => b(offered)?,
        Command::C { offered, mean_s, within_s } => c(offered, mean_s, within_s)?,
        Command::ExtendedB { offered, recall } => extended_b(offered, recall)?,
        Command::Engset { callers, lines } => engset_row(callers, lines)?,
        Command::A { offered, mean_s, patience_s, within_s } => a(offered, mean_s, patience_s, within_s)?,
        Command::Lines { traffic, per_source, goal } => {
            let model = goal.model()?;
            let offered = per_lines(traffic, per_source, model)?;
            vec![offered_figure(model, offered), whole("lines", model.lines(offered)?, "fewest lines")]
                .into_iter()
                .chain([Figure { key: "target", shown: target(model, &goal), meaning: model.meaning() }])
                .collect()
        }
        Command::Traffic { lines, goal } => traffic_row(lines, &goal)?,
        Command::BusyHour(hour) => busy(hour)?.0,
        Command::Split { traffic, groups, lines_each } => split_row(traffic, groups, lines_each)?,
    })
}

/// The answer among its neighbours, and its place among them.
pub(super) fn table(command: &Command) -> Result<(Vec<Row>, usize), Unanswered> {
    // The question itself must have an answer, whatever its neighbours say.
    let asked = answer(command)?;
    match *command {
        Command::Lines { traffic, per_source, goal } => {
            let model = goal.model()?;
            let offered = per_lines(traffic, per_source, model)?;
            around(model.lines(offered)?, |lines| at_lines(model, offered, lines, &goal))
        }
        Command::BusyHour(hour) => {
            let (_, traffic) = busy(hour)?;
            let row = |blocking| -> Result<Row, Unanswered> {
                Ok(vec![
                    number("traffic", traffic, "Erl", "traffic of the busy hour"),
                    share(
                        "blocking",
                        blocking,
                        "share of calls that find every line busy and are lost (Erlang B)",
                    ),
                    whole(
                        "lines",
                        erlang_b::lines(traffic, blocking)?,
                        "fewest lines at which it is no more",
                    ),
                ])
            };
            Ok((USUAL.into_iter().map(row).collect::<Result<_, _>>()?, usize::MAX))
        }
        Command::Split { traffic, groups, lines_each } => {
            let all = groups * lines_each;
            let ways: Vec<u64> = (1..=groups.min(1_000)).filter(|ways| all.is_multiple_of(*ways)).collect();
            let place = ways.iter().position(|&ways| ways == groups).unwrap_or(usize::MAX);
            let rows = ways
                .into_iter()
                .map(|ways| split_row(traffic, ways, all / ways))
                .collect::<Result<_, _>>()?;
            Ok((rows, place))
        }
        Command::B(Offered { lines, .. })
        | Command::C { offered: Offered { lines, .. }, .. }
        | Command::ExtendedB { offered: Offered { lines, .. }, .. }
        | Command::A { offered: Offered { lines, .. }, .. }
        | Command::Engset { lines, .. }
        | Command::Traffic { lines, .. } => {
            let (mut rows, place) = around(lines, |lines| answer(&with_lines(command, lines)))?;
            if let Some(row) = rows.get_mut(place) {
                *row = asked;
            }
            Ok((rows, place))
        }
    }
}

/// The rows around a number of lines that have an answer; an unstable neighbour has none.
fn around(
    lines: u64,
    mut row: impl FnMut(u64) -> Result<Row, Unanswered>,
) -> Result<(Vec<Row>, usize), Unanswered> {
    let (mut rows, mut place) = (Vec::new(), usize::MAX);
    for near in lines.saturating_sub(AROUND).max(1)..=lines.saturating_add(AROUND) {
        match row(near) {
            Ok(found) => {
                if near == lines {
                    place = rows.len();
                }
                rows.push(found);
            }
            Err(error) if near == lines => return Err(error),
            Err(_) => {}
        }
    }
    Ok((rows, place))
}

fn with_lines(command: &Command, lines: u64) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::B(offered)
        | Command::C { offered, .. }
        | Command::ExtendedB { offered, .. }
        | Command::A { offered, .. } => offered.lines = lines,
        Command::Engset { lines: own, .. } | Command::Traffic { lines: own, .. } => *own = lines,
        Command::Lines { .. } | Command::BusyHour(_) | Command::Split { .. } => {}
    }
    command
}

fn per_lines(traffic: Option<f64>, per_source: Option<f64>, model: Model) -> Result<f64, Unanswered> {
    match (model, traffic, per_source) {
        (Model::Engset { .. }, None, Some(busy)) => Ok(busy),
        (Model::Engset { sources, .. }, Some(traffic), None) => {
            // Traffic of all sources together, had each a line of its own.
            #[expect(clippy::cast_precision_loss, reason = "checked by the model to be below 1e12")]
            let each = traffic / sources as f64;
            if each > 0.0 && each < 1.0 {
                Ok(each)
            } else {
                Err(Unanswered(format!(
                    "traffic is {traffic} Erlang for {sources} sources: it must be above zero and below one Erlang a source"
                )))
            }
        }
        (Model::Engset { .. }, ..) => {
            Err(Unanswered("how busy is a source? give --per-source or --traffic".into()))
        }
        (_, Some(traffic), _) => Ok(traffic),
        (_, None, _) => Err(Unanswered("how much traffic? give --traffic".into())),
    }
}

const fn offered_figure(model: Model, offered: f64) -> Figure {
    match model {
        Model::Engset { .. } => {
            number("per_source", offered, "Erl", "how busy a source would be if never blocked")
        }
        _ => number("traffic", offered, "Erl", "traffic offered: calls an hour x mean call length in hours"),
    }
}

fn target(model: Model, goal: &Goal) -> Shown {
    use tapedeck_erlang::erlang_a::Target;
    match model {
        Model::B { target }
        | Model::Retries { target, .. }
        | Model::Engset { target, .. }
        | Model::Waiting { target }
        | Model::Level { target, .. } => Shown::Share(target),
        Model::MeanWait { .. } => Shown::Number(goal.mean_wait_s.unwrap_or(f64::NAN), "s"),
        Model::A {
            target: Target::Abandoning(share) | Target::Waiting(share) | Target::Answered { share, .. },
            ..
        } => Shown::Share(share),
    }
}

/// What a number of lines gives, under the model of a target.
fn at_lines(model: Model, offered: f64, lines: u64, goal: &Goal) -> Result<Row, Unanswered> {
    let group = Offered { traffic: offered, lines };
    match model {
        Model::B { .. } => b(group),
        Model::Retries { recall, .. } => extended_b(group, recall),
        Model::Engset { sources, .. } => {
            engset_row(Callers { sources, per_source: Some(offered), per_idle_source: None }, lines)
        }
        Model::Waiting { .. } | Model::Level { .. } | Model::MeanWait { .. } => {
            c(group, goal.mean_s, goal.within_s)
        }
        Model::A { .. } => {
            a(group, goal.mean_s.unwrap_or(f64::NAN), goal.patience_s.unwrap_or(f64::NAN), goal.within_s)
        }
    }
}

fn group(offered: Offered) -> Row {
    vec![
        number(
            "traffic",
            offered.traffic,
            "Erl",
            "traffic offered: calls an hour x mean call length in hours",
        ),
        whole("lines", offered.lines, "calls that can be in progress at once"),
    ]
}

/// A share, or its logarithm where no float can hold it.
fn tiny(key: &'static str, value: f64, log10: f64, meaning: &'static str) -> Figure {
    if log10 < -300.0 {
        Figure { key, shown: Shown::Log10(log10), meaning }
    } else {
        share(key, value, meaning)
    }
}

fn b(offered: Offered) -> Result<Row, Unanswered> {
    let Offered { traffic, lines } = offered;
    let blocking = erlang_b::blocking(traffic, lines)?;
    let carried = erlang_b::carried(traffic, lines)?;
    let mut row = group(offered);
    row.extend([
        tiny(
            "blocking",
            blocking,
            erlang_b::log10_blocking(traffic, lines)?,
            "share of calls that find every line busy and are lost (Erlang B)",
        ),
        number("carried", carried, "Erl", "traffic that gets a line; the mean number of busy lines"),
        share("occupancy", erlang_b::occupancy(traffic, lines)?, "share of time in which a line is busy"),
    ]);
    Ok(row)
}

fn c(offered: Offered, mean_s: Option<f64>, within_s: Option<f64>) -> Result<Row, Unanswered> {
    let Offered { traffic, lines } = offered;
    let queue = erlang_c::queue(traffic, lines)?;
    let (scale, unit) = time_scale(mean_s)?;
    let mut row = group(offered);
    row.extend([
        tiny(
            "waiting",
            queue.waiting,
            erlang_c::log10_waiting(traffic, lines)?,
            "share of calls that find every line busy and wait (Erlang C)",
        ),
        number(
            keyed(mean_s, "mean_wait_s", "mean_wait_call_lengths"),
            scale * queue.mean_wait,
            unit,
            "mean wait of all calls",
        ),
        number(
            keyed(mean_s, "mean_wait_of_waiting_s", "mean_wait_of_waiting_call_lengths"),
            scale * queue.mean_wait_of_waiting,
            unit,
            "mean wait of the calls that wait",
        ),
        number("queue", queue.queue, "", "mean number of waiting calls"),
        share("occupancy", queue.occupancy, "share of time in which a line is busy"),
    ]);
    if let Some(within) = within_s {
        let level = erlang_c::service_level(traffic, lines, within / scale)?;
        row.push(share("service_level", level, "share of calls that are answered within --within-s"));
    }
    Ok(row)
}

/// What a mean call length is in the unit of waits.
fn time_scale(mean_s: Option<f64>) -> Result<(f64, &'static str), Unanswered> {
    match mean_s {
        None => Ok((1.0, "call lengths")),
        Some(mean) if mean.is_finite() && mean > 0.0 => Ok((mean, "s")),
        Some(mean) => {
            Err(Unanswered(format!("mean call length (s) is {mean}: it must be a finite number above zero")))
        }
    }
}

const fn keyed(mean_s: Option<f64>, seconds: &'static str, call_lengths: &'static str) -> &'static str {
    if mean_s.is_some() { seconds } else { call_lengths }
}

fn extended_b(offered: Offered, recall: f64) -> Result<Row, Unanswered> {
    let found = retries::blocking(offered.traffic, offered.lines, recall)?;
    let mut row = group(offered);
    row.extend([
        share("recall", recall, "share of blocked attempts that are repeated"),
        share("blocking", found.blocking, "share of attempts, first and repeated, that find every line busy"),
        number("total_traffic", found.total_traffic, "Erl", "traffic of first and repeated attempts"),
        number("carried", found.carried, "Erl", "traffic that gets a line; the mean number of busy lines"),
        share("given_up", found.given_up, "share of callers that never get a line"),
    ]);
    Ok(row)
}

fn engset_row(callers: Callers, lines: u64) -> Result<Row, Unanswered> {
    let source = callers.source();
    let found = engset::blocking(callers.sources, source, lines)?;
    Ok(vec![
        whole("sources", callers.sources, "callers that there are"),
        number("per_source", source.busy(), "Erl", "how busy each would be if never blocked"),
        whole("lines", lines, "calls that can be in progress at once"),
        tiny(
            "blocking",
            found.blocking,
            if lines < callers.sources {
                engset::log10_blocking(callers.sources, source, lines)?
            } else {
                0.0
            },
            "share of calls that find every line busy and are lost (Engset, call congestion)",
        ),
        share("time_congestion", found.time_congestion, "share of time in which every line is busy"),
        number("intended", found.intended, "Erl", "traffic if there were a line for every caller"),
        number("carried", found.carried, "Erl", "traffic that gets a line; the mean number of busy lines"),
    ])
}

fn a(offered: Offered, mean_s: f64, patience_s: f64, within_s: Option<f64>) -> Result<Row, Unanswered> {
    let Offered { traffic, lines } = offered;
    let (mean_s, _) = time_scale(Some(mean_s))?;
    let patience = patience_s / mean_s;
    let found = erlang_a::queue(traffic, lines, patience)?;
    let mut row = group(offered);
    row.extend([
        share("waiting", found.waiting, "share of calls that find every line busy (Erlang A)"),
        share("abandoning", found.abandoning, "share of calls that lose patience and give up"),
        number(
            "mean_wait_s",
            found.mean_wait * mean_s,
            "s",
            "mean time in the queue of all calls, given up or not",
        ),
        number("queue", found.queue, "", "mean number of waiting calls"),
        share("occupancy", found.occupancy, "share of time in which a line is busy"),
    ]);
    if let Some(within_s) = within_s {
        let within = erlang_a::within(traffic, lines, patience, within_s / mean_s)?;
        row.extend([
            share("service_level", within.answered, "share of all calls that are answered within --within-s"),
            share("still_waiting", within.still_waiting, "share of all calls that still wait at --within-s"),
            share("given_up_within", within.given_up, "share of all calls that give up within --within-s"),
        ]);
    }
    Ok(row)
}

fn traffic_row(lines: u64, goal: &Goal) -> Result<Row, Unanswered> {
    let model = goal.model()?;
    let found = model.traffic(lines)?;
    Ok(vec![
        whole("lines", lines, "calls that can be in progress at once"),
        match model {
            Model::Engset { .. } => {
                number("per_source", found, "Erl", "busiest that each source may be if never blocked")
            }
            _ => number("traffic", found, "Erl", "most traffic that may be offered"),
        },
        Figure { key: "target", shown: target(model, goal), meaning: model.meaning() },
    ])
}

fn busy(hour: BusyHour) -> Result<(Row, f64), Unanswered> {
    let calls = match (hour.calls_per_hour, hour.calls_per_day) {
        (Some(calls), _) => calls,
        (None, day) => busy_hour::busiest(day.unwrap_or(f64::NAN), hour.open_hours, hour.peak_to_mean)?,
    };
    let traffic = busy_hour::traffic(calls, hour.mean_s)?;
    let row = vec![
        number("calls_per_hour", calls, "", "calls in the busy hour"),
        number("mean_s", hour.mean_s, "s", "mean call length"),
        number("traffic", traffic, "Erl", "calls an hour x mean call length in hours"),
    ];
    Ok((row, traffic))
}

fn split_row(traffic: f64, groups: u64, lines_each: u64) -> Result<Row, Unanswered> {
    let found = split::compare(traffic, groups, lines_each)?;
    Ok(vec![
        number("traffic", traffic, "Erl", "traffic offered to all groups together"),
        whole("groups", groups, "groups that cannot help each other"),
        whole("lines_each", lines_each, "lines in each group"),
        share("blocking", found.split, "share of calls lost with separate groups (Erlang B)"),
        share("blocking_pooled", found.pooled, "share of calls lost if any call could take any line"),
        whole(
            "lines_each_for_equal",
            found.lines_each_for_equal,
            "lines in each group that lose no more than the pool",
        ),
    ])
}
