//! What stands in for TLS in a build without the feature `tls`.

use tokio::net::TcpStream;

use crate::{ConnectError, ConnectErrorKind, Endpoint, Io, TlsError, TlsOptions};

/// Refuses to shake hands.
#[derive(Clone)]
pub(crate) struct Handshake;

impl Handshake {
    /// Options that ask for more than this build can do are refused at once.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        match &options.extra_ca_file {
            Some(path) => Err(TlsError::ExtraCa { path: path.clone(), why: WITHOUT.to_owned() }),
            None => Ok(Self),
        }
    }

    /// Says which build could.
    #[expect(clippy::unused_async, reason = "stands in for a handshake")]
    pub(crate) async fn over(&self, _tcp: TcpStream, endpoint: &Endpoint) -> Result<Io, ConnectError> {
        Err(ConnectError::new(endpoint, ConnectErrorKind::Tls, WITHOUT))
    }
}

const WITHOUT: &str = "this build speaks no TLS; it needs the feature `tls`";
