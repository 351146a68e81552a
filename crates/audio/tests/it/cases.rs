//! Recordings that break tools of this kind, each standing for its whole kind.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::PathBuf;

use tapedeck_audio::{
    AudioError, Channel, Extent, Prepared, Preparer, Recording, Warning, decode, probe, read,
};

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases").join(name)
}

fn frames(name: &str) -> (u64, Vec<Warning>) {
    let recording = read(&case(name)).unwrap();
    assert_eq!(probe(&case(name)).unwrap().frames, recording.info.frames, "probe and decode disagree");
    for channel in &recording.channels {
        assert_eq!(channel.len() as u64, recording.info.frames);
    }
    (recording.info.frames, recording.info.warnings)
}

fn prepare(name: &str, channel: Option<Channel>) -> Result<Prepared, AudioError> {
    Preparer::new().prepare(&std::fs::read(case(name)).unwrap(), channel)
}

/// Power of `samples` at `hz`, by correlation; a full-scale tone gives 1.
fn tone(samples: &[f32], rate_hz: f64, hz: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &s) in samples.iter().enumerate() {
        let angle = std::f64::consts::TAU * hz * n as f64 / rate_hz;
        re += f64::from(s) * angle.cos();
        im += f64::from(s) * angle.sin();
    }
    4.0 * (re * re + im * im) / (samples.len() as f64).powi(2)
}

fn is_440_hz(recording: &Recording) {
    let samples = &recording.channels[0];
    let all: f64 = samples.iter().map(|&s| 2.0 * f64::from(s * s)).sum::<f64>() / samples.len() as f64;
    let at = tone(samples, f64::from(recording.info.sample_rate_hz), 440.0);
    assert!(at > 0.98 * all && at > 0.01, "{at} of {all} is at 440 Hz");
}

#[test]
fn whole_files_of_every_header_form() {
    for name in [
        "w01-mulaw-tag7-fact.wav",
        "w08-odd-list-padded.wav",
        "w11-fmt40-pcm-tag.wav",
        "w20-wav-named.mp3",
        "w23-pcm8-unsigned.wav",
    ] {
        assert_eq!(frames(name), (4_000, vec![]), "{name}");
        let recording = read(&case(name)).unwrap();
        assert_eq!(recording.info.extent, Extent::Complete);
        is_440_hz(&recording);
    }
}

#[test]
fn a_pipe_leaves_no_sizes() {
    assert_eq!(frames("w05-pipe-sizes-ffffffff.wav"), (4_000, vec![Warning::Streamed]));
    is_440_hz(&read(&case("w05-pipe-sizes-ffffffff.wav")).unwrap());
}

#[test]
fn half_a_sample_is_none() {
    assert_eq!(frames("w12-data-odd-bytes-s16.wav"), (4_000, vec![Warning::PartialFrame { bytes: 1 }]));
}

#[test]
fn a_cut_file_gives_what_it_has_and_says_so() {
    let (got, warnings) = frames("w19-cut-in-data.wav");
    assert_eq!(got, 3_499);
    assert!(warnings.contains(&Warning::Short { declared_frames: 4_000, frames: 3_499 }), "{warnings:?}");
}

#[test]
fn nothing_and_the_unreadable_are_refused_by_name() {
    assert_eq!(prepare("w17-header-only.wav", None), Err(AudioError::NoFrames));
    let refused = read(&case("w17-header-only.wav")).unwrap_err().to_string();
    assert!(refused.contains("w17-header-only.wav") && refused.contains("empty call"), "{refused}");
    let refused = probe(&case("w31-gsm-tag49.wav")).unwrap_err().to_string();
    assert!(refused.contains("w31-gsm-tag49.wav") && refused.contains("GSM 6.10"), "{refused}");
}

#[test]
fn stereo_is_never_mixed_unasked() {
    let name = "w15-stereo-agent-customer.wav";
    assert_eq!(prepare(name, None), Err(AudioError::ChannelNotChosen));
    let recording = read(&case(name)).unwrap();
    let parts = |channel| {
        let taken = recording.take(Some(channel)).unwrap();
        (tone(&taken.samples, 8_000.0, 300.0) > 0.01, tone(&taken.samples, 8_000.0, 1_000.0) > 0.01)
    };
    assert_eq!(parts(Channel::Left), (true, false));
    assert_eq!(parts(Channel::Right), (false, true));
    assert_eq!(parts(Channel::Mix), (true, true));
    assert_eq!(prepare(name, Some(Channel::Left)).unwrap().channel, Some(Channel::Left));
}

