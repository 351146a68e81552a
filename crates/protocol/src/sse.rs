//! Server-Sent Events, as far as answers of HTTP servers need them.

/// Cuts a stream of bytes into the data of its events, in whatever pieces it arrives.
///
/// ```
/// use tapedeck_protocol::Events;
///
/// let mut events = Events::default();
/// assert_eq!(events.push(b"data: {\"a\""), Vec::<String>::new());
/// assert_eq!(events.push(b":1}\r\n\r\ndata: [DONE]\n\n"), ["{\"a\":1}", "[DONE]"]);
/// ```
#[derive(Debug, Default)]
pub struct Events {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Data of the event that has not ended yet.
    data: Option<String>,
    /// The last line ended in a carriage return: a line feed now belongs to it.
    after_cr: bool,
}

impl Events {
    /// Takes in more bytes and returns the data of every event they complete. Comments, and fields that are not
    /// data, say nothing; bytes that are no UTF-8 are replaced.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        complete
    }

    /// Bytes that are kept of an event which is not complete.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// The data of an event that the end of the stream completes.
    pub fn finish(&mut self) -> Option<String> {
        let last = self.end_line();
        last.or_else(|| self.data.take())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.strip_prefix(b"data:")?;
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(&value);
            }
            None => self.data = Some(value.into_owned()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &[u8] =
        b": hello\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\nid: 7\ndata:one\ndata: two\n\n\n\ndata: \xff\n\rdata: last";

    #[test]
    fn comments_and_other_fields_say_nothing() {
        let mut events = Events::default();
        assert_eq!(events.push(STREAM), ["{\"a\":1}", "one\ntwo", "\u{fffd}"]);
        assert_eq!(events.finish().as_deref(), Some("last"));
        assert_eq!((events.finish(), events.pending()), (None, 0));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            bytes in prop_oneof![Just(STREAM.to_vec()), prop::collection::vec(any::<u8>(), 0..200)],
            piece in 1_usize..20,
        ) {
            let mut whole = Events::default();
            let mut want = whole.push(&bytes);
            want.extend(whole.finish());
            let mut events = Events::default();
            let mut got: Vec<String> = bytes.chunks(piece).flat_map(|b| events.push(b)).collect();
            got.extend(events.finish());
            prop_assert_eq!(got, want);
        }
    }
}
