//! A per-connection balancer in front of several instances of this process.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use tapedeck_server::{Upgrade, plain};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::EngineHandle;

/// Sends every connection to the instance with the fewest calls (among equals the first) and keeps it there.
/// Instances that are not up are skipped; when none is, every request is answered with 503.
///
/// Fewest calls, not in turn: calls of 30 s and of 180 s that are dealt out in turn pile up on one instance by
/// chance, and the capacity then depends on that chance more than on the engines.
///
/// It sees at once that an instance is down, unless it is made [blind for a while](Self::blind_for).
#[derive(Debug, Clone)]
pub struct Balancer {
    engines: Arc<[EngineHandle]>,
    blind: Duration,
}

impl Balancer {
    /// A balancer in front of these instances.
    #[must_use]
    pub fn new(engines: Vec<EngineHandle>) -> Self {
        Self { engines: engines.into(), blind: Duration::ZERO }
    }

    /// The same balancer, but it takes an instance that goes down for well this much longer, as one does that finds
    /// out by health checks: calls that are dealt to it meanwhile are lost.
    #[must_use]
    pub fn blind_for(self, blind: Duration) -> Self {
        Self { blind, ..self }
    }

    /// The instances, in the order in which equals are preferred.
    #[must_use]
    pub fn engines(&self) -> &[EngineHandle] {
        &self.engines
    }

    /// Serves one connection until it ends. The instance is chosen now, not when the future is first polled,
    /// so connections are dealt out in the order in which they arrived.
    pub fn serve<IO>(&self, io: IO) -> impl Future<Output = ()> + Send + 'static + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let up = self.engines.iter().filter(|engine| engine.core().seems_up(self.blind));
        let chosen = up.min_by_key(|engine| engine.core().calls()).map(EngineHandle::expect);
        async move {
            match chosen {
                Some(expected) => expected.serve(io).await,
                None => unavailable(io).await,
            }
        }
    }
}

/// Answers every request on a connection with 503.
pub(crate) async fn unavailable<IO>(io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let reply = |_| {
        let mut reply = plain(StatusCode::SERVICE_UNAVAILABLE, "No instance is up.\n");
        reply.headers_mut().insert("x-tapedeck-simulated", HeaderValue::from_static("1"));
        std::future::ready((reply, None::<Upgrade<()>>))
    };
    tapedeck_server::serve(io, reply).await;
}
