//! When the server owed an answer: the ground of lag, real-time factor and drift with age.

use tapedeck_record::{CallMeta, Evidence, MessageKind, Trace};

use crate::score::Rules;

/// A stretch of time during which the server owed the answer to one inference window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// Window, counted from 0; empty for the interval from the end of the audio to the final.
    pub window: Option<u32>,
    /// Planned end of the window's last chunk, nanoseconds from the run's origin.
    pub from_ns: u64,
    /// The message that covers it; the instant the stream was free again where none ever did.
    pub to_ns: u64,
    /// Whether a message (or the final) covered it. An open interval is only known to be at least this long.
    pub closed: bool,
}

impl Outstanding {
    /// Length, nanoseconds.
    #[must_use]
    pub const fn lag_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// One window of the call: number, nanoseconds of audio at its end, planned end, whether it is owed.
struct Window {
    number: u32,
    end_ms: u64,
    due_ns: u64,
}

/// Length of the windows, nanoseconds; empty where the evidence cannot be used without one.
fn window_ns(trace: &Trace, rules: &Rules) -> Option<u64> {
    let fixed = rules.window_ms.filter(|&ms| ms > 0).map(|ms| u64::from(ms) * 1_000_000);
    match rules.evidence {
        Evidence::None => None,
        Evidence::PerWindow => fixed,
        Evidence::Position | Evidence::Ack => fixed.or(Some(trace.chunk_ns)),
    }
    .filter(|&ns| ns > 0)
}

/// The owed windows in order of their end.
fn windows(trace: &Trace, meta: &CallMeta, rules: &Rules, c1_ns: u64) -> Option<Vec<Window>> {
    let length_ns = window_ns(trace, rules)?;
    if trace.chunk_ns == 0 {
        return None;
    }
    let count = u32::try_from(trace.audio_ns.div_ceil(length_ns)).unwrap_or(u32::MAX);
    let to_ms = |ns: u64| ns.div_ceil(1_000_000);
    let windows = (0..count).filter_map(|number| {
        let start_ns = u64::from(number) * length_ns;
        let end_ns = (start_ns + length_ns).min(trace.audio_ns);
        let speech = || {
            let start_ms = u32::try_from(start_ns / 1_000_000).unwrap_or(u32::MAX);
            let end_ms = u32::try_from(to_ms(end_ns)).unwrap_or(u32::MAX);
            meta.speech.within_ms(start_ms, end_ms) > 0
        };
        // The window's last chunk may end after the window does: the server cannot have it earlier.
        let due_ns = c1_ns + (end_ns.div_ceil(trace.chunk_ns) * trace.chunk_ns).min(trace.audio_ns);
        (rules.evidence == Evidence::Ack || speech()).then_some(Window {
            number,
            end_ms: end_ns / 1_000_000,
            due_ns,
        })
    });
    Some(windows.collect())
}

/// For each owed window, when it was answered by a message (the final apart).
fn answers(trace: &Trace, rules: &Rules, windows: &[Window], c1_ns: u64) -> Vec<Option<u64>> {
    let messages = || trace.messages.iter().filter(move |m| m.at_ns > c1_ns);
    match rules.evidence {
        Evidence::None => vec![None; windows.len()],
        Evidence::Position => {
            // Windows end later and later, and the covered position only counts where it grew: one pass does.
            let mut covered =
                messages().filter_map(|m| m.position_ms.map(|p| (u64::from(p), m.at_ns))).peekable();
            windows
                .iter()
                .map(|w| {
                    while covered.next_if(|&(position_ms, _)| position_ms < w.end_ms).is_some() {}
                    covered.peek().map(|&(_, at_ns)| at_ns)
                })
                .collect()
        }
        Evidence::PerWindow => windows
            .iter()
            .map(|w| {
                let own = messages().filter(|m| m.window == Some(w.number)).map(|m| m.at_ns).max();
                // A window that was passed over without a word is answered once a later one is.
                own.or_else(|| messages().find(|m| m.window.is_some_and(|n| n > w.number)).map(|m| m.at_ns))
            })
            .collect(),
        Evidence::Ack => {
            let replies: Vec<u64> =
                messages().filter(|m| m.kind != MessageKind::End).map(|m| m.at_ns).collect();
            windows.iter().map(|w| replies.get(w.number as usize).copied()).collect()
        }
    }
}

/// Every owed interval of a call, by window, the one from the end of the audio to the final last.
///
/// Empty (`None`) where the dialect gives no evidence, where windows are needed and their length is unknown, or
/// where the session never began. A final answers whatever was still owed.
#[must_use]
pub fn outstanding_intervals(trace: &Trace, meta: &CallMeta, rules: &Rules) -> Option<Vec<Outstanding>> {
    let c1_ns = trace.c1_ns?;
    let windows = windows(trace, meta, rules, c1_ns)?;
    let answers = answers(trace, rules, &windows, c1_ns);
    let mut outstanding: Vec<Outstanding> = windows
        .iter()
        .zip(answers)
        // A call that ended before the window did never owed it.
        .filter(|(w, _)| w.due_ns <= trace.done_ns)
        .map(|(w, answer)| {
            let answered = match (answer, trace.final_ns) {
                (Some(a), Some(f)) => Some(a.min(f.max(w.due_ns))),
                (a, f) => a.or(f),
            };
            let to_ns = answered.unwrap_or(trace.done_ns).max(w.due_ns);
            Outstanding { window: Some(w.number), from_ns: w.due_ns, to_ns, closed: answered.is_some() }
        })
        .collect();
    if let (Some(final_ns), Some(last_ns)) = (trace.final_ns, trace.planned_last_ns()) {
        outstanding.push(Outstanding {
            window: None,
            from_ns: last_ns,
            to_ns: final_ns.max(last_ns),
            closed: true,
        });
    }
    Some(outstanding)
}

/// Length of the union of intervals, nanoseconds: overlapping debts count once.
#[must_use]
pub fn union_ns(outstanding: &[Outstanding]) -> u64 {
    let mut spans: Vec<(u64, u64)> = outstanding.iter().map(|o| (o.from_ns, o.to_ns)).collect();
    spans.sort_unstable();
    let mut total = 0;
    let mut reached = 0;
    for (from, to) in spans {
        total += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    total
}
