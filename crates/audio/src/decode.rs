//! Bytes in, one list of samples per channel out.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use crate::error::{AudioError, FileError};
use crate::formats::{Container, sniff};
use crate::g711::{A_LAW, MU_LAW};
use crate::header::walk;
use crate::info::{Encoding, Extent, Info, Warning};

/// The largest file that is read: more than five hours of the widest format that call recorders write.
pub const MAX_FILE_BYTES: u64 = 4 << 30;

/// A decoded recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// What it is, with everything odd about it.
    pub info: Info,
    /// One list of samples per channel, full scale 1.0, all of the same length.
    pub channels: Vec<Vec<f32>>,
}

/// Says what a recording is from its header alone; only a few bytes are read.
///
/// # Errors
/// [`FileError`] with the reason when it is not a recording that [`decode`] reads.
pub fn probe(path: &Path) -> Result<Info, FileError> {
    let named = |source| FileError { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(|e| named(e.into()))?;
    let len = file.metadata().map_err(|e| named(e.into()))?.len();
    probe_reader(&mut file, len).map_err(named)
}

/// [`probe`] for anything that can be read and sought, `len` bytes long.
///
/// # Errors
/// [`AudioError`] with the reason when it is not a recording that [`decode`] reads.
pub fn probe_reader<R: Read + std::io::Seek>(file: &mut R, len: u64) -> Result<Info, AudioError> {
    let mut start = Vec::with_capacity(16);
    file.rewind()?;
    file.by_ref().take(16).read_to_end(&mut start)?;
    match sniff(&start)? {
        Container::Wav => {
            let info = walk(file, len)?.info;
            if info.extent == Extent::Empty { Err(AudioError::NoFrames) } else { Ok(info) }
        }
        container => probe_compressed(container, file, len),
    }
}

/// Decodes a whole file.
///
/// # Errors
/// [`FileError`] with the reason when it cannot be read or is refused.
pub fn read(path: &Path) -> Result<Recording, FileError> {
    let named = |source| FileError { path: path.to_owned(), source };
    decode(&read_bytes(path)?).map_err(named)
}

/// The bytes of a file, unless it is larger than [`MAX_FILE_BYTES`].
///
/// # Errors
/// [`FileError`] when it cannot be read or is too big.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let named = |source| FileError { path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(|e| named(e.into()))?;
    if !meta.is_file() {
        return Err(named(AudioError::Io { why: "not a regular file".to_owned() }));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(named(AudioError::TooBig { bytes: meta.len(), limit_bytes: MAX_FILE_BYTES }));
    }
    std::fs::read(path).map_err(|e| named(e.into()))
}

/// Decodes a recording that lies in memory.
///
/// # Errors
/// [`AudioError`] with the reason when it is refused.
pub fn decode(bytes: &[u8]) -> Result<Recording, AudioError> {
    match sniff(bytes.get(..bytes.len().min(16)).unwrap_or_default())? {
        Container::Wav => decode_wav(bytes),
        container => decode_compressed(container, bytes),
    }
}

fn decode_wav(bytes: &[u8]) -> Result<Recording, AudioError> {
    let len = bytes.len() as u64;
    let layout = walk(&mut Cursor::new(bytes), len)?;
    let mut info = layout.info;
    if info.extent == Extent::Empty {
        return Err(AudioError::NoFrames);
    }
    let from = usize::try_from(layout.data_at).unwrap_or(usize::MAX);
    let to = usize::try_from(layout.data_at + layout.data_bytes).unwrap_or(usize::MAX);
    let data = bytes.get(from..to).ok_or(AudioError::CutHeader { bytes: len })?;
    let samples = expand(info.encoding, data);
    let channels = if info.channels == 2 {
        let (left, right) = samples.as_chunks::<2>().0.iter().map(|&[l, r]| (l, r)).unzip();
        vec![left, right]
    } else {
        vec![samples]
    };
    let mut recording = Recording { info: info.clone(), channels };
    if matches!(info.encoding, Encoding::F32 | Encoding::F64) {
        recording.tame(&mut info.warnings);
        recording.info = info;
    }
    Ok(recording)
}

impl Recording {
    /// Floats can hold anything: what is no number becomes silence, what is beyond full scale is cut to it.
    pub(crate) fn tame(&mut self, warnings: &mut Vec<Warning>) {
        let (mut odd, mut beyond) = (0, 0);
        for sample in self.channels.iter_mut().flatten() {
            if !sample.is_finite() {
                *sample = 0.0;
                odd += 1;
            } else if sample.abs() > 1.0 {
                *sample = sample.clamp(-1.0, 1.0);
                beyond += 1;
            }
        }
        if odd > 0 {
            warnings.push(Warning::NotANumber { samples: odd });
        }
        if beyond > 0 {
            warnings.push(Warning::Clipped { samples: beyond });
        }
    }
}

/// Samples of all channels, interleaved as they lie, on a full scale of 1.0.
fn expand(encoding: Encoding, data: &[u8]) -> Vec<f32> {
    const S16: f32 = 1.0 / 32_768.0;
    const S32: f32 = 1.0 / 2_147_483_648.0;
    let law = |table: &[i16; 256]| {
        let table: [f32; 256] = table.map(|value| f32::from(value) * S16);
        data.iter().map(|&code| table[usize::from(code)]).collect()
    };
    match encoding {
        Encoding::MuLaw => law(&MU_LAW),
        Encoding::ALaw => law(&A_LAW),
        Encoding::U8 => data.iter().map(|&b| (f32::from(b) - 128.0) / 128.0).collect(),
        Encoding::S16 => data.as_chunks().0.iter().map(|&b| f32::from(i16::from_le_bytes(b)) * S16).collect(),
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit a f32 exactly")]
        Encoding::S24 => data
            .as_chunks()
            .0
            .iter()
            .map(|&[a, b, c]| i32::from_le_bytes([0, a, b, c]) as f32 * S32)
            .collect(),
        #[expect(clippy::cast_precision_loss, reason = "the lowest bits lie far below 16-bit output")]
        Encoding::S32 => data.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b) as f32 * S32).collect(),
        Encoding::F32 => data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        #[expect(clippy::cast_possible_truncation, reason = "f32 is far finer than 16-bit output")]
        Encoding::F64 => data.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect(),
        Encoding::Flac | Encoding::Mp3 => Vec::new(),
    }
}

#[cfg(not(feature = "compressed"))]
fn decode_compressed(container: Container, _: &[u8]) -> Result<Recording, AudioError> {
    Err(needs_feature(container))
}

#[cfg(not(feature = "compressed"))]
fn probe_compressed<R>(container: Container, _: &mut R, _: u64) -> Result<Info, AudioError> {
    Err(needs_feature(container))
}

#[cfg(not(feature = "compressed"))]
const fn needs_feature(container: Container) -> AudioError {
    AudioError::NeedsFeature { name: if matches!(container, Container::Flac) { "FLAC" } else { "MP3" } }
}

#[cfg(feature = "compressed")]
fn decode_compressed(container: Container, bytes: &[u8]) -> Result<Recording, AudioError> {
    crate::compressed::decode(container, bytes)
}

#[cfg(feature = "compressed")]
fn probe_compressed<R: Read + std::io::Seek>(
    container: Container,
    file: &mut R,
    len: u64,
) -> Result<Info, AudioError> {
    if len > MAX_FILE_BYTES {
        return Err(AudioError::TooBig { bytes: len, limit_bytes: MAX_FILE_BYTES });
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    crate::compressed::decode(container, &bytes).map(|recording| recording.info)
}
