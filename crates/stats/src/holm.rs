//! Holm's step-down correction: many tests, one chance of a false alarm.

/// Adjusted p-values in the order of `p`: a test rejects at `alpha` when its adjusted value is at most `alpha`, and
/// the chance that any true hypothesis is rejected stays below `alpha`, however the tests depend on each other.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut floor = 0.0_f64;
    for (step, &index) in order.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a family has few tests")]
        let left = (p.len() - step) as f64;
        floor = floor.max((p[index] * left).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_r_and_statsmodels() {
        // p.adjust(p, "holm") of R 4.2.2 and multipletests(p, method="holm") of statsmodels, asked by
        // `fixtures/stats/references.py`.
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&holm(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.08, 0.09, 0.09, 0.09]));
        assert!(close(&holm(&[0.04, 0.001, 0.5, 0.01]), &[0.08, 0.004, 0.5, 0.03]));
        assert!(close(&holm(&[0.6, 0.9]), &[1.0, 1.0]));
        assert!(holm(&[]).is_empty());
    }
}
