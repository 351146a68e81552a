//! Why a recording is refused, by name and reason.

use std::path::PathBuf;

/// Why the bytes of a recording cannot be used. Each message says what was found and, where there is one, the
/// way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    /// Not a single byte.
    #[error("the file is empty (0 bytes)")]
    EmptyFile,
    /// The file ends inside its own headers.
    #[error("the header is cut off: the file ends after {bytes} bytes, before any audio")]
    CutHeader {
        /// Size of the file, bytes.
        bytes: u64,
    },
    /// Nothing that a sound file starts with.
    #[error("not a sound file: it starts with {start}")]
    NotAudio {
        /// The first bytes, printable or in hex.
        start: String,
    },
    /// A container that is known but not read.
    #[error("{name} is not read; convert it to WAV first, e.g. `sox IN OUT.wav` or `ffmpeg -i IN OUT.wav`")]
    Container {
        /// Name of the container.
        name: &'static str,
    },
    /// A container that only the feature `compressed` reads.
    #[error("{name} needs a build with the feature `compressed`; or convert it to WAV first")]
    NeedsFeature {
        /// Name of the container.
        name: &'static str,
    },
    /// A WAV file whose sample format is not read.
    #[error(
        "WAV with {name} (format tag {tag:#06x}) is not read; convert it to PCM or mu-law first, e.g. `sox IN -e mu-law OUT.wav`"
    )]
    Format {
        /// The format tag of the `fmt ` chunk.
        tag: u16,
        /// Name of the format.
        name: &'static str,
    },
    /// A WAV file without a usable `fmt ` chunk.
    #[error("no `fmt ` chunk before the audio: the sample format is unknown")]
    NoFormat,
    /// A WAV file without a `data` chunk.
    #[error("no `data` chunk: there is no audio in the file")]
    NoData,
    /// A sample width that the format does not have.
    #[error("{bits} bits per sample make no sense for {encoding}")]
    Width {
        /// The declared width.
        bits: u16,
        /// The encoding.
        encoding: &'static str,
    },
    /// A sample rate outside what telephony or studios use.
    #[error("a sample rate of {rate_hz} Hz is outside 2,000..=384,000: the header is broken")]
    Rate {
        /// The declared rate.
        rate_hz: u32,
    },
    /// Neither mono nor stereo.
    #[error("{channels} channels: only mono and stereo are call recordings")]
    Channels {
        /// Channels declared.
        channels: u16,
    },
    /// A header with no audio behind it.
    #[error("an empty call: the header is whole but there is not one frame of audio")]
    NoFrames,
    /// A stereo recording for which nobody chose a channel.
    #[error("stereo, and no channel was chosen: say left, right, mix or both; nothing is mixed unasked")]
    ChannelNotChosen,
    /// More audio than one call may hold.
    #[error("{bytes} bytes are more than the {limit_bytes} that one recording may have")]
    TooBig {
        /// Size of the file.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// A decoder of a compressed format gave up.
    #[error("the decoder gave up: {why}")]
    Decoder {
        /// The decoder's words.
        why: String,
    },
    /// The resampler refused its input.
    #[error("the resampler refused {rate_hz} Hz: {why}")]
    Resampler {
        /// The input rate.
        rate_hz: u32,
        /// The resampler's words.
        why: String,
    },
    /// The operating system could not read the file.
    #[error("cannot be read: {why}")]
    Io {
        /// The operating system's words.
        why: String,
    },
}

impl From<std::io::Error> for AudioError {
    fn from(error: std::io::Error) -> Self {
        Self::Io { why: error.to_string() }
    }
}

/// An [`AudioError`] with the file it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub source: AudioError,
}
