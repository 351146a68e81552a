//! The gateway as a whole.

use std::sync::Arc;
use std::time::Duration;

use tapedeck_transport::Connector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

use crate::OptionsError;
use crate::core::Core;
use crate::http;
use crate::log::SessionLog;
use crate::options::Options;

/// Between two rounds of health checks.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Takes calls and has them recognised upstream. Clones share everything.
#[derive(Debug, Clone)]
pub struct Gateway {
    core: Arc<Core>,
}

impl Gateway {
    /// A gateway that connects through `connector` and tells `log` about every session that is over.
    ///
    /// # Errors
    /// Options that cannot work.
    pub fn new(
        options: Options,
        connector: Arc<dyn Connector>,
        log: impl Fn(&SessionLog) + Send + Sync + 'static,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self { core: Arc::new(Core::new(options, connector, Box::new(log))) })
    }

    /// Serves one connection until it ends: HTTP/1.1 with `GET /health`, `GET /metrics`, and the WebSocket
    /// upgrade at `/asr` and `/`.
    pub fn serve<IO>(&self, io: IO) -> impl Future<Output = ()> + Send + 'static + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        http::serve(Arc::clone(&self.core), io)
    }

    /// Asks every upstream for `/health` once. Those that do not answer get no sessions until they do.
    pub async fn check(&self) {
        let checks = self.core.servers.iter().map(|server| server.check(&*self.core.connector));
        futures_util::future::join_all(checks).await;
    }

    /// Checks once a second, for ever.
    pub async fn watch(&self) {
        loop {
            self.check().await;
            sleep(WATCH_EVERY).await;
        }
    }

    /// Takes no new sessions from now on; `/health` says so with 503. Those that are open go on.
    pub fn drain(&self) {
        self.core.drain();
    }

    /// Sessions that are not over yet.
    #[must_use]
    pub fn open_sessions(&self) -> u32 {
        self.core.open_sessions()
    }

    /// Upstreams that get sessions now.
    #[must_use]
    pub fn upstreams_up(&self) -> usize {
        self.core.servers.iter().filter(|server| server.is_up()).count()
    }
}
