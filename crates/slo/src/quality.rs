//! Error rates of a tier against references, and against the single-stream baseline.

use tapedeck_record::{CallRecord, WordCounts};
use tapedeck_stats::{Resampling, bootstrap_ratio};

use crate::evidence::{PooledErrors, QualityBaseline};
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
        let (chars, words) = (errors(&counted.figures, |c| c.chars), errors(&counted.figures, |c| c.words));
        let calls = counted.figures.iter().filter(|c| c.words.is_some()).map(|c| c.call).collect();
        (chars.is_some() || words.is_some()).then_some(Self { calls, chars, words })
    }
}

/// Errors over all calls; empty where no call has a reference with tokens.
fn errors(calls: &[&CallRecord], counts: Counts) -> Option<PooledErrors> {
    let counts = calls.iter().filter_map(|c| counts(c));
    let pooled = counts.fold(PooledErrors::default(), |all, c| PooledErrors {
        errors: all.errors + u64::from(c.errors()),
        tokens: all.tokens + u64::from(c.ref_tokens),
    });
    (pooled.tokens > 0).then_some(pooled)
}

/// Whether errors rose by more than the limit: yes where that is so and the two intervals lie apart, no where it is not
/// so. In between too few words were played to tell.
fn worse(now: PooledErrors, before: PooledErrors, limits: &Limits) -> Option<bool> {
    let beyond = (now.rate() - before.rate()) * 100.0 > limits.quality_points + 1e-9;
    let apart = now.interval(limits.confidence).0 > before.interval(limits.confidence).1;
    (!beyond || apart).then_some(beyond)
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
        let held = |counts: Counts, before: Option<PooledErrors>| {
            Some(worse(errors(&same, counts)?, before?, limits))
        };
        let held = [held(|c| c.chars, baseline.chars), held(|c| c.words, baseline.words)];
        // One certain rise is an alarm; without one, what is open keeps the answer open.
        held.into_iter().flatten().reduce(|a, b| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            _ => Some(false),
        })?
    });
    Some(QualityReport { cer, wer, wer_finals, alarm })
}
