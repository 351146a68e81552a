//! The gateway as a whole.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tapedeck_transport::{Connector, Io};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;

use crate::caller::{Ended, part};
use crate::error::UpstreamError;
use crate::http;
use crate::log::{Outcome, SessionLog};
use crate::options::{Backend, Options};
use crate::page::{Counters, Refusal, SessionCounters};
use crate::upstream::{Model, Server};
use crate::{OptionsError, realtime, rolling};

/// Between two rounds of health checks.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Takes calls and has them recognised upstream. Clones share everything.
#[derive(Debug, Clone)]
pub struct Gateway {
    core: Arc<Core>,
}

/// Everything that sessions share.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) counters: Counters,
    pub(crate) connector: Arc<dyn Connector>,
    log: Box<dyn Fn(&SessionLog) + Send + Sync>,
    open: AtomicU32,
    numbers: AtomicU64,
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
        let servers = options.upstreams.iter().map(|upstream| Arc::new(Server::new(upstream))).collect();
        Ok(Self {
            core: Arc::new(Core {
                options,
                servers,
                counters: Counters::default(),
                connector,
                log: Box::new(log),
                open: AtomicU32::new(0),
                numbers: AtomicU64::new(0),
                draining: AtomicBool::new(false),
            }),
        })
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
        self.core.draining.store(true, Ordering::Relaxed);
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

/// A place in the gateway, given back when dropped.
struct Place(Arc<Core>);

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
    engine: Option<WebSocketStream<Io>>,
}

impl Host {
    pub(crate) fn server(&self) -> &Server {
        &self.permit.0
    }
}

/// A session that may begin.
pub(crate) struct Admission {
    host: Host,
    place: Place,
}

impl Core {
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

    /// Leads a whole call.
    pub(crate) async fn converse<IO>(&self, mut caller: WebSocketStream<IO>, admit: Admission)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let began = Instant::now();
        let session = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let Admission { mut host, place } = admit;
        let counts = SessionCounters::default();
        let ended = match (&self.options.backend, host.engine.take()) {
            (Backend::Realtime(realtime), Some(mut engine)) => {
                realtime::converse(&mut caller, &mut engine, &self.options, realtime, &host, &counts).await
            }
            (Backend::Rolling(rolling), _) => {
                rolling::converse(&mut caller, self, &mut host, rolling, &counts).await
            }
            (Backend::Realtime(_), None) => Ended {
                outcome: Outcome::UpstreamFailed,
                why: Some("the engine's connection was lost before the call".into()),
            },
        };
        let upstream = host.server().name.clone();
        self.counters.end(ended.outcome, &counts);
        // The place is free before the caller learns that the call is over.
        drop((host, place));
        (self.log)(&SessionLog {
            session,
            upstream: upstream.clone(),
            moves: counts.moves(),
            backend: self.options.backend.name(),
            outcome: ended.outcome,
            why: ended.why.clone(),
            wall_s: began.elapsed().as_secs_f64(),
            audio_s: f64::from(crate::options::audio_ms(counts.audio_bytes())) / 1_000.0,
            windows: counts.windows(),
            messages: counts.messages(),
            chars: counts.chars(),
        });
        part(&mut caller, &ended, &upstream).await;
    }
}
