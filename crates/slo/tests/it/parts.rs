//! Tiers taken apart.

use crate::common::{Tier, end_with};
use tapedeck_record::Outcome;
use tapedeck_slo::{FinalBasis, Limits, periods, split};

#[test]
fn one_slow_instance_shows_in_the_split() {
    let tier = Tier::closed(9, 1, 1).each(|i, c| {
        c.instance = Some(format!("inst{}", i % 3 + 1));
        if i % 3 == 1 {
            c.ttft_wire_s = Some(3.0);
        }
        if i == 2 {
            end_with(c, Outcome::Mute);
        }
        if i == 5 {
            c.instance = None;
        }
    });
    let parts = split(&tier.calls, FinalBasis::Audio, &Limits::default(), 1, |c| c.instance.clone());
    let p50 = |name: &str| parts[name].ttft.as_ref().unwrap().p50.value;
    assert!(p50("inst1") < 1.0 && (p50("inst2") - 3.0).abs() < 1e-9);
    assert_eq!((parts["inst1"].calls, parts["inst3"].calls, parts["inst3"].errors), (27, 26, 1));
    let buckets = split(&tier.calls, FinalBasis::Audio, &Limits::default(), 1, |c| Some(c.bucket_s));
    assert_eq!(buckets.values().map(|b| b.calls).sum::<u64>(), 81);
}

#[test]
fn drift_over_hours_shows_by_the_quarter() {
    let tier = Tier::closed(3, 9, 1);
    let from_s = tier.bounds.window_from_s;
    let tier = tier.each(|i, c| {
        c.ttft_wire_s = Some(0.4 + 0.1 * ((c.start_s - from_s) / 900.0).floor());
        if i == 0 {
            end_with(c, Outcome::ClosedEarly);
        }
    });
    let parts = periods(&tier.calls, FinalBasis::Audio, &Limits::default(), 900.0);
    assert_eq!(parts.len(), 5);
    for (quarter, part) in (0..).zip(&parts) {
        let want = 0.4 + 0.1 * f64::from(quarter);
        assert!((part.ttft_p95_s.unwrap() - want).abs() < 1e-9, "{part:?}");
    }
    assert_eq!(parts.iter().map(|p| p.calls).sum::<u64>(), 243);
    assert_eq!(parts.iter().map(|p| p.errors).sum::<u64>(), 1);
    assert!(periods(&[], FinalBasis::Audio, &Limits::default(), 900.0).is_empty());
}
