//! Names for what we meet: containers by their first bytes, WAV formats by their tag.

use crate::error::AudioError;

/// PCM.
pub(crate) const TAG_PCM: u16 = 0x0001;
/// IEEE float.
pub(crate) const TAG_FLOAT: u16 = 0x0003;
/// G.711 A-law.
pub(crate) const TAG_A_LAW: u16 = 0x0006;
/// G.711 mu-law.
pub(crate) const TAG_MU_LAW: u16 = 0x0007;
/// The real tag is in the extension.
pub(crate) const TAG_EXTENSIBLE: u16 = 0xFFFE;

/// What the first bytes of a file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// RIFF/WAVE, or RF64 and BW64, whose sizes have 64 bits.
    Wav,
    /// Free Lossless Audio Codec.
    Flac,
    /// MPEG audio, with or without an ID3 tag.
    Mp3,
}

/// Tells containers apart by content, never by the file's name.
pub(crate) fn sniff(start: &[u8]) -> Result<Container, AudioError> {
    let form = start.get(8..12);
    match start.get(..4) {
        None if start.is_empty() => return Err(AudioError::EmptyFile),
        Some(b"RIFF" | b"RF64" | b"BW64") => {
            return match form {
                Some(b"WAVE") => Ok(Container::Wav),
                None => Err(AudioError::CutHeader { bytes: start.len() as u64 }),
                Some(b"AVI ") => Err(AudioError::Container { name: "AVI" }),
                Some(_) => Err(AudioError::Container { name: "RIFF that is not WAVE" }),
            };
        }
        Some(b"RIFX") => return Err(AudioError::Container { name: "RIFX (big-endian WAV)" }),
        Some(b"riff") => return Err(AudioError::Container { name: "Wave64" }),
        Some(b"fLaC") => return Ok(Container::Flac),
        Some(b"OggS") => return Err(AudioError::Container { name: "Ogg (Vorbis or Opus)" }),
        Some(b".snd") => return Err(AudioError::Container { name: "AU (.snd)" }),
        Some(b"FORM") => return Err(AudioError::Container { name: "AIFF" }),
        Some(b"caff") => return Err(AudioError::Container { name: "Core Audio (CAF)" }),
        Some(b"#!AM") => return Err(AudioError::Container { name: "AMR" }),
        Some(b"#!SI") => return Err(AudioError::Container { name: "SILK" }),
        Some(b"\x1A\x45\xDF\xA3") => return Err(AudioError::Container { name: "Matroska or WebM" }),
        Some(b"\x30\x26\xB2\x75") => return Err(AudioError::Container { name: "ASF (WMA)" }),
        Some(b"NIST") => return Err(AudioError::Container { name: "NIST SPHERE" }),
        _ => {}
    }
    if start.get(4..8) == Some(b"ftyp") {
        return Err(AudioError::Container { name: "MPEG-4 (m4a, AAC)" });
    }
    if start.starts_with(b"ID3") {
        return Ok(Container::Mp3);
    }
    // An MPEG audio frame: eleven set bits, then a version, layer III and a bit rate that exist.
    if let [0xFF, b1, b2, ..] = *start {
        if b1 & 0xF6 == 0xF0 {
            return Err(AudioError::Container { name: "raw AAC (ADTS)" });
        }
        if b1 & 0xE0 == 0xE0
            && b1 & 0x18 != 0x08
            && b1 & 0x06 == 0x02
            && b2 & 0xF0 != 0xF0
            && b2 & 0x0C != 0x0C
        {
            return Ok(Container::Mp3);
        }
    }
    Err(AudioError::NotAudio { start: describe(start) })
}

/// The first bytes, quoted if they are text and in hex if not.
fn describe(start: &[u8]) -> String {
    let head = start.get(..start.len().min(16)).unwrap_or_default();
    if head.iter().all(|b| b.is_ascii_graphic() || matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
        format!("{:?}", String::from_utf8_lossy(head))
    } else {
        head.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
    }
}

/// The name of a WAV format that we do not read.
pub(crate) const fn refused_format(tag: u16) -> AudioError {
    let name = match tag {
        0x0002 => "Microsoft ADPCM",
        0x0011 => "IMA ADPCM",
        0x0010 => "OKI ADPCM (VOX)",
        0x0014 | 0x0040 => "G.721 ADPCM",
        0x0020 => "Yamaha ADPCM",
        0x0022 => "TrueSpeech",
        0x0031 => "GSM 6.10",
        0x0042 | 0x0111 => "G.723.1",
        0x0045 | 0x0064 => "G.726 ADPCM",
        0x0050 => "MPEG layer 1 or 2",
        0x0055 => "MP3",
        0x0065 => "G.722",
        0x0083 | 0x0133 => "G.729",
        0x00FF => "AAC",
        0x0160..=0x0163 => "Windows Media Audio",
        0x2000 => "Dolby AC-3",
        0x674F..=0x6751 => "Vorbis",
        0x704F => "Opus",
        0xA109 => "Speex",
        0xF1AC => "FLAC",
        TAG_EXTENSIBLE => "an extensible format without a known sub-format",
        _ => "an unknown format",
    };
    AudioError::Format { tag, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        assert_eq!(sniff(b"RIFF\0\0\0\0WAVEfmt "), Ok(Container::Wav));
        assert_eq!(sniff(b"ID3\x04\0\0\0\0\0\0\0\0"), Ok(Container::Mp3));
        assert_eq!(sniff(&[0xFF, 0xFB, 0x90, 0x64]), Ok(Container::Mp3));
        assert_eq!(sniff(b""), Err(AudioError::EmptyFile));
        assert_eq!(sniff(b"RIFF\0\0"), Err(AudioError::CutHeader { bytes: 6 }));
        assert!(matches!(sniff(b"OggS\0\0\0\0"), Err(AudioError::Container { .. })));
        let html = sniff(b"<!DOCTYPE html><html>").unwrap_err().to_string();
        assert!(html.contains("<!DOCTYPE"), "{html}");
    }
}
