//! The whole way of one recording: decode, choose the channel, resample.

use tapedeck_record::SpeechMap;

use crate::channel::Channel;
use crate::decode::decode;
use crate::error::AudioError;
use crate::info::Info;
use crate::resample::Resampler;
use crate::speech::speech_map;

/// A recording made ready.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prepared {
    /// 16 kHz mono s16.
    pub pcm: Vec<i16>,
    /// Which channel was taken; empty when the recording is mono.
    pub channel: Option<Channel>,
    /// What the recording was, with every warning.
    pub info: Info,
}

impl Prepared {
    /// The samples as little-endian bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.pcm.iter().flat_map(|s| s.to_le_bytes()).collect()
    }

    /// Where somebody speaks.
    #[must_use]
    pub fn speech(&self) -> SpeechMap {
        speech_map(&self.pcm)
    }
}

/// Prepares recordings one after another; keep one per thread.
#[derive(Debug, Default)]
pub struct Preparer {
    resampler: Resampler,
}

impl Preparer {
    /// A preparer without any tables yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes `bytes`, takes `channel` if the recording is stereo, and resamples.
    ///
    /// # Errors
    /// [`AudioError`] with the reason when the recording is refused, or is stereo and no channel was chosen.
    pub fn prepare(&mut self, bytes: &[u8], channel: Option<Channel>) -> Result<Prepared, AudioError> {
        let mut recording = decode(bytes)?;
        let mut info = recording.info.clone();
        let (samples, channel) = if recording.channels.len() == 1 {
            (recording.channels.pop().unwrap_or_default(), None)
        } else {
            let taken = recording.take(channel)?;
            info.warnings.extend(taken.warning.clone());
            (taken.samples.into_owned(), taken.channel)
        };
        let pcm = self.resampler.to_16k(samples, info.sample_rate_hz)?;
        Ok(Prepared { pcm, channel, info })
    }
}
