//! One instance: the model on tokio's clock, and who is connected to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tapedeck_engine_model::{
    Counters, Heard, Model, Output, OutputKind, ParamError, Params, Refused, SessionId,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::fixtures::Fixtures;
use crate::options::Options;

/// Outputs that wait for one session's socket. Each carries its position only (the text is made when it is
/// sent), and a newer one covers an older one, so beyond this the oldest is given up.
const PENDING: usize = 64;

/// Starts instances.
#[derive(Debug)]
pub struct Engine;

/// A handle on a running instance; clones share it, and the instance ends when the last one is dropped.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// use tapedeck_engine::{Engine, Fixtures, Options, Params};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let engine = Engine::spawn(Params::default(), Fixtures::default().into(), Options::new("inst1", 7))?;
/// let (mut client, server) = tokio::io::duplex(4096);
/// tokio::spawn(engine.serve(server));
/// client.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).await?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EngineHandle {
    core: Arc<Core>,
}

/// What an instance is able to do at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Takes calls.
    Up,
    /// Finishes its calls and takes no new ones; `/health` answers 503.
    Draining,
    /// The process still answers, but its engine is dead: `/health` answers 503, every call has failed.
    Dead,
    /// The process is gone: connections break and new ones are dropped without a word.
    Gone,
    /// The process is stopped (SIGSTOP): connections stand, new ones are taken by the kernel, nobody answers.
    Frozen,
}

/// What the instance's tasks share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) params: Params,
    pub(crate) options: Options,
    pub(crate) fixtures: Arc<Fixtures>,
    inner: Mutex<Inner>,
    /// Connections that were dealt out and have not asked for a call yet.
    expected: AtomicUsize,
    wake: Arc<Notify>,
    /// Tells those who wait for a frozen process that it goes on.
    thawed: Notify,
}

#[derive(Debug)]
struct Inner {
    /// When the instance was started, or started anew: zero of the model's own time.
    start: Instant,
    /// Since when the process is frozen, if it is: its own time stands still.
    frozen: Option<Instant>,
    model: Model,
    state: State,
    /// Since when it is in this state.
    since: Instant,
    links: BTreeMap<SessionId, Arc<Link>>,
    outputs: Vec<Output>,
    /// When the engine task will wake on its own, ns from the start.
    armed_ns: u64,
    next_session: SessionId,
    /// Of the noise in steps and words.
    seed: u64,
    /// Starts anew since that seed was given: each has noise of its own.
    restarts: u64,
    sockets: Sockets,
}

/// What the front door counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sockets {
    pub(crate) active: u64,
    pub(crate) total: u64,
}

/// The way from the engine to one session.
#[derive(Debug, Default)]
struct Link {
    queue: Mutex<VecDeque<News>>,
    /// Whether the queue holds something; looked at once a chunk, so it is no lock.
    full: AtomicBool,
    waker: AtomicWaker,
}

/// What the engine tells a session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News {
    /// Something to say.
    Output(OutputKind),
    /// The engine died; the call has failed.
    Dead,
    /// The process is gone; break the connection.
    Gone,
}

impl Engine {
    /// Starts an instance. Must be called within a tokio runtime, whose clock it lives on.
    ///
    /// # Errors
    /// The parameters describe no engine that can make progress.
    pub fn spawn(
        params: Params,
        fixtures: Arc<Fixtures>,
        options: Options,
    ) -> Result<EngineHandle, ParamError> {
        let wake = Arc::new(Notify::new());
        let core = Arc::new(Core {
            inner: Mutex::new(Inner {
                start: Instant::now(),
                frozen: None,
                model: Model::new(params.clone(), options.seed)?,
                state: State::Up,
                since: Instant::now(),
                links: BTreeMap::new(),
                outputs: Vec::new(),
                armed_ns: u64::MAX,
                next_session: 0,
                seed: options.seed,
                restarts: 0,
                sockets: Sockets::default(),
            }),
            expected: AtomicUsize::new(0),
            params,
            options,
            fixtures,
            wake: Arc::clone(&wake),
            thawed: Notify::new(),
        });
        tokio::spawn(run(Arc::downgrade(&core), wake));
        Ok(EngineHandle { core })
    }
}

impl EngineHandle {
    pub(crate) const fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Counts a connection as a call until it asks for one or ends.
    pub(crate) fn expect(&self) -> Expected {
        self.core.expected.fetch_add(1, Ordering::Relaxed);
        Expected(Arc::clone(&self.core))
    }

