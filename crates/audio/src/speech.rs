//! Where in a call somebody speaks: an energy method with an adaptive noise floor.
//!
//! Speech over a telephone stands far above its line noise, so the level of 10 ms frames is enough to find it
//! if the threshold follows the noise:
//!
//! 1. **Level.** The audio goes through a gentle high-pass (hum and offsets are no speech); each 10 ms frame has
//!    a level in dB below full scale.
//! 2. **Noise floor.** Line noise keeps its level, speech does not: in the histogram of the levels within 5 s
//!    on either side, the lowest narrow peak is the noise. Where no pause shows it, the whole call's peak is
//!    taken; where all is close together (only noise, or noise nearly as loud as the speech), the 5th
//!    percentile; and where pauses are digital silence, there is no noise. Digital silence itself is left out
//!    of the histogram, because a muted line says nothing about the noise when it is not muted.
//! 3. **Hysteresis.** Speech starts where the level rises [`ON_DB`] above the floor and lasts while it stays
//!    [`OFF_DB`] above it; never below [`ON_MIN_DBFS`] and [`OFF_MIN_DBFS`], which lie above the quantisation
//!    noise of G.711. Runs with less than [`MIN_FRAMES`] loud frames are clicks.
//! 4. **Hangover.** Pauses shorter than [`BRIDGE_FRAMES`] belong to the speech around them. The hangover
//!    only joins; it never lengthens the last interval, because a final is timed from its end.
//! 5. **Edges.** Each edge moves in to the first frame within [`EDGE_DB`] of the loudness next to it, so that
//!    the breath before a word is not its onset.
//!
//! It finds sound that is not noise: music on hold and dial tones count as speech. The tags of a pool can keep
//! such calls off a tape.

use tapedeck_record::{Interval, SpeechMap};

/// Name and version of the method; goes into manifests.
pub const METHOD: &str = "energy-1";

/// Samples of a frame: 10 ms at 16 kHz.
const FRAME: usize = 160;
/// Milliseconds of a frame.
const FRAME_MS: usize = 10;
/// Frames on either side that the noise floor looks at.
const WINDOW: usize = 500;
/// Width of a noise peak, dB: a 10 ms frame of white noise at 8 kHz scatters by 0.7 dB.
const PEAK_BINS: usize = 3;
/// Share of the frames that a noise peak holds at least.
const PEAK_SHARE: f64 = 0.15;
/// Where more of the frames than this are digital silence, that is the pauses, and what is heard is no noise.
const MUTED_SHARE: f64 = 0.05;
/// The noise lies at least this far below the loud parts; closer levels are one cluster.
const CLUSTER_DB: f32 = 20.0;
/// Speech starts this far above the noise floor, dB.
const ON_DB: f32 = 8.0;
/// Speech lasts while this far above the noise floor, dB.
const OFF_DB: f32 = 4.0;
/// No frame below this starts speech, dB full scale.
const ON_MIN_DBFS: f32 = -60.0;
/// No frame below this continues speech, dB full scale.
const OFF_MIN_DBFS: f32 = -63.5;
/// The threshold stays this far below the loud parts of the window, dB: speech without a pause must not raise
/// its own threshold above itself.
const LOUD_DB: f32 = 18.0;
/// Fewer loud frames than this are a click.
const MIN_FRAMES: usize = 3;
/// Pauses of fewer frames are bridged.
const BRIDGE_FRAMES: usize = 25;
/// How far below the loudness next to it an edge may lie, dB.
const EDGE_DB: f32 = 30.0;
/// Frames next to an edge that say how loud the speech there is.
const EDGE_FRAMES: usize = 100;
/// Level of digital silence, dB full scale.
const SILENCE_DBFS: f32 = -96.0;

/// Finds the speech in 16 kHz mono audio; see the module's text for the method.
#[must_use]
pub fn speech_map(pcm_16k: &[i16]) -> SpeechMap {
    let levels = levels(pcm_16k);
    let thresholds = thresholds(&levels);
    let runs = runs(&levels, &thresholds);
    let ms = |frame: usize| u32::try_from(frame * FRAME_MS).unwrap_or(u32::MAX);
    let whole_ms = u32::try_from(pcm_16k.len() / 16).unwrap_or(u32::MAX);
    SpeechMap::new(
        runs.iter()
            .map(|run| trim(&levels, run))
            .filter(|(start, end)| end - start >= MIN_FRAMES)
            .map(|(start, end)| Interval { start_ms: ms(start), end_ms: ms(end).min(whole_ms) })
            .collect(),
    )
}

