//! The integrals of Erlang A: the density of the wait that a caller of endless patience would be offered.
//!
//! With `w` the wait in mean patiences, `x = lines / rate` and `y = traffic / rate` (rate: mean call length
//! over mean patience), that density is proportional to `exp(y (1 - e^-w) - x w)`. Its logarithm is concave,
//! so it is cut where it has fallen by `e^-60` on either side of its peak, and each side is summed by the
//! double-exponential rule, which is exact to the last digits for functions as smooth as this one.

use crate::math::{cosh, curve, exp, exp_m1, ln, sinh, sqrt};

/// Three integrals over the same stretch of waits, times `x`, without the factor `exp(ln_scale)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waits {
    /// Of the density.
    pub(crate) whole: f64,
    /// Of the density times `1 - e^-w`, the share that has lost patience by `w`.
    pub(crate) lost: f64,
    /// Of the density times `e^-w`, the share that is still patient.
    pub(crate) patient: f64,
}

/// The density for one group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Density {
    x: f64,
    y: f64,
    peak: f64,
}

impl Density {
    pub(crate) fn new(x: f64, y: f64) -> Self {
        let peak = if y > x { ln(y / x) } else { 0.0 };
        Self { x, y, peak }
    }

    /// The logarithm of the density at its peak: what [`Waits`] leave out.
    pub(crate) fn ln_scale(&self) -> f64 {
        if self.y > self.x { crate::poisson::deviance(self.x, self.y) } else { 0.0 }
    }

    /// The integrals from `from` to `to` (which may be infinite).
    pub(crate) fn integrate(&self, from: f64, to: f64) -> Waits {
        let top = self.peak.clamp(from, to);
        // The slope of the logarithm at the top is `pull - x`.
        let pull =
            if top <= self.peak && self.peak <= top && self.y > self.x { self.x } else { self.y * exp(-top) };
        let height = exp(self.fall(top - self.peak, if self.y > self.x { self.x } else { self.y }));
        let right = self.side(top, pull, 1.0, to - top);
        let left = self.side(top, pull, -1.0, top - from);
        Waits {
            whole: self.x * height * (right.whole + left.whole),
            lost: self.x * height * (right.lost + left.lost),
            patient: self.x * height * (right.patient + left.patient),
        }
    }

    /// The logarithm of the density `u` after a place where its pull is known, relative to that place.
    fn fall(&self, u: f64, pull: f64) -> f64 {
        (pull - self.x) * u - pull * curve(u)
    }

    fn side(&self, top: f64, pull: f64, sign: f64, room: f64) -> Waits {
        let mut sum = Waits { whole: 0.0, lost: 0.0, patient: 0.0 };
        if room <= 0.0 {
            return sum;
        }
        let length = self.reach(pull, sign).min(room);
        // Nodes crowd double-exponentially at both ends; `share` of the length from the top.
        const STEP: f64 = 1.0 / 20.0;
        const EACH_WAY: i32 = 66;
        for k in -EACH_WAY..=EACH_WAY {
            let t = f64::from(k) * STEP;
            let s = core::f64::consts::FRAC_PI_2 * sinh(t);
            let share = 1.0 / (1.0 + exp(-2.0 * s));
            let c = cosh(s);
            let weight = 0.5 * core::f64::consts::FRAC_PI_2 * cosh(t) / (c * c) * STEP * length;
            let u = sign * share * length;
            let density = weight * exp(self.fall(u, pull));
            let w = top + u;
            sum.whole += density;
            sum.lost -= density * exp_m1(-w);
            sum.patient += density * exp(-w);
        }
        sum
    }

    /// How far from the top the density has fallen by `e^-60`.
    fn reach(&self, pull: f64, sign: f64) -> f64 {
        const DEPTH: f64 = -60.0;
        let mut near = 0.0;
        let mut far = 1.0 / (sqrt(pull) + (pull - self.x).abs());
        while self.fall(sign * far, pull) > DEPTH && far < 1e300 {
            near = far;
            far *= 2.0;
        }
        // A few halvings: the cut need not be exact.
        for _ in 0..4 {
            let middle = 0.5 * (near + far);
            if self.fall(sign * middle, pull) > DEPTH { near = middle } else { far = middle }
        }
        far
    }
}