    /// Name of the instance.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.options.name
    }

    /// The parameters it was started with.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.core.params
    }

    /// What it is able to do at the moment.
    #[must_use]
    pub fn state(&self) -> State {
        self.core.lock().state
    }

    /// The model's gauges and counters at this instant.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.counters().0
    }

    /// WebSockets that are open, those in their closing handshake included.
    #[must_use]
    pub fn open_sockets(&self) -> u64 {
        self.core.lock().sockets.active
    }

    /// Finishes the calls that are open and takes no new ones.
    pub fn drain(&self) {
        let mut inner = self.core.lock();
        if inner.state == State::Up {
            inner.enter(State::Draining);
        }
    }

    /// Stops the process where it is, as SIGSTOP does.
    pub fn freeze(&self) {
        let mut inner = self.core.lock();
        if inner.state == State::Up {
            inner.enter(State::Frozen);
            inner.frozen = Some(Instant::now());
        }
    }

    /// Lets a frozen process go on where it stopped, as SIGCONT does.
    pub fn thaw(&self) {
        self.core.melt();
    }

    /// Kills the engine behind the front door: every call fails, `/health` and `/metrics` still answer.
    pub fn fail(&self) {
        self.core.end_all(State::Dead, News::Dead);
    }

    /// Kills the process: every connection breaks, new ones are dropped.
    pub fn kill(&self) {
        self.core.end_all(State::Gone, News::Gone);
        self.core.melt();
    }

    /// Begins a part of a run whose noise follows from this seed alone, that of the restarts in it included. An idle
    /// engine forgets what came before, as [`Model::renew`] has it; one with open calls keeps them.
    pub fn renew(&self, seed: u64) {
        let core = &self.core;
        let mut inner = core.lock();
        (inner.seed, inner.restarts) = (seed, 0);
        if inner.state != State::Up || !inner.links.is_empty() || inner.sockets.active > 0 {
            inner.model.reseed(seed);
            return;
        }
        let now_ns = inner.now_ns();
        inner.model.renew(now_ns, seed);
        (inner.next_session, inner.sockets) = (0, Sockets::default());
        drop(inner);
        core.wake.notify_one();
    }

    /// Starts a dead instance anew: empty, its counters and its own time at 0.
    pub fn revive(&self) {
        let core = &self.core;
        core.end_all(State::Dead, News::Dead);
        core.melt();
        let mut inner = core.lock();
        inner.restarts += 1;
        let seed = inner.seed.wrapping_add(inner.restarts << 32);
        if let Ok(model) = Model::new(core.params.clone(), seed) {
            inner.model = model;
            inner.start = Instant::now();
            inner.sockets = Sockets::default();
            inner.enter(State::Up);
            drop(inner);
            // The engine task still sleeps by the old time.
            core.wake.notify_one();
        }
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way through a change; a poisoned lock is as good as a clean one.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `change` act on the model now, and wakes the engine task where something is due sooner than it
    /// thinks.
    fn act<T>(&self, change: impl FnOnce(&mut Inner, u64) -> T) -> T {
        let mut inner = self.lock();
        let now_ns = inner.now_ns();
        let done = change(&mut inner, now_ns);
        // What falls due at this very instant is left to the engine task: everything else that happens now
        // goes before it.
        if let Some(next_ns) = inner.model.next_event_ns().filter(|next_ns| *next_ns < inner.armed_ns) {
            inner.armed_ns = next_ns;
            self.wake.notify_one();
        }
        done
    }

    /// What the metrics page shows.
    pub(crate) fn counters(&self) -> (Counters, Sockets) {
        self.act(|inner, now_ns| {
            inner.advance(now_ns);
            (inner.model.counters(), inner.sockets)
        })
    }

    pub(crate) fn state(&self) -> State {
        self.lock().state
    }

    /// Calls that are open, and connections that will ask for one.
    pub(crate) fn calls(&self) -> usize {
        self.lock().links.len() + self.expected.load(Ordering::Relaxed)
    }

    /// Ends a freeze, if there is one: the process's own time goes on where it stood.
    fn melt(&self) {
        let mut inner = self.lock();
        if let Some(frozen) = inner.frozen.take() {
            inner.start += frozen.elapsed();
            if inner.state == State::Frozen {
                inner.enter(State::Up);
            }
        }
        drop(inner);
        self.wake.notify_one();
        self.thawed.notify_waiters();
    }

    /// Waits while the process is frozen.
    pub(crate) async fn until_thawed(&self) {
        loop {
            let thawed = self.thawed.notified();
            if self.state() != State::Frozen {
                return;
            }
            thawed.await;
        }
    }

    /// Whether a balancer that looks for trouble only every so often still takes the instance for well.
    pub(crate) fn seems_up(&self, blind: Duration) -> bool {
        let inner = self.lock();
        inner.state == State::Up || (!blind.is_zero() && inner.since.elapsed() < blind)
    }

    fn end_all(&self, state: State, news: News) {
        self.act(|inner, now_ns| {
            inner.enter(state);
            for (session, link) in std::mem::take(&mut inner.links) {
                inner.model.drop_session(now_ns, session);
                link.push(news);
            }
        });
    }

    /// The seed of the noise as it is.
    pub(crate) fn seed(&self) -> u64 {
        self.lock().seed
    }

    /// Opens a session, or says why not.
    pub(crate) fn open(self: &Arc<Self>) -> Result<Permit, Refused> {
        let (session, link) = self.act(|inner, now_ns| {
            let session = inner.next_session;
            inner.model.open(now_ns, session)?;
            inner.next_session += 1;
            let link = Arc::new(Link::default());
            inner.links.insert(session, Arc::clone(&link));
            Ok((session, link))
        })?;
        Ok(Permit { core: Arc::clone(self), session, link })
    }

    /// Counts a WebSocket until the guard is dropped.
    pub(crate) fn socket(self: &Arc<Self>) -> SocketGuard {
        let mut inner = self.lock();
        inner.sockets.active += 1;
        inner.sockets.total += 1;
        SocketGuard(Arc::clone(self))
    }
}

