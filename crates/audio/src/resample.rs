//! From any rate to 16 kHz s16.

use std::collections::BTreeMap;

use rubato::audioadapter_buffers::owned::InterleavedOwned;
use rubato::{Fft, FixedSync, Resampler as _};

use crate::error::AudioError;

/// The rate that servers are fed with, Hz.
pub const RATE_HZ: u32 = 16_000;
/// Name, version and settings of what [`Resampler`] does; goes into manifests.
pub const METHOD: &str = "rubato 5.1.0 Fft chunk 1024, s16 rounded half away from zero, no dither";

const CHUNK: usize = 1024;

/// Turns recordings into 16 kHz s16, keeping its tables from one recording to the next.
///
/// The output has exactly `ceil(frames * 16000 / rate)` samples: no delay at the start, nothing missing at the
/// end. Samples are rounded to the nearest 16-bit value, halves away from zero, without dither, and cut to full
/// scale; a recording that is already 16 kHz is only rounded. FFT kernels differ between CPUs, so another
/// machine may give a sample that differs by one unit.
#[derive(Debug, Default)]
pub struct Resampler {
    by_rate: BTreeMap<u32, Fft<f32>>,
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
        let refused = |why: String| AudioError::Resampler { rate_hz, why };
        let fft = match self.by_rate.entry(rate_hz) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(
                Fft::new(rate_hz as usize, RATE_HZ as usize, CHUNK, 1, FixedSync::Both)
                    .map_err(|e| refused(e.to_string()))?,
            ),
        };
        let frames = samples.len();
        let input = InterleavedOwned::new_from(samples, 1, frames).map_err(|e| refused(e.to_string()))?;
        let mut output =
            fft.process_all(&input, frames, None).map_err(|e| refused(e.to_string()))?.take_data();
        // The resampler's own length comes from a float; ours is exact.
        let exact = (frames as u64 * u64::from(RATE_HZ)).div_ceil(u64::from(rate_hz));
        output.resize(usize::try_from(exact).unwrap_or(usize::MAX), 0.0);
        Ok(output)
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
