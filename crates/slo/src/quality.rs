//! Error rates of a tier against references, and against the single-stream baseline.

use tapedeck_record::{CallRecord, WordCounts};
use tapedeck_stats::{Resampling, bootstrap_ratio};

use crate::evidence::QualityBaseline;
use crate::figures::Counted;
use crate::limits::Limits;
use crate::report::{Estimate, QualityReport};

/// Which counts of a call are meant.
type Counts = fn(&CallRecord) -> Option<WordCounts>;

impl QualityBaseline {
    /// The baseline that these calls are; empty where none of them has a reference with tokens.
    #[must_use]
    pub fn of(calls: &[CallRecord]) -> Option<Self> {
        let counted = Counted::of(calls);
        let (cer, wer) = (rate(&counted.figures, |c| c.chars), rate(&counted.figures, |c| c.words));
        let calls = counted.figures.iter().filter(|c| c.words.is_some()).map(|c| c.call).collect();
        (cer.is_some() || wer.is_some()).then_some(Self { calls, cer, wer })
    }
}

/// Errors / reference tokens over all calls; empty where no call has a reference with tokens.
fn rate(calls: &[&CallRecord], counts: Counts) -> Option<f64> {
    let counts = calls.iter().filter_map(|c| counts(c));
    let (errors, tokens) = counts.fold((0.0, 0.0), |(errors, tokens), c| {
        (errors + f64::from(c.errors()), tokens + f64::from(c.ref_tokens))
    });
    (tokens > 0.0).then(|| errors / tokens)
}

/// A pooled rate with its interval by stream; empty where no call has a reference with tokens.
fn pooled(
    counted: &Counted<'_>,
    limits: &Limits,
    seed: u64,
    stream: u64,
    counts: Counts,
) -> Option<Estimate> {
    let parts: Vec<(u32, f64, f64)> = counted
        .figures
        .iter()
        .filter_map(|c| {
            let counts = counts(c)?;
            Some((c.stream, f64::from(counts.errors()), f64::from(counts.ref_tokens)))
        })
        .collect();
    let errors: f64 = parts.iter().map(|p| p.1).sum();
    let tokens: f64 = parts.iter().map(|p| p.2).sum();
    let how = Resampling {
        resamples: limits.bootstrap_resamples,
        confidence: limits.confidence,
        seed,
        // Streams below 1000 belong to the latency figures.
        stream: 1000 + stream,
    };
    let bounds = bootstrap_ratio(&parts, &how);
    (tokens > 0.0).then(|| Estimate {
        value: errors / tokens,
        n: parts.len() as u64,
        low: bounds.low,
        high: bounds.high,
    })
}

/// Error rates of the counted calls; empty where none has a reference.
pub(crate) fn quality(
    counted: &Counted<'_>,
    baseline: Option<&QualityBaseline>,
    limits: &Limits,
    seed: u64,
) -> Option<QualityReport> {
    let cer = pooled(counted, limits, seed, 0, |c| c.chars);
    let wer = pooled(counted, limits, seed, 1, |c| c.words);
    let wer_finals = pooled(counted, limits, seed, 2, |c| c.words_finals);
    if cer.is_none() && wer.is_none() && wer_finals.is_none() {
        return None;
    }
    let alarm = baseline.and_then(|baseline| {
        let same = |call: &&&CallRecord| baseline.calls.contains(&call.call);
        let same: Vec<&CallRecord> = counted.figures.iter().filter(same).copied().collect();
        let worse = |counts: Counts, before: Option<f64>| {
            Some((rate(&same, counts)? - before?) * 100.0 > limits.quality_points + 1e-9)
        };
        let alarms = [worse(|c| c.chars, baseline.cer), worse(|c| c.words, baseline.wer)];
        alarms.into_iter().flatten().reduce(|a, b| a || b)
    });
    Some(QualityReport { cer, wer, wer_finals, alarm })
}
