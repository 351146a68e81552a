//! The memory of the card as a driver reports it: mostly a constant, with noise, and perhaps a leak.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// What one instance takes of its card's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vram {
    /// Weights and everything else beside the KV pool. Bytes, default 3.8 GB (1.8 of weights, 2 of overhead).
    pub base_bytes: u64,
    /// One token of KV; the whole pool is taken at the start. Bytes, default 114,688.
    pub kv_token_bytes: u64,
    /// Standard deviation of the noise. Bytes, default 0.
    pub noise_bytes: f64,
    /// How much of the noise is left a second later (the coefficient of an AR(1) process). 0..1, default 0.9.
    pub noise_memory: f64,
    /// What is lost for good. Bytes an hour, default 0.
    pub leak_bytes_per_hour: f64,
    /// What is taken once, `late_ms` after the start: a first big batch, a compiled graph. Bytes, default 0.
    pub late_bytes: u64,
    /// When. ms, default 60,000.
    pub late_ms: u64,
}

impl Default for Vram {
    fn default() -> Self {
        Self {
            base_bytes: 3_800_000_000,
            kv_token_bytes: 114_688,
            noise_bytes: 0.0,
            noise_memory: 0.9,
            leak_bytes_per_hour: 0.0,
            late_bytes: 0,
            late_ms: 60_000,
        }
    }
}

/// The memory used at each full second, for ever: the same figures that [`crate::Counters::vram_bytes`] shows, for
/// studies that need hours of them and no audio.
///
/// ```
/// use tapedeck_engine_model::{Params, Vram, VramSeries};
///
/// let vram = Vram { leak_bytes_per_hour: 1e9, ..Vram::default() };
/// let params = Params { vram, ..Params::demo() };
/// let hour: Vec<u64> = VramSeries::new(&params, 7).take(3_601).collect();
/// assert_eq!(hour[3_600] - hour[0], 1_000_000_000);
/// ```
#[derive(Debug)]
pub struct VramSeries {
    vram: Vram,
    fixed_bytes: f64,
    rng: ChaCha8Rng,
    noise: f64,
    second: u64,
}

impl VramSeries {
    /// The series of a model with these parameters and this seed.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "2^53 bytes are beyond any card")]
    pub fn new(params: &crate::Params, seed: u64) -> Self {
        let vram = params.vram.clone();
        let pool_bytes = params.kv_tokens().saturating_mul(vram.kv_token_bytes);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(2);
        let mut series = Self {
            fixed_bytes: vram.base_bytes.saturating_add(pool_bytes) as f64,
            vram,
            rng,
            noise: 0.0,
            second: 0,
        };
        // Starts in its own stationary state, not at 0.
        series.noise = series.draw() * series.vram.noise_bytes;
        series
    }

    /// Has this full second come next: leak and late step are those of that age, the noise is what a series of this seed
    /// begins with at any age.
    pub(crate) const fn go_on_from(&mut self, second: u64) {
        self.second = second;
    }

    /// A number from a bell-shaped distribution with mean 0 and variance 1 (twelve uniforms; no function whose last bit
    /// could differ between machines but the square root, which may not).
    #[expect(clippy::cast_precision_loss, reason = "twelve times 2^16 is small")]
    fn draw(&mut self) -> f64 {
        let mut sum = 0;
        for _ in 0..3 {
            let bits = self.rng.next_u64();
            sum += (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum::<u64>();
        }
        sum as f64 / 65_536.0 - 6.0
    }
}

impl Iterator for VramSeries {
    type Item = u64;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "bytes of a card, never below 0"
    )]
    fn next(&mut self) -> Option<u64> {
        let hours = self.second as f64 / 3_600.0;
        let late = if self.second * 1_000 >= self.vram.late_ms { self.vram.late_bytes } else { 0 };
        let bytes = self.fixed_bytes + self.noise + self.vram.leak_bytes_per_hour * hours + late as f64;
        let memory = self.vram.noise_memory;
        let fresh = self.draw() * self.vram.noise_bytes;
        self.noise = self.noise * memory + fresh * (1.0 - memory * memory).sqrt();
        self.second += 1;
        Some(bytes.max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    fn series(vram: Vram, seed: u64, seconds: usize) -> Vec<f64> {
        let params = Params { vram, ..Params::demo() };
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        VramSeries::new(&params, seed).take(seconds).map(|bytes| bytes as f64).collect()
    }

    #[test]
    fn noise_has_the_size_and_the_memory_it_was_given() {
        let noise = Vram { noise_bytes: 1e8, noise_memory: 0.8, ..Vram::default() };
        let values = series(noise, 3, 50_000);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let covariance = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
        assert!((variance.sqrt() / 1e8 - 1.0).abs() < 0.05, "{}", variance.sqrt());
        assert!((covariance / variance - 0.8).abs() < 0.02, "{}", covariance / variance);
        let pool = 5_900.0 * 16.0 * 114_688.0;
        assert!((mean - 3.8e9 - pool).abs() < 1e7, "{mean}");
    }

    #[test]
    fn a_late_step_is_taken_once() {
        let values = series(Vram { late_bytes: 1_000_000_000, ..Vram::default() }, 1, 200);
        let steps: Vec<_> = values.windows(2).map(|w| w[1] - w[0]).filter(|d| *d != 0.0).collect();
        assert_eq!(steps, [1e9]);
        assert!(values[60] > values[59]);
    }
}
