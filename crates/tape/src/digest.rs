//! MD5 as lower-case hex: names content, and ranks it.

use std::io::Read;

use md5::{Digest, Md5};

/// MD5 of bytes in memory.
#[must_use]
pub fn md5_hex(bytes: &[u8]) -> String {
    hex(Md5::digest(bytes).as_slice())
}

/// MD5 of everything that a reader gives, and how many bytes that was.
pub(crate) fn md5_of(mut from: impl Read) -> std::io::Result<(String, u64)> {
    let mut md5 = Md5::new();
    let mut block = vec![0; 1 << 17];
    let mut total = 0;
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok((hex(md5.finalize().as_slice()), total)),
            Ok(n) => {
                md5.update(block.get(..n).unwrap_or_default());
                total += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test suite of RFC 1321.
    #[test]
    fn known_digests() {
        assert_eq!(md5_hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5_hex(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        assert_eq!(md5_of(&b"abc"[..]).unwrap(), ("900150983cd24fb0d6963f7d28e17f72".into(), 3));
    }
}
