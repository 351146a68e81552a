//! What a fault did, from the records of its step alone.

use std::collections::BTreeMap;

use tapedeck_answers::fault::known;
use tapedeck_answers::{Fault, Incident, Pinned, Timeline, Toll};
use tapedeck_record::{CallMeta, CallRecord, OutcomeClass, Trace};
use tapedeck_score::{Rules, outstanding_intervals};
use tapedeck_slo::{Recovery, RecoveryRules, RecoveryStep, recovery};
use tapedeck_stats::percentile;

/// One call, as far as a fault is judged by it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its figures.
    pub record: CallRecord,
    /// When each owed window fell due and how long the answer took, seconds; never answered is infinite.
    pub lags: Vec<(f64, f64)>,
}

impl Seen {
    /// Looks at one call.
    #[must_use]
    pub fn of(record: CallRecord, trace: &Trace, meta: &CallMeta, rules: &Rules) -> Self {
        // What we cut ourselves was not left unanswered: its lag is at least what it had come to.
        let ours = record.class == OutcomeClass::Excluded;
        let s = |ns: u64| std::time::Duration::from_nanos(ns).as_secs_f64();
        let owed = outstanding_intervals(trace, meta, rules).unwrap_or_default();
        let lags = owed
            .iter()
            .map(|o| (s(o.from_ns), if o.closed || ours { s(o.lag_ns()) } else { f64::INFINITY }))
            .collect();
        Self { record, lags }
    }

    fn errored(&self) -> bool {
        self.record.class == OutcomeClass::Error
    }
}

/// Counts calls, and those that errored by outcome.
fn toll<'a>(calls: impl IntoIterator<Item = &'a Seen>) -> Toll {
    let mut toll = Toll::default();
    for call in calls {
        toll.calls += 1;
        if call.errored() {
            *toll.errors.entry(call.record.outcome.outcome).or_default() += 1;
        }
    }
    toll
}

/// Judges one fault. `streams` (in all, and through the balancer) and `share` are only told on.
#[must_use]
pub fn judge(
    (streams, streams_balanced): (u32, u32),
    share: f64,
    timeline: Timeline,
    calls: &[Seen],
    pinned: &BTreeMap<String, Vec<Seen>>,
    rules: &RecoveryRules,
) -> Incident {
    let Timeline { fault_s, until_s, .. } = timeline;
    let end_s = timeline.start_s.unwrap_or(until_s);
    let back_s = timeline.well_s.unwrap_or(until_s);
    let there = |c: &&Seen| c.record.instance.as_deref() == Some(timeline.instance.as_str());
    let open = |c: &&Seen| c.record.start_s < fault_s && c.record.done_s >= fault_s;
    // A call that broke before it said where it was is counted to the instance that broke.
    let hit = |c: &&Seen| there(c) || (c.record.instance.is_none() && c.errored());
    let new = |c: &&Seen| (fault_s..back_s).contains(&c.record.start_s);
    let in_flight = toll(calls.iter().filter(open).filter(hit));
    let new_calls = toll(calls.iter().filter(new));
    // Up to the command that ends the fault: what is lost while the instance starts is not the balancer's blindness.
    let lost_s: Vec<f64> = calls
        .iter()
        .filter(new)
        .filter(|c| c.record.start_s < end_s && (c.errored() || (timeline.fault == Fault::Kill && there(c))))
        .map(|c| c.record.start_s - fault_s)
        .collect();
    let last_lost_s = lost_s.iter().copied().fold(0.0, f64::max);
    let ejected_s = (fault_s + last_lost_s + rules.step_s < end_s).then_some(last_lost_s);
    let rejoined_s = timeline.start_s.and_then(|start_s| {
        let served = calls.iter().filter(there).filter(|c| c.record.start_s >= start_s && !c.errored());
        served.map(|c| c.record.start_s - start_s).reduce(f64::min)
    });
    let lags: Vec<(f64, f64)> = calls.iter().flat_map(|c| c.lags.iter().copied()).collect();
    let (with_return, alone) =
        (recovery(&lags, fault_s, until_s, rules), recovery(&lags, fault_s, end_s, rules));
    let alone_back_s = back_for_good(&alone, rules);
    Incident {
        back_s: back_for_good(&with_return, rules),
        alone_in_time: known(&alone).then(|| alone_back_s.is_some_and(|s| s < rules.within_s)),
        alone_back_s,
        streams,
        streams_balanced,
        share,
        retries_needed: in_flight.broken() + new_calls.broken() > 0,
        in_flight_elsewhere: toll(calls.iter().filter(open).filter(|c| !hit(c))),
        in_flight,
        new_calls,
        ejected_s,
        calls_after_return: toll(
            calls.iter().filter(|c| timeline.well_s.is_some_and(|well_s| c.record.start_s >= well_s)),
        ),
        rejoined_s,
        recovery: with_return,
        alone,
        pinned: pinned.iter().map(|(name, calls)| one_pinned(name, calls, fault_s, end_s)).collect(),
        timeline,
    }
}

/// When the last bad step ended, from the fault; empty where too few good ones follow it. A good stretch before a bad one
/// is no recovery: an overload that builds up slowly begins with it.
fn back_for_good(recovery: &Recovery, rules: &RecoveryRules) -> Option<f64> {
    let bad = |s: &RecoveryStep| s.lag_p95_s.is_some_and(|lag| lag > rules.lag_p95_s);
    let good_from = recovery.steps.iter().rposition(bad).map_or(0, |last| last + 1);
    let after = recovery.steps.get(good_from..).unwrap_or_default();
    let good = after.iter().filter(|s| s.lag_p95_s.is_some()).count();
    let first = after.first().filter(|_| good >= rules.hold_steps.max(1) as usize)?;
    Some(first.from_s - recovery.steps.first()?.from_s)
}

fn one_pinned(name: &str, calls: &[Seen], fault_s: f64, end_s: f64) -> Pinned {
    let lag = |from_s: f64, to_s: f64| {
        let inside = calls.iter().flat_map(|c| &c.lags).filter(|l| (from_s..to_s).contains(&l.0));
        percentile(&mut inside.map(|l| l.1).collect::<Vec<_>>(), 0.95).filter(|lag| lag.is_finite())
    };
    let after = |c: &&Seen| c.record.start_s >= fault_s;
    let well = calls.iter().filter(after).filter(|c| c.record.class != OutcomeClass::Error);
    Pinned {
        instance: name.into(),
        before: toll(calls.iter().filter(|c| c.record.done_s < fault_s)),
        after: toll(calls.iter().filter(|c| c.record.done_s >= fault_s)),
        lag_before_p95_s: lag(0.0, fault_s),
        lag_during_p95_s: lag(fault_s, end_s),
        served_again_s: well.map(|c| c.record.start_s - fault_s).reduce(f64::min),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_stretch_before_a_bad_one_is_no_recovery() {
        let rules = RecoveryRules::default();
        // One window a second; bad from 30 s to 40 s after the fault.
        let lag = |t: f64| if (130.0..140.0).contains(&t) { 5.0 } else { 0.3 };
        let lags: Vec<(f64, f64)> = (0..200).map(f64::from).map(|t| (t, lag(t))).collect();
        let back = |until_s| back_for_good(&recovery(&lags, 100.0, until_s, &rules), &rules);
        assert_eq!(back(170.0), Some(40.0));
        // Only two good steps follow, and three are asked for.
        assert_eq!(back(160.0), None);
        assert_eq!(back(130.0), Some(0.0), "nothing bad yet");
    }
}
