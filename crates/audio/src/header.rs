//! The RIFF walk: finds the format and the audio of a WAV file whatever its writer did to the sizes.
//!
//! Sizes in the file are only ever compared with what is really there; nothing is allocated by them.

use std::io::{Read, Seek, SeekFrom};

use crate::error::AudioError;
use crate::formats::{TAG_A_LAW, TAG_EXTENSIBLE, TAG_FLOAT, TAG_MU_LAW, TAG_PCM, refused_format};
use crate::info::{Encoding, Extent, Info, Warning};

/// Data sizes from here up are what writers put when they do not know yet (a pipe, a recorder that died): the
/// largest 32-bit numbers, signed or not, minus a header.
const PLACEHOLDER: u32 = 0x7FFF_0000;
/// What follows the two bytes of a tag in the sub-format of an extensible header.
const TAG_GUID: [u8; 14] =
    [0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71];
/// Chunks that may follow a chunk: seen here, they prove where a chunk begins.
const KNOWN: [&[u8; 4]; 16] = [
    b"fmt ", b"data", b"fact", b"LIST", b"ds64", b"bext", b"JUNK", b"junk", b"PEAK", b"cue ", b"smpl",
    b"inst", b"id3 ", b"iXML", b"PAD ", b"FLLR",
];
/// A file with more chunks than this before its audio is no recording.
const MAX_CHUNKS: usize = 10_000;

/// Where the audio of a WAV file lies and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// What the recording is.
    pub(crate) info: Info,
    /// First byte of the audio.
    pub(crate) data_at: u64,
    /// Bytes of whole frames that are really there.
    pub(crate) data_bytes: u64,
}

/// The `fmt ` chunk, checked.
#[derive(Debug, Clone, Copy)]
struct Format {
    encoding: Encoding,
    channels: u16,
    rate_hz: u32,
    consistent: bool,
}

impl Format {
    const fn frame_bytes(self) -> u64 {
        self.encoding.bytes() * self.channels as u64
    }
}

/// Walks the chunks of a WAV file of `len` bytes up to its audio.
pub(crate) fn walk<R: Read + Seek>(file: &mut R, len: u64) -> Result<Layout, AudioError> {
    let cut = || AudioError::CutHeader { bytes: len };
    let mut at = 12;
    let mut format = None;
    let mut long_data = None;
    let mut unpadded = false;
    let mut formats = 0;
    for _ in 0..MAX_CHUNKS {
        let Some((id, size)) = chunk_at(file, at, len)? else {
            return Err(if format.is_none() { cut() } else { AudioError::NoData });
        };
        let body = at + 8;
        match &id {
            b"fmt " => {
                format = Some(read_format(file, body, size, len)?);
                formats += 1;
            }
            b"ds64" => long_data = read_u64(file, body + 8, len)?,
            b"data" => {
                let format = format.ok_or(AudioError::NoFormat)?;
                let mut layout = measure(file, format, body, size, long_data, len)?;
                if unpadded {
                    layout.info.warnings.push(Warning::UnpaddedChunk);
                }
                if formats > 1 {
                    layout.info.warnings.push(Warning::SecondFormat);
                }
                if layout.info.extent == Extent::Complete
                    && let Some(bytes) = more_audio(file, body, declared_bytes(size, long_data), len)?
                {
                    layout.info.warnings.push(Warning::SecondAudio { bytes });
                }
                return Ok(layout);
            }
            _ => {}
        }
        let end = body + u64::from(size);
        at = end;
        if size % 2 == 1 {
            let padded = is_padded(file, end, len)?;
            unpadded |= !padded;
            at += u64::from(padded);
        }
    }
    Err(AudioError::NoData)
}

/// Declared bytes of the `data` chunks behind the first one, which is `bytes` long and whole.
fn more_audio<R: Read + Seek>(
    file: &mut R,
    data_at: u64,
    bytes: u64,
    len: u64,
) -> Result<Option<u64>, AudioError> {
    let mut more = None;
    let mut at = data_at + bytes + bytes % 2;
    for _ in 0..MAX_CHUNKS {
        let Some((id, size)) = chunk_at(file, at, len)? else { break };
        if id == *b"data" {
            more = Some(more.unwrap_or(0) + u64::from(size));
        }
        at += 8 + u64::from(size) + u64::from(size % 2);
    }
    Ok(more)
}

