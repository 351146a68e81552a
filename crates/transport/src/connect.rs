//! The seam between what is said and what carries it.

use std::{fmt, pin::Pin};

use thiserror::Error;

use crate::{Endpoint, Io};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens connections. Real sockets and in-memory pipes differ only here.
pub trait Connector: Send + Sync + fmt::Debug {
    /// Connects, TLS included where the endpoint asks for it. Never waits for ever: an implementation has its
    /// own time-out, and callers may set a shorter one around it.
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>>;
}

/// What kind of failure it was: a closed list, because outcomes are decided from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectErrorKind {
    /// The host name has no address.
    Resolve,
    /// Nobody listens there.
    Refused,
    /// No route, network down, or the like.
    Unreachable,
    /// No answer within the limit.
    TimedOut,
    /// The TCP connection stood, the TLS handshake failed.
    Tls,
    /// Anything else, in the system's words.
    Other,
}

impl ConnectErrorKind {
    /// What the reader may try.
    const fn hint(self) -> &'static str {
        match self {
            Self::Resolve => "check the host name, or write the address itself",
            Self::Refused => "is the server started, and is the port right?",
            Self::Unreachable => "check the route and the firewall between here and there",
            Self::TimedOut => {
                "a firewall that drops packets, an overloaded server, or a limit that is too short"
            }
            Self::Tls => {
                "check the certificate's name and authority (an extra authority can be given in the config), \
                 and that the port speaks TLS"
            }
            Self::Other => "see the system's words",
        }
    }
}

/// A connection that did not come to be: where, what, and what to try.
#[derive(Debug, Clone, Error)]
#[error("cannot connect to {endpoint}: {words}; {}", .kind.hint())]
pub struct ConnectError {
    endpoint: String,
    kind: ConnectErrorKind,
    words: String,
}

impl ConnectError {
    /// A failure of `kind` at `endpoint`, in the system's words.
    #[must_use]
    pub fn new(endpoint: &Endpoint, kind: ConnectErrorKind, words: impl Into<String>) -> Self {
        Self { endpoint: endpoint.to_string(), kind, words: words.into() }
    }

    /// Sorts a system error into its kind.
    #[must_use]
    pub fn from_io(endpoint: &Endpoint, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let kind = match error.kind() {
            K::ConnectionRefused => ConnectErrorKind::Refused,
            K::HostUnreachable | K::NetworkUnreachable | K::NetworkDown | K::AddrNotAvailable => {
                ConnectErrorKind::Unreachable
            }
            K::TimedOut => ConnectErrorKind::TimedOut,
            _ => ConnectErrorKind::Other,
        };
        Self::new(endpoint, kind, error.to_string())
    }

    /// What kind of failure it was.
    #[must_use]
    pub const fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// The other side's or the system's own words.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}
