//! Says what a recording is and makes it ready: `cargo run -p tapedeck-audio --example prepare -- IN.wav OUT.wav`.
//! Without a file it makes up a telephone call: 8 kHz, mu-law, a tone in the middle.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::path::Path;

use tapedeck_audio::{Channel, Preparer, read_bytes, wav_bytes};

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args_os().skip(1);
    let bytes = match given.next() {
        Some(path) => read_bytes(Path::new(&path))?,
        None => telephone_call(),
    };
    let call = Preparer::new().prepare(&bytes, Some(Channel::Left))?;
    let info = &call.info;
    println!(
        "{}, {} Hz, {} channel(s), {:.3} s",
        info.encoding.name(),
        info.sample_rate_hz,
        info.channels,
        info.duration_s()
    );
    info.warnings.iter().for_each(|warning| println!("odd: {warning}"));
    println!("{} samples at 16 kHz; speech in ms: {:?}", call.pcm.len(), call.speech().intervals());
    if let Some(out) = given.next() {
        std::fs::write(out, wav_bytes(&call.pcm)?)?;
    }
    Ok(())
}

/// Three seconds of mu-law, the second one loud.
fn telephone_call() -> Vec<u8> {
    let loud = |n: u32| if (n / 8).is_multiple_of(2) { 0x90 } else { 0x10 };
    let audio: Vec<u8> = (0..24_000).map(|n| if n / 8_000 == 1 { loud(n) } else { 0xFF }).collect();
    let mut wav = b"RIFF\0\0\0\0WAVEfmt \x12\0\0\0\x07\0\x01\0".to_vec();
    for word in [8_000_u32, 8_000, 0x0008_0001] {
        wav.extend(word.to_le_bytes());
    }
    wav.extend(b"\0\0data");
    wav.extend(24_000_u32.to_le_bytes());
    wav.extend(audio);
    wav
}
