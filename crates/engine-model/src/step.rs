//! The scheduler: what the next step computes, how long that takes, what comes of it.

use rand_chacha::rand_core::Rng;

use crate::model::Model;
use crate::output::{Failure, OutputKind, SessionId};
use crate::params::SessionModel;
use crate::session::Work;

impl Model {
    /// Puts the next step together and starts it, if there is anything to compute.
    pub(crate) fn start_step(&mut self) {
        let mut budget = self.params.max_batched_tokens;
        let preempted = self.schedule_running(&mut budget);
        let stuck = if preempted { None } else { self.admit(&mut budget) };
        let idle = self.running.iter().all(|work| work.planned == 0);
        // A step that only takes blocks away computes nothing, yet it takes its time.
        if idle && !preempted && !stuck.is_some_and(|id| self.evict_waiting(id)) {
            return;
        }
        let length_ns = self.length_ns();
        self.counters.steps += 1;
        self.counters.busy_ns += length_ns;
        let end_ns = self.now_ns + length_ns;
        self.step_end_ns = match self.params.faults.hang {
            Some(hang) if (self.now_ns..end_ns).contains(&hang.start_ns()) => {
                hang.for_ms.map(|_| end_ns.saturating_add(hang.end_ns() - hang.start_ns()))
            }
            _ => Some(end_ns),
        };
    }

    /// Gives every running request its tokens, oldest admission first. When a request needs a block and none is free,
    /// the latest admission loses all of its blocks, and so on, down to the request itself. Whether any lost theirs.
    fn schedule_running(&mut self, budget: &mut u32) -> bool {
        let mut preempted = false;
        let mut i = 0;
        while let Some(work) = self.running.get_mut(i) {
            let tokens = work.next_tokens(*budget);
            if self.pool.grow(&mut work.held, work.in_kv + tokens) {
                work.planned = tokens;
                *budget -= tokens;
                i += 1;
            } else if let Some(mut victim) = self.running.pop() {
                self.preempt(&mut victim);
                self.waiting.push_front(victim);
                preempted = true;
            }
        }
        preempted
    }

    fn preempt(&mut self, victim: &mut Work) {
        self.pool.release(&mut victim.held);
        victim.forget();
        self.counters.preemptions += 1;
    }

    /// Lets waiting requests in, first come first served, while there are tokens, seats and blocks. A resident session
    /// that has its seat already overtakes those that wait for one. Answers with the session that found no block.
    fn admit(&mut self, budget: &mut u32) -> Option<SessionId> {
        let mut place = 0;
        while *budget > 0 {
            let id = self.waiting.get(place)?.session;
            if !self.has_seat(id) {
                if self.params.session == SessionModel::Rolling {
                    return None;
                }
                place += 1;
                continue;
            }
            let mut work = self.waiting.remove(place)?;
            let (length, limit) = (work.length(), self.longest());
            if length > limit {
                self.pool.release(&mut work.held);
                self.fail(id, Failure::TooLong { tokens: length, limit });
                // Its seat and its blocks may be what somebody further up the queue waits for.
                place = 0;
                continue;
            }
            self.look_up(&mut work);
            let tokens = work.next_tokens(*budget);
            let fits = !work.preempted || self.pool.fits(&work.held, length);
            if !fits || !self.pool.grow(&mut work.held, work.in_kv + tokens) {
                self.waiting.insert(place, work);
                return Some(id);
            }
            self.seat(id);
            self.admissions += 1;
            work.admission = self.admissions;
            work.planned = tokens;
            *budget -= tokens;
            self.running.push(work);
        }
        None
    }

    /// The longest context that one request can ever have.
    fn longest(&self) -> u32 {
        self.params.max_model_len.min(u32::try_from(self.params.kv_tokens()).unwrap_or(u32::MAX))
    }

    fn fail(&mut self, id: SessionId, failure: Failure) {
        self.say(id, OutputKind::Failed(failure));
        self.counters.finished.length += 1;
        self.remove(id);
    }

    fn has_seat(&self, id: SessionId) -> bool {
        match self.params.session {
            SessionModel::Resident => self.is_seated(id) || self.seats < self.params.max_num_seqs,
            SessionModel::Rolling => {
                u32::try_from(self.running.len()).is_ok_and(|running| running < self.params.max_num_seqs)
            }
        }
    }

    fn seat(&mut self, id: SessionId) {
        if self.params.session == SessionModel::Resident
            && let Some(session) = self.sessions.get_mut(&id)
            && !session.seated
        {
            session.seated = true;
            self.seats += 1;
        }
    }

