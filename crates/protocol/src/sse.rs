//! Server-sent events (SSE) out of whatever pieces the network cuts them into.

use thiserror::Error;

/// Most that one line may have, bytes. A chunk of a chat completion has a few hundred.
const LONGEST_LINE: usize = 1 << 20;
/// Most data that one event may gather from its lines, bytes.
const LONGEST_EVENT: usize = 4 << 20;

/// An event stream that cannot be followed any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SseError {
    /// A line without an end.
    #[error("a line of more than {0} bytes in the event stream; is this an event stream at all?")]
    LongLine(usize),
    /// An event whose data is too long.
    #[error("an event of more than {0} bytes")]
    LongEvent(usize),
}

/// Puts lines together and events out of them. Comments (lines that begin with a colon, which servers send to keep a
/// connection alive) are counted and dropped; so are fields that are not data.
///
/// The data of an event is bytes: whether what is not UTF-8 is an error or is replaced is for the reader to say. A
/// character may be split over any number of pieces.
///
/// ```
/// use tapedeck_protocol::SseEvents;
///
/// let mut events = SseEvents::default();
/// assert!(events.push(b": alive\n\ndata: \xe4\xbd")?.is_empty());
/// assert_eq!(events.push(b"\xa0\n\ndata: [DO")?, ["\u{4f60}".as_bytes()]);
/// assert_eq!(events.push(b"NE]\r\n\r\n")?, [b"[DONE]"]);
/// # Ok::<(), tapedeck_protocol::SseError>(())
/// ```
#[derive(Debug)]
pub struct SseEvents {
    longest_line: usize,
    longest_event: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Data of the event that has not ended yet.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return: a line feed after it ends no second line.
    after_cr: bool,
    /// A line has ended: from here on no byte order mark is one.
    begun: bool,
    comments: u64,
}

impl Default for SseEvents {
    /// Lines of at most 1 MiB, events of at most 4 MiB.
    fn default() -> Self {
        Self {
            longest_line: LONGEST_LINE,
            longest_event: LONGEST_EVENT,
            line: Vec::new(),
            data: None,
            after_cr: false,
            begun: false,
            comments: 0,
        }
    }
}

impl SseEvents {
    /// A reader that keeps at most so many bytes of a line, and of an event.
    #[must_use]
    pub fn bounded(bytes: usize) -> Self {
        Self { longest_line: bytes, longest_event: bytes, ..Self::default() }
    }

    /// Takes in more bytes and returns the data of every event that they complete.
    ///
    /// # Errors
    /// A line or an event that is too long. Events that the same bytes completed before it are lost: such a stream is
    /// over.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, SseError> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => complete.extend(self.end_line()?),
                _ if self.line.len() >= self.longest_line => {
                    return Err(SseError::LongLine(self.longest_line));
                }
                _ => self.line.push(byte),
            }
        }
        Ok(complete)
    }

    /// The data of an event that the end of the stream completes. The standard drops it; servers that are cut off put
    /// their last words there.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<Option<Vec<u8>>, SseError> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.data.take())
    }

    /// Comments seen so far.
    #[must_use]
    pub const fn comments(&self) -> u64 {
        self.comments
    }

    fn end_line(&mut self) -> Result<Option<Vec<u8>>, SseError> {
        let line = std::mem::take(&mut self.line);
        let line = if std::mem::replace(&mut self.begun, true) {
            line.as_slice()
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)
        };
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        match field {
            b"" => self.comments += 1,
            b"data" => {
                let value = value.strip_prefix(b" ").unwrap_or(value);
                match &mut self.data {
                    Some(data) if data.len() + value.len() > self.longest_event => {
                        return Err(SseError::LongEvent(self.longest_event));
                    }
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                    None => self.data = Some(value.to_vec()),
                }
            }
            // event, id, retry: what the servers we read say with them changes nothing.
            _ => {}
        }
        Ok(None)
    }
}

/// Whether a content type is that of an event stream.
#[must_use]
pub fn is_event_stream(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|t| t.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &[u8] =
        b": hello\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\nid: 7\ndata:one\ndata: two\n\n\n\ndata: \xff\n\rdata: last";

    fn all(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut events = SseEvents::default();
        let mut out: Vec<_> = stream.chunks(piece).flat_map(|p| events.push(p).unwrap()).collect();
        out.extend(events.finish().unwrap());
        out
    }

    #[test]
    fn comments_and_other_fields_say_nothing() {
        let mut events = SseEvents::default();
        assert_eq!(events.push(STREAM).unwrap(), [&b"{\"a\":1}"[..], b"one\ntwo", b"\xff"]);
        assert_eq!(events.finish().unwrap().as_deref(), Some(&b"last"[..]));
        assert_eq!((events.finish(), events.comments()), (Ok(None), 1));
        assert!(events.push(b":\n\n: keep-alive\n\n").unwrap().is_empty());
        assert_eq!(events.comments(), 3);
    }

    #[test]
    fn characters_marks_and_fields_without_a_value_survive_any_cut() {
        let stream = "\u{feff}: hi\n\ndata: {\"a\":\"é你🙂\"}\r\n\r\nevent: x\rid: 7\rdata: one\rdata:two\r\r: \n\ndata\n\ndata: last";
        let whole = all(stream.as_bytes(), stream.len());
        assert_eq!(whole, ["{\"a\":\"é你🙂\"}", "one\ntwo", "", "last"].map(str::as_bytes));
        for piece in 1..12 {
            assert_eq!(all(stream.as_bytes(), piece), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn nothing_fills_the_memory() {
        let mut events = SseEvents::default();
        let flood = vec![b'x'; 64 << 10];
        let end = (0..20).find_map(|_| events.push(&flood).err());
        assert_eq!(end, Some(SseError::LongLine(LONGEST_LINE)));
        let mut events = SseEvents::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 19], b"\n"].concat();
        let end = (0..20).find_map(|_| events.push(&line).err());
        assert_eq!(end, Some(SseError::LongEvent(LONGEST_EVENT)));
        let mut events = SseEvents::bounded(8);
        assert_eq!(events.push(b"data: abc").err(), Some(SseError::LongLine(8)));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            bytes in prop_oneof![Just(STREAM.to_vec()), prop::collection::vec(any::<u8>(), 0..200)],
            piece in 1_usize..20,
        ) {
            prop_assert_eq!(all(&bytes, piece), all(&bytes, bytes.len().max(1)));
        }
    }
}
