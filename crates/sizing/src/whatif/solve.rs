//! Small dense systems of equations.

/// A symmetric positive matrix, factored (Cholesky): `a = l lT`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Factored {
    n: usize,
    l: Vec<f64>,
}

impl Factored {
    /// Factors a matrix given by rows; empty where it is not positive.
    pub(super) fn new(n: usize, a: &[f64]) -> Option<Self> {
        let mut l = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let before: f64 = (0..j).map(|k| at(&l, n, i, k) * at(&l, n, j, k)).sum();
                let rest = at(a, n, i, j) - before;
                let value = if i == j {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / at(&l, n, j, j)
                };
                *l.get_mut(i * n + j)? = value;
            }
        }
        Some(Self { n, l })
    }

    /// Solves `a x = b`.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.n];
        for i in 0..self.n {
            let before: f64 = (0..i).map(|k| at(&self.l, self.n, i, k) * value(&y, k)).sum();
            set(&mut y, i, (value(b, i) - before) / at(&self.l, self.n, i, i));
        }
        self.back(&y)
    }

    /// Solves `lT x = z`: for independent standard normal `z`, `x` is normal with covariance `a^-1`.
    pub(super) fn back(&self, z: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; self.n];
        for i in (0..self.n).rev() {
            let after: f64 = (i + 1..self.n).map(|k| at(&self.l, self.n, k, i) * value(&x, k)).sum();
            set(&mut x, i, (value(z, i) - after) / at(&self.l, self.n, i, i));
        }
        x
    }
}

fn at(a: &[f64], n: usize, i: usize, j: usize) -> f64 {
    a.get(i * n + j).copied().unwrap_or(0.0)
}

fn value(v: &[f64], i: usize) -> f64 {
    v.get(i).copied().unwrap_or(0.0)
}

fn set(v: &mut [f64], i: usize, value: f64) {
    if let Some(place) = v.get_mut(i) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_system_is_solved() {
        let a = [4.0, 2.0, 0.0, 2.0, 5.0, 1.0, 0.0, 1.0, 3.0];
        let x = Factored::new(3, &a).unwrap().solve(&[8.0, 15.0, 11.0]);
        for (x, wanted) in x.iter().zip([1.0, 2.0, 3.0]) {
            assert!((x - wanted).abs() < 1e-12, "{x}");
        }
        assert!(Factored::new(2, &[1.0, 2.0, 2.0, 1.0]).is_none(), "not positive");
    }

    #[test]
    fn the_back_step_has_the_inverse_as_its_square() {
        let a = [4.0, 2.0, 2.0, 5.0];
        let f = Factored::new(2, &a).unwrap();
        let columns = [f.back(&[1.0, 0.0]), f.back(&[0.0, 1.0])];
        let covariance = |i: usize, j: usize| columns.iter().map(|c| c[i] * c[j]).sum::<f64>();
        for (i, j, wanted) in [(0, 0, 5.0 / 16.0), (0, 1, -2.0 / 16.0), (1, 1, 4.0 / 16.0)] {
            assert!((covariance(i, j) - wanted).abs() < 1e-12);
        }
    }
}