    /// Asks the prefix cache, once a window. A hit saves the computing of whole blocks but the last token's; it does
    /// not save memory.
    fn look_up(&mut self, work: &mut Work) {
        if !self.params.prefix_cache || work.looked_up {
            return;
        }
        work.looked_up = true;
        self.counters.prefix_queries += u64::from(work.prompt);
        self.prefixes.shrink(self.pool.free_tokens());
        let lucky = self.dice.hits(self.params.faults.prefix_hit_share);
        if !self.prefixes.hit(work.mark.heard.digest) && !lucky {
            return;
        }
        let block = self.params.block_tokens;
        let cached = (work.prompt.saturating_sub(1) / block * block).min(work.prefill_left.saturating_sub(1));
        if self.pool.grow(&mut work.held, work.in_kv + cached) {
            self.counters.prefix_hits += u64::from(cached);
            work.in_kv += cached;
            work.prefill_left -= cached;
        }
    }

    /// Nothing runs, and `stuck` finds no block: of the others in the queue, the latest admission gives up its blocks.
    /// Whether one did. (Sessions that wait for audio keep theirs until their next window queues up.)
    fn evict_waiting(&mut self, stuck: SessionId) -> bool {
        let others = self.waiting.iter_mut().filter(|work| work.session != stuck && work.held.blocks() > 0);
        let Some(victim) = others.max_by_key(|work| work.admission) else { return false };
        self.pool.release(&mut victim.held);
        victim.forget();
        self.counters.preemptions += 1;
        true
    }

    /// The cost law.
    fn length_ns(&mut self) -> u64 {
        let cost = self.params.step;
        let (mut streams, mut prefill, mut context) = (0_u64, 0_u64, 0_u64);
        for work in self.running.iter().filter(|work| work.planned > 0) {
            streams += 1;
            context += u64::from(work.in_kv + work.planned);
            if work.prefill_left > 0 {
                prefill += u64::from(work.planned);
            }
        }
        let exact = cost.base_ns
            + streams * cost.per_stream_ns
            + prefill * cost.per_prefill_token_ns
            + context * cost.per_context_token_ns;
        let stretch = self.params.faults.stretch(self.now_ns, streams);
        self.jittered(exact, stretch)
    }

    /// Scales by a bell-shaped factor around 1: the sum of four uniform numbers, which needs no function whose last
    /// bit could differ between machines.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a step lasts milliseconds, far from where f64 loses nanoseconds"
    )]
    fn jittered(&mut self, exact_ns: u64, stretch: f64) -> u64 {
        let bits = self.rng.next_u64();
        let sum: u64 = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum();
        // Four uniforms on 0..1 have mean 2 and variance 1/3.
        let z = (sum as f64 / 65_536.0 - 2.0) * 3.0_f64.sqrt();
        let factor = z.mul_add(self.params.jitter, 1.0);
        ((exact_ns as f64 * factor * stretch) as u64).max(1)
    }

    /// Books what the step has computed.
    pub(crate) fn finish_step(&mut self) {
        self.step_end_ns = None;
        let mut said = Vec::new();
        let mut done = Vec::new();
        for work in self.running.iter_mut().filter(|work| work.planned > 0) {
            let tokens = std::mem::take(&mut work.planned);
            work.in_kv += tokens;
            work.prefill_left = work.prefill_left.saturating_sub(tokens);
            if work.prefill_left > 0 {
                continue;
            }
            work.generated += 1;
            self.counters.generation_tokens += 1;
            if work.generated == 1 {
                self.counters.prompt_tokens += u64::from(work.prompt);
                self.counters.ttft.observe(self.now_ns - work.mark.at_ns);
                if self.params.prefix_cache {
                    self.prefixes.learn(work.mark.heard.digest, work.prompt);
                }
            }
            if work.new_text > 0 && work.generated == work.lead + 1 {
                said.push((work.session, work.window));
            }
            if work.generated >= work.generate {
                done.push(work.session);
            }
        }
        for (id, window) in said {
            let Some(session) = self.sessions.get(&id).filter(|session| !session.drops_words()) else {
                continue;
            };
            let (covered_ms, text_tokens) = (session.done.total_ms, session.text_tokens + 1);
            self.say(id, OutputKind::FirstText { window, covered_ms, text_tokens });
        }
        for id in done {
            self.complete(id);
        }
    }

    /// A window is answered.
    fn complete(&mut self, id: SessionId) {
        let Some(place) = self.running.iter().position(|work| work.session == id) else { return };
        let mut work = self.running.remove(place);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.busy = false;
        let lost = session.drops_words();
        if !lost {
            session.done = work.mark.heard;
            session.text_tokens += work.new_text;
        }
        let text_tokens = session.text_tokens;
        match self.params.session {
            SessionModel::Resident => {
                session.context = work.in_kv;
                session.held = std::mem::take(&mut work.held);
            }
            SessionModel::Rolling => {
                self.pool.release(&mut work.held);
                if work.cut {
                    self.counters.finished.length += 1;
                } else {
                    self.counters.finished.stop += 1;
                }
            }
        }
        let word_error = self.params.degradation.word_error(self.now_ns - work.mark.at_ns);
        let (window, covered_ms, new_tokens) = (work.window, work.mark.heard.total_ms, work.new_text);
        if !lost {
            self.say(id, OutputKind::Window { window, covered_ms, text_tokens, new_tokens, word_error });
        }
        self.form(id);
        self.close_if_over(id);
    }
}
