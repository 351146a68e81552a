//! Resampling proper, which a build without the feature `resample` leaves out.

use crate::resample::RATE_HZ;

/// The FFT tables of every input rate that was met.
#[cfg(feature = "resample")]
#[derive(Debug, Default)]
pub(crate) struct Tables {
    by_rate: std::collections::BTreeMap<u32, rubato::Fft<f32>>,
}

#[cfg(feature = "resample")]
impl Tables {
    /// From `rate_hz` to 16 kHz, of exact length; the resampler's own words where it refuses.
    pub(crate) fn resample(&mut self, samples: Vec<f32>, rate_hz: u32) -> Result<Vec<f32>, String> {
        use std::collections::btree_map::Entry;

        use rubato::audioadapter_buffers::owned::InterleavedOwned;
        use rubato::{Fft, FixedSync, Resampler as _};

        const CHUNK: usize = 1024;

        let fft = match self.by_rate.entry(rate_hz) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(
                Fft::new(rate_hz as usize, RATE_HZ as usize, CHUNK, 1, FixedSync::Both)
                    .map_err(|e| e.to_string())?,
            ),
        };
        let frames = samples.len();
        let input = InterleavedOwned::new_from(samples, 1, frames).map_err(|e| e.to_string())?;
        let mut output = fft.process_all(&input, frames, None).map_err(|e| e.to_string())?.take_data();
        // The resampler's own length comes from a float; ours is exact.
        let exact = (frames as u64 * u64::from(RATE_HZ)).div_ceil(u64::from(rate_hz));
        output.resize(usize::try_from(exact).unwrap_or(usize::MAX), 0.0);
        Ok(output)
    }
}

/// None are needed for recordings of 16 kHz.
#[cfg(not(feature = "resample"))]
#[derive(Debug, Default)]
pub(crate) struct Tables;

#[cfg(not(feature = "resample"))]
impl Tables {
    #[expect(clippy::unused_self, reason = "stands in for the one above")]
    pub(crate) fn resample(&mut self, _samples: Vec<f32>, _rate_hz: u32) -> Result<Vec<f32>, String> {
        Err(format!("this build takes {RATE_HZ} Hz only; the feature `resample` takes every rate"))
    }
}
