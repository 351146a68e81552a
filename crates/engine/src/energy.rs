//! A plain energy detector: which milliseconds of unknown audio hold speech.

/// Samples per frame: 10 ms at 16 kHz.
const FRAME: u32 = 160;
/// Mean square above which a frame counts as speech: a root mean square of 200, about -44 dB of full scale.
/// Line noise on telephone speech lies well below it, a voice well above.
const SPEECH: u64 = 200 * 200;

/// Goes over samples as they come and tells which 10 ms frames are speech.
#[derive(Debug, Clone, Default)]
pub(crate) struct Energy {
    sum: u64,
    samples: u32,
    frames: u32,
}

impl Energy {
    /// Takes more audio (s16le); calls `speech` with the end, in milliseconds from the start of the call, of
    /// every 10 ms frame that holds speech.
    pub(crate) fn hear(&mut self, pcm: &[u8], mut speech: impl FnMut(u32)) {
        for pair in pcm.chunks_exact(2) {
            let sample = i64::from(i16::from_le_bytes([pair[0], pair[1]]));
            self.sum += (sample * sample).unsigned_abs();
            self.samples += 1;
            if self.samples == FRAME {
                self.frames = self.frames.saturating_add(1);
                if self.sum > SPEECH * u64::from(FRAME) {
                    speech(self.frames.saturating_mul(10));
                }
                self.sum = 0;
                self.samples = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(samples: usize, height: i16) -> Vec<u8> {
        (0..samples).flat_map(|n| (if (n / 8) % 2 == 0 { height } else { -height }).to_le_bytes()).collect()
    }

    #[test]
    fn counts_loud_frames_whatever_the_chunking() {
        let mut call = tone(16_000, 30);
        call.extend(tone(16_000, 5_000));
        for chunk in [2, 640, 3_200, 3_202, 64_000] {
            let mut ends = Vec::new();
            let mut energy = Energy::default();
            call.chunks(chunk).for_each(|c| energy.hear(c, |end_ms| ends.push(end_ms)));
            assert_eq!((ends.len(), ends.first(), ends.last()), (100, Some(&1_010), Some(&2_000)));
        }
    }
}
