//! What sessions share, and who gets one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tapedeck_transport::{Connector, Io};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;

use crate::counters::{Counters, Refusal};
use crate::error::UpstreamError;
use crate::log::SessionLog;
use crate::options::{Backend, Options};
use crate::realtime;
use crate::upstream::{Model, Server};

/// Who hears of every session that is over.
pub(crate) type Log = Box<dyn Fn(&SessionLog) + Send + Sync>;

/// Everything that sessions share.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) counters: Counters,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) log: Log,
    open: AtomicU32,
    pub(crate) numbers: AtomicU64,
    draining: AtomicBool,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("options", &self.options)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// A place in the gateway, given back when dropped.
pub(crate) struct Place(Arc<Core>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place at a server, given back when dropped.
struct UpstreamPermit(Arc<Server>);

impl UpstreamPermit {
    fn take(server: &Arc<Server>) -> Self {
        server.enter();
        Self(Arc::clone(server))
    }
}

impl Drop for UpstreamPermit {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// An upstream that has taken a session.
pub(crate) struct Host {
    permit: UpstreamPermit,
    pub(crate) model: Model,
    /// The engine's side, for a back end that holds a connection.
    pub(crate) engine: Option<WebSocketStream<Io>>,
}

impl Host {
    pub(crate) fn server(&self) -> &Server {
        &self.permit.0
    }
}

/// A session that may begin.
pub(crate) struct Admission {
    pub(crate) host: Host,
    pub(crate) place: Place,
}

impl Core {
    pub(crate) fn new(options: Options, connector: Arc<dyn Connector>, log: Log) -> Self {
        Self {
            servers: options.upstreams.iter().map(|upstream| Arc::new(Server::new(upstream))).collect(),
            options,
            counters: Counters::default(),
            connector,
            log,
            open: AtomicU32::new(0),
            numbers: AtomicU64::new(0),
            draining: AtomicBool::new(false),
        }
    }

    /// Takes no new sessions from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn open_sessions(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Finds room here and at the least busy upstream that takes the session, or says why there is none.
    pub(crate) async fn admit(self: &Arc<Self>) -> Result<Admission, (Refusal, String)> {
        if self.is_draining() {
            return Err((Refusal::Draining, "This gateway takes no new calls.".into()));
        }
        let max = self.options.max_sessions;
        let room = |open: u32| (open < max).then_some(open + 1);
        if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            return Err((Refusal::Full, format!("All {max} sessions are taken.")));
        }
        let place = Place(Arc::clone(self));
        Ok(Admission { host: self.host().await?, place })
    }

    /// The least busy upstream that takes a session, or why there is none.
    pub(crate) async fn host(&self) -> Result<Host, (Refusal, String)> {
        let mut last = (Refusal::NoUpstream, "No upstream is up.".to_owned());
        for _ in 0..self.servers.len() {
            let Some(server) = self.servers.iter().filter(|s| s.is_up()).min_by_key(|s| s.busyness()) else {
                break;
            };
            let permit = UpstreamPermit::take(server);
            match timeout(self.options.timeout_after, self.reach(server)).await {
                Ok(Ok((model, engine))) => return Ok(Host { permit, model, engine }),
                Ok(Err(error @ UpstreamError::Connect(_))) => {
                    // Nobody there: the next one may do, and the watch finds out when this one is back.
                    server.mark(false);
                    last = (Refusal::NoUpstream, error.to_string());
                }
                Ok(Err(error)) => return Err((Refusal::Upstream, format!("{}: {error}", server.name))),
                Err(_) => {
                    let error = UpstreamError::Silent(self.options.timeout_after);
                    return Err((Refusal::Upstream, format!("{}: {error}", server.name)));
                }
            }
        }
        Err(last)
    }

    /// Makes sure that a server will take a session.
    async fn reach(&self, server: &Server) -> Result<(Model, Option<WebSocketStream<Io>>), UpstreamError> {
        let (options, connector) = (&self.options, &*self.connector);
        let bearer = options.bearer.as_ref();
        match &options.backend {
            Backend::Rolling(_) => {
                Ok((server.model(connector, bearer, options.model.as_deref()).await?, None))
            }
            Backend::Realtime(_) => {
                let model = server.model(connector, bearer, options.model.as_deref()).await?;
                let engine = realtime::open(connector, &server.endpoint, bearer, &model.id).await?;
                Ok((model, Some(engine)))
            }
        }
    }
}
