//! 16 kHz mono s16 WAV out.

use std::io::{Cursor, Seek, Write};

use crate::error::AudioError;
use crate::resample::RATE_HZ;

const SPEC: hound::WavSpec = hound::WavSpec {
    channels: 1,
    sample_rate: RATE_HZ,
    bits_per_sample: 16,
    sample_format: hound::SampleFormat::Int,
};

/// Writes `pcm` as a 16 kHz mono s16 WAV file.
///
/// # Errors
/// [`AudioError::Io`] when the bytes cannot be written, or do not fit a WAV file's 32-bit sizes.
pub fn write_wav<W: Write + Seek>(out: W, pcm: &[i16]) -> Result<(), AudioError> {
    let failed = |e: hound::Error| AudioError::Io { why: e.to_string() };
    let count =
        u32::try_from(pcm.len()).map_err(|_| AudioError::Io { why: "too long for a WAV file".to_owned() })?;
    let mut writer = hound::WavWriter::new(out, SPEC).map_err(failed)?;
    let mut samples = writer.get_i16_writer(count);
    for &sample in pcm {
        samples.write_sample(sample);
    }
    samples.flush().map_err(failed)?;
    writer.finalize().map_err(failed)
}

/// [`write_wav`] into memory.
///
/// # Errors
/// [`AudioError::Io`] when the audio does not fit a WAV file.
pub fn wav_bytes(pcm: &[i16]) -> Result<Vec<u8>, AudioError> {
    let mut bytes = Cursor::new(Vec::with_capacity(pcm.len() * 2 + 64));
    write_wav(&mut bytes, pcm)?;
    Ok(bytes.into_inner())
}
