//! Real sockets.

use std::{fmt, time::Duration};

use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout_at},
};

use crate::{
    BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, Io, TlsError, TlsOptions,
    handshake::Handshake,
};

/// How real connections are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetOptions {
    /// Whom to trust.
    pub tls: TlsOptions,
    /// Limit for name look-up, TCP and TLS handshake together; 10 s by default.
    pub timeout: Duration,
}

impl Default for NetOptions {
    fn default() -> Self {
        Self { tls: TlsOptions::default(), timeout: Duration::from_secs(10) }
    }
}

/// Opens TCP connections, with TLS where the endpoint asks for it.
///
/// A name with several addresses is tried address by address in the resolver's order, each with an equal
/// share of the time that is left, so that one dead address cannot eat the whole limit.
pub struct NetConnector {
    tls: Handshake,
    options: NetOptions,
}

impl fmt::Debug for NetConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetConnector").field("options", &self.options).finish_non_exhaustive()
    }
}

impl NetConnector {
    /// A connector with the system's authorities and those of the options. Reads certificate files now, so
    /// that a bad one is a config error and not a failed call.
    ///
    /// # Errors
    /// When the extra authority file cannot be used.
    pub fn new(options: NetOptions) -> Result<Self, TlsError> {
        Ok(Self { tls: Handshake::new(&options.tls)?, options })
    }

    async fn open(&self, endpoint: &Endpoint, deadline: Instant) -> Result<Io, ConnectError> {
        let tcp = self.tcp(endpoint, deadline).await?;
        // A chunk must leave at once, not wait for company.
        tcp.set_nodelay(true).map_err(|e| ConnectError::from_io(endpoint, &e))?;
        if !endpoint.tls() {
            return Ok(Io::Tcp(tcp));
        }
        self.tls.over(tcp, endpoint).await
    }

    async fn tcp(&self, endpoint: &Endpoint, deadline: Instant) -> Result<TcpStream, ConnectError> {
        let resolve = |words: String| ConnectError::new(endpoint, ConnectErrorKind::Resolve, words);
        let addresses: Vec<_> = lookup_host((endpoint.host(), endpoint.port()))
            .await
            .map_err(|e| resolve(e.to_string()))?
            .collect();
        let mut last = resolve("the name has no address".to_owned());
        for (tried, address) in addresses.iter().enumerate() {
            let now = Instant::now();
            let share = deadline.saturating_duration_since(now)
                / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            last = match timeout_at(now + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(e)) => ConnectError::from_io(endpoint, &e),
                Err(_) => ConnectError::new(
                    endpoint,
                    ConnectErrorKind::TimedOut,
                    format!("no answer from {address}"),
                ),
            };
        }
        Err(last)
    }
}

impl Connector for NetConnector {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        Box::pin(async move {
            let deadline = Instant::now() + self.options.timeout;
            timeout_at(deadline, self.open(endpoint, deadline)).await.unwrap_or_else(|_| {
                let words = format!("no connection within {:?}", self.options.timeout);
                Err(ConnectError::new(endpoint, ConnectErrorKind::TimedOut, words))
            })
        })
    }
}
