//! Finding the number that meets a target.

use crate::error::MOST_LINES;

/// The smallest whole number in `from..` that satisfies a condition which, once true, stays true. Steps
/// double from `stride` on, then the last one is halved.
pub(crate) fn smallest(from: u64, stride: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    if holds(from) {
        return Some(from);
    }
    let (mut no, mut step) = (from, stride.max(1));
    let mut yes = loop {
        let next = no.saturating_add(step).min(MOST_LINES);
        if holds(next) {
            break next;
        }
        if next == MOST_LINES {
            return None;
        }
        (no, step) = (next, step.saturating_mul(2));
    };
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    Some(yes)
}

/// The root of an increasing function in `low..high`: Chandrupatla's method, which is never slower than
/// halving by much and as fast as inverse quadratic interpolation where that works. A bound beyond which
/// the function has no sign change is returned as it is.
pub(crate) fn root(low: f64, high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (mut a, mut b) = (high, low);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa <= 0.0 {
        return a;
    }
    if fb >= 0.0 {
        return b;
    }
    let mut t = 0.5;
    for _ in 0..200 {
        let x = a + t * (b - a);
        let fx = f(x);
        let (c, fc);
        if (fx > 0.0) == (fa > 0.0) {
            (c, fc) = (a, fa);
        } else {
            (c, fc) = (b, fb);
            (b, fb) = (a, fa);
        }
        (a, fa) = (x, fx);
        let (best, f_best) = if fa.abs() < fb.abs() { (a, fa) } else { (b, fb) };
        let least = (f64::EPSILON * best.abs() + f64::MIN_POSITIVE) / (b - a).abs();
        if f_best == 0.0 || least > 0.5 {
            return best;
        }
        let (xi, phi) = ((a - b) / (c - b), (fa - fb) / (fc - fb));
        t = if phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi {
            fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        } else {
            0.5
        };
        t = t.clamp(least, 1.0 - least);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_number_is_found_wherever_it_is() {
        for wanted in [3, 4, 5, 100, 1_000_000_007] {
            assert_eq!(smallest(3, 1, |n| n >= wanted), Some(wanted));
        }
        assert_eq!(smallest(1, 1, |_| false), None);
    }

    #[test]
    fn roots_are_found_to_the_last_digit_in_few_steps() {
        let mut steps = 0;
        let found = root(0.0, 10.0, |x| {
            steps += 1;
            x * x * x - 2.0
        });
        assert!((found - 2.0_f64.cbrt()).abs() < 4e-16 && steps < 20, "{found} after {steps}");
        let bounds = [root(1.0, 2.0, |_| 1.0), root(1.0, 2.0, |_| -1.0)];
        assert!(bounds.iter().zip([1.0, 2.0]).all(|(b, e)| (b - e).abs() < 1e-300), "{bounds:?}");
    }
}
