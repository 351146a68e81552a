//! What a connection says.

use std::{fmt, ops::Deref, str::Utf8Error};

use bytes::Bytes;

/// Shared bytes that are known to be UTF-8: cloning one copies nothing.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Utf8(Bytes);

impl Utf8 {
    /// The bytes themselves.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The bytes themselves, taken.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Utf8 {
    type Target = str;

    fn deref(&self) -> &str {
        // Checked by every constructor, so the empty text never shows.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<String> for Utf8 {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&'static str> for Utf8 {
    fn from(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }
}

impl TryFrom<Bytes> for Utf8 {
    type Error = Utf8Error;

    fn try_from(bytes: Bytes) -> Result<Self, Utf8Error> {
        std::str::from_utf8(&bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Utf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// One message that a dialect sends. Cloning one copies no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A text message.
    Text(Utf8),
    /// A binary message.
    Binary(Bytes),
}

impl Frame {
    /// Payload bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.0.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether it carries nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The audio as binary frames of `chunk_bytes` each, the last possibly shorter: slices, nothing is copied.
pub(crate) fn slices(pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
    chunks(pcm, chunk_bytes).map(Frame::Binary).collect()
}

/// The same as bare bytes.
pub(crate) fn chunks(pcm: &Bytes, chunk_bytes: usize) -> impl Iterator<Item = Bytes> {
    let step = chunk_bytes.max(1);
    (0..pcm.len()).step_by(step).map(move |at| pcm.slice(at..pcm.len().min(at.saturating_add(step))))
}