/// Reads up to `N` bytes at `at`; short when the file ends.
fn bytes_at<const N: usize, R: Read + Seek>(
    file: &mut R,
    at: u64,
    len: u64,
) -> Result<Option<[u8; N]>, AudioError> {
    if at.checked_add(N as u64).is_none_or(|end| end > len) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut out = [0; N];
    file.read_exact(&mut out)?;
    Ok(Some(out))
}

fn read_u64<R: Read + Seek>(file: &mut R, at: u64, len: u64) -> Result<Option<u64>, AudioError> {
    Ok(bytes_at::<8, _>(file, at, len)?.map(u64::from_le_bytes))
}

fn chunk_at<R: Read + Seek>(file: &mut R, at: u64, len: u64) -> Result<Option<([u8; 4], u32)>, AudioError> {
    Ok(bytes_at::<8, _>(file, at, len)?
        .map(|[a, b, c, d, e, f, g, h]| ([a, b, c, d], u32::from_le_bytes([e, f, g, h]))))
}

/// Whether the odd-sized chunk that ends at `end` has its pad byte. The rule asks for one, some writers forget
/// it; the next chunk's name tells.
fn is_padded<R: Read + Seek>(file: &mut R, end: u64, len: u64) -> Result<bool, AudioError> {
    let known = |id: Option<[u8; 4]>| id.is_some_and(|id| KNOWN.contains(&&id));
    let printable = |id: Option<[u8; 4]>| id.is_some_and(|id| id.iter().all(|b| (0x20..0x7F).contains(b)));
    let with = bytes_at::<4, _>(file, end + 1, len)?;
    if known(with) {
        return Ok(true);
    }
    let without = bytes_at::<4, _>(file, end, len)?;
    Ok(!known(without) && (printable(with) || !printable(without)))
}

fn read_format<R: Read + Seek>(file: &mut R, at: u64, size: u32, len: u64) -> Result<Format, AudioError> {
    if size < 16 {
        return Err(AudioError::NoFormat);
    }
    let Some(fmt) = bytes_at::<16, _>(file, at, len)? else {
        return Err(AudioError::CutHeader { bytes: len });
    };
    let [t0, t1, c0, c1, r0, r1, r2, r3, a0, a1, a2, a3, b0, b1, w0, w1] = fmt;
    let mut tag = u16::from_le_bytes([t0, t1]);
    let channels = u16::from_le_bytes([c0, c1]);
    let rate_hz = u32::from_le_bytes([r0, r1, r2, r3]);
    let byte_rate = u32::from_le_bytes([a0, a1, a2, a3]);
    let block = u16::from_le_bytes([b0, b1]);
    let bits = u16::from_le_bytes([w0, w1]);
    if tag == TAG_EXTENSIBLE && size >= 40 {
        // The sub-format is a GUID: the real tag, and a tail that says so.
        if let Some([s0, s1, tail @ ..]) = bytes_at::<16, _>(file, at + 24, len)?
            && tail == TAG_GUID
        {
            tag = u16::from_le_bytes([s0, s1]);
        }
    }
    if !matches!(tag, TAG_PCM | TAG_FLOAT | TAG_A_LAW | TAG_MU_LAW) {
        return Err(refused_format(tag));
    }
    if !(1..=2).contains(&channels) {
        return Err(AudioError::Channels { channels });
    }
    if !(2_000..=384_000).contains(&rate_hz) {
        return Err(AudioError::Rate { rate_hz });
    }
    let width =
        width_of(tag, bits, block, channels, u64::from(byte_rate) == u64::from(rate_hz) * u64::from(block));
    let encoding = match (tag, width) {
        (TAG_MU_LAW, 1) => Encoding::MuLaw,
        (TAG_A_LAW, 1) => Encoding::ALaw,
        (TAG_PCM, 1) => Encoding::U8,
        (TAG_PCM, 2) => Encoding::S16,
        (TAG_PCM, 3) => Encoding::S24,
        (TAG_PCM, 4) => Encoding::S32,
        (TAG_FLOAT, 4) => Encoding::F32,
        (TAG_FLOAT, 8) => Encoding::F64,
        (TAG_FLOAT, _) => return Err(AudioError::Width { bits, encoding: "float" }),
        (TAG_PCM, _) => return Err(AudioError::Width { bits, encoding: "PCM" }),
        _ => return Err(AudioError::Width { bits, encoding: "G.711" }),
    };
    let block_right = u64::from(block) == encoding.bytes() * u64::from(channels);
    let rate_right = u64::from(byte_rate) == u64::from(rate_hz) * encoding.bytes() * u64::from(channels);
    Ok(Format { encoding, channels, rate_hz, consistent: block_right && rate_right })
}

