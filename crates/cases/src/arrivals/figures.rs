//! What a schedule's worth of callers met, beside what Erlang says they should have met.
//!
//! Pure arithmetic on the list of callers. Blocked callers come in clusters, so a share is given with an interval
//! from batches of time (Student's t over the batches) and with Wilson's for independent callers; the wider one
//! counts.

use tapedeck_answers::{ArrivalFigures, Caveat, Compared, Growth, Little, Measured};
use tapedeck_erlang::{erlang_b, erlang_c};
use tapedeck_l10n::Localize;
use tapedeck_load::arrivals::{ArrivalProcess, Caller, Disposition, Lengths, Trunks};
use tapedeck_sizing::SizingError;
use tapedeck_stats::normal::normal_quantile;
use tapedeck_stats::wilson_interval;
use tapedeck_stats::{Moments, Trend, percentile, rising_trend};

/// What is known of a rate beforehand.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// The law.
    pub law: &'a ArrivalProcess,
    /// The lengths.
    pub lengths: Lengths,
    /// The lines.
    pub lines: Trunks,
    /// Trunks of the server, where it is the server that refuses and their number is known.
    pub server_lines: Option<u32>,
    /// The window, seconds from the run's origin.
    pub window_s: (f64, f64),
    /// Whether our own lateness means anything.
    pub paused: bool,
    /// Seed of the permutation test.
    pub seed: u64,
}

const CONFIDENCE: f64 = 0.95;
/// Most batches of time; each is at least ten mean holding times long, so that batches hardly depend on each other.
const BATCHES: f64 = 30.0;
const BATCH_HOLDS: f64 = 10.0;
/// Fewest batches from which an interval is drawn.
const FEWEST_BATCHES: usize = 5;

/// Works out the figures of one rate from its callers.
#[must_use]
pub fn figures(callers: &[Caller], setting: &Setting<'_>) -> ArrivalFigures {
    let counted: Vec<&Caller> = callers.iter().filter(|c| c.counted).collect();
    let of = |disposition: Disposition| {
        counted.iter().filter(move |c| c.disposition == disposition).count() as u64
    };
    let (carried, cut) = (of(Disposition::Carried), of(Disposition::Cut));
    let blocked = of(Disposition::Blocked) + of(Disposition::Refused);
    let (from_s, to_s) = setting.window_s;
    let span_s = (to_s - from_s).max(f64::MIN_POSITIVE);
    let per_hour = match setting.law {
        ArrivalProcess::Replay { .. } => count(counted.len()) * 3600.0 / span_s,
        law => law.per_hour().unwrap_or(f64::NAN),
    };
    let holds: Vec<f64> = counted
        .iter()
        .filter(|c| c.disposition == Disposition::Carried)
        .filter_map(|c| Some(seconds(c.freed_ns?) - seconds(c.start_ns?)))
        .collect();
    let hold = Moments::of(&holds);
    let mean_hold_s = hold.map_or(f64::NAN, |m| m.mean);
    let offered_erl = per_hour / 3600.0 * mean_hold_s;
    let lines = match setting.lines {
        Trunks::Lose(n) | Trunks::Wait(n) => Some(n),
        Trunks::Server => setting.server_lines,
    };
    let batches = Batches::new(setting.window_s, mean_hold_s);
    let poisson = matches!(setting.law, ArrivalProcess::Poisson { .. });
    let exponential = matches!(setting.lengths, Lengths::Exponential { .. });
    let waits = matches!(setting.lines, Trunks::Wait(_));

    let mut caveats = Vec::new();
    if !poisson {
        caveats.push(Caveat::Dependent { law: setting.law.name().into() });
    }
    let known_cut = counted.len() as u64 - cut;
    let blocking = (!waits && known_cut > 0).then(|| {
        let measured = share(&counted, &batches, |c| {
            matches!(c.disposition, Disposition::Blocked | Disposition::Refused)
        });
        let theory = lines.and_then(|n| erlang_b::blocking(offered_erl, n.into()).ok());
        Compared { measured, theory, agrees: theory.filter(|_| poisson).and_then(|t| measured.holds(t)) }
    });
    let (mut waiting, mut mean_wait_s, mut wait_p95_s, mut mean_wait_guide_s) = (None, None, None, None);
    if waits {
        if !exponential {
            caveats.push(Caveat::NotExponential);
        }
        let queue = lines.map(|n| erlang_c::queue(offered_erl, n.into()));
        if let Some(Err(e)) = &queue {
            caveats.push(Caveat::NoTheory { why: SizingError::from(*e).text() });
        }
        let queue = queue.and_then(Result::ok);
        let applies = poisson && exponential;
        let compare = |measured: Measured, theory: Option<f64>| Compared {
            measured,
            theory,
            agrees: theory.filter(|_| applies).and_then(|t| measured.holds(t)),
        };
        let wait = |c: &Caller| c.start_ns.map(|start| seconds(start.saturating_sub(c.arrived_ns)));
        let waited = share(&counted, &batches, |c| wait(c).is_some_and(|w| w > 0.0));
        waiting = Some(compare(waited, queue.map(|q| q.waiting)));
        let mean = batches.ratio(counted.iter().filter_map(|c| Some((seconds(c.planned_ns), wait(c)?))));
        let theory_s = queue.map(|q| q.mean_wait * mean_hold_s);
        mean_wait_s = mean.map(|m| compare(m, theory_s));
        let mut all: Vec<f64> = counted.iter().filter_map(|c| wait(c)).collect();
        wait_p95_s = percentile(&mut all, 0.95);
        let cv = hold.and_then(|m| m.cv());
        mean_wait_guide_s =
            theory_s.zip(cv).filter(|_| !exponential).map(|(t, cv)| t * cv.mul_add(cv, 1.0) / 2.0);
    }
    let late: Vec<f64> =
        counted.iter().map(|c| seconds(c.arrived_ns.saturating_sub(c.planned_ns)) * 1e3).collect();
    ArrivalFigures {
        law: setting.law.name().into(),
        per_hour,
        lines,
        when_busy: match setting.lines {
            Trunks::Server => "server",
            Trunks::Lose(_) => "lost",
            Trunks::Wait(_) => "waits",
        }
        .into(),
        callers: counted.len() as u64,
        carried,
        blocked,
        cut,
        mean_hold_s,
        cv_hold: hold.and_then(|m| m.cv()),
        offered_erl,
        carried_erl: time_average(callers, setting.window_s, |c| Some((c.start_ns?, c.freed_ns))),
        blocking,
        waiting,
        mean_wait_s,
        wait_p95_s,
        mean_wait_guide_s,
        caveats,
        little: little(callers, setting.window_s),
        growth: growth(callers, setting),
        late_p99_ms: percentile(&mut late.clone(), 0.99).filter(|_| !setting.paused),
    }
}