#[test]
fn opposite_phase_is_warned_of() {
    let name = "w21-44100-stereo-s16.wav";
    let mix = prepare(name, Some(Channel::Mix)).unwrap();
    assert_eq!(mix.pcm.len(), 3_200);
    assert!(mix.info.warnings.contains(&Warning::OppositePhase));
    assert!(mix.pcm.iter().all(|s| s.abs() <= 1));
    let left = prepare(name, Some(Channel::Left)).unwrap();
    assert_eq!(left.pcm.len(), 3_200);
    assert!(left.info.warnings.is_empty());
    assert!(left.pcm.iter().any(|s| s.abs() > 5_000));
}

#[test]
fn no_delay_and_no_lost_tail() {
    let call = prepare("w25-impulse-5ms-before-end.wav", None).unwrap();
    assert_eq!(call.pcm.len(), 16_000);
    let peak = (0..16_000).max_by_key(|&i| call.pcm[i].unsigned_abs()).unwrap();
    assert!((15_918..=15_922).contains(&peak), "impulse at {peak}");
}

/// A WAV file from parts: fmt body, chunks before the data, declared data size, data.
fn wav(fmt: &[u8], before: &[u8], declared: u32, data: &[u8]) -> Vec<u8> {
    let mut out = b"RIFF\0\0\0\0WAVE".to_vec();
    out.extend(b"fmt ");
    out.extend(u32::try_from(fmt.len()).unwrap().to_le_bytes());
    out.extend(fmt);
    out.extend(before);
    out.extend(b"data");
    out.extend(declared.to_le_bytes());
    out.extend(data);
    out
}

fn fmt(tag: u16, channels: u16, rate: u32, bits: u16) -> Vec<u8> {
    let block = channels * bits.div_ceil(8);
    let mut out = Vec::new();
    out.extend(tag.to_le_bytes());
    out.extend(channels.to_le_bytes());
    out.extend(rate.to_le_bytes());
    out.extend((rate * u32::from(block)).to_le_bytes());
    out.extend(block.to_le_bytes());
    out.extend(bits.to_le_bytes());
    out
}

fn extensible(tag: u16, bits: u16) -> Vec<u8> {
    let mut out = fmt(0xFFFE, 1, 8_000, bits);
    out.extend(22_u16.to_le_bytes());
    out.extend(bits.to_le_bytes());
    out.extend(4_u32.to_le_bytes());
    out.extend(tag.to_le_bytes());
    out.extend([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]);
    out
}

#[test]
fn every_width_of_sample_means_the_same() {
    // One sample of one quarter of full scale, then one of minus one quarter.
    let cases: [(&str, Vec<u8>, Vec<u8>); 9] = [
        ("u8", fmt(1, 1, 8_000, 8), vec![160, 96]),
        ("s16", fmt(1, 1, 8_000, 16), [8_192_i16, -8_192].map(i16::to_le_bytes).concat()),
        ("s24", fmt(1, 1, 8_000, 24), vec![0, 0, 0x20, 0, 0, 0xE0]),
        ("s32", fmt(1, 1, 8_000, 32), [1_i32 << 29, -(1 << 29)].map(i32::to_le_bytes).concat()),
        ("f32", fmt(3, 1, 8_000, 32), [0.25_f32, -0.25].map(f32::to_le_bytes).concat()),
        ("f64", fmt(3, 1, 8_000, 64), [0.25_f64, -0.25].map(f64::to_le_bytes).concat()),
        ("s16", extensible(1, 16), [8_192_i16, -8_192].map(i16::to_le_bytes).concat()),
        ("f32", extensible(3, 32), [0.25_f32, -0.25].map(f32::to_le_bytes).concat()),
        // 24 bits in four bytes, left-justified.
        (
            "s32",
            [&fmt(1, 1, 8_000, 32)[..14], &[24, 0]].concat(),
            [1_i32 << 29, -(1 << 29)].map(i32::to_le_bytes).concat(),
        ),
    ];
    for (name, fmt, data) in cases {
        let recording = decode(&wav(&fmt, &[], u32::try_from(data.len()).unwrap(), &data)).unwrap();
        assert_eq!(recording.info.encoding.name(), name);
        assert_eq!(recording.channels, [[0.25, -0.25]], "{name}");
        assert_eq!(recording.info.warnings, [], "{name}");
    }
    for (tag, plus) in [(7, 0xAF), (6, 0x9A)] {
        let recording = decode(&wav(&extensible(tag, 8), &[], 2, &[plus, plus ^ 0x80])).unwrap();
        let [a, b] = recording.channels[0][..] else { panic!() };
        assert!((0.03..0.35).contains(&a) && (a + b).abs() < 1e-6, "tag {tag}: {a} {b}");
    }
}

