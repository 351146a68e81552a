//! Per-call figures over the counted calls of a tier, each with its two intervals.

use std::collections::BTreeMap;

use tapedeck_record::{CallFigure, CallRecord, Evidence, Outcome, OutcomeClass};
use tapedeck_stats::{
    Moments, Resampling, bootstrap_quantile, percentile, percentile_sorted, quantile_interval, sort,
};

use crate::evidence::TierEvidence;
use crate::limits::Limits;
use crate::report::{Estimate, FinalBasis, PercentileOrInfinite, Summary};

/// A tier's calls as the verdict sees them.
pub(crate) struct Counted<'a> {
    /// Calls whose figures enter the percentiles: `ok` and those flagged for quality.
    pub(crate) figures: Vec<&'a CallRecord>,
    /// Errored calls.
    pub(crate) errors: Vec<&'a CallRecord>,
    /// Counted calls that take no part.
    pub(crate) excluded: u64,
    /// All counted calls by outcome.
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    /// Errored calls outside the window.
    pub(crate) errors_outside: u64,
}

impl<'a> Counted<'a> {
    pub(crate) fn of(calls: &'a [CallRecord]) -> Self {
        let mut out = Self {
            figures: Vec::new(),
            errors: Vec::new(),
            excluded: 0,
            outcomes: BTreeMap::new(),
            errors_outside: 0,
        };
        for call in calls {
            if !call.counted {
                out.errors_outside += u64::from(call.class == OutcomeClass::Error);
                continue;
            }
            *out.outcomes.entry(call.outcome.outcome).or_default() += 1;
            match call.class {
                OutcomeClass::Ok | OutcomeClass::Quality => out.figures.push(call),
                OutcomeClass::Error => out.errors.push(call),
                OutcomeClass::Excluded => out.excluded += 1,
            }
        }
        out
    }

    /// Counted calls in all.
    pub(crate) fn total(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Counted calls with this outcome.
    pub(crate) fn with(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Calls with speech that came back without a word: they have no first text, ever.
    pub(crate) fn wordless(&self) -> u64 {
        let wordless = |c: &&&CallRecord| c.outcome.outcome == Outcome::EmptyFinal;
        self.figures.iter().filter(wordless).count() as u64
    }
}

/// Summarises figures with one seed; each figure and quantile draws from a stream of its own.
pub(crate) struct Summariser<'a> {
    pub(crate) counted: &'a Counted<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) seed: u64,
}

impl Summariser<'_> {
    /// Every figure that is summarised and that at least one call has.
    pub(crate) fn all(&self) -> BTreeMap<CallFigure, Summary> {
        let summary = |figure: &CallFigure| {
            let how = figure.spec().summarised?;
            Some((*figure, self.of(how.stream, how.wordless, |c| figure.get(c))?))
        };
        CallFigure::ALL.iter().filter_map(summary).collect()
    }

    /// The summary of one figure; `wordless` says whether calls without a word count among the failures.
    pub(crate) fn of(
        &self,
        stream: u64,
        wordless: bool,
        figure: impl Fn(&CallRecord) -> Option<f64>,
    ) -> Option<Summary> {
        let pairs: Vec<(u32, f64)> =
            self.counted.figures.iter().filter_map(|c| Some((c.stream, figure(c)?))).collect();
        let mut sorted: Vec<f64> = pairs.iter().map(|p| p.1).collect();
        sort(&mut sorted);
        let mean = Moments::of(&sorted)?.mean;
        let failures = self.counted.errors.len() as u64 + if wordless { self.counted.wordless() } else { 0 };
        let with_failures = |q: f64| {
            let failed = usize::try_from(failures).unwrap_or(usize::MAX);
            let all = std::num::NonZeroUsize::new(sorted.len().saturating_add(failed));
            all.and_then(|all| sorted.get(tapedeck_stats::rank(all, q)).copied())
                .map_or(PercentileOrInfinite::Never, PercentileOrInfinite::At)
        };
        Some(Summary {
            p50: self.estimate(&pairs, &sorted, 0.5, stream)?,
            p95: self.estimate(&pairs, &sorted, 0.95, stream + 1)?,
            max: *sorted.last()?,
            mean,
            p50_with_failures: with_failures(0.5),
            p95_with_failures: with_failures(0.95),
        })
    }

