//! The WAV reader: whatever the bytes are, it decodes them or says why not, and its two ways in agree.

use std::io::Cursor;

use tapedeck_audio::{decode, probe_reader};

/// One input.
pub fn run(data: &[u8]) {
    let probed = probe_reader(&mut Cursor::new(data), data.len() as u64);
    match decode(data) {
        Ok(recording) => {
            let (info, channels) = (&recording.info, &recording.channels);
            assert_eq!(usize::from(info.channels), channels.len());
            assert!(channels.iter().all(|samples| samples.len() as u64 == info.frames));
            // No header makes more audio than there are bytes.
            assert!(info.frames <= data.len() as u64);
            assert!(channels.iter().flatten().all(|sample| sample.is_finite() && sample.abs() <= 1.0));
            let probed = probed.expect("what can be decoded can be probed");
            assert_eq!((probed.frames, probed.sample_rate_hz), (info.frames, info.sample_rate_hz));
            let _ = info.duration_ms();
            assert!(info.warnings.iter().all(|warning| !warning.to_string().is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
