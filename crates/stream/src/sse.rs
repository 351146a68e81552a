//! Server-sent events out of whatever pieces the network cuts them into.

use bytes::Bytes;
use thiserror::Error;

/// Longest line, bytes. A chunk of a chat completion has a few hundred.
pub const LONGEST_LINE: usize = 1 << 20;
/// Most data that one event may gather from its lines, bytes.
const LONGEST_EVENT: usize = 4 << 20;

/// An event stream that cannot be followed any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SseError {
    /// A line beyond [`LONGEST_LINE`].
    #[error("a line of more than {LONGEST_LINE} bytes in the event stream; is this an event stream at all?")]
    LongLine,
    /// An event whose data is too long.
    #[error("an event of more than {LONGEST_EVENT} bytes")]
    LongEvent,
    /// A line that is not UTF-8, once it is whole.
    #[error("a line of the event stream is not UTF-8")]
    NotUtf8,
}

/// Puts lines together and events out of them. A character may be split over any number of pieces; comments
/// (lines that begin with a colon, which servers send to keep a connection alive) are counted and dropped.
///
/// ```
/// use tapedeck_stream::sse::Events;
///
/// let mut events = Events::default();
/// assert_eq!(events.push(b": alive\n\ndata: \xe4\xbd")?, Vec::<String>::new());
/// assert_eq!(events.push(b"\xa0\n\ndata: [DO")?, ["\u{4f60}"]);
/// assert_eq!(events.push(b"NE]\r\n\r\n")?, ["[DONE]"]);
/// # Ok::<(), tapedeck_stream::sse::SseError>(())
/// ```
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a carriage return: a line feed after it ends no second line.
    after_cr: bool,
    begun: bool,
    comments: u64,
}

impl Events {
    /// The data of every event that this piece completes.
    ///
    /// # Errors
    /// A line or an event that is too long, or not UTF-8.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, SseError> {
        let mut out = Vec::new();
        for &byte in piece {
            match byte {
                b'\n' if std::mem::take(&mut self.after_cr) => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    self.end_of_line(&mut out)?;
                }
                _ => {
                    self.after_cr = false;
                    if self.line.len() >= LONGEST_LINE {
                        return Err(SseError::LongLine);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(out)
    }

    /// What stands in the buffers when the stream ends without a last empty line: its data, if it has any. The
    /// standard drops it; servers that are cut off say their last words there.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<Vec<String>, SseError> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_of_line(&mut out)?;
        }
        out.extend(self.data.take());
        Ok(out)
    }

    /// Comments seen so far.
    #[must_use]
    pub const fn comments(&self) -> u64 {
        self.comments
    }

    fn end_of_line(&mut self, out: &mut Vec<String>) -> Result<(), SseError> {
        let bytes = std::mem::take(&mut self.line);
        let bytes = if std::mem::replace(&mut self.begun, true) {
            &bytes[..]
        } else {
            bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)
        };
        if bytes.is_empty() {
            out.extend(self.data.take());
            return Ok(());
        }
        let line = std::str::from_utf8(bytes).map_err(|_| SseError::NotUtf8)?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        match field {
            "" => self.comments += 1,
            "data" => {
                let value = value.strip_prefix(' ').unwrap_or(value);
                match &mut self.data {
                    Some(data) if data.len() + value.len() > LONGEST_EVENT => {
                        return Err(SseError::LongEvent);
                    }
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.data = Some(value.to_owned()),
                }
            }
            // event, id, retry: nothing that a chat completion says with them changes what it is.
            _ => {}
        }
        Ok(())
    }
}

/// Whether a content type is that of an event stream.
#[must_use]
pub fn is_event_stream(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|t| t.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The first bytes of a body as words for a message: cut, and whatever is no text replaced.
#[must_use]
pub fn words_of(body: &Bytes) -> String {
    String::from_utf8_lossy(body.get(..body.len().min(300)).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stream: &[u8], piece: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut out: Vec<String> = stream.chunks(piece).flat_map(|p| events.push(p).unwrap()).collect();
        out.extend(events.finish().unwrap());
        out
    }

    #[test]
    fn pieces_make_no_difference() {
        let stream = "\u{feff}: hi\n\ndata: {\"a\":\"é你🙂\"}\r\n\r\nevent: x\rid: 7\rdata: one\rdata:two\r\r: \n\ndata\n\ndata: last";
        let whole = all(stream.as_bytes(), stream.len());
        assert_eq!(whole, ["{\"a\":\"é你🙂\"}", "one\ntwo", "", "last"]);
        for piece in 1..12 {
            assert_eq!(all(stream.as_bytes(), piece), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn comments_are_no_events() {
        let mut events = Events::default();
        assert!(events.push(b":\n\n: keep-alive\n\n").unwrap().is_empty());
        assert_eq!(events.comments(), 2);
    }

    #[test]
    fn nothing_fills_the_memory() {
        let mut events = Events::default();
        let flood = vec![b'x'; 64 << 10];
        let end = (0..20).find_map(|_| events.push(&flood).err());
        assert_eq!(end, Some(SseError::LongLine));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 19], b"\n"].concat();
        let end = (0..20).find_map(|_| events.push(&line).err());
        assert_eq!(end, Some(SseError::LongEvent));
        assert_eq!(Events::default().push(b"data: \xff\n"), Err(SseError::NotUtf8));
    }
}