    /// A quantile with the wider of its two intervals; with a single stream only order statistics speak.
    fn estimate(&self, pairs: &[(u32, f64)], sorted: &[f64], q: f64, stream: u64) -> Option<Estimate> {
        let confidence = self.limits.confidence;
        let by_call = quantile_interval(sorted, q, confidence);
        let one_stream = pairs.iter().all(|p| Some(p.0) == pairs.first().map(|f| f.0));
        let how =
            Resampling { resamples: self.limits.bootstrap_resamples, confidence, seed: self.seed, stream };
        let bounds = if one_stream { by_call } else { by_call.widest(bootstrap_quantile(pairs, q, &how)) };
        Some(Estimate {
            value: percentile_sorted(sorted, q)?,
            n: sorted.len() as u64,
            low: bounds.low,
            high: bounds.high,
        })
    }
}

/// Whether the dialect lets us know the real-time factor at all.
pub(crate) const fn rtf_applies(evidence: &TierEvidence<'_>) -> bool {
    match evidence.evidence {
        Evidence::None => false,
        Evidence::PerWindow => evidence.window_ms.is_some(),
        Evidence::Position | Evidence::Ack => true,
    }
}

/// What the final counts from.
pub(crate) const fn final_basis(evidence: &TierEvidence<'_>) -> FinalBasis {
    if evidence.tail_silence_ms > 0 { FinalBasis::Speech } else { FinalBasis::Audio }
}

impl FinalBasis {
    /// The call's final latency on this basis, seconds.
    #[must_use]
    pub fn of(self, call: &CallRecord) -> Option<f64> {
        self.figure().get(call)
    }

    /// The figure that counts from this basis.
    #[must_use]
    pub const fn figure(self) -> CallFigure {
        match self {
            Self::Audio => CallFigure::FinalS,
            Self::Speech => CallFigure::FinalSpeechS,
        }
    }
}

/// Flow of calls through the tier.
pub(crate) struct Flow {
    pub(crate) throughput_per_h: Option<f64>,
    pub(crate) goodput_per_h: Option<f64>,
    pub(crate) little_calls: Option<f64>,
}

/// Throughput, goodput and Little's law. In a closed loop every stream has its own window, so rates are summed over
/// streams; with open arrivals the window is common.
pub(crate) fn flow(evidence: &TierEvidence<'_>, counted: &Counted<'_>, limits: &Limits) -> Flow {
    let basis = final_basis(evidence);
    let within = |value: Option<f64>, limit: f64| value.is_some_and(|v| v <= limit);
    let good = |c: &CallRecord| {
        within(limits.ttft_basis.of(c), limits.ttft_p95_s)
            && within(basis.of(c), limits.final_p95_s)
            && (!rtf_applies(evidence) || within(c.rtf, limits.rtf_p95))
    };
    #[derive(Default)]
    struct Stream {
        from_s: f64,
        to_s: f64,
        calls: f64,
        ended: f64,
        good: f64,
    }
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut busy_s = 0.0;
    let ended = counted.figures.iter().map(|c| (c, true, good(c)));
    let errored = counted.errors.iter().map(|c| (c, false, false));
    let mut calls = 0.0;
    for (call, ended, good) in ended.chain(errored) {
        let key = if evidence.open_arrivals { 0 } else { call.stream };
        let s = streams.entry(key).or_insert_with(|| Stream {
            from_s: call.start_s,
            to_s: call.done_s,
            ..Stream::default()
        });
        s.from_s = s.from_s.min(call.start_s);
        s.to_s = s.to_s.max(call.done_s);
        s.calls += 1.0;
        s.ended += f64::from(u8::from(ended));
        s.good += f64::from(u8::from(good));
        busy_s += call.done_s - call.start_s;
        calls += 1.0;
    }
    let rate = |count: fn(&Stream) -> f64| {
        let rates = streams.values().filter(|s| s.to_s > s.from_s).map(|s| count(s) / (s.to_s - s.from_s));
        rates.fold(None, |sum: Option<f64>, r| Some(sum.unwrap_or(0.0) + r))
    };
    Flow {
        throughput_per_h: rate(|s| s.ended).map(|r| r * 3600.0),
        goodput_per_h: rate(|s| s.good).map(|r| r * 3600.0),
        little_calls: rate(|s| s.calls).map(|r| r * busy_s / calls),
    }
}

/// Median growth of lag with age over the calls at least half as long as the longest one, milliseconds per minute:
/// short calls say little about what happens to long ones. With it, the longest call in seconds.
pub(crate) fn age_slope(counted: &Counted<'_>) -> (Option<f64>, f64) {
    let longest_s = counted.figures.iter().map(|c| c.audio_s).fold(0.0, f64::max);
    let mut slopes: Vec<f64> = counted
        .figures
        .iter()
        .filter(|c| c.audio_s >= longest_s / 2.0)
        .filter_map(|c| c.age_slope_ms_per_min)
        .collect();
    (percentile(&mut slopes, 0.5), longest_s)
}
