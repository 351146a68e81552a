//! Drift of a sender's clock: how much its lateness grows with the time that it has been sending.

use std::collections::BTreeMap;

use crate::slope::theil_sen;

/// Length of the windows of which only the earliest sending counts, seconds.
const WINDOW_S: f64 = 5.0;
/// Fewer windows than this are no series.
const WINDOWS: usize = 3;

/// Drift in parts per million from `(seconds since the start, microseconds late)` of what was sent.
///
/// Delays only ever add to the lateness that a drifting clock makes, so of every five seconds the least late sending
/// counts; the slope through those is the median over all pairs (Theil-Sen). Empty for less than three such windows
/// and for times that are no numbers.
///
/// ```
/// // A hundredth of a per cent too slow, and now and then held up by 40 ms.
/// let late = (0..600).map(|i| (f64::from(i) / 10.0, f64::from(i) * 10.0 + if i % 7 == 0 { 40_000.0 } else { 80.0 }));
/// let ppm = tapedeck_stats::drift_ppm(late).unwrap();
/// assert!((ppm - 100.0).abs() < 1.0);
/// ```
#[must_use]
pub fn drift_ppm(late: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let mut least: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (at_s, late_us) in late {
        if !(at_s.is_finite() && at_s >= 0.0 && late_us.is_finite()) {
            continue;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "finite and not negative; the cast saturates"
        )]
        let window = (at_s / WINDOW_S) as u64;
        let kept = least.entry(window).or_insert((at_s, late_us));
        if late_us < kept.1 {
            *kept = (at_s, late_us);
        }
    }
    if least.len() < WINDOWS {
        return None;
    }
    let points: Vec<_> = least.into_values().collect();
    theil_sen(&points, 0.95).map(|line| line.slope)
}

#[cfg(test)]
mod tests {
    use super::drift_ppm;

    /// Chunk, planned and sent milliseconds of a sender whose clock is 120 ppm slow.
    const LOG: &str = include_str!("../../../fixtures/cases/p02-drift-120ppm.csv");

    #[test]
    fn a_slow_clock_is_told_from_a_slow_server() {
        let rows: Vec<(f64, f64)> = LOG
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
                (cells[1] / 1e3, (cells[2] - cells[1]) * 1e3)
            })
            .collect();
        assert!((rows.last().unwrap().1 - 71_400.0).abs() < 1.0);
        let ppm = drift_ppm(rows.iter().copied()).unwrap();
        assert!((ppm - 120.0).abs() < 0.1, "{ppm}");
        // Without the drift, and with delays that come and go, there is none.
        let steady = rows.iter().zip(0..).map(|((s, _), i)| (*s, f64::from(i * 7919 % 30_000)));
        let steady = drift_ppm(steady.flat_map(|(s, late)| [(s, late), (s + 1.0, 90.0)])).unwrap();
        assert!(steady.abs() < 0.1, "{steady}");
    }

    #[test]
    fn a_short_call_says_nothing() {
        assert_eq!(drift_ppm((0..99).map(|i| (f64::from(i) / 10.0, 5.0))), None);
        assert_eq!(drift_ppm([(f64::NAN, 1.0), (-1.0, 1.0), (f64::INFINITY, 1.0)]), None);
    }
}
