//! What a counter grew by, its restarts bridged.

/// Growth of a counter between its first and last reading.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CounterDelta {
    /// Growth. After a restart the counter began at 0, so what it shows then is growth too.
    pub delta: f64,
    /// Restarts seen: readings below their predecessor.
    pub resets: u32,
    /// Readings used.
    pub n: usize,
}

/// Growth of a counter over readings in order of time; `NaN` and infinities are no readings.
///
/// Empty with fewer than two readings: growth between one reading and itself is unknown, not 0. What a counter
/// counted between its last reading and a restart is lost, so the figure is a lower bound where `resets > 0`.
pub fn counter_delta(readings: impl IntoIterator<Item = f64>) -> Option<CounterDelta> {
    let mut out = CounterDelta { delta: 0.0, resets: 0, n: 0 };
    let mut before: Option<f64> = None;
    for now in readings.into_iter().filter(|v| v.is_finite()) {
        out.n += 1;
        if let Some(before) = before {
            if now < before {
                out.resets += 1;
                out.delta += now;
            } else {
                out.delta += now - before;
            }
        }
        before = Some(now);
    }
    (out.n >= 2).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_restart_is_bridged_and_counted() {
        assert_eq!(counter_delta([1000.0, 40.0]), Some(CounterDelta { delta: 40.0, resets: 1, n: 2 }));
        assert_eq!(
            counter_delta([5.0, 7.0, 7.0, 1.0, 4.0]),
            Some(CounterDelta { delta: 2.0 + 1.0 + 3.0, resets: 1, n: 5 })
        );
    }

    #[test]
    fn one_reading_is_not_growth_of_zero() {
        assert_eq!(counter_delta([3.0]), None);
        assert_eq!(counter_delta([f64::NAN, 3.0, f64::INFINITY]), None);
        assert_eq!(counter_delta([]), None);
    }

    proptest! {
        #[test]
        fn a_counter_grows_by_what_it_counted_whatever_restarts_it(
            steps in prop::collection::vec((0_u32..1000, prop::bool::weighted(0.2)), 1..40)
        ) {
            let (mut readings, mut value, mut counted, mut restarts) = (vec![500.0], 500.0, 0.0, 0);
            for (step, restart) in steps {
                let before = value;
                value = if restart { f64::from(step) } else { value + f64::from(step) };
                // A restart that has counted past the last reading already cannot be seen, and hides the difference.
                let seen = value < before;
                restarts += u32::from(seen);
                counted += if seen { value } else { value - before };
                readings.push(value);
            }
            let delta = counter_delta(readings.iter().copied()).unwrap();
            prop_assert_eq!((delta.delta, delta.resets), (counted, restarts));
            prop_assert!(delta.delta >= 0.0);
            prop_assert_eq!(delta.n, readings.len());
        }
    }
}
