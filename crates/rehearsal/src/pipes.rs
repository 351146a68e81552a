//! Connections that never leave the process.

use std::collections::BTreeMap;

use tapedeck_engine::Balancer;
use tapedeck_transport::{BoxFuture, ConnectError, ConnectErrorKind, Connector, Endpoint, Io};

/// Host name of the balancer; instances go by their own names.
pub const BALANCER: &str = "balancer";

/// How much one side may write before the other has read, bytes: like a socket's buffers, large enough for a
/// stream's chunks and small enough for a stalled reader to be felt.
const BUFFER_BYTES: usize = 64 << 10;

/// Opens in-memory pipes to built-in engines.
#[derive(Debug)]
pub struct Pipes {
    balancers: BTreeMap<String, Balancer>,
}

impl Pipes {
    /// Pipes to these engines, through the balancer or straight to each by its name.
    #[must_use]
    pub fn new(balancer: Balancer) -> Self {
        Self { balancers: [(BALANCER.to_owned(), balancer)].into() }
    }

    /// The same, and another balancer under a host name of its own.
    #[must_use]
    pub fn and(mut self, host: String, balancer: Balancer) -> Self {
        self.balancers.insert(host, balancer);
        self
    }

    fn open(&self, endpoint: &Endpoint) -> Result<Io, ConnectError> {
        let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
        if let Some(balancer) = self.balancers.get(endpoint.host()) {
            tokio::spawn(balancer.serve(theirs));
        } else {
            let mut engines = self.balancers.values().flat_map(Balancer::engines);
            let engine = engines.find(|engine| engine.name() == endpoint.host());
            let unknown =
                || ConnectError::new(endpoint, ConnectErrorKind::Resolve, "no such built-in engine");
            tokio::spawn(engine.ok_or_else(unknown)?.serve(theirs));
        }
        Ok(Io::Pipe(ours))
    }
}

impl Connector for Pipes {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        Box::pin(std::future::ready(self.open(endpoint)))
    }
}
