//! After a fault: when did the deployment keep up again?

use serde::{Deserialize, Serialize};
use tapedeck_stats::percentile;

/// How recovery is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoveryRules {
    /// Length of a step, seconds. Default 10.
    pub step_s: f64,
    /// Lag p95 of a step up to which the deployment keeps up, seconds. Default 2.0 (the final's limit).
    pub lag_p95_s: f64,
    /// Steps in a row that must be good. Default 3.
    pub hold_steps: u32,
    /// Recovery within this many seconds is good enough. Default 30.
    pub within_s: f64,
}

impl Default for RecoveryRules {
    fn default() -> Self {
        Self { step_s: 10.0, lag_p95_s: 2.0, hold_steps: 3, within_s: 30.0 }
    }
}

/// One step after the fault.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecoveryStep {
    /// Begin, seconds from the run's origin.
    pub from_s: f64,
    /// Owed windows that fell due in it.
    pub n: u64,
    /// p95 of their lag, seconds; empty where none fell due.
    pub lag_p95_s: Option<f64>,
}

/// When the deployment kept up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recovery {
    /// Steps from the fault on.
    pub steps: Vec<RecoveryStep>,
    /// Whether lag went beyond the limit after the fault at all.
    pub overloaded: bool,
    /// Seconds from the fault to the begin of the first of the good steps that lasted; empty where there are none.
    pub recovery_s: Option<f64>,
    /// Whether that was soon enough; empty where the record ends before it could be told.
    pub in_time: Option<bool>,
}

/// Judges recovery from `(due instant, lag)` of every owed window, in seconds; a window never answered should come
/// with an infinite lag. `until_s` is where the record ends.
///
/// A step without any window proves nothing: it is neither good nor bad, and does not count among the steps in a row.
#[must_use]
pub fn recovery(lags: &[(f64, f64)], fault_s: f64, until_s: f64, rules: &RecoveryRules) -> Recovery {
    let mut steps: Vec<RecoveryStep> = Vec::new();
    let mut from_s = fault_s;
    while rules.step_s > 0.0 && until_s.is_finite() && from_s + rules.step_s <= until_s {
        let to_s = from_s + rules.step_s;
        let mut values: Vec<f64> = lags.iter().filter(|l| l.0 >= from_s && l.0 < to_s).map(|l| l.1).collect();
        steps.push(RecoveryStep { from_s, n: values.len() as u64, lag_p95_s: percentile(&mut values, 0.95) });
        from_s = to_s;
    }
    let bad = |s: &RecoveryStep| s.lag_p95_s.is_some_and(|lag| lag > rules.lag_p95_s);
    let overloaded = steps.iter().any(bad);
    // The first good step after which enough known steps in a row are good.
    let recovered = steps.iter().enumerate().find(|(at, step)| {
        let hold = rules.hold_steps.max(1) as usize;
        let ahead: Vec<&RecoveryStep> =
            steps[*at..].iter().filter(|s| s.lag_p95_s.is_some()).take(hold).collect();
        step.lag_p95_s.is_some() && ahead.len() == hold && !ahead.iter().any(|s| bad(s))
    });
    let recovery_s = recovered.map(|(_, step)| step.from_s - fault_s);
    let watched_s = until_s - fault_s;
    let in_time = match recovery_s {
        Some(s) => Some(s < rules.within_s),
        None if watched_s >= rules.within_s + rules.step_s * f64::from(rules.hold_steps) => Some(false),
        None => None,
    };
    Recovery { steps, overloaded, recovery_s, in_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten windows a second; lag as a function of the instant.
    fn lags(until_s: u32, lag: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..until_s * 10).map(|i| f64::from(i) / 10.0).map(|t| (t, lag(t))).collect()
    }

    #[test]
    fn overload_that_passes_recovers_at_the_first_lasting_good_step() {
        let series = lags(200, |t| if (100.0..120.0).contains(&t) { 5.0 } else { 0.3 });
        let r = recovery(&series, 100.0, 200.0, &RecoveryRules::default());
        assert_eq!((r.overloaded, r.recovery_s, r.in_time), (true, Some(20.0), Some(true)));
        let late = lags(300, |t| if (100.0..150.0).contains(&t) { f64::INFINITY } else { 0.3 });
        let r = recovery(&late, 100.0, 300.0, &RecoveryRules::default());
        assert_eq!((r.recovery_s, r.in_time), (Some(50.0), Some(false)));
    }

    #[test]
    fn a_short_lull_is_no_recovery() {
        let series = lags(200, |t| if t >= 100.0 && !(110.0..120.0).contains(&t) { 5.0 } else { 0.3 });
        let r = recovery(&series, 100.0, 200.0, &RecoveryRules::default());
        assert_eq!((r.recovery_s, r.in_time), (None, Some(false)));
    }

    #[test]
    fn a_fault_that_nobody_noticed_recovers_at_once() {
        let r = recovery(&lags(200, |_| 0.3), 100.0, 200.0, &RecoveryRules::default());
        assert_eq!((r.overloaded, r.recovery_s, r.in_time), (false, Some(0.0), Some(true)));
    }

    #[test]
    fn a_record_that_ends_too_soon_is_not_decided() {
        let r = recovery(&lags(130, |_| 5.0), 100.0, 130.0, &RecoveryRules::default());
        assert_eq!((r.recovery_s, r.in_time), (None, None));
        assert_eq!(recovery(&[], 100.0, 130.0, &RecoveryRules::default()).in_time, None);
    }
}
