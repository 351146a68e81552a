//! Why an HTTP request got no response, or not all of it.

use std::{borrow::Cow, time::Duration};

use thiserror::Error;

use crate::ConnectError;

/// Why there is no response.
#[derive(Debug, Error)]
pub enum HttpError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Not done within the limit.
    #[error("{asked} was not answered within {limit:?}; is the server overloaded, or the limit too short?")]
    TimedOut {
        /// Method and address.
        asked: String,
        /// The limit.
        limit: Duration,
    },
    /// The body is larger than the limit.
    #[error("{asked} answers with more than {max_bytes} bytes; is this the right path?")]
    TooLarge {
        /// Method and address.
        asked: String,
        /// The limit, bytes.
        max_bytes: usize,
    },
    /// The endpoint, a header or the bearer token cannot be put into a request.
    #[error("{asked} cannot be asked: {why}")]
    Request {
        /// Method and address.
        asked: String,
        /// Why not.
        why: String,
    },
    /// The response is not HTTP, or it broke off.
    #[error("{asked} failed: {why}; does this port speak HTTP?")]
    Broken {
        /// Method and address.
        asked: String,
        /// What the HTTP library says.
        why: String,
    },
}

impl HttpError {
    /// What went wrong, without the address where there are words for it.
    #[must_use]
    pub fn words(&self) -> Cow<'_, str> {
        match self {
            Self::Request { why, .. } | Self::Broken { why, .. } => Cow::Borrowed(why),
            Self::Connect(error) => Cow::Borrowed(error.words()),
            Self::TimedOut { .. } | Self::TooLarge { .. } => Cow::Owned(self.to_string()),
        }
    }
}
