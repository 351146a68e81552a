//! Pools made on the spot.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "each test file uses its own part, and fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;

use tapedeck_audio::Channel;
use tapedeck_tape::{FileReport, FreezeOptions, Manifest, Pool, ScanOptions, Spec, TapeError, freeze, scan};

/// A mu-law WAV of `seconds` with a tone burst in its middle; `mark` makes its content its own.
pub(crate) fn recording(seconds: f64, mark: u32, channels: u16) -> Vec<u8> {
    let frames = (seconds * 8_000.0).round() as usize;
    let mut body = Vec::new();
    for n in 0..frames {
        let loud = n > frames / 4 && n < frames / 2;
        let wave = if n / 8 % 2 == 0 { 0x90 } else { 0x10 };
        let sample = if n < 8 {
            (mark >> (4 * n) & 0x0F) as u8 | 0x70
        } else if loud {
            wave
        } else {
            0xFF
        };
        body.extend(std::iter::repeat_n(sample, usize::from(channels)));
    }
    let mut out = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x07\0".to_vec();
    out.extend(channels.to_le_bytes());
    out.extend(8_000_u32.to_le_bytes());
    out.extend((8_000 * u32::from(channels)).to_le_bytes());
    out.extend(channels.to_le_bytes());
    out.extend(8_u16.to_le_bytes());
    out.extend(b"data");
    out.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    out.extend(body);
    out
}

/// Thirty calls of about one second, ten of about two.
pub(crate) fn fill(pool: &Path) {
    for mark in 0..40_u32 {
        let seconds = if mark < 30 { 1.0 } else { 2.0 } + f64::from(mark % 7) * 0.01;
        let folder = pool.join(if mark % 2 == 0 { "even" } else { "odd" });
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{mark:02}.wav")), recording(seconds, mark, 1)).unwrap();
    }
}

pub(crate) fn reports(pool: &Path) -> Vec<FileReport> {
    scan(&Pool::list(pool).unwrap(), ScanOptions { threads: None, hash: true }, &BTreeMap::new(), |_| ())
}

pub(crate) fn options(spec: &str, seed: u64, channel: Option<Channel>) -> FreezeOptions {
    FreezeOptions {
        spec: Spec::parse(spec).unwrap(),
        seed,
        tolerance: 0.1,
        strata: vec![],
        channel,
        threads: None,
    }
}

pub(crate) fn frozen(pool: &Path, spec: &str, seed: u64) -> Result<Manifest, TapeError> {
    freeze(pool, &reports(pool), &options(spec, seed, None))
}
