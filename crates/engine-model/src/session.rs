//! One session: the audio it has heard, the windows it forms, the request that is under way.

use std::collections::VecDeque;

use crate::faults::Disposition;
use crate::kv::Held;
use crate::output::{Heard, SessionId};
use crate::params::{Params, SessionModel};

/// A window whose audio is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// All audio up to the window's end.
    pub(crate) heard: Heard,
    /// When its last audio came. ns.
    pub(crate) at_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Audio so far.
    heard: Heard,
    /// Complete windows that no request has taken up, oldest first.
    marks: VecDeque<Mark>,
    /// How many of `marks` the scheduler may see: their intake is over.
    pub(crate) ready: usize,
    /// No more audio will come.
    pub(crate) ended: bool,
    /// A request of this session is waiting or running.
    pub(crate) busy: bool,
    /// Holds a place among `max_num_seqs` until its end (resident only).
    pub(crate) seated: bool,
    /// Windows answered.
    pub(crate) windows: u32,
    /// Audio answered.
    pub(crate) done: Heard,
    /// Text tokens said.
    pub(crate) text_tokens: u32,
    /// Tokens in the KV pool between windows, and their blocks (resident only).
    pub(crate) context: u32,
    pub(crate) held: Held,
    /// What chance has in store for it.
    pub(crate) disposition: Disposition,
}

impl Session {
    pub(crate) fn new(disposition: Disposition) -> Self {
        Self { disposition, ..Self::default() }
    }

    /// Takes audio in; the number of windows it completes.
    pub(crate) fn listen(&mut self, at_ns: u64, heard: Heard, window_ms: u32) -> usize {
        let before = self.heard;
        if self.ended || heard.total_ms <= before.total_ms {
            return 0;
        }
        let speech_ms =
            heard.speech_ms.clamp(before.speech_ms, before.speech_ms + (heard.total_ms - before.total_ms));
        self.heard = Heard { speech_ms, ..heard };
        let mut border = (before.total_ms / window_ms + 1).saturating_mul(window_ms);
        let mut complete = 0;
        while border <= heard.total_ms {
            let share = u64::from(speech_ms - before.speech_ms) * u64::from(border - before.total_ms)
                / u64::from(heard.total_ms - before.total_ms);
            let speech_ms = before.speech_ms + u32::try_from(share).unwrap_or(0);
            self.marks.push_back(Mark { heard: Heard { total_ms: border, speech_ms, ..heard }, at_ns });
            complete += 1;
            let Some(next) = border.checked_add(window_ms) else { break };
            border = next;
        }
        complete
    }

    /// No more audio: the rest becomes a last, shorter window. Whether there was a rest.
    pub(crate) fn finish(&mut self, at_ns: u64, window_ms: u32) -> bool {
        if self.ended {
            return false;
        }
        self.ended = true;
        let rest = !self.heard.total_ms.is_multiple_of(window_ms);
        if rest {
            self.marks.push_back(Mark { heard: self.heard, at_ns });
        }
        rest
    }

    /// Whether the request under way is the last one and its words get lost.
    pub(crate) fn drops_words(&self) -> bool {
        self.disposition.loses_tail && self.ended && self.marks.is_empty()
    }

    /// Whether everything that was heard is answered and nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && !self.busy && self.marks.is_empty()
    }

    /// The window behind `queued` others in intake.
    pub(crate) fn in_intake(&self, queued: usize) -> Option<Mark> {
        self.marks.get(self.ready + queued).copied()
    }

    /// Forms the next request, if there is a window for one and none is under way.
    pub(crate) fn form(&mut self, id: SessionId, params: &Params) -> Option<Work> {
        if self.busy || self.ready == 0 {
            return None;
        }
        let take = if params.coalesce { self.ready } else { 1 };
        let mut mark = None;
        for _ in 0..take {
            mark = self.marks.pop_front();
        }
        let mark = mark?;
        self.ready -= take;
        self.windows += u32::try_from(take).unwrap_or(0);
        self.busy = true;

        let (context, prompt, rollback) = match params.session {
            SessionModel::Resident => {
                let audio =
                    params.audio_tokens(mark.heard.total_ms) - params.audio_tokens(self.done.total_ms);
                (self.context, params.template_tokens + audio, 0)
            }
            SessionModel::Rolling => {
                let rollback = params.rollback_tokens.min(self.text_tokens);
                let prefix = self.text_tokens - rollback;
                (0, params.template_tokens + params.audio_tokens(mark.heard.total_ms) + prefix, rollback)
            }
        };
        let lead = params.preface_tokens + rollback;
        let spoken = params.text_tokens(mark.heard.speech_ms) - params.text_tokens(self.done.speech_ms);
        let generate = (lead + spoken).clamp(1, params.max_window_tokens);
        Some(Work {
            session: id,
            window: self.windows - 1,
            mark,
            cut: lead + spoken > params.max_window_tokens,
            prompt,
            lead,
            new_text: generate.saturating_sub(lead).min(spoken),
            generate,
            generated: 0,
            prefill_left: prompt,
            in_kv: context,
            held: std::mem::take(&mut self.held),
            planned: 0,
            admission: 0,
            preempted: false,
            looked_up: false,
        })
    }
}

