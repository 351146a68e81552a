//! What is counted, and the metrics page that shows it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    pub(crate) fn end(&self, outcome: Outcome, tally: &Tally) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
        self.audio_bytes.fetch_add(tally.audio_bytes() as u64, Ordering::Relaxed);
        self.windows.fetch_add(u64::from(tally.windows()), Ordering::Relaxed);
        self.moves.fetch_add(tally.moves().len() as u64, Ordering::Relaxed);
    }
}

/// What one session counts for itself.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    moves: Mutex<Vec<Move>>,
    audio_bytes: AtomicUsize,
    windows: AtomicU32,
    messages: AtomicU32,
    chars: AtomicUsize,
}

impl Tally {
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
    let mut page = String::with_capacity(4 * 1024);
    let counters = &core.counters;
    let mut family = |name: &str, kind: &str, help: &str, series: &[(String, f64)]| {
        // Writing to a string cannot fail.
        let _ =
            writeln!(page, "# HELP tapedeck_gateway_{name} {help}\n# TYPE tapedeck_gateway_{name} {kind}");
        for (labels, value) in series {
            let _ = writeln!(page, "tapedeck_gateway_{name}{labels} {value:?}");
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    #[expect(clippy::cast_precision_loss, reason = "a metrics page carries doubles")]
    let count = |value: u64| value as f64;
    family("sessions_open", "gauge", "Sessions now.", &one(f64::from(core.open_sessions())));
    family("sessions_max", "gauge", "Sessions allowed.", &one(f64::from(core.options.max_sessions)));
    family(
        "draining",
        "gauge",
        "1 when no new session is taken.",
        &one(f64::from(u8::from(core.is_draining()))),
    );
    let ended = counters.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let series = Outcome::ALL.map(|outcome| {
        let n = ended.get(&outcome).copied().unwrap_or_default();
        (format!("{{outcome=\"{}\"}}", outcome.name()), count(n))
    });
    family("sessions_total", "counter", "Sessions that are over, by how they ended.", &series);
    let refused = counters.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let series = Refusal::ALL.map(|why| {
        let n = refused.get(&why).copied().unwrap_or_default();
        (format!("{{reason=\"{}\"}}", why.name()), count(n))
    });
    family("refused_total", "counter", "Callers turned away at the door.", &series);
    let audio_s = count(counters.audio_bytes.load(Ordering::Relaxed)) / 32_000.0;
    family("audio_seconds_total", "counter", "Audio of the sessions that are over.", &one(audio_s));
    let windows = count(counters.windows.load(Ordering::Relaxed));
    family("windows_total", "counter", "Windows or segments of the sessions that are over.", &one(windows));
    let moves = count(counters.moves.load(Ordering::Relaxed));
    family(
        "moves_total",
        "counter",
        "Upstreams that died under a session which went on at another.",
        &one(moves),
    );
    let each = |value: &dyn Fn(&crate::upstream::Server) -> f64| -> Vec<(String, f64)> {
        core.servers.iter().map(|s| (format!("{{upstream=\"{}\"}}", escaped(&s.name)), value(s))).collect()
    };
    family(
        "upstream_up",
        "gauge",
        "Whether an upstream takes sessions.",
        &each(&|s| f64::from(u8::from(s.is_up()))),
    );
    family(
        "upstream_sessions_open",
        "gauge",
        "Sessions of an upstream now.",
        &each(&|s| f64::from(s.open())),
    );
    page
}

/// A label's value as the text format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