/// Batches of equal time.
struct Batches {
    from_s: f64,
    length_s: f64,
    n: usize,
}

impl Batches {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 30")]
    fn new((from_s, to_s): (f64, f64), hold_s: f64) -> Self {
        let span_s = (to_s - from_s).max(f64::MIN_POSITIVE);
        let n = (span_s / (BATCH_HOLDS * hold_s)).floor().clamp(1.0, BATCHES);
        let n = if n.is_nan() { 1.0 } else { n };
        Self { from_s, length_s: span_s / n, n: n as usize }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the batches")]
    fn of(&self, at_s: f64) -> usize {
        let at = ((at_s - self.from_s) / self.length_s).floor().max(0.0) as usize;
        at.min(self.n.saturating_sub(1))
    }

    /// Mean of values with an instant each, with the interval of a ratio of batch sums.
    fn ratio(&self, values: impl Iterator<Item = (f64, f64)>) -> Option<Measured> {
        let mut sums = vec![(0.0, 0.0); self.n];
        let mut n = 0_u64;
        for (at_s, value) in values {
            if let Some(sum) = sums.get_mut(self.of(at_s)) {
                sum.0 += value;
                sum.1 += 1.0;
                n += 1;
            }
        }
        let (total, size) = sums.iter().fold((0.0, 0.0), |(t, s), b| (t + b.0, s + b.1));
        if n == 0 {
            return None;
        }
        let value = total / size;
        let k = count(self.n);
        let half = (self.n >= FEWEST_BATCHES).then(|| {
            let squares: f64 = sums.iter().map(|(t, s)| (t - value * s).powi(2)).sum();
            student(f64::midpoint(1.0, CONFIDENCE), k - 1.0) * (squares / (k - 1.0) * k).sqrt() / size
        });
        Some(Measured { value, low: half.map(|h| value - h), high: half.map(|h| value + h), n })
    }
}

/// Share of the callers whose disposition is known, with the wider of both intervals.
fn share(counted: &[&Caller], batches: &Batches, yes: impl Fn(&Caller) -> bool) -> Measured {
    let known = counted.iter().filter(|c| c.disposition != Disposition::Cut);
    let marks = known.map(|c| (seconds(c.planned_ns), f64::from(u8::from(yes(c)))));
    let Some(batched) = batches.ratio(marks) else {
        return Measured { value: f64::NAN, low: None, high: None, n: 0 };
    };
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 callers")]
    let (low, high) = wilson_interval(batched.value, batched.n as f64, CONFIDENCE);
    Measured {
        low: Some(batched.low.map_or(low, |l| l.min(low)).max(0.0)),
        high: Some(batched.high.map_or(high, |h| h.max(high)).min(1.0)),
        ..batched
    }
}

/// Quantile of Student's t from the normal one (Cornish and Fisher's expansion): better than 1 % from 4 degrees on.
fn student(p: f64, degrees: f64) -> f64 {
    let z = normal_quantile(p);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * degrees)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * degrees.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * degrees.powi(3))
}

/// Time average over the window of how many callers are within their stretch, which is open where it has no end.
fn time_average(
    callers: &[Caller],
    (from_s, to_s): (f64, f64),
    stretch: impl Fn(&Caller) -> Option<(u64, Option<u64>)>,
) -> f64 {
    let inside = callers.iter().filter_map(stretch).map(|(start, end)| {
        let end_s = end.map_or(to_s, seconds).min(to_s);
        (end_s - seconds(start).max(from_s)).max(0.0)
    });
    inside.sum::<f64>() / (to_s - from_s).max(f64::MIN_POSITIVE)
}