#[test]
fn unfinished_and_false_sizes() {
    let data = [0_u8; 800];
    for declared in [0xFFFF_FFFF, 0xFFFF_FFFE, 0x7FFF_FFFF, 0x7FFF_F000, 0] {
        let info = decode(&wav(&fmt(7, 1, 8_000, 8), &[], declared, &data)).unwrap().info;
        assert_eq!((info.frames, info.extent), (800, Extent::Streamed), "{declared:#x}");
    }
    let info = decode(&wav(&fmt(7, 1, 8_000, 8), &[], 900, &data)).unwrap().info;
    assert_eq!((info.frames, info.extent), (800, Extent::Short { declared_frames: 900 }));
    // Zero bytes of audio and a chunk behind them is really empty.
    let mut empty = wav(&fmt(7, 1, 8_000, 8), &[], 0, &[]);
    empty.extend(b"LIST\x04\0\0\0INFO");
    assert_eq!(decode(&empty), Err(AudioError::NoFrames));
    // A byte rate that contradicts the rest is no reason to refuse.
    let mut odd = fmt(1, 1, 8_000, 16);
    odd[8] = 1;
    let info = decode(&wav(&odd, &[], 800, &data)).unwrap().info;
    assert_eq!((info.frames, info.warnings), (400, vec![Warning::InconsistentHeader]));
    let mut odd = fmt(1, 1, 8_000, 16);
    odd[12] = 4;
    assert_eq!(decode(&wav(&odd, &[], 800, &data)).unwrap().info.frames, 400);
    // Text after the audio.
    let mut tail = wav(&fmt(7, 1, 8_000, 8), &[], 800, &data);
    tail.extend(b"\x01\x02\x03garbage garbage");
    assert_eq!(decode(&tail).unwrap().info.warnings, [Warning::TrailingBytes { bytes: 18 }]);
}

#[test]
fn what_stands_twice_is_said() {
    let mut two = wav(&fmt(7, 1, 8_000, 8), &[], 3, &[0x55; 3]);
    two.extend(b"\0LIST\x04\0\0\0INFOdata\x05\0\0\0abcde\0data\x02\0\0\0ab");
    let info = decode(&two).unwrap().info;
    assert_eq!((info.frames, info.warnings), (3, vec![Warning::SecondAudio { bytes: 7 }]));
    let before = [b"fmt \x10\0\0\0", &fmt(6, 1, 8_000, 8)[..]].concat();
    let info = decode(&wav(&fmt(7, 1, 8_000, 8), &before, 2, &[0x55; 2])).unwrap().info;
    assert_eq!((info.encoding.name(), info.warnings), ("alaw", vec![Warning::SecondFormat]));
}

#[test]
fn odd_chunks_with_and_without_their_pad() {
    let data = [0x55_u8; 100];
    for (chunk, warnings) in [
        (&b"LIST\x05\0\0\0abcde\0"[..], vec![]),
        (b"LIST\x05\0\0\0abcde", vec![Warning::UnpaddedChunk]),
        (b"Xtra\x05\0\0\0abcde\0", vec![]),
        (b"Xtra\x05\0\0\0abcde", vec![Warning::UnpaddedChunk]),
        (b"Xtra\x01\0\0\0aYtra\x02\0\0\0bc", vec![Warning::UnpaddedChunk]),
    ] {
        let info = decode(&wav(&fmt(7, 1, 8_000, 8), chunk, 100, &data)).unwrap().info;
        assert_eq!((info.frames, info.warnings), (100, warnings));
    }
}

