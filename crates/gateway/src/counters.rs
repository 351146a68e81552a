//! What is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::log::{Move, Outcome};

/// Why a caller was turned away at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    Full,
    Draining,
    NoUpstream,
    Upstream,
}

impl Refusal {
    pub(crate) const ALL: [Self; 4] = [Self::Full, Self::Draining, Self::NoUpstream, Self::Upstream];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Draining => "draining",
            Self::NoUpstream => "no_upstream",
            Self::Upstream => "upstream",
        }
    }
}

/// Counters of the whole gateway; they only grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) ended: Mutex<BTreeMap<Outcome, u64>>,
    pub(crate) refused: Mutex<BTreeMap<Refusal, u64>>,
    pub(crate) audio_bytes: AtomicU64,
    pub(crate) windows: AtomicU64,
    pub(crate) moves: AtomicU64,
}

impl Counters {
    pub(crate) fn refuse(&self, why: Refusal) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// Counts a session that is over.
    pub(crate) fn end(&self, outcome: Outcome, counts: &SessionCounters) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
        self.audio_bytes.fetch_add(counts.audio_bytes() as u64, Ordering::Relaxed);
        self.windows.fetch_add(u64::from(counts.windows()), Ordering::Relaxed);
        self.moves.fetch_add(counts.moves().len() as u64, Ordering::Relaxed);
    }
}

/// What one session counts for itself.
#[derive(Debug, Default)]
pub(crate) struct SessionCounters {
    moves: Mutex<Vec<Move>>,
    audio_bytes: AtomicUsize,
    windows: AtomicU32,
    messages: AtomicU32,
    chars: AtomicUsize,
}

impl SessionCounters {
    /// The session goes on elsewhere; `windows` were answered so far, by all that it had.
    pub(crate) fn moved(&self, from: &str, windows: u32) {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        let before: u32 = moves.iter().map(|m| m.windows).sum();
        moves.push(Move { from: from.to_owned(), windows: windows - before });
    }

    pub(crate) fn moves(&self) -> Vec<Move> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn audio(&self, bytes: usize) {
        self.audio_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// One more message to the caller, with this text, after so many windows.
    pub(crate) fn said(&self, text: &str, windows: u32) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.windows.store(windows, Ordering::Relaxed);
        self.chars.store(text.chars().count(), Ordering::Relaxed);
    }

    pub(crate) fn audio_bytes(&self) -> usize {
        self.audio_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn windows(&self) -> u32 {
        self.windows.load(Ordering::Relaxed)
    }

    pub(crate) fn messages(&self) -> u32 {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn chars(&self) -> usize {
        self.chars.load(Ordering::Relaxed)
    }
}