/// Bytes per sample. The block size knows about padding (24 bits in four bytes), so it wins where the byte rate
/// agrees with it; otherwise the declared bits decide. G.711 has always one byte, whatever the header says.
fn width_of(tag: u16, bits: u16, block: u16, channels: u16, block_agrees: bool) -> u16 {
    if matches!(tag, TAG_A_LAW | TAG_MU_LAW) {
        // Some recorders write the width after expansion.
        return if matches!(bits, 0 | 8 | 13 | 14 | 16) { 1 } else { 0 };
    }
    let from_bits = bits.div_ceil(8);
    let from_block = block / channels.max(1);
    if block_agrees && block.is_multiple_of(channels.max(1)) && from_block >= from_bits {
        from_block
    } else {
        from_bits
    }
}

/// Bytes that a `data` chunk claims to have: in RF64 its 32-bit size is all ones and the real one is in `ds64`.
fn declared_bytes(size: u32, long_data: Option<u64>) -> u64 {
    match long_data {
        Some(long) if size == u32::MAX => long,
        _ => u64::from(size),
    }
}

/// Compares what is declared with what is there.
fn measure<R: Read + Seek>(
    file: &mut R,
    format: Format,
    data_at: u64,
    size: u32,
    long_data: Option<u64>,
    len: u64,
) -> Result<Layout, AudioError> {
    let there = len.saturating_sub(data_at);
    let frame = format.frame_bytes();
    let mut warnings = Vec::new();
    let declared = declared_bytes(size, long_data);
    let long_known = long_data.is_some_and(|long| size == u32::MAX && long != 0 && long != u64::MAX);
    let unfinished = if long_known {
        false
    } else if declared == 0 || declared == u64::MAX {
        there > 0 && !starts_chunk(file, data_at, len)?
    } else {
        size >= PLACEHOLDER && declared > there
    };
    let mut bytes = if unfinished { there } else { declared.min(there) };
    let mut extent = Extent::Complete;
    if unfinished {
        extent = Extent::Streamed;
        warnings.push(Warning::Streamed);
    }
    let frames = bytes / frame;
    // A file that was cut may end anywhere: that is said once, below.
    let partial = bytes % frame;
    if partial != 0 && (unfinished || declared <= there) {
        warnings.push(Warning::PartialFrame { bytes: partial });
    }
    if !unfinished && declared > there {
        let declared_frames = declared / frame;
        extent = Extent::Short { declared_frames };
        warnings.push(Warning::Short { declared_frames, frames });
    }
    if !unfinished && declared < there {
        let end = data_at + declared;
        let rest = there - declared;
        let pad = u64::from(declared % 2 == 1 && is_padded(file, end, len)?);
        if rest > pad + 3 && !starts_chunk(file, end + pad, len)? {
            warnings.push(Warning::TrailingBytes { bytes: rest - pad });
        }
    }
    if frames == 0 {
        extent = Extent::Empty;
    }
    if !format.consistent {
        warnings.push(Warning::InconsistentHeader);
    }
    bytes = frames * frame;
    let info = Info {
        encoding: format.encoding,
        sample_rate_hz: format.rate_hz,
        channels: format.channels,
        frames,
        extent,
        warnings,
    };
    Ok(Layout { info, data_at, data_bytes: bytes })
}

/// Whether something that looks like a chunk, name and size, begins at `at`.
fn starts_chunk<R: Read + Seek>(file: &mut R, at: u64, len: u64) -> Result<bool, AudioError> {
    Ok(chunk_at(file, at, len)?.is_some_and(|(id, size)| {
        KNOWN.contains(&&id)
            || (id.iter().all(|b| b.is_ascii_alphanumeric() || *b == b' ')
                && at + 8 + u64::from(size) <= len + 1)
    }))
}
