//! One connector over TCP, TLS and in-memory pipes, and one HTTP client over it.
//!
//! Everything that leaves the process goes through a [`Connector`]: the real one ([`NetConnector`]) opens TCP
//! and TLS connections, a rehearsal's opens in-memory pipes, and whoever talks over the resulting [`Io`]
//! cannot tell the difference.
//!
//! ```
//! use tapedeck_transport::Endpoint;
//!
//! let endpoint: Endpoint = "wss://[::1]:8443/asr?lang=en".parse()?;
//! assert!(endpoint.tls());
//! assert_eq!((endpoint.host(), endpoint.port()), ("::1", 8443));
//! assert_eq!(endpoint.path_and_query(), "/asr?lang=en");
//! // No port means the scheme's usual one.
//! assert_eq!("http://gpu-host/metrics".parse::<Endpoint>()?.port(), 80);
//! # Ok::<(), tapedeck_transport::EndpointError>(())
//! ```
//!
//! Read on in [`Endpoint`] (where to), [`Connector`] (how to get there), [`ConnectError`] (why not),
//! [`http_get`] (one bounded GET) and [`Request`] (any request, with its response as it arrives). Limits: no proxies, no
//! HTTP/2, no redirects; nothing here knows what is said over a connection.

mod connect;
mod endpoint;
mod error;
mod get;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod handshake;
mod io;
mod net;
mod request;
mod secret;
mod tls;

pub use connect::{BoxFuture, ConnectError, ConnectErrorKind, Connector};
pub use endpoint::{Endpoint, EndpointError};
pub use error::HttpError;
pub use get::{HttpLimits, Response, http_get};
pub use io::Io;
pub use net::{NetConnector, NetOptions};
pub use request::{Request, ResponseStream};
pub use secret::{Secret, SecretError};
pub use tls::{TlsError, TlsOptions};
