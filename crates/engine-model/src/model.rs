//! The instance: sessions come and go, time passes, words come out.

use std::collections::{BTreeMap, VecDeque};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::cache::Recent;
use crate::counters::Counters;
use crate::faults::Dice;
use crate::kv::Pool;
use crate::output::{Failure, Heard, Output, OutputKind, Refused, SessionId};
use crate::params::{ParamError, Params, SessionModel};
use crate::session::{Mark, Session, Work};
use crate::vram::VramSeries;

/// One instance of a continuously batching speech engine.
///
/// Its clock is a number of nanoseconds that the caller names with every call and that never runs backwards (an
/// earlier instant counts as the latest one named). Audio that is handed in for an instant is seen by whatever starts at
/// that instant, in whatever order it was handed in.
#[derive(Debug)]
pub struct Model {
    pub(crate) params: Params,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now_ns: u64,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) running: Vec<Work>,
    pub(crate) waiting: VecDeque<Work>,
    pub(crate) pool: Pool,
    /// When the step under way is done.
    pub(crate) step_end_ns: Option<u64>,
    /// The scheduler should look at its queues at this instant (only while no step is under way).
    pub(crate) wake_ns: Option<u64>,
    /// Windows on their way to the scheduler.
    intake: VecDeque<(u64, SessionId)>,
    pub(crate) pending: VecDeque<Output>,
    pub(crate) counters: Counters,
    pub(crate) prefixes: Recent,
    media: Recent,
    /// Resident sessions that hold a place among `max_num_seqs`.
    pub(crate) seats: u32,
    pub(crate) admissions: u64,
    pub(crate) dice: Dice,
    vram: VramSeries,
    /// The second that `vram` is at, and what it said.
    vram_second: Option<u64>,
    health: Health,
}

/// Where the model is with regard to its crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Before,
    Down,
    After,
}

/// The earlier of two instants; nothing is never.
const fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

/// Audio items that the multimodal cache remembers.
const MEDIA_ITEMS: u64 = 4_096;

