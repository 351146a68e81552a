//! Audio that only grows: base64 once, sent again and again without being copied.
//!
//! A rolling session sends all of its audio with every window. The samples so far never change, so they are
//! encoded once; only the header, which tells the length, and the last one or two bytes differ.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// Length of the header, bytes. A multiple of three, so that the base64 of the samples begins afresh.
const HEADER_BYTES: usize = 54;
/// A RIFF file's header up to the length of the chunk `fmt `.
const RIFF_BYTES: usize = 8;
/// Samples a second.
const RATE: u32 = 16_000;

/// A WAV file of 16 kHz mono s16le in base64, which grows at its end.
#[derive(Debug, Default)]
pub(crate) struct AudioBuffer {
    /// Whole groups of three bytes, encoded.
    blocks: Vec<Bytes>,
    /// One or two bytes that wait for company.
    rest: Vec<u8>,
    pcm_bytes: usize,
    encoded_bytes: usize,
}

impl AudioBuffer {
    /// Appends samples.
    pub(crate) fn push(&mut self, pcm: &[u8]) {
        self.pcm_bytes += pcm.len();
        let fill = (3 - self.rest.len()).min(pcm.len());
        let (fill, pcm) = pcm.split_at(fill);
        self.rest.extend_from_slice(fill);
        let mut block = String::with_capacity(pcm.len() / 3 * 4 + 8);
        if self.rest.len() == 3 {
            STANDARD.encode_string(&self.rest, &mut block);
            self.rest.clear();
        }
        let (whole, rest) = pcm.split_at(pcm.len() / 3 * 3);
        STANDARD.encode_string(whole, &mut block);
        self.rest.extend_from_slice(rest);
        if !block.is_empty() {
            self.encoded_bytes += block.len();
            self.blocks.push(Bytes::from(block));
        }
    }

    /// Bytes of samples so far.
    pub(crate) const fn pcm_bytes(&self) -> usize {
        self.pcm_bytes
    }

    /// The file as it stands, as pieces that share memory with this one.
    pub(crate) fn base64(&self) -> impl Iterator<Item = Bytes> {
        let head = STANDARD.encode(header(self.pcm_bytes));
        let tail = STANDARD.encode(&self.rest);
        std::iter::once(Bytes::from(head)).chain(self.blocks.iter().cloned()).chain([Bytes::from(tail)])
    }
}

/// A WAV header for so many bytes of samples. An empty chunk of no meaning gives it its length.
fn header(pcm_bytes: usize) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(b"RIFF");
    header.extend_from_slice(&size(HEADER_BYTES - RIFF_BYTES + pcm_bytes));
    header.extend_from_slice(b"WAVEfmt ");
    header.extend_from_slice(&size(16));
    header.extend_from_slice(&1_u16.to_le_bytes()); // PCM
    header.extend_from_slice(&1_u16.to_le_bytes()); // mono
    header.extend_from_slice(&RATE.to_le_bytes());
    header.extend_from_slice(&(RATE * 2).to_le_bytes());
    header.extend_from_slice(&2_u16.to_le_bytes());
    header.extend_from_slice(&16_u16.to_le_bytes());
    header.extend_from_slice(b"JUNK");
    header.extend_from_slice(&size(2));
    header.extend_from_slice(&[0; 2]);
    header.extend_from_slice(b"data");
    header.extend_from_slice(&size(pcm_bytes));
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_pushed_the_base64_is_that_of_the_whole_file() {
        let pcm: Vec<u8> = (0..10_007_u32).map(|n| u8::try_from(n * 31 % 251).unwrap()).collect();
        for step in [1, 2, 3, 4, 1_000, 3_200, 20_000] {
            let mut buffer = AudioBuffer::default();
            for chunk in pcm.chunks(step) {
                buffer.push(chunk);
                let mut file = header(buffer.pcm_bytes());
                assert_eq!(file.len(), HEADER_BYTES);
                file.extend_from_slice(&pcm[..buffer.pcm_bytes()]);
                if buffer.pcm_bytes() % 997 < step {
                    let sent: Vec<u8> = buffer.base64().flatten().collect();
                    assert_eq!(String::from_utf8(sent).unwrap(), STANDARD.encode(&file));
                }
            }
        }
    }

    #[test]
    fn what_was_encoded_is_shared_not_copied() {
        let mut buffer = AudioBuffer::default();
        buffer.push(&[7; 64_000]);
        let first: Vec<Bytes> = buffer.base64().collect();
        buffer.push(&[8; 64_000]);
        let second: Vec<Bytes> = buffer.base64().collect();
        assert_eq!(first[1].as_ptr(), second[1].as_ptr());
    }
}
