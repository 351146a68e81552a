//! From any rate to 16 kHz s16.

use crate::error::AudioError;
use crate::fft::Tables;

/// The rate that servers are fed with, Hz.
pub const RATE_HZ: u32 = 16_000;
/// Name, version and settings of what [`Resampler`] does; goes into manifests.
pub const METHOD: &str = "rubato 5.1.0 Fft chunk 1024, s16 rounded half away from zero, no dither";

/// Turns recordings into 16 kHz s16, keeping its tables from one recording to the next.
///
/// The output has exactly `ceil(frames * 16000 / rate)` samples: no delay at the start, nothing missing at the
/// end. Samples are rounded to the nearest 16-bit value, halves away from zero, without dither, and cut to full
/// scale; a recording that is already 16 kHz is only rounded. FFT kernels differ between CPUs, so another
/// machine may give a sample that differs by one unit.
///
/// A build without the feature `resample` takes 16 kHz only, and gives the same samples for it.
#[derive(Debug, Default)]
pub struct Resampler {
    tables: Tables,
}

impl Resampler {
    /// A resampler without any tables yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Resamples to 16 kHz, still in float.
    ///
    /// # Errors
    /// [`AudioError::Resampler`] for a rate that the resampler cannot work with.
    pub fn to_16k_f32(&mut self, samples: Vec<f32>, rate_hz: u32) -> Result<Vec<f32>, AudioError> {
        if rate_hz == RATE_HZ || samples.is_empty() {
            return Ok(samples);
        }
        self.tables.resample(samples, rate_hz).map_err(|why| AudioError::Resampler { rate_hz, why })
    }

    /// Resamples to 16 kHz s16.
    ///
    /// # Errors
    /// [`AudioError::Resampler`] for a rate that the resampler cannot work with.
    pub fn to_16k(&mut self, samples: Vec<f32>, rate_hz: u32) -> Result<Vec<i16>, AudioError> {
        Ok(self.to_16k_f32(samples, rate_hz)?.iter().map(|&s| to_s16(s)).collect())
    }
}

/// Rounds to the nearest 16-bit value, halves away from zero; beyond full scale is cut to it.
#[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is what is wanted")]
fn to_s16(sample: f32) -> i16 {
    let scaled = sample * 32_768.0;
    (scaled + 0.5_f32.copysign(scaled)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level of one frequency in the middle second of the signal, dB below full scale; whole periods fit, so
    /// nothing leaks from one frequency to another.
    fn level_db(samples: &[f32], hz: u32) -> f64 {
        let middle = &samples[16_000..32_000];
        let (mut re, mut im) = (0.0_f64, 0.0_f64);
        for (n, &s) in (0_u32..).zip(middle) {
            let angle = std::f64::consts::TAU * f64::from(hz) * f64::from(n) / 16_000.0;
            re += f64::from(s) * angle.cos();
            im += f64::from(s) * angle.sin();
        }
        20.0 * ((re.hypot(im) / 8_000.0).max(1e-12)).log10()
    }

    fn tone(hz: u32, rate_hz: u32) -> Vec<f32> {
        let step = std::f64::consts::TAU * f64::from(hz) / f64::from(rate_hz);
        #[expect(clippy::cast_possible_truncation, reason = "the input of the resampler is f32")]
        (0..3 * rate_hz).map(|n| (0.5 * (step * f64::from(n)).sin()) as f32).collect()
    }

    #[test]
    fn the_telephone_band_passes_and_leaves_no_image() {
        let mut resampler = Resampler::new();
        for hz in [50, 300, 1_000, 2_000, 3_000, 3_400] {
            let out = resampler.to_16k_f32(tone(hz, 8_000), 8_000).unwrap();
            assert_eq!(out.len(), 48_000);
            let (through, image) = (level_db(&out, hz), level_db(&out, 8_000 - hz));
            assert!((through + 6.02).abs() < 0.01, "{hz} Hz comes out at {through} dB");
            assert!(image < through - 100.0, "{hz} Hz leaves an image of {image} dB");
        }
    }

    #[test]
    fn higher_rates_do_not_alias() {
        let mut resampler = Resampler::new();
        for rate_hz in [44_100, 48_000] {
            let out = resampler.to_16k_f32(tone(1_000, rate_hz), rate_hz).unwrap();
            assert_eq!(out.len(), 48_000);
            assert!((level_db(&out, 1_000) + 6.02).abs() < 0.01);
            let out = resampler.to_16k_f32(tone(10_000, rate_hz), rate_hz).unwrap();
            assert!(level_db(&out, 6_000) < -100.0, "10 kHz folds to 6 kHz");
        }
    }

    #[test]
    fn rounding_is_to_the_nearest_and_saturates() {
        let unit = 1.0 / 32_768.0;
        for (sample, wanted) in [
            (0.0, 0),
            (0.49 * unit, 0),
            (0.5 * unit, 1),
            (-0.5 * unit, -1),
            (-0.49 * unit, 0),
            (1.0, 32_767),
            (-1.0, -32_768),
            (9.0, 32_767),
        ] {
            assert_eq!(to_s16(sample), wanted, "{sample}");
        }
    }

    #[test]
    fn what_is_16_khz_already_is_left_alone() {
        let pcm: Vec<i16> = (-500..500).map(|n| n * 60).collect();
        let samples = pcm.iter().map(|&s| f32::from(s) / 32_768.0).collect();
        assert_eq!(Resampler::new().to_16k(samples, 16_000).unwrap(), pcm);
    }
}
