//! What is counted, and the metrics page that shows it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tapedeck_metrics::{Exposition, Kind, NumberStyle, count};

use crate::gateway::Core;
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
    const ALL: [Self; 4] = [Self::Full, Self::Draining, Self::NoUpstream, Self::Upstream];

    const fn name(self) -> &'static str {
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
    ended: Mutex<BTreeMap<Outcome, u64>>,
    refused: Mutex<BTreeMap<Refusal, u64>>,
    audio_bytes: AtomicU64,
    windows: AtomicU64,
    moves: AtomicU64,
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

/// The page at this instant.
pub(crate) fn page(core: &Core) -> String {
    let mut page = Exposition::new(NumberStyle::Python);
    let counters = &core.counters;
    let mut family = |name: &str, kind: Kind, help: &str, label: &str, samples: &[(&str, f64)]| {
        let name = format!("tapedeck_gateway_{name}");
        page.family(&name, kind, help);
        for (of, value) in samples {
            let labels = [(label, *of)];
            page.sample(&name, if label.is_empty() { &[] } else { &labels }, *value);
        }
    };
    let mut one = |name, kind, help, value: f64| family(name, kind, help, "", &[("", value)]);
    let flag = |on: bool| f64::from(u8::from(on));
    one("sessions_open", Kind::Gauge, "Sessions now.", f64::from(core.open_sessions()));
    one("sessions_max", Kind::Gauge, "Sessions allowed.", f64::from(core.options.max_sessions));
    one("draining", Kind::Gauge, "1 when no new session is taken.", flag(core.is_draining()));
    let ended = counters.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let samples =
        Outcome::ALL.map(|outcome| (outcome.name(), count(ended.get(&outcome).copied().unwrap_or_default())));
    let help = "Sessions that are over, by how they ended.";
    family("sessions_total", Kind::Counter, help, "outcome", &samples);
    let refused = counters.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let samples = Refusal::ALL.map(|why| (why.name(), count(refused.get(&why).copied().unwrap_or_default())));
    family("refused_total", Kind::Counter, "Callers turned away at the door.", "reason", &samples);
    let mut total = |name, help, value: f64| family(name, Kind::Counter, help, "", &[("", value)]);
    let audio_s = count(counters.audio_bytes.load(Ordering::Relaxed)) / 32_000.0;
    total("audio_seconds_total", "Audio of the sessions that are over.", audio_s);
    let windows = count(counters.windows.load(Ordering::Relaxed));
    total("windows_total", "Windows or segments of the sessions that are over.", windows);
    let moves = count(counters.moves.load(Ordering::Relaxed));
    total("moves_total", "Upstreams that died under a session which went on at another.", moves);
    let up: Vec<_> = core.servers.iter().map(|s| (s.name.as_str(), flag(s.is_up()))).collect();
    family("upstream_up", Kind::Gauge, "Whether an upstream takes sessions.", "upstream", &up);
    let open: Vec<_> = core.servers.iter().map(|s| (s.name.as_str(), f64::from(s.open()))).collect();
    family("upstream_sessions_open", Kind::Gauge, "Sessions of an upstream now.", "upstream", &open);
    page.finish()
}
