//! What a recording says of itself, and what was found to be true.

use std::fmt;

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// G.711 mu-law, 8 bits.
    MuLaw,
    /// G.711 A-law, 8 bits.
    ALaw,
    /// Unsigned 8-bit PCM, centred on 128.
    U8,
    /// Signed 16-bit PCM.
    S16,
    /// Signed 24-bit PCM in three bytes.
    S24,
    /// Signed 32-bit PCM, or fewer bits left-justified in four bytes.
    S32,
    /// 32-bit float, full scale 1.0.
    F32,
    /// 64-bit float, full scale 1.0.
    F64,
    /// FLAC.
    Flac,
    /// MPEG audio layer 3.
    Mp3,
}

impl Encoding {
    /// The word used in listings, e.g. `mulaw`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MuLaw => "mulaw",
            Self::ALaw => "alaw",
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::S24 => "s24",
            Self::S32 => "s32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Flac => "flac",
            Self::Mp3 => "mp3",
        }
    }

    /// Bytes of one sample; 0 for compressed formats, whose samples have no size of their own.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::MuLaw | Self::ALaw | Self::U8 => 1,
            Self::S16 => 2,
            Self::S24 => 3,
            Self::S32 | Self::F32 => 4,
            Self::F64 => 8,
            Self::Flac | Self::Mp3 => 0,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the audio that is there is the audio that the header promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// As many frames as declared.
    Complete,
    /// The header was never finished (a pipe, or a recorder that died): everything to the end of the file is
    /// audio.
    Streamed,
    /// Fewer frames than declared: the file was cut.
    Short {
        /// Frames that the header promises.
        declared_frames: u64,
    },
    /// No frame at all.
    Empty,
}

impl Extent {
    /// The word used in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Streamed => "streamed",
            Self::Short { .. } => "short",
            Self::Empty => "empty",
        }
    }
}

/// Something that is odd about a recording but does not stop it from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The file was cut in its audio.
    Short {
        /// Frames promised.
        declared_frames: u64,
        /// Frames there.
        frames: u64,
    },
    /// The header's sizes were never filled in.
    Streamed,
    /// Bytes after the last whole frame.
    PartialFrame {
        /// How many.
        bytes: u64,
    },
    /// Bytes after the audio that are no chunk.
    TrailingBytes {
        /// How many.
        bytes: u64,
    },
    /// The header's byte rate or block size contradicts its other fields.
    InconsistentHeader,
    /// An odd-sized chunk was not followed by its pad byte.
    UnpaddedChunk,
    /// More than one `fmt ` chunk stands before the audio; the last one counts.
    SecondFormat,
    /// More audio in further `data` chunks, which is left out.
    SecondAudio {
        /// Their declared bytes.
        bytes: u64,
    },
    /// The two channels cancel each other: their average is far quieter than either.
    OppositePhase,
    /// Samples beyond full scale, cut to it.
    Clipped {
        /// How many samples.
        samples: u64,
    },
    /// Samples that are no number, taken as 0.
    NotANumber {
        /// How many samples.
        samples: u64,
    },
    /// Packets that the decoder of a compressed format skipped.
    BadPackets {
        /// How many packets.
        packets: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { declared_frames, frames } => {
                write!(f, "cut off: the header promises {declared_frames} frames, {frames} are there")
            }
            Self::Streamed => f.write_str("unfinished header: read to the end of the file"),
            Self::PartialFrame { bytes } => {
                write!(f, "{bytes} bytes after the last whole frame are left out")
            }
            Self::TrailingBytes { bytes } => {
                write!(f, "{bytes} bytes after the audio are no chunk and are left out")
            }
            Self::InconsistentHeader => f.write_str("byte rate or block size contradict the sample format"),
            Self::UnpaddedChunk => f.write_str("an odd-sized chunk has no pad byte"),
            Self::SecondFormat => f.write_str("more than one `fmt ` chunk: the last before the audio counts"),
            Self::SecondAudio { bytes } => {
                write!(f, "{bytes} bytes of audio in a second `data` chunk are left out")
            }
            Self::OppositePhase => f.write_str(
                "the channels are in opposite phase: their mix is nearly silent, choose left or right",
            ),
            Self::Clipped { samples } => write!(f, "{samples} samples beyond full scale are cut to it"),
            Self::NotANumber { samples } => {
                write!(f, "{samples} samples are no number and are taken as silence")
            }
            Self::BadPackets { packets } => write!(f, "{packets} damaged packets are left out"),
        }
    }
}

/// What is known of a recording without decoding it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// How samples are stored.
    pub encoding: Encoding,
    /// Frames per second, Hz.
    pub sample_rate_hz: u32,
    /// 1 or 2.
    pub channels: u16,
    /// Whole frames that are really there.
    pub frames: u64,
    /// Declared against real length.
    pub extent: Extent,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

impl Info {
    /// Length of the recording, milliseconds, rounded down.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        let ms = u128::from(self.frames) * 1000 / u128::from(self.sample_rate_hz.max(1));
        u64::try_from(ms).unwrap_or(u64::MAX)
    }

    /// Length of the recording, seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "frame counts stay far below 2^53")]
    pub fn duration_s(&self) -> f64 {
        self.frames as f64 / f64::from(self.sample_rate_hz.max(1))
    }
}
