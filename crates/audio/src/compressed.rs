//! FLAC and MP3, through symphonia.

use std::io::Cursor;

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;

use crate::decode::Recording;
use crate::error::AudioError;
use crate::formats::Container;
use crate::info::{Encoding, Extent, Info, Warning};

/// Samples of all channels that one recording may decode to: a small file must not fill the memory.
const MAX_SAMPLES: usize = 1 << 30;

/// Decodes a FLAC or MP3 file. Delay and padding that the encoder added are left out.
pub(crate) fn decode(container: Container, bytes: &[u8]) -> Result<Recording, AudioError> {
    let refused = |error: Error| AudioError::Decoder { why: error.to_string() };
    let source =
        MediaSourceStream::new(Box::new(Cursor::new(bytes.to_vec())), MediaSourceStreamOptions::default());
    let mut format = symphonia::default::get_probe()
        .probe(&Hint::new(), source, FormatOptions::default(), MetadataOptions::default())
        .map_err(refused)?;
    let track = format.default_track(TrackType::Audio).ok_or(AudioError::NoData)?;
    let (id, declared) = (track.id, track.num_frames);
    let params = track.codec_params.as_ref().and_then(|p| p.audio()).ok_or(AudioError::NoFormat)?;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(params, &AudioDecoderOptions::default())
        .map_err(refused)?;
    let mut channels: Vec<Vec<f32>> = Vec::new();
    let mut planes: Vec<Vec<f32>> = Vec::new();
    let mut rate = None;
    let (mut bad, mut cut) = (0_u64, false);
    loop {
        let packet = match format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            // A file that was cut ends in the middle of a packet.
            Err(_) => {
                cut = true;
                break;
            }
        };
        if packet.track_id != id {
            continue;
        }
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(Error::DecodeError(_) | Error::IoError(_)) => {
                bad += 1;
                continue;
            }
            Err(error) => return Err(refused(error)),
        };
        let (rate_hz, count) = (decoded.spec().rate(), decoded.num_planes());
        if !(1..=2).contains(&count) {
            return Err(AudioError::Channels { channels: u16::try_from(count).unwrap_or(u16::MAX) });
        }
        if !(2_000..=384_000).contains(&rate_hz) {
            return Err(AudioError::Rate { rate_hz });
        }
        if *rate.get_or_insert(rate_hz) != rate_hz || (!channels.is_empty() && channels.len() != count) {
            return Err(AudioError::Decoder { why: "rate or channels change in mid-file".to_owned() });
        }
        channels.resize_with(count, Vec::new);
        decoded.copy_to_vecs_planar(&mut planes);
        for (channel, plane) in channels.iter_mut().zip(&planes) {
            channel.extend_from_slice(plane);
        }
        if channels.iter().map(Vec::len).sum::<usize>() > MAX_SAMPLES {
            return Err(AudioError::Decoder { why: "it holds more audio than one recording may".to_owned() });
        }
    }
    let frames = channels.first().map_or(0, |c| c.len() as u64);
    let sample_rate_hz = rate.unwrap_or_default();
    if frames == 0 {
        return Err(AudioError::NoFrames);
    }
    let mut warnings = Vec::new();
    let extent = match declared {
        Some(declared_frames) if declared_frames > frames => {
            warnings.push(Warning::Short { declared_frames, frames });
            Extent::Short { declared_frames }
        }
        None if cut => Extent::Streamed,
        _ => Extent::Complete,
    };
    if bad > 0 {
        warnings.push(Warning::BadPackets { packets: bad });
    }
    let encoding = if container == Container::Flac { Encoding::Flac } else { Encoding::Mp3 };
    let count = u16::try_from(channels.len()).unwrap_or(u16::MAX);
    let info = Info { encoding, sample_rate_hz, channels: count, frames, extent, warnings };
    let mut recording = Recording { info: info.clone(), channels };
    let mut warnings = info.warnings;
    recording.tame(&mut warnings);
    recording.info.warnings = warnings;
    Ok(recording)
}
