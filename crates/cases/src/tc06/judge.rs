//! What a fault did, from the records of its step alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallMeta, CallRecord, Outcome, OutcomeClass, Trace};
use tapedeck_score::{Rules, owed_intervals};
use tapedeck_slo::{Recovery, RecoveryRules, RecoveryStep, recovery};
use tapedeck_stats::percentile;

use super::Fault;

/// When what was done, seconds on the run's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What was done.
    pub fault: Fault,
    /// To which instance (or the balancer).
    pub instance: String,
    /// When the fault command was given.
    pub fault_s: f64,
    /// When the command was given that ends it; empty where none could be given.
    pub start_s: Option<f64>,
    /// When the instance was well again.
    pub well_s: Option<f64>,
    /// When watching ended.
    pub until_s: f64,
}

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
        let owed = owed_intervals(trace, meta, rules).unwrap_or_default();
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

/// Calls and what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toll {
    /// Calls.
    pub calls: u64,
    /// Those that errored, by outcome.
    pub errors: BTreeMap<Outcome, u64>,
}

impl Toll {
    fn of<'a>(calls: impl IntoIterator<Item = &'a Seen>) -> Self {
        let mut toll = Self::default();
        for call in calls {
            toll.calls += 1;
            if call.errored() {
                *toll.errors.entry(call.record.outcome.outcome).or_default() += 1;
            }
        }
        toll
    }

    /// Errored calls.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// What the stream that is pinned to one instance lived through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// The instance.
    pub instance: String,
    /// Its calls before the fault.
    pub before: Toll,
    /// Its calls from the fault on.
    pub after: Toll,
    /// p95 of the lag before the fault, seconds.
    pub lag_before_p95_s: Option<f64>,
    /// p95 of the lag from the fault until it was ended, seconds; empty where nothing was owed or answered.
    pub lag_during_p95_s: Option<f64>,
    /// When, after the fault, a call on it went well again, seconds from the fault.
    pub served_again_s: Option<f64>,
}

/// What a fault did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Streams that were played in all.
    pub streams: u32,
    /// Those of them that went through the balancer; the others are pinned, one to each instance.
    pub streams_balanced: u32,
    /// That load / N*.
    pub share: f64,
    /// When what was done.
    pub timeline: Timeline,
    /// Calls that were open on the instance when the fault came.
    pub in_flight: Toll,
    /// Calls that were open elsewhere.
    pub in_flight_elsewhere: Toll,
    /// Calls that began between the fault and the instance's return.
    pub new_calls: Toll,
    /// Seconds from the fault to the begin of the last new call that was lost (or still went to the instance); 0 where
    /// none was lost; empty where calls were lost right up to the return, so that nobody can say.
    pub ejected_s: Option<f64>,
    /// Calls that began after the return.
    pub calls_after_return: Toll,
    /// Seconds from the start command to the begin of the first call that the instance served through the balancer.
    pub rejoined_s: Option<f64>,
    /// Lag in steps from the fault on, and when it was good again.
    pub recovery: Recovery,
    /// The same, as if watching had ended when the fault was ended: what the survivors managed by themselves.
    pub alone: Recovery,
    /// Seconds from the fault until lag was within its limit for good, as far as was watched, with its return; empty where
    /// it was not.
    pub back_s: Option<f64>,
    /// The same until the fault was ended.
    pub alone_back_s: Option<f64>,
    /// Whether that was soon enough; empty where nothing shows it.
    pub alone_in_time: Option<bool>,
    /// Whether a client that wants every call to come through has to try again.
    pub retries_needed: bool,
    /// One stream straight to each instance.
    pub pinned: Vec<Pinned>,
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
    let in_flight = Toll::of(calls.iter().filter(open).filter(hit));
    let new_calls = Toll::of(calls.iter().filter(new));
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
        in_flight_elsewhere: Toll::of(calls.iter().filter(open).filter(|c| !hit(c))),
        in_flight,
        new_calls,
        ejected_s,
        calls_after_return: Toll::of(
            calls.iter().filter(|c| timeline.well_s.is_some_and(|well_s| c.record.start_s >= well_s)),
        ),
        rejoined_s,
        recovery: with_return,
        alone,
        pinned: pinned.iter().map(|(name, calls)| one_pinned(name, calls, fault_s, end_s)).collect(),
        timeline,
    }
}

