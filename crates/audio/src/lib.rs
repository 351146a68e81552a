//! Call recordings in, 16 kHz mono s16 out: WAV in all its forms, channels, resampling, speech map.
//!
//! ```
//! use tapedeck_audio::{Preparer, wav_bytes};
//!
//! let silence = wav_bytes(&[0; 16_000])?; // one second at 16 kHz
//! let call = Preparer::new().prepare(&silence, None)?;
//! assert_eq!(call.pcm.len(), 16_000);
//! assert_eq!(call.info.encoding.name(), "s16");
//! assert!(call.speech().is_silent());
//! # Ok::<(), tapedeck_audio::AudioError>(())
//! ```
//!
//! Read on in [`Preparer`] (the whole way in one call), [`Info`] and [`Warning`] (what a file says and what is
//! odd about it), [`Resampler`] (exact length, rounding) and [`speech_map`] (how speech is found).
//!
//! Reads by content, never by name: WAV, RF64 and BW64 with PCM of 8 to 32 bits, float, mu-law or A-law, mono or
//! stereo; with the feature `compressed` also FLAC and MP3. Recordings of
//! other rates than 16 kHz need the feature `resample`, which is on by default. Everything else is refused by name and reason. No
//! size in a header is ever believed: files are measured.

mod channel;
#[cfg(feature = "compressed")]
mod compressed;
mod decode;
mod error;
mod fft;
mod formats;
mod g711;
mod header;
mod info;
mod prepare;
mod resample;
mod speech;
mod write;

pub use channel::{Channel, Taken};
pub use decode::{MAX_FILE_BYTES, Recording, decode, probe, probe_reader, read, read_bytes};
pub use error::{AudioError, FileError};
pub use info::{Encoding, Extent, Info, Warning};
pub use prepare::{Prepared, Preparer};
pub use resample::{METHOD as RESAMPLER, RATE_HZ, Resampler};
pub use speech::{METHOD as SPEECH_METHOD, speech_map};
pub use write::{wav_bytes, write_wav};

/// The code of the README is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