/// Level of each 10 ms frame, dB full scale; an unfinished last frame counts as a whole one.
fn levels(pcm: &[i16]) -> Vec<f32> {
    // y[n] = x[n] - x[n-1] + 0.97 y[n-1]: 3 dB down at about 78 Hz.
    let (mut last_in, mut last_out) = (0.0_f32, 0.0_f32);
    pcm.chunks(FRAME)
        .map(|frame| {
            let mut power = 0.0_f32;
            for &sample in frame {
                let sample = f32::from(sample) / 32_768.0;
                last_out = sample - last_in + 0.97 * last_out;
                last_in = sample;
                power += last_out * last_out;
            }
            let count = u16::try_from(frame.len()).map_or(1.0, f32::from);
            (10.0 * (power / count).max(1e-12).log10()).max(SILENCE_DBFS)
        })
        .collect()
}

/// A histogram of levels in 1 dB steps, for percentiles over a sliding window.
#[derive(Debug)]
struct Histogram {
    bins: [u32; 97],
    count: u32,
    muted: u32,
}

impl Histogram {
    const EMPTY: Self = Self { bins: [0; 97], count: 0, muted: 0 };

    /// The bin of a level; digital silence has none, because a muted line says nothing about its noise.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "levels lie in -96..=0 here")]
    fn bin(level: f32) -> Option<usize> {
        (level > SILENCE_DBFS + 1.0).then(|| (-level.clamp(SILENCE_DBFS, 0.0)) as usize)
    }

    fn add(&mut self, level: f32) {
        if let Some(bin) = Self::bin(level).and_then(|b| self.bins.get_mut(b)) {
            *bin += 1;
            self.count += 1;
        } else {
            self.muted += 1;
        }
    }

    fn remove(&mut self, level: f32) {
        if let Some(bin) = Self::bin(level).and_then(|b| self.bins.get_mut(b)) {
            *bin = bin.saturating_sub(1);
            self.count = self.count.saturating_sub(1);
        } else {
            self.muted = self.muted.saturating_sub(1);
        }
    }

    /// The level of the noise, dB full scale; empty where nothing looks like noise.
    fn floor(&self) -> Option<f32> {
        let loud = self.quantile(0.9);
        let quiet = self.quantile(0.05);
        if quiet > loud - CLUSTER_DB {
            return (f64::from(self.muted) < MUTED_SHARE * f64::from(self.count + self.muted))
                .then_some(quiet);
        }
        let enough = PEAK_SHARE * f64::from(self.count);
        // Bin `b` holds the levels from -(b + 1) to -b dB: a higher bin is quieter.
        (0..=self.bins.len() - PEAK_BINS).rev().find_map(|at| {
            let held: u32 = self.bins.iter().skip(at).take(PEAK_BINS).sum();
            let level = -u16::try_from(at).map_or(0.0, f32::from);
            (f64::from(held) >= enough && level <= loud - CLUSTER_DB).then_some(level)
        })
    }

    /// The level that `share` of the frames do not exceed, dB full scale.
    fn quantile(&self, share: f64) -> f32 {
        let wanted = share * f64::from(self.count);
        let mut seen = 0;
        for (bin, &count) in self.bins.iter().enumerate().rev() {
            seen += count;
            if f64::from(seen) > wanted {
                return -u16::try_from(bin).map_or(0.0, f32::from);
            }
        }
        SILENCE_DBFS
    }
}

/// Thresholds of one frame, dB full scale.
#[derive(Debug, Clone, Copy)]
struct Threshold {
    on: f32,
    off: f32,
}

fn thresholds(levels: &[f32]) -> Vec<Threshold> {
    let mut call = Histogram::EMPTY;
    levels.iter().for_each(|&level| call.add(level));
    let of_call = call.floor();
    let mut window = Histogram::EMPTY;
    for &level in levels.iter().take(WINDOW) {
        window.add(level);
    }
    (0..levels.len())
        .map(|at| {
            if let Some(&entering) = levels.get(at + WINDOW) {
                window.add(entering);
            }
            if let Some(&leaving) = at.checked_sub(WINDOW + 1).and_then(|i| levels.get(i)) {
                window.remove(leaving);
            }
            let loud = window.quantile(0.9);
            let floor = window.floor().or(of_call).unwrap_or(SILENCE_DBFS);
            let on = (floor + ON_DB).min((loud - LOUD_DB).max(floor + OFF_DB)).max(ON_MIN_DBFS);
            let off = (floor + OFF_DB).min(on - (ON_DB - OFF_DB) / 2.0).max(OFF_MIN_DBFS);
            Threshold { on, off }
        })
        .collect()
}

/// A stretch of frames `[start, end)` that is speech.
type Run = (usize, usize);

