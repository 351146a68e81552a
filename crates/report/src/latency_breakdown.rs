//! Where the wait of a call goes, part by part, and which part grew.

use tapedeck_record::CallFigure;
use tapedeck_slo::Figure;
use tapedeck_stats::percentile;

use crate::read::Step;

/// A stretch of the way from a spoken word to its final text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Our own sender was late.
    Client,
    /// Connect, TLS, upgrade, ready.
    Connect,
    /// The server's back-pressure held audio back.
    BackPressure,
    /// A request waited inside the engine for its turn.
    Queue,
    /// Audio had to be collected until a window was full; fixed by the design of the server.
    Window,
    /// From the full window to its text, the queue left out where the engine tells it.
    Inference,
    /// From the end of the audio to the final.
    Tail,
}

impl Part {
    /// Every part, in the order in which a call meets them.
    pub const ALL: [Self; 7] = [
        Self::Client,
        Self::Connect,
        Self::BackPressure,
        Self::Queue,
        Self::Window,
        Self::Inference,
        Self::Tail,
    ];

    /// The word used in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Connect => "connect",
            Self::BackPressure => "back_pressure",
            Self::Queue => "queue",
            Self::Window => "window",
            Self::Inference => "inference",
            Self::Tail => "tail",
        }
    }
}

/// One part at one tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// Which part.
    pub part: Part,
    /// Seconds; empty where nothing tells.
    pub seconds: Option<f64>,
    /// Observations behind it.
    pub n: u64,
}

/// The parts of a tier: p95 over its counted calls, the queue as the engine's own mean over the window.
#[must_use]
pub fn latency_breakdown(step: &Step) -> Vec<Wait> {
    let report = &step.report;
    let p95 = |figure: Figure, scale: f64| {
        figure.estimate(report).map_or((None, 0), |e| (Some(e.value * scale), e.n))
    };
    let over_calls = |figure: &dyn Fn(&tapedeck_record::CallRecord) -> Option<f64>| {
        let mut values: Vec<f64> = step.figures().filter_map(figure).collect();
        let n = values.len() as u64;
        (percentile(&mut values, 0.95), n)
    };
    let queue = step.series.gained("queue").filter(|g| g.count > 0.0);
    // From the full window on where windows are known, else from the first speech.
    let windows = report.summary(CallFigure::TtftWindowS).is_some();
    let answer = if windows { CallFigure::TtftWindowS } else { CallFigure::TtftSpeechS };
    let (answer_s, answer_n) = p95(Figure::Call(answer), 1.0);
    let queue_s = queue.and_then(|q| q.mean());
    Part::ALL
        .into_iter()
        .map(|part| {
            let (seconds, n) = match part {
                Part::Client => (report.wake_late_p99_ms.map(|ms| ms / 1e3), report.calls_counted),
                Part::Connect => p95(Figure::Call(CallFigure::ConnectS), 1.0),
                Part::BackPressure => p95(Figure::Call(CallFigure::BlockedMaxMs), 1e-3),
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                Part::Queue => (queue_s, queue.map_or(0, |q| q.count as u64)),
                Part::Window => over_calls(&|c| Some(c.ttft_wire_s? - c.ttft_window_s?)),
                Part::Inference => (answer_s.map(|a| (a - queue_s.unwrap_or(0.0)).max(0.0)), answer_n),
                Part::Tail => p95(Figure::Final, 1.0),
            };
            Wait { part, seconds, n }
        })
        .collect()
}

/// A part at a calm tier and at a failing one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Which part.
    pub part: Part,
    /// At the calm tier, seconds.
    pub before_s: Option<f64>,
    /// At the failing tier, seconds.
    pub after_s: Option<f64>,
    /// Observations at the failing tier.
    pub n: u64,
}

impl Growth {
    /// Seconds that were added; empty where either is unknown.
    #[must_use]
    pub fn grown_s(&self) -> Option<f64> {
        Some(self.after_s? - self.before_s?)
    }
}

/// Every part at both tiers, and the one that grew most (by 10 ms at least; less is noise of a clock).
#[must_use]
pub fn growth(calm: Option<&Step>, failing: &Step) -> (Vec<Growth>, Option<Part>) {
    let before = calm.map(latency_breakdown).unwrap_or_default();
    let all: Vec<Growth> = latency_breakdown(failing)
        .into_iter()
        .map(|here| {
            let before_s = before.iter().find(|b| b.part == here.part).and_then(|b| b.seconds);
            Growth { part: here.part, before_s, after_s: here.seconds, n: here.n }
        })
        .collect();
    let most = all
        .iter()
        .filter_map(|g| Some((g.part, g.grown_s()?)))
        .filter(|(_, s)| *s >= 0.010)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(part, _)| part);
    (all, most)
}