impl Model {
    /// An idle instance at time 0. The seed decides the jitter of the steps, the noise of the card's memory and whom faults
    /// hit, each by a stream of its own.
    ///
    /// # Errors
    /// When [`Params::check`] finds a parameter out of its range.
    pub fn new(params: Params, seed: u64) -> Result<Self, ParamError> {
        params.check()?;
        let pool = Pool::new(params.kv_blocks, params.block_tokens);
        Ok(Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now_ns: 0,
            sessions: BTreeMap::new(),
            running: Vec::new(),
            waiting: VecDeque::new(),
            pool,
            step_end_ns: None,
            wake_ns: None,
            intake: VecDeque::new(),
            pending: VecDeque::new(),
            counters: Counters::default(),
            prefixes: Recent::default(),
            media: Recent::default(),
            seats: 0,
            admissions: 0,
            dice: Dice::new(seed),
            vram: VramSeries::new(&params, seed),
            vram_second: None,
            health: Health::Before,
            params,
        })
    }

    /// Gives the steps to come another jitter and the sessions to come other faults: those of this seed.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = ChaCha8Rng::seed_from_u64(seed);
        self.dice = Dice::new(seed);
    }

    /// Forgets everything but its age: no session, empty caches, counters at 0, and the noise of this seed. What grows
    /// with an engine's age (a leak, a slowdown) goes on, and a crash that is over does not come again.
    pub fn renew(&mut self, now_ns: u64, seed: u64) {
        self.run_before(now_ns);
        let Ok(mut fresh) = Self::new(self.params.clone(), seed) else { return };
        (fresh.now_ns, fresh.health) = (self.now_ns, self.health);
        let second = self.now_ns / 1_000_000_000;
        fresh.vram.go_on_from(second);
        fresh.vram_second = second.checked_sub(1);
        fresh.keep_vram();
        *self = fresh;
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Lets a session in.
    ///
    /// # Errors
    /// [`Refused::Full`] when `max_sessions` are open, [`Refused::Duplicate`] when the name is taken, [`Refused::Down`]
    /// while the engine is down.
    pub fn open(&mut self, now_ns: u64, id: SessionId) -> Result<(), Refused> {
        self.run_before(now_ns);
        if !self.is_up() {
            return Err(Refused::Down);
        }
        if self.sessions.contains_key(&id) {
            return Err(Refused::Duplicate(id));
        }
        let open = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        if let Some(limit) = self.params.max_sessions
            && open >= limit
        {
            self.counters.refused += 1;
            return Err(Refused::Full { open, limit });
        }
        let disposition = self.dice.disposition(&self.params.faults);
        self.sessions.insert(id, Session::new(disposition));
        self.counters.opened += 1;
        Ok(())
    }

    /// Hands over audio: all that the session has heard by now. Audio of an unknown or ended session, and audio that
    /// adds nothing, is ignored.
    pub fn audio(&mut self, now_ns: u64, id: SessionId, heard: Heard) {
        self.run_before(now_ns);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for _ in 0..session.listen(self.now_ns, heard, self.params.window_ms) {
            self.take_in(id);
        }
    }

    /// No more audio will come. The final follows when everything is answered; at once if it is already.
    pub fn end(&mut self, now_ns: u64, id: SessionId) {
        self.run_before(now_ns);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.finish(self.now_ns, self.params.window_ms) {
            self.take_in(id);
        }
        self.close_if_over(id);
    }

    /// The client is gone: the session's work is dropped and its blocks are freed. Nothing happens when the session
    /// is unknown, for instance because its final is out.
    pub fn drop_session(&mut self, now_ns: u64, id: SessionId) {
        self.run_before(now_ns);
        self.remove(id);
        self.pending.retain(|output| output.session != id);
        self.wake();
    }

    /// The next instant at which something may happen by itself, if any. Call [`Model::advance`] then.
    #[must_use]
    pub fn next_event_ns(&self) -> Option<u64> {
        let pending = self.pending.front().map(|output| output.at_ns);
        earlier(pending, self.next_internal_ns())
    }

    /// Lets time pass up to and including `now_ns` and appends what was said, in order of time.
    pub fn advance(&mut self, now_ns: u64, said: &mut Vec<Output>) {
        self.run(now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        self.keep_vram();
        if !self.pending.is_empty() {
            said.extend(self.pending.drain(..));
        }
    }

    /// Whether the engine's process is there. False from a crash until its restart; health checks fail meanwhile.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.health != Health::Down
    }

    /// What the instance tells about itself as of the latest instant it was taken to.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let len = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let busy = len(self.running.len() + self.waiting.len());
        let deferred = match self.params.session {
            SessionModel::Resident => self.seats.saturating_sub(
                busy - len(self.waiting.iter().filter(|work| !self.is_seated(work.session)).count()),
            ),
            SessionModel::Rolling => 0,
        };
        Counters {
            kv_usage: self.pool.usage(),
            kv_blocks_used: self.pool.used(),
            running: len(self.running.len()),
            waiting_capacity: len(self.waiting.len()),
            waiting_deferred: deferred,
            open_sessions: len(self.sessions.len()),
            ..self.counters.clone()
        }
    }

    pub(crate) fn kv_usage(&self) -> f64 {
        self.pool.usage()
    }

    pub(crate) const fn preemptions(&self) -> u64 {
        self.counters.preemptions
    }

    pub(crate) const fn busy_ns(&self) -> u64 {
        self.counters.busy_ns
    }

    pub(crate) fn is_seated(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.seated)
    }

    /// Everything up to, but not at, this instant.
    fn run_before(&mut self, now_ns: u64) {
        if let Some(limit) = now_ns.checked_sub(1) {
            self.run(limit);
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn run(&mut self, limit_ns: u64) {
        while let Some(next_ns) = self.next_internal_ns().filter(|&at| at <= limit_ns) {
            self.now_ns = self.now_ns.max(next_ns);
            if self.crash_event_ns() == Some(next_ns) {
                self.crash_or_restart();
            } else if self.step_end_ns == Some(next_ns) {
                self.finish_step();
                self.wake();
            } else if let Some(&(due_ns, id)) = self.intake.front()
                && due_ns == next_ns
            {
                self.intake.pop_front();
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.ready += 1;
                }
                self.form(id);
                self.wake();
            } else {
                self.wake_ns = None;
                match self.params.faults.hang {
                    Some(hang) if (hang.start_ns()..hang.end_ns()).contains(&self.now_ns) => {
                        self.wake_ns = hang.for_ms.map(|_| hang.end_ns());
                    }
                    _ => self.start_step(),
                }
            }
        }
    }

    fn next_internal_ns(&self) -> Option<u64> {
        let intake = self.intake.front().map(|&(due_ns, _)| due_ns);
        earlier(earlier(self.step_end_ns, intake), earlier(self.wake_ns, self.crash_event_ns()))
    }

    fn crash_event_ns(&self) -> Option<u64> {
        let crash = self.params.faults.crash?;
        match self.health {
            Health::Before => Some(crash.start_ns()),
            Health::Down => crash.for_ms.map(|_| crash.end_ns()),
            Health::After => None,
        }
    }

    /// Dies, or comes back as if it had just been started.
    fn crash_or_restart(&mut self) {
        if self.health == Health::Down {
            self.health = Health::After;
            return;
        }
        self.health = Health::Down;
        for id in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.say(id, OutputKind::Failed(Failure::Crashed));
            self.remove(id);
        }
        (self.step_end_ns, self.wake_ns) = (None, None);
        (self.prefixes, self.media) = (Recent::default(), Recent::default());
        self.counters = Counters { vram_bytes: self.counters.vram_bytes, ..Counters::default() };
    }

    /// Brings the card's memory up to the current second.
    fn keep_vram(&mut self) {
        let second = self.now_ns / 1_000_000_000;
        while self.vram_second.is_none_or(|at| at < second) {
            self.counters.vram_bytes = self.vram.next().unwrap_or(0);
            self.vram_second = Some(self.vram_second.map_or(0, |at| at + 1));
        }
    }

    /// Has the scheduler look at its queues now, unless a step is under way: it looks at the end of each anyway.
    pub(crate) fn wake(&mut self) {
        if self.step_end_ns.is_none() {
            self.wake_ns = Some(self.now_ns);
        }
    }

    /// Sends one complete window of the session on its way to the scheduler.
    fn take_in(&mut self, id: SessionId) {
        let queued = self.intake.iter().filter(|&&(_, other)| other == id).count();
        let mark = self.sessions.get(&id).and_then(|session| session.in_intake(queued));
        let Some(Mark { heard, .. }) = mark else { return };
        let mut due_ns = self.now_ns + self.params.intake_ns;
        if self.params.mm_cache {
            self.counters.mm_queries += 1;
            if self.media.hit(heard.digest) {
                self.counters.mm_hits += 1;
                due_ns = self.now_ns;
            }
            self.media.learn(heard.digest, 1);
            self.media.shrink(MEDIA_ITEMS);
        }
        due_ns += self.params.faults.age_lag_ns(heard.total_ms);
        // Windows of one session stay in order, whatever the cache says.
        let own = self.intake.iter().rev().find(|&&(_, other)| other == id).map_or(0, |&(due, _)| due);
        let due_ns = due_ns.max(own);
        let place = self.intake.partition_point(|&(due, _)| due <= due_ns);
        self.intake.insert(place, (due_ns, id));
    }

    /// Queues the session's next request, if it has a window for one.
    pub(crate) fn form(&mut self, id: SessionId) {
        let Some(work) = self.sessions.get_mut(&id).and_then(|session| session.form(id, &self.params)) else {
            return;
        };
        self.waiting.push_back(work);
    }

    /// Says the final if everything is answered.
    pub(crate) fn close_if_over(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id).filter(|session| session.is_over()) else { return };
        if session.disposition.mute {
            return;
        }
        let kind = OutputKind::Final { covered_ms: session.done.total_ms, text_tokens: session.text_tokens };
        self.say(id, kind);
        if self.params.session == SessionModel::Resident {
            self.counters.finished.stop += 1;
        }
        self.remove(id);
        self.wake();
    }

    pub(crate) fn say(&mut self, session: SessionId, kind: OutputKind) {
        let mute = self.sessions.get(&session).is_some_and(|session| session.disposition.mute);
        // A socket breaks even where nobody speaks.
        if !mute || matches!(kind, OutputKind::Failed(_)) {
            self.pending.push_back(Output { at_ns: self.now_ns, session, kind });
        }
    }

    /// Takes the session and all its work out of the engine.
    pub(crate) fn remove(&mut self, id: SessionId) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        self.pool.release(&mut session.held);
        self.seats -= u32::from(session.seated);
        self.intake.retain(|&(_, other)| other != id);
        for work in self.running.iter_mut().chain(self.waiting.iter_mut()).filter(|work| work.session == id) {
            self.pool.release(&mut work.held);
            if self.params.session == SessionModel::Rolling {
                self.counters.finished.abort += 1;
            }
        }
        self.running.retain(|work| work.session != id);
        self.waiting.retain(|work| work.session != id);
    }
}