fn runs(levels: &[f32], thresholds: &[Threshold]) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    let mut open: Option<(usize, usize)> = None; // first frame above `off`, loud frames so far
    let frames = levels.iter().zip(thresholds).map(|(&level, t)| (level > t.off, level > t.on));
    for (at, (kept, loud)) in frames.chain(std::iter::once((false, false))).enumerate() {
        match (kept, open) {
            (true, None) => open = Some((at, usize::from(loud))),
            (true, Some((start, count))) => open = Some((start, count + usize::from(loud))),
            (false, Some((start, count))) => {
                if count >= MIN_FRAMES {
                    found.push((start, at));
                }
                open = None;
            }
            (false, None) => {}
        }
    }
    let mut joined: Vec<Run> = Vec::with_capacity(found.len());
    for (start, end) in found {
        match joined.last_mut() {
            Some(last) if start - last.1 < BRIDGE_FRAMES => last.1 = end,
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Moves both edges in to where the speech next to them really begins and ends.
fn trim(levels: &[f32], &(start, end): &Run) -> Run {
    let run = levels.get(start..end).unwrap_or_default();
    let near = run.len().min(EDGE_FRAMES);
    let head = loudness(run.get(..near).unwrap_or_default());
    let tail = loudness(run.get(run.len() - near..).unwrap_or_default());
    let first = run.iter().position(|&l| l >= head - EDGE_DB).unwrap_or(0);
    let last = run.iter().rposition(|&l| l >= tail - EDGE_DB).map_or(run.len(), |i| i + 1);
    if first < last { (start + first, start + last) } else { (start, end) }
}

/// The level that a tenth of the frames exceed.
fn loudness(levels: &[f32]) -> f32 {
    let mut sorted = levels.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) * 9 / 10).copied().unwrap_or(SILENCE_DBFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeatable noise of a given amplitude (a linear congruential generator is random enough for a hiss).
    fn hiss(samples: usize, amplitude: i32, state: &mut u32) -> Vec<i16> {
        (0..samples)
            .map(|_| {
                *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let draw = i32::try_from(*state >> 16).unwrap() - 32_768;
                i16::try_from(draw * amplitude / 32_768).unwrap()
            })
            .collect()
    }

    /// Noise with louder noise in the given stretches, milliseconds.
    fn call(length_ms: usize, floor: i32, speech: &[(usize, usize, i32)]) -> Vec<i16> {
        let mut state = 1;
        let mut pcm = hiss(length_ms * 16, floor, &mut state);
        for &(from, to, amplitude) in speech {
            let loud = hiss((to - from) * 16, amplitude, &mut state);
            for (sample, voice) in pcm[from * 16..to * 16].iter_mut().zip(loud) {
                *sample = sample.saturating_add(voice);
            }
        }
        pcm
    }

    fn found(pcm: &[i16]) -> Vec<(u32, u32)> {
        speech_map(pcm).intervals().iter().map(|&i| i.into()).collect()
    }

    /// The high-pass rings for a few milliseconds, so an edge may come one frame late.
    fn assert_near(found: &[(u32, u32)], wanted: &[(u32, u32)]) {
        let near = |a: u32, b: u32| a.abs_diff(b) <= 10;
        let all = found.len() == wanted.len()
            && found.iter().zip(wanted).all(|(f, w)| near(f.0, w.0) && near(f.1, w.1));
        assert!(all, "{found:?} instead of {wanted:?}");
    }

    #[test]
    fn no_audio_and_no_speech() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[0; 160_000]), []);
        for floor in [1, 30, 300, 3_000] {
            assert_eq!(found(&call(20_000, floor, &[])), [], "noise of {floor} is taken for speech");
        }
    }

    #[test]
    fn edges_are_right_over_any_noise() {
        for floor in [0, 20, 60, 200] {
            let pcm = call(12_000, floor, &[(1_000, 2_500, 6_000), (4_000, 9_000, 6_000)]);
            assert_near(&found(&pcm), &[(1_000, 2_500), (4_000, 9_000)]);
        }
    }

    #[test]
    fn short_pauses_belong_to_speech_and_the_end_is_not_stretched() {
        let pcm = call(4_000, 20, &[(500, 1_000, 5_000), (1_200, 1_500, 5_000), (2_000, 2_300, 5_000)]);
        assert_near(&found(&pcm), &[(500, 1_500), (2_000, 2_300)]);
    }

    #[test]
    fn a_click_is_no_speech() {
        assert_eq!(found(&call(4_000, 20, &[(1_000, 1_020, 20_000)])), []);
    }

    #[test]
    fn a_hum_and_an_offset_are_no_speech() {
        let hum: Vec<i16> = (0..64_000_i32).map(|n| if n / 160 % 2 == 0 { 2_200 } else { 1_800 }).collect();
        assert_eq!(found(&hum), []);
    }

    #[test]
    fn the_map_ends_with_the_call() {
        let pcm = call(1_000, 20, &[(500, 1_000, 6_000)]);
        assert_eq!(found(&pcm[..15_900]), [(500, 993)]);
    }
}