/// Whether anything shows how far answers lagged.
fn known(recovery: &Recovery) -> bool {
    recovery.steps.iter().any(|s| s.lag_p95_s.is_some())
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
        before: Toll::of(calls.iter().filter(|c| c.record.done_s < fault_s)),
        after: Toll::of(calls.iter().filter(|c| c.record.done_s >= fault_s)),
        lag_before_p95_s: lag(0.0, fault_s),
        lag_during_p95_s: lag(fault_s, end_s),
        served_again_s: well.map(|c| c.record.start_s - fault_s).reduce(f64::min),
    }
}

impl Incident {
    /// Whether the survivors kept up soon enough without the instance; empty where nothing shows it.
    #[must_use]
    pub const fn recovered(&self) -> Option<bool> {
        self.alone_in_time
    }

    /// What happened, in plain sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Timeline { fault, instance, start_s, well_s, fault_s, .. } = &self.timeline;
        let mut said =
            vec![format!("{} {instance} at {} streams ({:.2} N*)", fault.done(), self.streams, self.share)];
        said.push(format!(
            "{} of {} calls in flight on it broke{}",
            self.in_flight.broken(),
            self.in_flight.calls,
            listed(&self.in_flight)
        ));
        if self.in_flight_elsewhere.broken() > 0 {
            said.push(format!(
                "{} of {} calls in flight elsewhere broke as well{}",
                self.in_flight_elsewhere.broken(),
                self.in_flight_elsewhere.calls,
                listed(&self.in_flight_elsewhere)
            ));
        }
        said.push(match self.ejected_s {
            Some(s) if s <= 0.0 => "the balancer lost no new call".into(),
            Some(s) => format!("the balancer lost its last new call {s:.1} s after the fault"),
            None => "the balancer lost new calls for as long as the fault lasted".into(),
        });
        said.push(format!(
            "{} of {} new calls failed{}",
            self.new_calls.broken(),
            self.new_calls.calls,
            listed(&self.new_calls)
        ));
        said.push(overload(&self.alone, self.alone_back_s, "without it"));
        if start_s.is_some() {
            said.push(overload(&self.recovery, self.back_s, "with its return"));
        }
        said.push(match (start_s, well_s, self.rejoined_s) {
            (None, ..) => "it was not brought back".into(),
            (Some(_), None, _) => "it was told to come back and did not become well".into(),
            (Some(start), Some(well), Some(rejoined)) => format!(
                "told to come back {:.0} s after the fault, it was well {:.1} s later and served its first call {rejoined:.1} s later",
                start - fault_s,
                well - start
            ),
            (Some(_), Some(_), None) => "it came back well, but the balancer gave it no call".into(),
        });
        said.push(if self.retries_needed {
            "clients have to retry: calls were lost".into()
        } else {
            "no client had to retry".into()
        });
        said
    }
}

fn listed(toll: &Toll) -> String {
    let errors: Vec<String> = toll.errors.iter().map(|(o, n)| format!("{n} {}", o.name())).collect();
    if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) }
}

fn overload(recovery: &Recovery, back_s: Option<f64>, when: &str) -> String {
    match (recovery.overloaded, back_s) {
        (false, Some(_)) => format!("{when}, lag stayed within its limit"),
        (true, Some(s)) => format!("{when}, lag was back within its limit {s:.0} s after the fault"),
        (_, None) if !known(recovery) => {
            format!("{when}, nothing shows how far answers lagged")
        }
        (_, None) => format!("{when}, lag did not come back within its limit"),
    }
}