/// From arrival until the line is free again; nothing for callers who were blocked.
fn stay(caller: &Caller) -> Option<(u64, Option<u64>)> {
    let within = matches!(caller.disposition, Disposition::Carried | Disposition::Cut);
    within.then_some((caller.arrived_ns, caller.freed_ns))
}

fn little(callers: &[Caller], window_s: (f64, f64)) -> Option<Little> {
    let (from_s, to_s) = window_s;
    let stays: Vec<f64> = callers
        .iter()
        .filter(|c| c.counted)
        .filter_map(stay)
        .filter_map(|(start, end)| Some(seconds(end?) - seconds(start)))
        .collect();
    let mean_s = Moments::of(&stays)?.mean;
    let in_system = time_average(callers, window_s, stay);
    let rate_times_stay = count(stays.len()) / (to_s - from_s).max(f64::MIN_POSITIVE) * mean_s;
    (in_system > 0.0).then(|| Little { in_system, rate_times_stay, ratio: rate_times_stay / in_system })
}

/// Blocks that the window is cut into for the test of growth.
const GROWTH_BLOCKS: f64 = 10.0;
/// Looks at the number in the system within each block.
const LOOKS: f64 = 20.0;
/// Permutations, and the level at which growth counts.
const PERMUTATIONS: u32 = 10_000;
const ALPHA: f64 = 0.01;
/// Stream of randomness that belongs to the test.
const STREAM: u64 = (1 << 33) + 2;

fn growth(callers: &[Caller], setting: &Setting<'_>) -> Option<Growth> {
    let (from_s, to_s) = setting.window_s;
    let block_s = (to_s - from_s) / GROWTH_BLOCKS;
    let step_s = block_s / LOOKS;
    if step_s.is_nan() || step_s <= 0.0 {
        return None;
    }
    let stays: Vec<(f64, f64)> = callers
        .iter()
        .filter_map(stay)
        .map(|(start, end)| (seconds(start), end.map_or(f64::INFINITY, seconds)))
        .collect();
    let mut points = Vec::new();
    let mut at_s = from_s + step_s / 2.0;
    while at_s < to_s {
        points.push((at_s, count(stays.iter().filter(|(start, end)| *start <= at_s && at_s < *end).count())));
        at_s += step_s;
    }
    let mean = points.iter().map(|p| p.1).sum::<f64>() / count(points.len());
    let Trend { rise, p, blocks, .. } = rising_trend(&points, block_s, PERMUTATIONS, setting.seed, STREAM)?;
    let unstable = p <= ALPHA && rise >= (mean / 10.0).max(1.0);
    Some(Growth { rise, p, blocks: u32::try_from(blocks).unwrap_or(u32::MAX), unstable })
}

#[expect(clippy::cast_precision_loss, reason = "a run lasts far below 2^53 ns")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 callers")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(arrived_s: u64, freed_s: Option<u64>, disposition: Disposition) -> Caller {
        let ns = |s: u64| s * 1_000_000_000;
        Caller {
            n: 0,
            counted: true,
            planned_ns: ns(arrived_s),
            arrived_ns: ns(arrived_s),
            start_ns: Some(ns(arrived_s)),
            freed_ns: freed_s.map(ns),
            disposition,
        }
    }

    #[test]
    fn callers_are_counted_for_as_long_as_they_are_within_the_window() {
        let callers = [
            caller(0, Some(10), Disposition::Carried),
            caller(12, None, Disposition::Cut),
            caller(6, Some(14), Disposition::Blocked),
            caller(20, Some(30), Disposition::Carried),
        ];
        // 5 s of the first, 3 s of the one that is still there; who was blocked and who came later: nothing.
        assert!((time_average(&callers, (5.0, 15.0), stay) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn littles_law_holds_where_everybody_stays_within_the_window() {
        let callers: Vec<_> =
            (0..10).map(|i| caller(10 * i, Some(10 * i + 5), Disposition::Carried)).collect();
        let found = little(&callers, (0.0, 100.0)).unwrap();
        assert!((found.in_system - 0.5).abs() < 1e-12 && (found.ratio - 1.0).abs() < 1e-12, "{found:?}");
        // Who stays beyond the window counts with the whole stay on one side only.
        let long = [caller(50, Some(250), Disposition::Carried)];
        assert!((little(&long, (0.0, 100.0)).unwrap().ratio - 4.0).abs() < 1e-12);
        assert!(little(&[caller(1, Some(2), Disposition::Blocked)], (0.0, 100.0)).is_none());
    }

    #[test]
    fn the_quantile_is_students() {
        for (degrees, table) in [(4.0, 2.776), (10.0, 2.228), (29.0, 2.045)] {
            assert!((student(0.975, degrees) / table - 1.0).abs() < 0.01, "{degrees}");
        }
    }
}
