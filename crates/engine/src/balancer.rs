//! A per-connection balancer in front of several instances of this process.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::{EngineHandle, State};

/// Sends every connection to one instance, in turn, and keeps it there. Instances that are not up are skipped;
/// when none is, every request is answered with 503. Clones share the turn.
#[derive(Debug, Clone)]
pub struct Balancer {
    engines: Arc<[EngineHandle]>,
    turn: Arc<AtomicUsize>,
}

impl Balancer {
    /// A balancer in front of these instances.
    #[must_use]
    pub fn new(engines: Vec<EngineHandle>) -> Self {
        Self { engines: engines.into(), turn: Arc::default() }
    }

    /// The instances, in the order of their turns.
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
        let chosen = self.choose();
        async move {
            match chosen {
                Some(engine) => engine.serve(io).await,
                None => unavailable(io).await,
            }
        }
    }

    /// The next instance in turn that is up.
    fn choose(&self) -> Option<EngineHandle> {
        (0..self.engines.len()).find_map(|_| {
            let n = self.turn.fetch_add(1, Ordering::Relaxed) % self.engines.len();
            self.engines.get(n).filter(|engine| engine.state() == State::Up).cloned()
        })
    }
}

/// Answers every request on a connection with 503.
pub(crate) async fn unavailable<IO>(io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|_| {
        let mut response = Response::new(Full::new(Bytes::from_static(b"No instance is up.\n")));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert("x-tapedeck-simulated", HeaderValue::from_static("1"));
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // An error here is a client that went away: there is nobody left to tell.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(io), service).await;
}