#[test]
fn sizes_of_64_bits() {
    let data = [0x55_u8; 400];
    let long = |magic: &[u8; 4], data_bytes: u64| {
        let mut file = magic.to_vec();
        file.extend(b"\xFF\xFF\xFF\xFFWAVEds64\x1C\0\0\0");
        file.extend(1_000_u64.to_le_bytes());
        file.extend(data_bytes.to_le_bytes());
        file.extend([0; 12]);
        file.extend(&wav(&fmt(7, 1, 8_000, 8), &[], u32::MAX, &data)[12..]);
        file
    };
    for magic in [b"RF64", b"BW64"] {
        let info = decode(&long(magic, 400)).unwrap().info;
        assert_eq!((info.frames, info.extent), (400, Extent::Complete));
    }
    let mut two = long(b"RF64", 400);
    two.extend(b"data\x02\0\0\0ab");
    assert_eq!(decode(&two).unwrap().info.warnings, [Warning::SecondAudio { bytes: 2 }]);
    assert_eq!(decode(&long(b"RF64", 0)).unwrap().info.extent, Extent::Streamed);
    let info = decode(&long(b"RF64", u64::MAX / 2)).unwrap().info;
    assert_eq!((info.frames, info.extent), (400, Extent::Short { declared_frames: u64::MAX / 2 }));
}

#[test]
fn refusals_name_what_was_found() {
    let mut rate = fmt(7, 1, 8_000, 8);
    rate[4..8].fill(0);
    let refused = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    for (bytes, word) in [
        (wav(&rate, &[], 2, &[0; 2]), "0 Hz"),
        (wav(&fmt(7, 0, 8_000, 8), &[], 2, &[0; 2]), "0 channels"),
        (wav(&fmt(1, 6, 8_000, 16), &[], 12, &[0; 12]), "6 channels"),
        (wav(&fmt(1, 1, 8_000, 40), &[], 12, &[0; 12]), "40 bits"),
        (wav(&fmt(3, 1, 8_000, 16), &[], 12, &[0; 12]), "16 bits"),
        (wav(&fmt(2, 1, 8_000, 4), &[], 12, &[0; 12]), "Microsoft ADPCM"),
        (wav(&fmt(0x11, 1, 8_000, 4), &[], 12, &[0; 12]), "IMA ADPCM"),
        (wav(&fmt(0x55, 1, 8_000, 0), &[], 12, &[0; 12]), "MP3"),
        (wav(&extensible(0x31, 8), &[], 12, &[0; 12]), "GSM"),
        (wav(&[&extensible(7, 8)[..39], &[0]].concat(), &[], 12, &[0; 12]), "without a known sub-format"),
        (wav(&fmt(0x1234, 1, 8_000, 8), &[], 12, &[0; 12]), "0x1234"),
        (b"RIFX\0\0\0\0WAVE".to_vec(), "big-endian"),
        (b"OggS\0\0\0\0".to_vec(), "Ogg"),
        (b".snd\0\0\0\0".to_vec(), "AU"),
        (b"FORM\0\0\0\0AIFF".to_vec(), "AIFF"),
        (b"RIFF\x24\0\0\0WAVEfmt ".to_vec(), "cut off"),
        (b"RIFF\x24\0\0\0WAVE".to_vec(), "cut off"),
        (b"RIF".to_vec(), "not a sound file"),
        (vec![], "empty"),
        (b"<!DOCTYPE html>".to_vec(), "<!DOCTYPE"),
        (wav(&fmt(7, 1, 8_000, 8), &[], 2, &[0; 2])[..36].to_vec(), "no `data` chunk"),
        (b"RIFF\0\0\0\0WAVEdata\x02\0\0\0\0\0".to_vec(), "no `fmt ` chunk"),
    ] {
        let message = refused(&bytes);
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[cfg(not(feature = "compressed"))]
#[test]
fn compressed_formats_ask_for_the_feature() {
    for bytes in [&b"fLaC\0\0\0\x22"[..], b"ID3\x04\0\0\0\0\0\0", &[0xFF, 0xFB, 0x90, 0x64]] {
        let message = decode(bytes).unwrap_err().to_string();
        assert!(message.contains("`compressed`"), "{message}");
    }
}

#[test]
fn floats_can_hold_anything() {
    let data = [f32::NAN, f32::INFINITY, 2.0, -0.5].map(f32::to_le_bytes).concat();
    let recording = decode(&wav(&fmt(3, 1, 8_000, 32), &[], 16, &data)).unwrap();
    assert_eq!(recording.channels, [[0.0, 0.0, 1.0, -0.5]]);
    assert_eq!(
        recording.info.warnings,
        [Warning::NotANumber { samples: 2 }, Warning::Clipped { samples: 1 }]
    );
}
