//! Mean, deviation and coefficient of variation.

/// Mean and spread of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Moments {
    /// Sample size.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1 in the denominator; empty for a single value.
    pub sd: Option<f64>,
}

impl Moments {
    /// Of a sample; empty for an empty one.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "sample sizes are far below 2^53")]
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Some(Self { n: values.len(), mean, sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) })
    }

    /// Deviation / mean, the spread between repeated runs; empty for a single value or a mean of 0.
    #[must_use]
    pub fn cv(&self) -> Option<f64> {
        self.sd.filter(|_| self.mean != 0.0).map(|sd| sd / self.mean.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_hand_worked_example() {
        let m = Moments::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((m.mean - 5.0).abs() < 1e-12);
        // Squares sum to 32, so the deviation is sqrt(32 / 7).
        assert!((m.sd.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((m.cv().unwrap() - (32.0_f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_nothing() {
        assert_eq!(Moments::of(&[]), None);
        let one = Moments::of(&[3.0]).unwrap();
        assert_eq!((one.sd, one.cv()), (None, None));
        assert_eq!(Moments::of(&[-1.0, 1.0]).unwrap().cv(), None);
    }
}