/// A request for one window.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) session: SessionId,
    pub(crate) window: u32,
    pub(crate) mark: Mark,
    /// Text was cut at `max_window_tokens`.
    pub(crate) cut: bool,
    /// Prompt tokens of this window, cached ones included.
    pub(crate) prompt: u32,
    /// Tokens generated before the first new text token.
    pub(crate) lead: u32,
    /// New text tokens among those generated.
    pub(crate) new_text: u32,
    /// Tokens to generate, and how many are.
    pub(crate) generate: u32,
    pub(crate) generated: u32,
    /// Prompt tokens still to compute; after a preemption everything that was in the pool comes on top.
    pub(crate) prefill_left: u32,
    /// Tokens in the pool, and their blocks.
    pub(crate) in_kv: u32,
    pub(crate) held: Held,
    /// Tokens that the step under way computes for it; 0 = it takes no part.
    pub(crate) planned: u32,
    /// The how-manieth admission of the engine this was.
    pub(crate) admission: u64,
    /// It lost its blocks once; it comes back only when all of this window fits, or it would lose them again.
    pub(crate) preempted: bool,
    /// The prefix cache was asked for this window.
    pub(crate) looked_up: bool,
}

impl Work {
    /// Tokens of context at the end of this window.
    pub(crate) const fn length(&self) -> u32 {
        (self.in_kv + self.prefill_left).saturating_add(self.generate - self.generated)
    }

    /// Tokens that the next step computes with `budget` left.
    pub(crate) fn next_tokens(&self, budget: u32) -> u32 {
        self.prefill_left.max(1).min(budget)
    }

    /// Forgets what was computed; all of it has to be computed again.
    pub(crate) const fn forget(&mut self) {
        self.prefill_left += self.in_kv;
        self.planned = 0;
        self.preempted = true;
        self.in_kv = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(total_ms: u32, speech_ms: u32) -> Heard {
        Heard { total_ms, speech_ms, digest: u64::from(total_ms) + 1 }
    }

    #[test]
    fn windows_close_at_their_borders_and_the_rest_at_the_end() {
        let mut session = Session::default();
        assert_eq!(session.listen(1, heard(1_900, 1_900), 2_000), 0);
        assert_eq!(session.listen(2, heard(2_100, 2_000), 2_000), 1);
        assert_eq!(
            session.marks[0].heard.speech_ms, 1_950,
            "speech of the chunk is shared out at the border"
        );
        assert_eq!(session.listen(3, heard(6_000, 2_000), 2_000), 2);
        assert!(!session.finish(4, 2_000), "nothing is left after a border");
        let mut session = Session::default();
        session.listen(1, heard(3_000, 0), 2_000);
        assert!(session.finish(4, 2_000));
        assert_eq!(session.marks.iter().map(|m| m.heard.total_ms).collect::<Vec<_>>(), [2_000, 3_000]);
        assert_eq!(session.listen(5, heard(9_000, 0), 2_000), 0, "no audio after the end");
    }

    #[test]
    fn a_resident_window_costs_its_own_audio_a_rolling_one_all_of_it() {
        let resident = Params::default();
        let rolling = Params { session: SessionModel::Rolling, ..resident.clone() };
        let prompts = |params: &Params| {
            let mut session = Session::default();
            let mut prompts = Vec::new();
            for total in [2_000, 4_000, 6_000] {
                session.listen(0, heard(total, total), 2_000);
                session.ready += 1;
                let work = session.form(1, params).unwrap();
                prompts.push((work.prompt, work.generate));
                session.busy = false;
                session.done = work.mark.heard;
                session.text_tokens += work.new_text;
            }
            prompts
        };
        assert_eq!(prompts(&resident), [(35, 14), (35, 14), (35, 14)]);
        assert_eq!(prompts(&rolling), [(35, 14), (65, 19), (100, 19)]);
    }
}