/// A connection that was dealt to an instance; counts as a call until it is dropped.
#[derive(Debug)]
pub(crate) struct Expected(Arc<Core>);

impl Expected {
    pub(crate) const fn core(&self) -> &Arc<Core> {
        &self.0
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.expected.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl Inner {
    /// Nanoseconds since the instance started. Read inside the lock, so that the model never sees time go back.
    fn now_ns(&self) -> u64 {
        let now = self.frozen.unwrap_or_else(Instant::now);
        u64::try_from(now.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.since = Instant::now();
    }

    fn advance(&mut self, now_ns: u64) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.model.advance(now_ns, &mut outputs);
        for output in outputs.drain(..) {
            let over = matches!(output.kind, OutputKind::Final { .. } | OutputKind::Failed(_));
            let link = if over {
                self.links.remove(&output.session)
            } else {
                self.links.get(&output.session).cloned()
            };
            if let Some(link) = link {
                link.push(News::Output(output.kind));
            }
        }
        self.outputs = outputs;
    }
}

impl Link {
    fn push(&self, news: News) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= PENDING {
            queue.pop_front();
        }
        queue.push_back(news);
        self.full.store(true, Ordering::Release);
        drop(queue);
        self.waker.wake();
    }
}

/// A session's place in the engine. Dropping it takes the session out of the model at once.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) core: Arc<Core>,
    session: SessionId,
    link: Arc<Link>,
}

impl Permit {
    /// The session's number, counted from 0 since the instance was renewed.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Tells the model how much audio it has by now.
    pub(crate) fn audio(&self, heard: Heard) {
        self.core.act(|inner, now_ns| inner.model.audio(now_ns, self.session, heard));
    }

    /// Tells the model that all audio is there.
    pub(crate) fn end(&self, heard: Heard) {
        self.core.act(|inner, now_ns| {
            inner.model.audio(now_ns, self.session, heard);
            inner.model.end(now_ns, self.session);
        });
    }

    /// The next thing to say. Cheap when there is none: two atomic operations.
    pub(crate) fn poll_news(&self, cx: &mut Context<'_>) -> Poll<News> {
        if !self.link.full.load(Ordering::Acquire) {
            self.link.waker.register(cx.waker());
            if !self.link.full.load(Ordering::Acquire) {
                return Poll::Pending;
            }
        }
        let mut queue = self.link.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let news = queue.pop_front();
        self.link.full.store(!queue.is_empty(), Ordering::Release);
        drop(queue);
        news.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.core.act(|inner, now_ns| {
            if inner.links.remove(&self.session).is_some() {
                inner.model.drop_session(now_ns, self.session);
            }
        });
    }
}

/// Counts one WebSocket for as long as it lives.
#[derive(Debug)]
pub(crate) struct SocketGuard(Arc<Core>);

impl Drop for SocketGuard {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.sockets.active = inner.sockets.active.saturating_sub(1);
    }
}

/// The engine task: sleeps until the model has something to say, and lets it.
async fn run(core: Weak<Core>, wake: Arc<Notify>) {
    let sleep = sleep_until(Instant::now());
    tokio::pin!(sleep);
    loop {
        let Some(strong) = core.upgrade() else { return };
        let next = {
            let mut inner = strong.lock();
            let now_ns = inner.now_ns();
            inner.advance(now_ns);
            let next_ns = inner.model.next_event_ns();
            // A frozen process has no next instant until somebody wakes it.
            let next_ns = next_ns.filter(|_| inner.frozen.is_none());
            inner.armed_ns = next_ns.unwrap_or(u64::MAX);
            next_ns.map(|ns| inner.start + Duration::from_nanos(ns))
        };
        drop(strong);
        match next {
            None => wake.notified().await,
            Some(at) => {
                sleep.as_mut().reset(at);
                tokio::select! {
                    biased;
                    () = wake.notified() => {}
                    () = sleep.as_mut() => {}
                }
            }
        }
    }
}
