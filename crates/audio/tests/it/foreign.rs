//! Whatever bytes come, the reader answers; it never panics and never asks for memory that a header names.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use proptest::prelude::*;
use tapedeck_audio::{Channel, Preparer, decode, probe_reader};

/// A valid little file to spoil.
fn seedling() -> Vec<u8> {
    let mut out =
        b"RIFF\x40\0\0\0WAVEfmt \x12\0\0\0\x07\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0\0\0".to_vec();
    out.extend(b"LIST\x04\0\0\0INFOds64\x08\0\0\0\0\0\0\0\0\0\0\0data\x40\0\0\0");
    out.extend([0x55; 64]);
    out
}

fn survives(bytes: &[u8]) {
    let len = bytes.len() as u64;
    let probed = probe_reader(&mut std::io::Cursor::new(bytes), len);
    let decoded = decode(bytes);
    match (probed, decoded) {
        (Ok(info), Ok(recording)) => {
            assert_eq!(info.frames, recording.info.frames);
            // No sample without a byte.
            let samples: usize = recording.channels.iter().map(Vec::len).sum();
            assert!(samples <= bytes.len());
            let _ = Preparer::new().prepare(bytes, Some(Channel::Mix));
        }
        (Err(a), Err(b)) => assert_eq!(a, b),
        (a, b) => panic!("probe {a:?}, decode {:?}", b.map(|r| r.info)),
    }
}

proptest! {
    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn noise_after_a_good_start(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&[b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0", &bytes[..]].concat());
    }

    #[test]
    fn spoilt_files(changes in prop::collection::vec((0_usize..150, any::<u8>()), 1..6), cut in 0_usize..150) {
        let mut bytes = seedling();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut.max(1));
        survives(&bytes);
    }

    #[test]
    fn every_length_is_exact(frames in 1_usize..5_000, rate in prop::sample::select(vec![8_000_u32, 11_025, 16_000, 22_050, 44_100, 48_000])) {
        let samples = vec![0.1_f32; frames];
        let out = tapedeck_audio::Resampler::new().to_16k(samples, rate).unwrap();
        prop_assert_eq!(out.len() as u64, (frames as u64 * 16_000).div_ceil(u64::from(rate)));
    }
}
