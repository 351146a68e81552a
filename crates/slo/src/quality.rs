//! Error rates of a tier against references, and against the single-stream baseline.

use std::collections::{BTreeMap, BTreeSet};

use tapedeck_record::{CallRecord, WordCounts};
use tapedeck_stats::{Resampling, bootstrap_ratio, sign_test};

use crate::evidence::{CallErrors, PooledErrors, QualityBaseline};
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
        let (mut chars, mut words) =
            (by_call(&counted.figures, |c| c.chars), by_call(&counted.figures, |c| c.words));
        let calls: BTreeSet<u32> = chars.keys().chain(words.keys()).copied().collect();
        let errors = calls
            .into_iter()
            .map(|call| (call, CallErrors { chars: chars.remove(&call), words: words.remove(&call) }));
        Some(Self(errors.collect())).filter(|baseline| !baseline.0.is_empty())
    }
}

/// Errors of each call that has a reference with tokens, over all streams that played it.
fn by_call(calls: &[&CallRecord], counts: Counts) -> BTreeMap<u32, PooledErrors> {
    let mut errors: BTreeMap<u32, PooledErrors> = BTreeMap::new();
    for (call, counts) in calls.iter().filter_map(|c| Some((c.call, counts(c)?))) {
        let one = PooledErrors { errors: counts.errors().into(), tokens: counts.ref_tokens.into() };
        let all = errors.entry(call).or_default();
        *all = all.and(one);
    }
    errors.retain(|_, errors| errors.tokens > 0);
    errors
}

/// Whether errors rose by more than the limit, from pairs (now, before) of the same calls: no where their pooled rates did
/// not; yes where they did and a sign test over the calls is certain, for errors come in clusters and a call is the least
/// that is independent of others. In between too few calls were played to tell.
fn worse(pairs: &[(PooledErrors, PooledErrors)], limits: &Limits) -> Option<bool> {
    let nothing = PooledErrors::default();
    let (now, before) =
        pairs.iter().fold((nothing, nothing), |(now, before), pair| (now.and(pair.0), before.and(pair.1)));
    let beyond = (now.rate() - before.rate()) * 100.0 > limits.quality_points + 1e-9;
    let rose = pairs.iter().filter(|(now, before)| now.rate() > before.rate()).count();
    let fell = pairs.iter().filter(|(now, before)| now.rate() < before.rate()).count();
    let certain = sign_test(rose, fell) <= (1.0 - limits.confidence) / 2.0;
    (!beyond || certain).then_some(beyond)
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
        let held = |counts: Counts, before: fn(&CallErrors) -> Option<PooledErrors>| {
            let now = by_call(&counted.figures, counts);
            let pair = |(call, errors)| Some((*now.get(call)?, before(errors)?));
            let pairs: Vec<_> = baseline.0.iter().filter_map(pair).collect();
            (!pairs.is_empty()).then(|| worse(&pairs, limits))
        };
        let held = [held(|c| c.chars, |e| e.chars), held(|c| c.words, |e| e.words)];
        // One certain rise is an alarm; without one, what is open keeps the answer open.
        held.into_iter().flatten().reduce(|a, b| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            _ => Some(false),
        })?
    });
    Some(QualityReport { cer, wer, wer_finals, alarm })
}
