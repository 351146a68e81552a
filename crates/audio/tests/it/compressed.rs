//! FLAC and MP3, with the feature that reads them.
#![cfg(feature = "compressed")]

use std::path::PathBuf;

use tapedeck_audio::{Extent, decode, probe, read};

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases").join(name)
}

#[test]
fn flac_is_the_wav_it_was_made_of() {
    let flac = read(&case("c01-flac-mono.flac")).unwrap();
    let wav = read(&case("w01-mulaw-tag7-fact.wav")).unwrap();
    assert_eq!(
        (flac.info.encoding.name(), flac.info.frames, flac.info.extent),
        ("flac", 4_000, Extent::Complete)
    );
    assert_eq!(flac.channels, wav.channels);
    assert_eq!(probe(&case("c01-flac-mono.flac")).unwrap(), flac.info);
}

#[test]
fn mp3_has_no_delay_and_no_padding() {
    let mp3 = read(&case("c02-mp3-mono.mp3")).unwrap();
    let wav = read(&case("w01-mulaw-tag7-fact.wav")).unwrap();
    assert_eq!((mp3.info.encoding.name(), mp3.info.frames), ("mp3", 4_000));
    let (mut same, mut own) = (0.0_f64, 0.0_f64);
    for (a, b) in mp3.channels[0].iter().zip(&wav.channels[0]) {
        same += f64::from(a * b);
        own += f64::from(b * b);
    }
    assert!(same > 0.9 * own, "{same} of {own}: the tone is shifted or changed");
}

#[test]
fn damaged_files_are_answered() {
    for name in ["c01-flac-mono.flac", "c02-mp3-mono.mp3"] {
        let whole = std::fs::read(case(name)).unwrap();
        let sound = decode(&whole).unwrap();
        let (mut refused, mut read) = (0, 0);
        for cut in (0..whole.len()).step_by(97) {
            let mut spoilt = whole.clone();
            spoilt[cut] ^= 0xFF;
            for damaged in [&whole[..cut], &spoilt] {
                match decode(damaged) {
                    Err(error) => {
                        assert!(!error.to_string().is_empty(), "{name} at {cut}");
                        refused += 1;
                    }
                    Ok(audio) => {
                        let samples: usize = audio.channels.iter().map(Vec::len).sum();
                        // A spoilt header may promise more; what there is to decode bounds it.
                        assert!(samples <= 64 * sound.channels[0].len(), "{name} at {cut}: {samples}");
                        assert!(audio.channels.iter().flatten().all(|s| s.is_finite()), "{name} at {cut}");
                        read += 1;
                    }
                }
            }
        }
        // The empty file is no audio, and one byte changed in the middle of an MP3 is no reason to refuse it.
        assert!(refused > 0 && decode(&[]).is_err(), "{name}: {refused} refused, {read} read");
    }
}
